"""A sync removes all documents that it did not see, or none, despite concurrent writers and killed processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import func, select

from app.errors import ApiError, ErrorCode
from app.models import Site, StoredDocument, Sync, UsageDay
from app.runtime import Runtime
from app.services import syncs
from app.services.indexing.documents import _Batch, _put, _Stored
from app.services.syncs import Syncs
from backends.errors import BackendUnavailable
from schemas.validation.documents import ValidDocument, read_document
from tests.callers import Tenant, page, register_tenant

START = datetime(2024, 5, 14, 9, 30, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


class Sender:
    """A client that sends a site's documents with syncs."""

    def __init__(self, part: Runtime, tenant: Tenant):
        self.part = part
        self.account_id, self.site_id = tenant.account_id, tenant.site_id
        self.limits = part.plans["enterprise"]

    def put(self, numbers: range | list[int], **how: Any) -> None:
        self.part.writer.put(self.account_id, self.limits, self.site_id, documents(numbers), **how)

    def begin(self, source: str = "wordpress", **how: Any) -> str:
        return self.part.syncs.begin(self.account_id, self.site_id, source, **how).id

    def finish(self, sync_id: str, *percent: int) -> int:
        return self.part.syncs.finish(self.account_id, self.site_id, sync_id, *percent)

    def get(self, sync_id: str) -> Sync:
        return self.part.syncs.get(self.account_id, self.site_id, sync_id)

    def mark_seen(self, sync_id: str, *numbers: int) -> set[str]:
        return self.part.syncs.mark_seen(self.account_id, self.site_id, sync_id, [f"page-{n}" for n in numbers])

    def sync_all(self, numbers: range | list[int], source: str = "wordpress") -> None:
        sync_id = self.begin(source)
        self.put(numbers, sync_id=sync_id)
        self.finish(sync_id, 100)

    def numbers(self) -> list[int]:
        with self.part.database.read() as session:
            ids = session.scalars(
                select(StoredDocument.id).where(
                    StoredDocument.site_id == self.site_id, StoredDocument.body.is_not(None)
                )
            )
            return sorted(int(identifier.removeprefix("page-")) for identifier in ids)

    def indexed(self) -> list[int]:
        with self.part.database.read() as session:
            site = session.get_one(Site, self.site_id)
        ids = self.part.engines.get_engine(site.engine).document_ids(site.engine_index)
        return sorted(int(identifier.removeprefix("page-")) for identifier in ids)

    def sources(self) -> dict[int, str]:
        with self.part.database.read() as session:
            rows = session.execute(select(StoredDocument.id, StoredDocument.source))
            return {int(row.id.removeprefix("page-")): row.source for row in rows}

    def changed_documents(self) -> int:
        with self.part.database.read() as session:
            query = select(func.sum(UsageDay.documents_changed)).where(UsageDay.account_id == self.account_id)
            return session.scalar(query) or 0

    def count(self) -> int:
        with self.part.database.read() as session:
            return session.get_one(Site, self.site_id).document_count


def documents(numbers: range | list[int], **fields: Any) -> list[ValidDocument]:
    return [read_document(page(number, **fields)) for number in numbers]


@pytest.fixture
def ann(part: Runtime, tenant: Tenant) -> Sender:
    return Sender(part, tenant)


@pytest.fixture
def eve(part: Runtime, stranger: Tenant) -> Sender:
    return Sender(part, stranger)


def code_of(error: pytest.ExceptionInfo[ApiError]) -> ErrorCode:
    return error.value.code


def test_finished_sync_removes_unseen_documents_of_its_source_only(ann: Sender) -> None:
    ann.sync_all(range(5))
    ann.put([9])

    sync_id = ann.begin()
    ann.put([1, 2, 7], sync_id=sync_id)
    ann.mark_seen(sync_id, 3)

    assert ann.finish(sync_id) == 2
    assert ann.numbers() == ann.indexed() == [1, 2, 3, 7, 9]
    assert ann.count() == 5
    ended = ann.get(sync_id)
    assert (ended.status, ended.seen, ended.removed) == ("finished", 4, 2)


