"""Mails are sent through a server of the test."""

from tests.mail_installation import app, part, server

__all__ = ["app", "part", "server"]
