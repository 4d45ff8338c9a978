"""Webhooks whose owners are notified by mail."""

from tests.mail_installation import server, tenant

__all__ = ["server", "tenant"]
