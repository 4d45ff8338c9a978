"""The run queue: one open run per source, never lost, and never executed by two processes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.crawl.sources import runs
from app.crawl.sources.runs import LEASE, MAX_REQUESTED_URLS, Claim, ClaimState
from app.errors import ApiError
from app.models import RunPage, Site, Source, SourceRun
from app.storage.database import Database
from tests.callers import Tenant, register_tenant
from tests.crawl.sources.rows import add_source

MOMENT = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[time_machine.Coordinates]:
    with time_machine.travel(MOMENT, tick=False) as coordinates:
        yield coordinates


@pytest.fixture
def database(app: Flask, clock: time_machine.Coordinates) -> Database:
    return app.extensions["runtime"].database


@pytest.fixture
def source(app: Flask, tenant: Tenant, clock: time_machine.Coordinates) -> Source:
    return add_source(app, tenant)


def request(database: Database, source: Source) -> str:
    with database.write() as session:
        return runs.request_run(session, source).id


def claim(database: Database) -> Claim:
    with database.write() as session:
        claimed = runs.claim_run(session)
    assert claimed is not None
    return claimed


def claim_none(database: Database) -> bool:
    with database.write() as session:
        return runs.claim_run(session) is None


def renew(database: Database, claimed: Claim) -> ClaimState:
    with database.write() as session:
        return runs.renew_claim(session, claimed)


def end(database: Database, claimed: Claim, status: str = "finished") -> None:
    with database.write() as session:
        run = runs.lock_claimed_run(session, claimed)
        assert run is not None
        runs.end_run(run, status)


def load(database: Database, run_id: str) -> SourceRun:
    with database.read() as session:
        return session.get_one(SourceRun, run_id)


def test_requesting_a_run_while_one_is_open_returns_the_open_run(database: Database, source: Source) -> None:
    first = request(database, source)
    while_it_waits = request(database, source)
    claimed = claim(database)
    while_it_runs = request(database, source)
    end(database, claimed)
    afterwards = request(database, source)

    assert while_it_waits == while_it_runs == first
    assert afterwards != first


def test_running_run_cannot_be_claimed_again(database: Database, source: Source) -> None:
    request(database, source)
    claimed = claim(database)

    assert claim_none(database)
    assert load(database, claimed.run_id).status == "running"


def test_run_of_a_killed_process_can_be_claimed_after_the_lease_expires(
    database: Database, source: Source, clock: time_machine.Coordinates
) -> None:
    request(database, source)
    killed = claim(database)
    started_at = load(database, killed.run_id).started_at
    clock.shift(LEASE - timedelta(seconds=1))
    assert claim_none(database)
    clock.shift(timedelta(seconds=1))

    second = claim(database)

    assert second.run_id == killed.run_id
    assert load(database, second.run_id).started_at == started_at
    assert renew(database, killed) is ClaimState.LOST
    assert renew(database, second) is ClaimState.VALID


def test_renewed_claim_stays_valid(database: Database, source: Source, clock: time_machine.Coordinates) -> None:
    request(database, source)
    claimed = claim(database)

    for _ in range(5):
        clock.shift(LEASE * 0.9)
        assert renew(database, claimed) is ClaimState.VALID
        assert claim_none(database)


def test_run_that_is_handed_back_can_be_claimed_immediately(database: Database, source: Source) -> None:
    request(database, source)
    claimed = claim(database)

    with database.write() as session:
        runs.hand_back(session, claimed)

    assert claim(database).run_id == claimed.run_id


def test_lost_claim_can_neither_hand_back_nor_end_the_run(
    database: Database, source: Source, clock: time_machine.Coordinates
) -> None:
    request(database, source)
    lost = claim(database)
    clock.shift(LEASE)
    claim(database)

    with database.write() as session:
        runs.hand_back(session, lost)
        held = runs.lock_claimed_run(session, lost)

    assert held is None
    assert claim_none(database)


def test_oldest_run_is_claimed_first_and_accounts_alternate(
    app: Flask, database: Database, tenant: Tenant, clock: time_machine.Coordinates
) -> None:
    other = register_tenant(app, "eve@example.com")
    mine = [add_source(app, tenant) for _ in range(3)]
    theirs = add_source(app, other)
    asked = []
    for source in [*mine, theirs]:
        asked.append(request(database, source))
        clock.shift(1)

    claimed = [claim(database).run_id for _ in asked]

    assert claimed == [asked[0], asked[3], asked[1], asked[2]]


def test_queued_run_is_canceled_immediately(database: Database, source: Source) -> None:
    run_id = request(database, source)

    with database.write() as session:
        runs.cancel_run(session, source)

    run = load(database, run_id)
    assert (run.status, run.finished_at) == ("cancelled", MOMENT)
    assert claim_none(database)


def test_renewing_the_claim_of_a_canceled_run_returns_canceled(database: Database, source: Source) -> None:
    request(database, source)
    claimed = claim(database)

    with database.write() as session:
        runs.cancel_run(session, source)

    assert renew(database, claimed) is ClaimState.CANCELED


def test_canceling_without_an_open_run_returns_404(database: Database, source: Source) -> None:
    request(database, source)
    end(database, claim(database))

    with database.write() as session, pytest.raises(ApiError) as caught:
        runs.cancel_run(session, source)

    assert (caught.value.status, caught.value.code) == (404, "run_not_found")


def test_claim_on_a_deleted_sources_run_is_lost(database: Database, source: Source) -> None:
    request(database, source)
    claimed = claim(database)

    with database.write() as session:
        session.delete(session.get_one(Source, source.id))

    assert renew(database, claimed) is ClaimState.LOST


@pytest.mark.slow
def test_newest_fifty_runs_are_retained_and_listed_newest_first(
    database: Database, source: Source, clock: time_machine.Coordinates
) -> None:
    made = []
    for _ in range(52):
        made.append(request(database, source))
        end(database, claim(database))
        clock.shift(1)

    with database.write() as session:
        runs.delete_old_runs(session, source.id)
        page, total = runs.list_runs(session, source, limit=20, offset=0)
        newest = runs.newest_runs(session, [source.id])

    assert total == 50
    assert [run.id for run in page] == made[:-21:-1]
    assert newest[source.id].id == made[-1]


def test_run_of_another_source_returns_404(app: Flask, database: Database, tenant: Tenant, source: Source) -> None:
    run_id = request(database, source)

    with database.read() as session, pytest.raises(ApiError) as caught:
        runs.get_run(session, add_source(app, tenant), run_id)

    assert (caught.value.status, caught.value.code) == (404, "run_not_found")


def test_report_lists_skipped_pages_in_crawl_order(database: Database, source: Source) -> None:
    run_id = request(database, source)
    found = [("indexed", None), ("skipped", "robots"), ("failed", "timeout"), ("skipped", "robots"), ("waiting", None)]
    with database.write() as session:
        session.add_all(
            RunPage(run_id=run_id, url=f"https://example.com/{9 - n}", position=n, depth=1, status=state, reason=reason)
            for n, (state, reason) in enumerate(found)
        )

    with database.read() as session:
        run = runs.get_run(session, source, run_id)
        pages, total = runs.list_reported(session, run, limit=2, offset=1)
        reasons = runs.count_reasons(session, run)

    assert total == 3
    assert [(page.url, page.reason) for page in pages] == [
        ("https://example.com/7", "timeout"),
        ("https://example.com/6", "robots"),
    ]
    assert reasons == {"robots": 2, "timeout": 1}


def test_source_status_follows_its_newest_run(database: Database, source: Source) -> None:
    def status() -> str:
        with database.read() as session:
            return runs.source_status(runs.newest_runs(session, [source.id]).get(source.id))

    seen = [status()]
    request(database, source)
    seen.append(status())
    claimed = claim(database)
    seen.append(status())
    end(database, claimed, "failed")
    seen.append(status())

    assert seen == ["idle", "queued", "running", "failed"]


def ask(database: Database, source: Source, *urls: str) -> SourceRun:
    with database.write() as session:
        return runs.ensure_later_run(session, session.get_one(Source, source.id), list(urls) or None)


def waiting_options(database: Database, source: Source) -> object:
    with database.read() as session:
        return session.scalar(select(Source.next_options).where(Source.id == source.id))


def test_requests_for_a_queued_run_are_merged(database: Database, source: Source) -> None:
    first = ask(database, source, "a", "b")

    second = ask(database, source, "b", "c")

    assert (second.id, second.options) == (first.id, {"urls": ["a", "b", "c"]})
    assert ask(database, source).options == {}
    assert ask(database, source, "d").options == {}


def test_merging_requests_preserves_max_removed_percent(database: Database, source: Source) -> None:
    with database.write() as session:
        runs.request_run(session, source, urls=["a"], max_removed_percent=100)

    assert ask(database, source, "b").options == {"urls": ["a", "b"], "max_removed_percent": 100}


def test_merging_beyond_the_url_limit_reads_the_whole_source(database: Database, source: Source) -> None:
    assert len(ask(database, source, *map(str, range(MAX_REQUESTED_URLS))).options["urls"]) == MAX_REQUESTED_URLS

    assert ask(database, source, "one more").options == {}


def test_urls_requested_during_a_run_are_queued_when_it_ends(database: Database, source: Source) -> None:
    request(database, source)
    claimed = claim(database)

    assert ask(database, source, "a").id == claimed.run_id
    ask(database, source, "b")

    assert waiting_options(database, source) == {"urls": ["a", "b"]}
    with database.write() as session:
        run = runs.lock_claimed_run(session, claimed)
        assert run is not None
        runs.end_run(run, "finished")
        session.flush()
        runs.follow_run(session, session.get_one(Source, source.id), run)
    assert waiting_options(database, source) is None
    with database.read() as session:
        following = runs.find_open_run(session, source)
        assert following is not None
        assert (following.status, following.options) == ("queued", {"urls": ["a", "b"]})


def test_canceling_a_run_cancels_its_follow_up(database: Database, source: Source) -> None:
    request(database, source)
    claim(database)
    ask(database, source, "a")

    with database.write() as session:
        runs.cancel_run(session, session.get_one(Source, source.id))

    assert waiting_options(database, source) is None


def test_no_follow_up_run_starts_on_a_paused_site(database: Database, source: Source) -> None:
    request(database, source)
    claimed = claim(database)
    ask(database, source, "a")

    with database.write() as session:
        session.get_one(Site, source.site_id).active = False
        run = runs.lock_claimed_run(session, claimed)
        assert run is not None
        runs.end_run(run, "failed")
        session.flush()
        runs.follow_run(session, session.get_one(Source, source.id), run)

    assert waiting_options(database, source) is None
    with database.read() as session:
        assert runs.find_open_run(session, source) is None
