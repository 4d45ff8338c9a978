"""Mail tests use their own SMTP server."""

from tests.mail_installation import app, part, server, stranger, tenant

__all__ = ["app", "part", "server", "stranger", "tenant"]
