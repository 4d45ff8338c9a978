"""Mail tests use an SMTP server of their own."""

from tests.mail_installation import app, part, server, stranger, tenant

__all__ = ["app", "part", "server", "stranger", "tenant"]
