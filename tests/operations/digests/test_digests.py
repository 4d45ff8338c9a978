"""The weekly digest lists searches without results, once a week, for accounts with something to report."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine
from flask import Flask

from app.crawl.sources.runs import end_run, request_run
from app.models import Source
from app.operations.digests import Miss, SiteMisses, queue_due_digests, week_of, write_digest
from app.runtime import Runtime
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant
from tests.email_server import Delivered, MailServer
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_ok

WEDNESDAY = datetime(2031, 5, 14, 9, 0, tzinfo=UTC)
MONDAY = datetime(2031, 5, 19, 7, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    """Freeze the time on the Wednesday before."""
    with time_machine.travel(WEDNESDAY, tick=False) as made:
        yield made


def search(tenant: Tenant, *queries: str) -> None:
    for query in queries:
        tenant.find(query)
    tenant.app.extensions["runtime"].events.flush()


def delivered(part: Runtime, server: MailServer) -> list[Delivered]:
    part.email_sender.send_due()
    taken, server.emails[:] = list(server.emails), []
    return taken


def test_weekly_digest_is_sent_on_monday_with_searches_without_results(
    part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    tenant.index(page(1))
    search(tenant, "parking", "parking", "zeppelin", "page")
    assert queue_due_digests(part) == 0
    clock.move_to(MONDAY - timedelta(seconds=1))
    assert queue_due_digests(part) == 0
    clock.move_to(MONDAY)

    assert (queue_due_digests(part), queue_due_digests(part)) == (1, 0)

    (mail,) = delivered(part, server)
    assert mail.to == [tenant.email]
    assert mail.message["Subject"] == "What visitors could not find on Pages"
    assert "Pages: 3 of 4 searches had no results\n- “parking” (2 searches)\n- “zeppelin” (1 search)" in mail.text
    assert f"https://search.example.com/api/analytics/inbox?site_id={tenant.site_id}" in mail.text
    assert "<li>“zeppelin” (1 search)</li>" in mail.html
    assert mail.message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_next_digest_covers_only_the_following_week(
    part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    search(tenant, "parking")
    clock.move_to(MONDAY)
    assert queue_due_digests(part) == 1
    assert ["parking" in mail.text for mail in delivered(part, server)] == [True]
    search(tenant, "zeppelin")
    clock.shift(timedelta(days=7))

    assert queue_due_digests(part) == 1

    assert [("parking" in mail.text, "zeppelin" in mail.text) for mail in delivered(part, server)] == [(False, True)]


def test_no_digest_is_sent_if_every_search_had_results(
    part: Runtime, tenant: Tenant, clock: time_machine.Traveller
) -> None:
    tenant.index(page(1))
    search(tenant, "page")
    clock.move_to(MONDAY)

    assert queue_due_digests(part) == 0


def test_digest_reports_failed_crawls_and_quotas_with_links(
    part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    tenant.index(page(1), page(2), page(3), page(4))
    tenant.set_plan("pro", documents=5)
    wanted = {"url": "https://www.example.com/docs/", "kind": "sitemap"}
    source = assert_ok(tenant.private.post(f"/api/sites/{tenant.site_id}/sources", json=wanted), 201)["source"]
    with part.database.write() as session:
        run = request_run(session, session.get_one(Source, source["id"]))
        end_run(run, "failed", error={"code": "unreachable", "message": "The host does not answer."})
    clock.move_to(MONDAY)

    assert (queue_due_digests(part), queue_due_digests(part)) == (1, 0)

    (mail,) = delivered(part, server)
    assert mail.message["Subject"] == "To do for your site search"
    assert "The host does not answer." in " ".join(mail.text.split())
    assert f"https://search.example.com/api/sites/{tenant.site_id}/sources/{source['id']}" in mail.text
    assert "Your sites have 4 of the 5 pages that your plan allows." in " ".join(mail.text.split())
    assert "https://search.example.com/plans" in mail.text
    assert "still have no results" not in mail.text


def test_digest_omits_ignored_queries_and_queries_that_now_have_results(
    part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    search(tenant, "parking", "zeppelin", "museum")
    tenant.index(page(1, content="Parking is free."))
    tenant.browser.put("/api/analytics/inbox", json={"site_id": tenant.site_id, "query": "museum", "ignored": True})
    clock.move_to(MONDAY)
    queue_due_digests(part)

    (mail,) = delivered(part, server)
    assert ["parking" in mail.text, "zeppelin" in mail.text, "museum" in mail.text] == [False, True, False]


def test_digest_excludes_paused_sites_and_other_accounts(
    app: Flask, part: Runtime, tenant: Tenant, clock: time_machine.Traveller
) -> None:
    register_tenant(app, "eve@example.com")
    search(tenant, "zeppelin")
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    clock.move_to(MONDAY)

    assert queue_due_digests(part) == 0


def test_no_digest_is_sent_to_accounts_that_disabled_it(
    part: Runtime, tenant: Tenant, clock: time_machine.Traveller
) -> None:
    search(tenant, "zeppelin")
    tenant.browser.put("/profile", json={"weekly_digest": False})
    clock.move_to(MONDAY)

    assert queue_due_digests(part) == 0
    tenant.browser.put("/profile", json={"weekly_digest": True})
    assert queue_due_digests(part) == 0, "the next digest must be due next Monday"


def test_new_account_gets_its_first_digest_next_monday(
    app: Flask, part: Runtime, clock: time_machine.Traveller
) -> None:
    clock.move_to(MONDAY)
    new = register_tenant(app, "new@example.com")
    search(new, "zeppelin")

    assert queue_due_digests(part) == 0
    clock.shift(timedelta(days=6, hours=23))
    assert queue_due_digests(part) == 0
    clock.shift(timedelta(hours=1))
    assert queue_due_digests(part) == 1


def test_engine_outage_delays_only_the_digests_of_its_sites(
    app: Flask,
    part: Runtime,
    tenant: Tenant,
    clock: time_machine.Traveller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = register_tenant(app, "bo@example.com")
    search(tenant, "zeppelin")
    search(other, "zeppelin")
    clock.move_to(MONDAY)
    run = part.searcher.run

    def run_unless_away(site, *args, **options):
        if site.id == tenant.site_id:
            raise BackendUnavailable("away")
        return run(site, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(part.searcher, "run", run_unless_away)
        assert (queue_due_digests(part), queue_due_digests(part)) == (1, 0)

    assert (queue_due_digests(part), queue_due_digests(part)) == (1, 0)


def test_concurrent_processes_queue_a_digest_once(part: Runtime, tenant: Tenant, clock: time_machine.Traveller) -> None:
    search(tenant, "zeppelin")
    clock.move_to(MONDAY)
    gate = threading.Barrier(3)

    def send(_: int) -> int:
        gate.wait(PATIENCE_SECONDS)
        return queue_due_digests(part)

    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(send, range(3))) == 1


def test_background_jobs_send_the_digest(
    app: Flask, part: Runtime, tenant: Tenant, server: MailServer, clock: time_machine.Traveller
) -> None:
    search(tenant, "zeppelin")
    clock.move_to(MONDAY)

    app.extensions["jobs"].run_all()

    assert len(delivered(part, server)) == 1


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        (datetime(2031, 5, 18, 23, 59, tzinfo=UTC), date(2031, 5, 12)),
        (datetime(2031, 5, 19, 6, 59, tzinfo=UTC), date(2031, 5, 12)),
        (datetime(2031, 5, 19, 7, 0, tzinfo=UTC), date(2031, 5, 19)),
        (datetime(2031, 5, 25, 23, 0, tzinfo=UTC), date(2031, 5, 19)),
    ],
)
def test_digest_week_begins_on_monday_at_seven_utc(moment: datetime, week: date) -> None:
    assert week_of(moment) == week


def test_visitor_queries_in_a_digest_are_shortened_and_escaped() -> None:
    long = "see https://evil.example " * 9
    site = SiteMisses(1, "<b>Shop</b>", 9, 9, (Miss(long, 2), Miss("<script>", 1)))

    letter = write_digest((site, site), "https://search.example.com", "https://search.example.com/stop")

    assert letter.subject == "What visitors could not find on 2 sites"
    assert long not in letter.text
    assert "<script>" not in letter.html
    assert "&lt;b&gt;Shop&lt;/b&gt;" in letter.html