def test_seen_count_counts_distinct_documents(ann: Sender) -> None:
    sync_id = ann.begin()
    ann.put([1, 2], sync_id=sync_id)
    ann.put([2, 3], sync_id=sync_id)
    assert ann.mark_seen(sync_id, 3, 4) == {"page-3"}

    assert ann.get(sync_id).seen == 3


def test_marking_a_document_as_seen_does_not_change_it(ann: Sender, part: Runtime) -> None:
    ann.sync_all([1])
    with part.database.read() as session:
        before = session.execute(select(StoredDocument.revision, StoredDocument.changed_at)).one()

    ann.mark_seen(ann.begin(), 1)

    with part.database.read() as session:
        assert session.execute(select(StoredDocument.revision, StoredDocument.changed_at)).one() == before


def test_document_rewritten_by_another_source_during_a_sync_is_not_removed(ann: Sender) -> None:
    ann.sync_all([1, 2, 3])
    ann.sync_all([4], source="shop")

    sync_id = ann.begin()
    ann.put([1], sync_id=sync_id)
    ann.put([2])
    shop = ann.begin("shop")
    ann.put([3, 4], sync_id=shop)

    assert ann.finish(sync_id) == 0
    assert ann.numbers() == [1, 2, 3, 4]
    assert ann.sources() == {1: "wordpress", 2: "api", 3: "shop", 4: "shop"}
    assert ann.mark_seen(shop, 1, 3) == {"page-3"}, "documents that another source replaced must be sent again"


def test_sync_of_a_crawl_source_removes_its_unseen_documents(ann: Sender) -> None:
    ann.put([1, 2], source="src_museum")

    sync_id = ann.begin("src_museum")
    ann.mark_seen(sync_id, 1)

    assert ann.finish(sync_id) == 1
    assert ann.numbers() == [1]


@pytest.mark.parametrize(
    ("have", "seen", "percent", "removed"),
    [
        (50, 40, 20, 10),  # Up to ten are always allowed.
        (12, 2, 0, 10),
        (10, 0, 0, 10),
        (55, 44, 20, 11),  # Exactly a fifth.
        (54, 43, 20, None),
        (54, 43, 21, 11),
        (20, 9, 54, None),
        (20, 9, 55, 11),
        (30, 0, 99, None),
        (30, 0, 100, 30),
    ],
)
def test_removing_more_than_ten_documents_and_a_fifth_requires_a_higher_limit(
    ann: Sender, have: int, seen: int, percent: int, removed: int | None
) -> None:
    ann.sync_all(range(have))
    sync_id = ann.begin()
    if seen:
        ann.put(range(seen), sync_id=sync_id)

    if removed is None:
        with pytest.raises(ApiError) as rejected:
            ann.finish(sync_id, percent)
        assert code_of(rejected) == ErrorCode.SYNC_REMOVES_TOO_MUCH
        assert str(have - seen) in rejected.value.message
        assert ann.count() == have
        assert ann.finish(sync_id, 100) == have - seen
    else:
        assert ann.finish(sync_id, percent) == removed
    assert ann.numbers() == list(range(seen))
    assert ann.count() == seen


def test_second_sync_of_a_source_is_rejected_unless_it_replaces_the_first(ann: Sender, eve: Sender) -> None:
    first = ann.begin()
    ann.begin("shop")
    eve.begin()

    with pytest.raises(ApiError) as running:
        ann.begin()
    assert code_of(running) == ErrorCode.SYNC_RUNNING

    second = ann.begin(replace=True)
    assert ann.get(first).status == "abandoned"
    with pytest.raises(ApiError) as gone:
        ann.put([1], sync_id=first)
    assert code_of(gone) == ErrorCode.SYNC_NOT_FOUND
    ann.put([1], sync_id=second)
    assert ann.numbers() == [1]


