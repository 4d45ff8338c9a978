"""Pages of an installation that sends e-mail."""

from tests.mail_installation import app, part, server, stranger, tenant

__all__ = ["app", "part", "server", "stranger", "tenant"]
