"""Pages of an installation that sends mail."""

from tests.mail_installation import app, part, server, stranger, tenant

__all__ = ["app", "part", "server", "stranger", "tenant"]
