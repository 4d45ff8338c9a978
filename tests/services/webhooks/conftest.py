"""Webhooks whose owners are notified by email."""

from tests.email_installation import server, tenant

__all__ = ["server", "tenant"]
