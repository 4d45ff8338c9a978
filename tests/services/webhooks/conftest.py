"""Webhooks whose owners are told by mail."""

from tests.mail_installation import part, server

__all__ = ["part", "server"]
