"""Queued emails are sent once by any process, and failed ones are retried for a day."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from flask import Flask
from sqlalchemy import func, select

from app.clock import Backoff
from app.models import QueuedEmail
from app.runtime import Runtime, create_runtime
from app.services.emails import delivery
from app.services.emails.delivery import CLAIM, EmailSender
from app.services.emails.letters import Letter, queue_email
from tests.callers import Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_server import MailServer
from tests.patience import PATIENCE_SECONDS
from tests.server import free_port

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as made:
        yield made


def queue(part: Runtime, to: str = "ann@example.org", **options: object) -> None:
    with part.database.write() as session:
        queue_email(session, to, Letter("Hello", ("Hello",)), kind="test", **options)


def waiting(part: Runtime) -> int:
    with part.database.read() as session:
        return session.scalar(select(func.count()).select_from(QueuedEmail)) or 0


def forget_pauses(email_sender: EmailSender) -> None:
    """Let a mailer contact an unavailable server again."""
    email_sender._away = Backoff()


def test_email_is_sent_only_after_its_transaction_has_committed(part: Runtime, server: MailServer) -> None:
    with part.database.read() as session:
        queue_email(session, "eve@example.org", Letter("Never", ()), kind="test")
    queue(part)

    assert part.email_sender.send_due() == 1
    assert part.email_sender.send_due() == 0

    (mail,) = server.emails
    assert (mail.to, mail.message["Subject"], mail.text) == (["ann@example.org"], "Hello", "Hello\n")
    assert waiting(part) == 0


def test_background_jobs_send_queued_emails(app: Flask, part: Runtime, server: MailServer) -> None:
    queue(part)

    app.extensions["jobs"].run_all()

    assert len(server.emails) == 1


def test_email_that_expires_first_is_sent_first(part: Runtime, server: MailServer) -> None:
    queue(part, "digest@example.org")
    queue(part, "reset@example.org", expires_at=datetime.now(UTC) + timedelta(minutes=30))

    part.email_sender.send_due()

    assert [mail.to for mail in server.emails] == [["reset@example.org"], ["digest@example.org"]]


def test_concurrent_machines_and_threads_send_each_email_once(part: Runtime, server: MailServer) -> None:
    for number in range(30):
        queue(part, f"n{number}@example.org")
    other = create_runtime(part.settings, background=False)
    gate = threading.Barrier(6)

    def send(email_sender: EmailSender) -> int:
        gate.wait(PATIENCE_SECONDS)
        return email_sender.send_due()

    with ThreadPoolExecutor(6) as threads:
        sent = list(threads.map(send, [part.email_sender, other.email_sender] * 3))
    other.database.dispose()

    assert sum(sent) == 30
    assert sorted(mail.to[0] for mail in server.emails) == sorted(f"n{number}@example.org" for number in range(30))
    assert waiting(part) == 0


def test_email_of_a_killed_process_is_sent_again_with_the_same_message_id(
    part: Runtime, server: MailServer, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(part)
    with monkeypatch.context() as patch:
        # Killed after the server accepted the email, and before the row was deleted.
        patch.setattr(EmailSender, "_finish", lambda *_: None)
        part.email_sender.send_due()
    assert part.email_sender.send_due() == 0

    clock.shift(CLAIM)

    assert part.email_sender.send_due() == 1
    assert len({mail.message["Message-ID"] for mail in server.emails}) == 1
    assert waiting(part) == 0


def test_process_with_an_expired_claim_does_not_remove_the_email(
    part: Runtime, server: MailServer, clock: time_machine.Traveller
) -> None:
    queue(part)
    slow = part.email_sender._claim()
    assert slow is not None
    clock.shift(CLAIM)
    quick = part.email_sender._claim()

    part.email_sender._finish(slow)

    assert quick is not None
    assert waiting(part) == 1


@pytest.mark.slow
def test_email_to_an_unavailable_server_is_retried_with_growing_pauses_until_it_is_sent(
    part: Runtime, server: MailServer, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PAUSES", replace(delivery.PAUSES, chance=lambda: 1.0))
    queue(part)
    away = EmailSender(part.database, replace(part.settings, smtp_url=f"smtp://127.0.0.1:{free_port()}"), {})
    tries = []
    for second in range(0, 3600, 10):
        with part.database.read() as session:
            before = session.scalar(select(QueuedEmail.attempts))
        forget_pauses(away)
        away.send_due()
        with part.database.read() as session:
            if session.scalar(select(QueuedEmail.attempts)) != before:
                tries.append(second)
        clock.shift(10)

    assert tries == [0, 10, 30, 70, 150, 310, 630, 1270, 2170, 3070]
    clock.shift(timedelta(minutes=15))
    part.email_sender.send_due()
    assert len(server.emails) == 1


def test_unavailable_mail_server_is_contacted_once_for_many_emails(
    part: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        queue(part, f"n{number}@example.org")
    away = EmailSender(part.database, replace(part.settings, smtp_url=f"smtp://127.0.0.1:{free_port()}"), {})

    for _ in range(5):
        away.send_due()

    with part.database.read() as session:
        assert sorted(session.scalars(select(QueuedEmail.attempts))) == [0, 0, 0, 0, 1]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["emails are waiting"]


def test_undelivered_email_is_dropped_and_logged_after_a_day(
    part: Runtime, clock: time_machine.Traveller, caplog: pytest.LogCaptureFixture
) -> None:
    queue(part)
    away = EmailSender(part.database, replace(part.settings, smtp_url=f"smtp://127.0.0.1:{free_port()}"), {})
    away.send_due()
    clock.shift(timedelta(hours=23, minutes=59))
    away.send_due()
    assert waiting(part) == 1

    clock.shift(timedelta(minutes=1))
    # A claim of the last minute may still succeed.
    clock.shift(timedelta(minutes=15))
    away.send_due()

    assert waiting(part) == 0
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().endswith("(test) after 1 attempt")


def test_permanently_rejected_recipient_is_dropped_and_other_emails_are_sent(
    part: Runtime, server: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.rejections = {"ann@example.org": "550 5.1.1 No such user"}
    queue(part, "ann@example.org")
    queue(part, "bo@example.org")

    assert part.email_sender.send_due() == 1

    assert [mail.to for mail in server.emails] == [["bo@example.org"]]
    assert waiting(part) == 0
    assert "was rejected and is discarded: 550 5.1.1 No such user" in caplog.text


def test_temporarily_rejected_recipient_is_retried(
    part: Runtime, server: MailServer, clock: time_machine.Traveller
) -> None:
    server.rejections = {"ann@example.org": "450 4.2.0 Greylisted"}
    queue(part)
    assert part.email_sender.send_due() == 0
    server.rejections = {}
    assert part.email_sender.send_due() == 0

    clock.shift(10)

    assert part.email_sender.send_due() == 1


def test_timed_out_email_is_retried_with_the_same_message_id(
    part: Runtime, server: MailServer, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_SECONDS", 0.3)
    server.hangs = True
    queue(part)
    assert part.email_sender.send_due() == 0
    server.hangs = False
    clock.shift(10)
    monkeypatch.undo()

    assert part.email_sender.send_due() == 1
    assert len({mail.message["Message-ID"] for mail in server.emails}) == 1


def test_deleting_an_account_deletes_its_queued_emails(app: Flask, part: Runtime, server: MailServer) -> None:
    tenant: Tenant = register_tenant(app, "ann@example.com")
    queue(part, account_id=tenant.account_id)

    app.test_cli_runner().invoke(args=["account", "delete", tenant.email, "--yes"])
    part.email_sender.send_due()

    assert (server.emails, waiting(part)) == ([], 0)


def test_stop_request_ends_sending_before_the_next_email(part: Runtime, server: MailServer) -> None:
    queue(part)
    queue(part)

    part.email_sender.send_due(lambda: len(server.emails) == 1)

    assert (len(server.emails), waiting(part)) == (1, 1)


def test_no_email_is_sent_without_a_mail_server(tmp_path: Path) -> None:
    made = make_app(make_settings(tmp_path / "mute"))
    part: Runtime = made.extensions["runtime"]
    queue(part)

    assert part.email_sender.send_due() == 0
    close_app(made)


def test_setting_the_clock_back_does_not_delay_a_queued_email(
    part: Runtime, server: MailServer, clock: time_machine.Traveller
) -> None:
    clock.shift(timedelta(hours=1))
    queue(part)
    clock.shift(-timedelta(hours=1))

    assert part.email_sender.send_due() == 1
    assert waiting(part) == 0
