"""Pages of an installation that sends email."""

from tests.mail_installation import app, server, stranger, tenant

__all__ = ["app", "server", "stranger", "tenant"]
