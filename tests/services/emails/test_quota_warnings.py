"""Owners are warned once at 80 and at 100 percent of a quota."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.models import QueuedEmail
from app.runtime import Runtime, create_runtime
from app.services.emails.notices import QuotaUse, warn_owners, write_warning
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.email_server import MailServer
from tests.patience import PATIENCE_SECONDS
from tests.services.webhooks.receiver import add_webhook, deliveries

MORNING = datetime(2031, 5, 14, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(MORNING, tick=False) as made:
        yield made


def search(tenant: Tenant, times: int) -> None:
    """Search, and copy the searches to SQL."""
    for _ in range(times):
        assert tenant.search.get("/v1/search", query_string={"q": "page"}).status_code == 200
    part: Runtime = tenant.app.extensions["runtime"]
    part.usage_copies.record(tenant.account_id)
    part.usage_copies.finish()


def warn(part: Runtime) -> int:
    return warn_owners(part.database, part.counters, part.plans, part.settings)


def subjects(part: Runtime, server: MailServer) -> list[str]:
    """Return the subjects of the emails received since the last call."""
    part.email_sender.send_due()
    taken, server.emails[:] = list(server.emails), []
    return [str(mail.message["Subject"]) for mail in taken]


NEAR_SEARCHES = "80 percent of today’s searches are used"
FULL_SEARCHES = "Today’s searches are used up; further ones are rejected until 00:00 UTC"
NEAR_PAGES = "80 percent of your plan’s pages are used"
FULL_PAGES = "Your plan’s pages are used up; new ones are rejected"


def test_search_quota_warnings_are_sent_at_80_and_100_percent_once_a_day(
    part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    tenant.set_plan("pro", searches_per_day=10)
    search(tenant, 7)
    assert warn(part) == 0
    search(tenant, 1)
    assert warn(part) == 1
    assert warn(part) == 0
    search(tenant, 1)
    assert warn(part) == 0
    search(tenant, 1)
    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [NEAR_SEARCHES, FULL_SEARCHES]

    clock.shift(timedelta(days=1))
    assert warn(part) == 0
    search(tenant, 8)

    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [NEAR_SEARCHES]


def test_reaching_both_thresholds_at_once_sends_only_the_graver_warning(
    part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    tenant.set_plan("pro", searches_per_day=3)
    search(tenant, 3)

    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [FULL_SEARCHES]


def test_request_quota_warnings_are_sent_at_80_and_100_percent_once_a_day(
    part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    clock.shift(timedelta(days=2))
    tenant.set_plan("pro", requests_per_day=10)
    tenant.index(page(1))
    for _ in range(6):
        tenant.private.get("/sites")
    assert warn(part) == 0
    tenant.private.get("/sites")
    assert (warn(part), warn(part)) == (1, 0)
    for _ in range(3):
        tenant.private.get("/sites")
    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [
        "80 percent of a day’s requests are used",
        "A day’s requests are used up; further ones are rejected until 17 May 2031, 00:00 UTC",
    ]

    clock.shift(timedelta(days=1))
    tenant.index(*(page(number) for number in range(2)))
    for _ in range(7):
        tenant.private.get("/sites")

    assert (warn(part), warn(part)) == (1, 0)


def test_page_quota_warnings_are_repeated_only_after_usage_dropped_clearly(
    part: Runtime, tenant: Tenant, server: MailServer
) -> None:
    tenant.set_plan("pro", documents=10)
    tenant.index(*(page(number) for number in range(8)))
    assert (warn(part), warn(part)) == (1, 0)
    tenant.index(page(8), page(9))
    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [NEAR_PAGES, FULL_PAGES]

    for number in (9, 8, 7):
        tenant.private.delete(f"/api/v1/index/destroy?id=page-{number}")
        warn(part)
    tenant.index(page(7))
    assert warn(part) == 0, "one added and one removed page are not worth a notice"
    for number in (7, 6):
        tenant.private.delete(f"/api/v1/index/destroy?id=page-{number}")
    assert warn(part) == 0
    tenant.index(page(6), page(7))

    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [NEAR_PAGES]


def test_larger_plan_has_its_own_quota_warnings(part: Runtime, tenant: Tenant, server: MailServer) -> None:
    tenant.set_plan("pro", searches_per_day=4)
    search(tenant, 4)
    warn(part)
    tenant.set_plan("pro", searches_per_day=5)

    assert (warn(part), warn(part)) == (1, 0)
    assert subjects(part, server) == [FULL_SEARCHES, NEAR_SEARCHES]


def test_unlimited_or_zero_quotas_cause_no_warnings(part: Runtime, tenant: Tenant) -> None:
    tenant.set_plan("pro", searches_per_day="unlimited", documents=0)
    search(tenant, 3)

    assert warn(part) == 0


def test_concurrent_processes_send_each_quota_warning_once(part: Runtime, tenant: Tenant, server: MailServer) -> None:
    tenant.set_plan("pro", searches_per_day=5, documents=1)
    tenant.index(page(1))
    search(tenant, 5)
    parts = [create_runtime(part.settings, background=False) for _ in range(4)]
    gate = threading.Barrier(4)

    def warn_together(each: Runtime) -> int:
        gate.wait(PATIENCE_SECONDS)
        return warn(each)

    with ThreadPoolExecutor(4) as threads:
        warned = sum(threads.map(warn_together, parts))
    for each in parts:
        each.database.dispose()

    assert warned == 2
    assert sorted(subjects(part, server)) == [FULL_SEARCHES, FULL_PAGES]


def test_quota_warnings_are_sent_only_to_the_affected_account(
    part: Runtime, tenant: Tenant, stranger: Tenant, server: MailServer
) -> None:
    tenant.set_plan("pro", searches_per_day=1)
    search(tenant, 1)
    warn(part)

    part.email_sender.send_due()

    assert [mail.to for mail in server.emails] == [[tenant.email]]


def test_background_jobs_send_quota_warnings(app: Flask, part: Runtime, tenant: Tenant, server: MailServer) -> None:
    tenant.set_plan("pro", searches_per_day=1)
    search(tenant, 1)

    app.extensions["jobs"].run_all()

    assert subjects(part, server) + subjects(part, server) == [FULL_SEARCHES]


@pytest.mark.parametrize(
    ("quota", "used", "told"),
    [
        ("searches", 800, "800 of the 1,000 searches that its plan allows per day"),
        ("searches", 1000, "has used all 1,000 searches"),
        ("requests", 800, "made 800 of the 1,000 requests that its plan allows per day"),
        ("requests", 1000, "Until 1 Jan 2031, 00:00 UTC, requests with its private and search keys are rejected"),
        ("documents", 800, "800 of the 1,000 pages that your plan allows"),
        ("documents", 1200, "have 1,200 pages, and your plan allows 1,000"),
    ],
)
def test_quota_warning_states_consequences_and_remedies(quota: str, used: int, told: str) -> None:
    use = QuotaUse(1, quota, "1924992000", used, 1000)

    text = " ".join(write_warning(use, "https://search.example.com", "help@example.com").text.split())

    assert told in text
    assert "rejected" in text or "cannot search" in text
    assert "What you can do:" in text
    assert "Or ask the operator of this service (help@example.com) for a larger plan." in text
    assert "https://search.example.com/dashboard" in text


def test_quota_warning_webhooks_are_sent_without_a_mail_server(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path))
    part: Runtime = app.extensions["runtime"]
    tenant = register_tenant(app, "ann@example.com")
    webhook, _ = add_webhook(tenant, "https://example.com/hook", "quota.warning")
    tenant.set_plan("pro", searches_per_day=10)
    search(tenant, 8)
    app.extensions["jobs"].run_all()
    assert warn(part) == 0
    search(tenant, 2)
    assert warn(part) == 1

    told = [each["payload"]["data"] for each in deliveries(tenant, webhook)]
    assert sorted(told, key=lambda data: data["percent"]) == [
        {"quota": "searches", "percent": 80, "used": 8, "allowed": 10},
        {"quota": "searches", "percent": 100, "used": 10, "allowed": 10},
    ]
    with part.database.read() as session:
        assert session.scalars(select(QueuedEmail)).all() == []
    close_app(app)
