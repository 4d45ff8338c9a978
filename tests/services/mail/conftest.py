"""Mails are sent through a server of the test."""

from tests.mail_installation import app, part, server, stranger, tenant

__all__ = ["app", "part", "server", "stranger", "tenant"]
