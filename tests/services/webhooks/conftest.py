"""Webhooks whose owners are notified by mail."""

from tests.mail_installation import part, server, tenant

__all__ = ["part", "server", "tenant"]
