"""Searches during an outage of the counter store are charged once afterwards."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.values import CountersUnavailable, UncountedSearch
from app.runtime import Runtime
from app.services.usage.daily_usage import LateCharges, usage_between
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway
from tests.responses import assert_error, assert_ok
from tests.shared_servers import counters_away

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
EVENING = datetime(2031, 5, 14, 23, 59, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def part(tenant: Tenant) -> Runtime:
    tenant.index(page(1))
    runtime: Runtime = tenant.app.extensions["runtime"]
    return runtime


def used(part: Runtime, tenant: Tenant, day: datetime | None = None) -> int:
    return part.counters.usage_of_day(tenant.account_id, (day or datetime.now(UTC)).date()).used


def journals(part: Runtime) -> list[Path]:
    return list((part.settings.data_path / "charges").glob("*.journal"))


def test_searches_during_a_counter_outage_are_charged_once_afterwards(tenant: Tenant, part: Runtime) -> None:
    tenant.find("page")
    with counters_away(tenant.app):
        for _ in range(3):
            tenant.find("page")
        with pytest.raises(CountersUnavailable):
            part.late_charges.settle()

    assert (used(part, tenant), part.late_charges.settle(), used(part, tenant)) == (1, 3, 4)
    assert (part.late_charges.settle(), used(part, tenant)) == (0, 4)
    assert journals(part) == []


def test_failed_searches_during_a_counter_outage_are_not_charged(tenant: Tenant, part: Runtime) -> None:
    with counters_away(tenant.app):
        assert_error(tenant.search.get("/v1/search?q=page&sort=nowhere"), 400, "invalid_sort")
        assert_ok(tenant.private.get("/sites"))
        assert_error(tenant.search.get("/nowhere"), 404, "not_found")

    assert (part.late_charges.settle(), used(part, tenant)) == (0, 0)


def test_searches_during_a_counter_outage_can_exceed_the_quota_and_later_ones_get_429(
    tenant: Tenant, part: Runtime
) -> None:
    tenant.set_plan("pro", searches_per_day=2)
    with counters_away(tenant.app):
        for _ in range(3):
            tenant.find("page")
    part.late_charges.settle()

    assert_error(tenant.search.get("/v1/search?q=page"), 429, "rate_limit_exceeded")
    assert used(part, tenant) == 3


def test_late_charges_count_on_the_day_of_the_search_and_are_copied(tenant: Tenant, part: Runtime) -> None:
    with time_machine.travel(EVENING, tick=False) as clock:
        with counters_away(tenant.app):
            tenant.find("page")
        clock.shift(timedelta(minutes=2))
        part.late_charges.settle()
        part.usage_copies.finish()

        assert (used(part, tenant, EVENING), used(part, tenant, EVENING + timedelta(days=1))) == (1, 0)
        with part.database.read() as session:
            days = usage_between(session, None, tenant.account_id, EVENING.date(), EVENING.date())
        assert [(copied.day, copied.used) for copied in days] == [(EVENING.date(), 1)]


def test_failed_refund_during_a_counter_outage_is_applied_later(
    tenant: Tenant, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_away(**_: Any) -> None:
        raise CountersUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(part.counters, "refund", be_away)
        for _ in range(2):
            assert_error(tenant.search.get("/v1/search?q=page&sort=nowhere"), 400, "invalid_sort")
        assert Gateway(tenant).send({"q": "page", "filter": "nowhere = 1"}).status_code == 400
    assert used(part, tenant) == 3

    assert (part.late_charges.settle(), used(part, tenant)) == (3, 0)


def test_keystrokes_at_the_gateway_during_a_counter_outage_are_charged_as_one_search(
    tenant: Tenant, part: Runtime
) -> None:
    gateway = Gateway(tenant)
    with counters_away(tenant.app):
        for text in ("p", "pa", "pag", "page"):
            assert gateway.send({"q": text}).status_code == 200

    assert (part.late_charges.settle(), used(part, tenant)) == (4, 1)


def test_interrupted_settlement_charges_each_search_once(
    tenant: Tenant, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counters_away(tenant.app):
        for _ in range(5):
            tenant.find("page")
    settle, moments = part.counters.settle, iter(range(10))

    def settle_and_go_away(search: Any, **details: Any) -> None:
        settle(search, **details)
        if next(moments) == 2:
            raise CountersUnavailable("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(part.counters, "settle", settle_and_go_away)
        with pytest.raises(CountersUnavailable):
            part.late_charges.settle()
    assert used(part, tenant) == 3

    assert (part.late_charges.settle(), used(part, tenant)) == (5, 5)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[CounterStore]:
    store = create_counters(f"sqlite://{tmp_path}/elsewhere.db")
    yield store
    store.close()


@pytest.mark.slow
def test_charges_left_by_a_killed_process_are_settled_once(
    tenant: Tenant, part: Runtime, elsewhere: CounterStore, tmp_path: Path
) -> None:
    program = """
        import os, signal, sys
        from pathlib import Path
        from types import SimpleNamespace
        from app.counters.values import UncountedSearch
        from app.services.usage.daily_usage import LateCharges

        charges = LateCharges(Path(sys.argv[1]), SimpleNamespace(), SimpleNamespace())
        for number in range(7):
            charges.charge(UncountedSearch(1, None, float(sys.argv[2])))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    folder = tmp_path / "left"
    arguments = [str(folder), str(NOON.timestamp())]
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program), *arguments], check=False)
    assert killed.returncode == -9
    (journal,) = folder.glob("*.journal")
    with journal.open("ab") as file:
        file.write(journal.read_bytes()[:30])  # As if it had died in the middle of a line.
    late = [LateCharges(folder, elsewhere, part.usage_copies) for _ in range(2)]

    assert [charges.settle() for charges in late] == [7, 0]
    assert elsewhere.usage_of_day(1, datetime.now(UTC).date()).used == 7


def test_charge_journal_of_a_live_process_is_not_settled_by_another(
    part: Runtime, elsewhere: CounterStore, tmp_path: Path
) -> None:
    mine, another = (LateCharges(tmp_path / "shared", elsewhere, part.usage_copies) for _ in range(2))
    mine.charge(UncountedSearch(1, None, datetime.now(UTC).timestamp()))

    assert [another.settle(), mine.settle()] == [0, 1]


def test_search_succeeds_and_is_logged_when_its_charge_cannot_be_recorded(
    tenant: Tenant, part: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    (part.settings.data_path / "charges").write_text("no directory")
    with counters_away(tenant.app):
        assert tenant.found_ids("page") == ["page-1"]

    assert "cannot record a search to be charged" in caplog.text
    with suppress(NotADirectoryError):
        assert part.late_charges.settle() == 0


def test_stopping_the_jobs_settles_late_charges(tenant: Tenant, part: Runtime) -> None:
    with counters_away(tenant.app):
        tenant.find("page")
    tenant.app.extensions["jobs"].stop()

    assert used(part, tenant) == 1