def test_ended_sync_rejects_calls_and_its_status_remains_for_a_day(ann: Sender, clock: time_machine.Traveller) -> None:
    finished, abandoned, lapsed = ann.begin("one"), ann.begin("two"), ann.begin("three")
    ann.finish(finished)
    ann.part.syncs.abandon(ann.account_id, ann.site_id, abandoned)
    clock.shift(timedelta(hours=24))

    calls = {
        "put": lambda sync_id: ann.put([1], sync_id=sync_id),
        "mark_seen": lambda sync_id: ann.mark_seen(sync_id, 1),
        "finish": ann.finish,
        "abandon": lambda sync_id: ann.part.syncs.abandon(ann.account_id, ann.site_id, sync_id),
    }
    for sync_id in (finished, abandoned, lapsed):
        for name, call in calls.items():
            with pytest.raises(ApiError) as gone:
                call(sync_id)
            assert code_of(gone) == ErrorCode.SYNC_NOT_FOUND, name
    for sync_id in (finished, abandoned):
        with pytest.raises(ApiError) as forgotten:
            ann.get(sync_id)
        assert code_of(forgotten) == ErrorCode.SYNC_NOT_FOUND
    assert ann.get(lapsed).status == "lapsed"
    clock.shift(timedelta(hours=23, minutes=59))
    assert ann.get(lapsed).status == "lapsed"
    assert ann.numbers() == []


@pytest.mark.parametrize("call", ["put", "mark_seen", "get", "refused finish"])
def test_every_call_extends_a_sync(ann: Sender, clock: time_machine.Traveller, call: str) -> None:
    ann.sync_all(range(20))
    sync_id = ann.begin()
    clock.shift(timedelta(hours=23))
    match call:
        case "put":
            ann.put([1], sync_id=sync_id)
        case "mark_seen":
            ann.mark_seen(sync_id, 1)
        case "get":
            ann.get(sync_id)
        case _:
            with pytest.raises(ApiError):
                ann.finish(sync_id)
    clock.shift(timedelta(hours=23))
    ann.part.syncs.lapse()

    assert ann.get(sync_id).status == "running"


def test_lapsed_syncs_are_ended_and_later_deleted_in_the_background(
    ann: Sender, part: Runtime, clock: time_machine.Traveller
) -> None:
    sync_id = ann.begin()
    clock.shift(timedelta(hours=25))
    part.syncs.lapse()
    with part.database.read() as session:
        sync = session.scalars(select(Sync)).one()
        assert (sync.id, sync.status, sync.ended_at) == (sync_id, "lapsed", START + timedelta(hours=24))
    ann.begin()
    clock.shift(timedelta(hours=23))
    part.syncs.lapse()

    with part.database.read() as session:
        assert [sync.status for sync in session.scalars(select(Sync))] == ["running"]


def test_lapsed_sync_does_not_block_a_new_one(ann: Sender, clock: time_machine.Traveller) -> None:
    ann.begin()
    clock.shift(timedelta(hours=24))

    ann.begin()


def test_syncs_of_another_tenant_return_sync_not_found(ann: Sender, eve: Sender) -> None:
    sync_id = ann.begin()
    for call in (
        lambda: eve.get(sync_id),
        lambda: eve.put([1], sync_id=sync_id),
        lambda: eve.mark_seen(sync_id, 1),
        lambda: eve.finish(sync_id),
        lambda: eve.part.syncs.abandon(eve.account_id, eve.site_id, sync_id),
    ):
        with pytest.raises(ApiError) as missing:
            call()
        assert code_of(missing) == ErrorCode.SYNC_NOT_FOUND
    with pytest.raises(ApiError) as stranger:
        eve.part.syncs.get(eve.account_id, ann.site_id, sync_id)
    assert code_of(stranger) == ErrorCode.SITE_NOT_FOUND
    assert ann.get(sync_id).status == "running"


