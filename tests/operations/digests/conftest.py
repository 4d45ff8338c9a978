"""Mail tests use their own SMTP server."""

from tests.mail_installation import app, server, stranger, tenant

__all__ = ["app", "server", "stranger", "tenant"]
