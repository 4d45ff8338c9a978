"""Pages of an installation that sends email."""

from tests.email_installation import app, server, stranger, tenant

__all__ = ["app", "server", "stranger", "tenant"]