def test_concurrent_batches_of_several_sources_keep_their_own_sources(ann: Sender, part: Runtime) -> None:
    wordpress, shop = ann.begin(), ann.begin("shop")
    ended = ann.begin("old")
    part.syncs.abandon(ann.account_id, ann.site_id, ended)
    with part.database.write() as session:
        batches = [
            _Batch(ann.limits, documents([1, 2]), sync_id=wordpress),
            _Batch(ann.limits, documents([2, 3]), sync_id=shop),
            _Batch(ann.limits, documents([4]), sync_id=ended),
            _Batch(ann.limits, documents([3, 5])),
            _Batch(ann.limits, documents([1, 6]), sync_id=wordpress),
            _Batch(ann.limits, documents([7]), source="src_museum"),
        ]
        outcomes = _put(ann.account_id, ann.site_id, 400, session, batches).result

    assert [outcome.created if isinstance(outcome, _Stored) else type(outcome) for outcome in outcomes] == [
        2, 1, ApiError, 1, 1, 1,
    ]  # fmt: skip
    assert ann.sources() == {1: "wordpress", 2: "shop", 3: "api", 5: "api", 6: "wordpress", 7: "src_museum"}
    assert (ann.get(wordpress).seen, ann.get(shop).seen) == (3, 2)
    assert ann.finish(wordpress) == ann.finish(shop) == 0


def test_sweep_removes_documents_in_steps_and_counts_each_once(
    ann: Sender, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs, "SWEEP_STEP", 3)
    ann.sync_all(range(20))
    ann.put([100])
    counted = ann.changed_documents()
    sync_id = ann.begin()
    ann.mark_seen(sync_id, 0, 7, 19)

    assert ann.finish(sync_id, 100) == 17
    assert ann.numbers() == ann.indexed() == [0, 7, 19, 100]
    assert ann.changed_documents() == counted + 17


def test_sweep_that_empties_a_site_forgets_its_fields(ann: Sender, part: Runtime) -> None:
    sync_id = ann.begin()
    part.writer.put(ann.account_id, ann.limits, ann.site_id, documents([1], colour="red"), sync_id=sync_id)
    ann.finish(sync_id)

    ann.finish(ann.begin())

    with part.database.read() as session:
        site = session.get_one(Site, ann.site_id)
        assert (site.document_count, site.field_kinds) == (0, {})


def interrupt(part: Runtime, monkeypatch: pytest.MonkeyPatch, sender: Sender, sync_id: str) -> None:
    """Kill the sweep after one step."""

    class Killed(BaseException):
        pass

    steps = iter([False, True])
    original = syncs.unseen_rows

    def unseen_rows(*args: Any) -> Any:
        if next(steps):
            raise Killed
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(syncs, "unseen_rows", unseen_rows)
        with pytest.raises(Killed):
            sender.finish(sync_id, 100)


def test_interrupted_sweep_is_continued_by_the_next_finish_call(
    ann: Sender, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs, "SWEEP_STEP", 5)
    ann.sync_all(range(40))
    counted = ann.changed_documents()
    sync_id = ann.begin()
    ann.mark_seen(sync_id, 39)
    interrupt(part, monkeypatch, ann, sync_id)
    assert ann.get(sync_id).removed == 5
    assert ann.count() == 35

    assert ann.finish(sync_id, 0) == 39
    assert ann.numbers() == ann.indexed() == [39]
    assert ann.changed_documents() == counted + 39


