"""Mail tests use their own SMTP server."""

from tests.email_installation import app, server, stranger, tenant

__all__ = ["app", "server", "stranger", "tenant"]
