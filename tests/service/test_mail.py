"""Emails of a service that is killed while its mail server is unavailable are sent later, each exactly once."""

from __future__ import annotations

from collections import Counter

import pytest
import requests

from tests.email_server import mail_server
from tests.server import Server, free_port
from tests.service.clients import eventually, register
from tests.service.stored import change

pytestmark = pytest.mark.service

OWNERS = 8
SUBJECTS = ("Confirm your email address", "Choose a new password")
"""Subjects of the emails for registration and for a forgotten password."""


@pytest.fixture(scope="module")
def mail_port() -> int:
    """The port of the future mail server."""
    return free_port()


@pytest.fixture
def settings(mail_port: int) -> dict[str, str | int]:
    return {
        "smtp_url": f"smtp://127.0.0.1:{mail_port}",
        "mail_from": "search@example.com",
        "public_url": "http://127.0.0.1",
    }


def test_emails_queued_before_a_kill_during_a_mail_server_outage_are_sent_once(
    fresh_servers: list[Server], mail_port: int
) -> None:
    servers = fresh_servers
    emails = [f"owner-{number}@example.com" for number in range(OWNERS)]
    for email in emails:
        register(servers, email, kinds=())
    for number, email in enumerate(emails):
        url = f"{servers[number % len(servers)].base_url}/password/forgot"
        assert requests.post(url, data={"email": email}, allow_redirects=False, timeout=60).status_code == 303

    for server in servers:
        server.kill()
    # End the five-minute claim of an email that was claimed at the moment of the kill.
    change(servers[0], "UPDATE mails SET due_at = created_at")
    asked = [(email, subject) for email in emails for subject in SUBJECTS]
    with mail_server(port=mail_port) as inbox:
        for server in servers:
            server.start()
            requests.get(f"{server.base_url}/login", timeout=60)

        def all_have_come() -> None:
            assert {(mail.to[0], mail.message["Subject"]) for mail in inbox.emails} == set(asked)

        eventually(all_have_come, seconds=60)

    assert Counter((mail.to[0], mail.message["Subject"]) for mail in inbox.emails) == dict.fromkeys(asked, 1)