def test_interrupted_sweep_is_continued_in_the_background(
    ann: Sender, app: Flask, part: Runtime, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    monkeypatch.setattr(syncs, "SWEEP_STEP", 5)
    ann.sync_all(range(40))
    sync_id = ann.begin()
    interrupt(part, monkeypatch, ann, sync_id)
    end_syncs = next(job for job in app.extensions["jobs"].jobs if job.name == "syncs")

    end_syncs.run()
    assert ann.count() == 35, "another process may still be sweeping"
    clock.shift(timedelta(minutes=1))
    end_syncs.run()

    assert ann.numbers() == ann.indexed() == []
    assert (ann.get(sync_id).status, ann.get(sync_id).removed) == ("finished", 40)


def test_interrupted_sweep_does_not_lapse_and_can_be_abandoned(
    ann: Sender, part: Runtime, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    monkeypatch.setattr(syncs, "SWEEP_STEP", 5)
    ann.sync_all(range(40))
    sync_id = ann.begin()
    interrupt(part, monkeypatch, ann, sync_id)
    clock.shift(timedelta(hours=30))
    part.syncs.lapse()
    assert ann.get(sync_id).status == "running"

    part.syncs.abandon(ann.account_id, ann.site_id, sync_id)
    clock.shift(timedelta(minutes=5))
    assert part.syncs.interrupted() == []
    assert ann.count() == 35


def test_sweep_is_retried_after_an_engine_outage_and_counted_once(
    ann: Sender, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.sync_all(range(15))
    counted = ann.changed_documents()
    sync_id = ann.begin()
    ann.mark_seen(sync_id, 14)

    def away(*args: Any) -> None:
        raise BackendUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(part.indexer, "apply", away)
        for _ in range(2):
            with pytest.raises(BackendUnavailable):
                ann.finish(sync_id, 100)
    assert ann.numbers() == [14]
    assert len(ann.indexed()) == 15

    assert ann.finish(sync_id) == 14
    assert ann.indexed() == [14]
    assert ann.changed_documents() == counted + 14


@pytest.mark.slow
def test_concurrent_sweepers_of_one_sync_remove_and_count_each_document_once(
    ann: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs, "SWEEP_STEP", 2)
    ann.sync_all(range(60))
    counted = ann.changed_documents()
    sync_id = ann.begin()
    # Each has its own queue, as in another process.
    others = [Syncs(ann.part.database, ann.part.counters, ann.part.indexer) for _ in range(3)]
    outcomes: list[int | ErrorCode] = []

    def finish(service: Syncs) -> None:
        try:
            outcomes.append(service.finish(ann.account_id, ann.site_id, sync_id, 100))
        except ApiError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=finish, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 60 in outcomes
    assert set(outcomes) <= {60, ErrorCode.SYNC_NOT_FOUND}
    assert ann.numbers() == ann.indexed() == []
    assert ann.changed_documents() == counted + 60


def test_documents_sent_during_the_sweep_are_not_removed(
    ann: Sender, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs, "SWEEP_STEP", 2)
    ann.sync_all(range(6))
    sync_id = ann.begin()
    original = syncs.unseen_rows
    calls = 0

    def unseen_rows(session: Any, sync: Any, *rest: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            _put(ann.account_id, ann.site_id, 400, session, [_Batch(ann.limits, documents([4]), sync_id=sync_id)])
            _put(ann.account_id, ann.site_id, 400, session, [_Batch(ann.limits, documents([5]))])
        return original(session, sync, *rest)

    monkeypatch.setattr(syncs, "unseen_rows", unseen_rows)

    assert ann.finish(sync_id) == 4
    assert ann.numbers() == ann.indexed() == [4, 5]


def test_paused_site_rejects_sync_calls(ann: Sender, tenant: Tenant) -> None:
    sync_id = ann.begin()
    assert tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False}).status_code == 200
    for call in (
        lambda: ann.begin("shop"),
        lambda: ann.mark_seen(sync_id, 1),
        lambda: ann.finish(sync_id),
    ):
        with pytest.raises(ApiError) as paused:
            call()
        assert code_of(paused) == ErrorCode.SITE_INACTIVE
    assert ann.get(sync_id).status == "running"
    ann.part.syncs.abandon(ann.account_id, ann.site_id, sync_id)


def test_deleting_a_site_deletes_its_syncs(app: Flask, ann: Sender, tenant: Tenant, part: Runtime) -> None:
    ann.begin()
    kept = register_tenant(app, "kim@example.com")
    Sender(part, kept).begin()
    assert tenant.browser.delete(f"/sites/{tenant.site_id}?purge=true").status_code == 200
    part.run_engine_tasks()

    with part.database.read() as session:
        assert [sync.site_id for sync in session.scalars(select(Sync))] == [kept.site_id]


def test_number_of_syncs_per_site_is_limited(part: Runtime, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncs, "MAX_SYNCS", 3)
    sender = Sender(part, tenant)
    ended = [sender.begin("blog", replace=True) for _ in range(6)]
    running = [sender.begin(name) for name in ("shop", "wiki")]

    with pytest.raises(ApiError) as rejected:
        sender.begin("news")
    assert rejected.value.code is ErrorCode.SYNC_RUNNING
    sender.begin("shop", replace=True)

    with part.database.read() as session:
        kept = set(session.scalars(select(Sync.id)))
    assert {ended[-1], running[1]} <= kept
    assert len(kept) <= 2 * 3 + 1
    assert ended[0] not in kept
