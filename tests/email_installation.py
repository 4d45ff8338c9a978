"""An installation that sends email, and its mail server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select

from app.models import Member
from app.runtime import Runtime
from app.services.accounts.members import confirm_email
from app.services.emails.letters import discard_queued_emails
from tests.callers import Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_server import MailServer, mail_server, mail_settings


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as made:
        yield made


@pytest.fixture
def app(tmp_path: Path, server: MailServer) -> Iterator[Flask]:
    """An installation that sends email."""
    made = make_app(make_settings(tmp_path, **mail_settings(server)))
    yield made
    close_app(made)


@pytest.fixture
def tenant(app: Flask, part: Runtime) -> Tenant:
    """A customer with a confirmed email address."""
    made = register_tenant(app, "ann@example.com")
    confirm_everybody(part)
    return made


@pytest.fixture
def stranger(app: Flask, part: Runtime, tenant: Tenant) -> Tenant:
    """Another customer with a confirmed email address."""
    made = register_tenant(app, "eve@example.com")
    confirm_everybody(part)
    return made


def confirm_everybody(part: Runtime) -> None:
    """Confirm all email addresses, and discard the confirmation emails."""
    with part.database.write() as session:
        for member in session.scalars(select(Member)):
            confirm_email(member)
        discard_queued_emails(session)
