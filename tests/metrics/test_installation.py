"""Gauges computed on request are correct and cheap, and omitted when they would be late."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest
import time_machine
from flask import Flask
from sqlalchemy import event, update
from sqlalchemy.exc import OperationalError

from app import metrics
from app.clock import now
from app.models import Site
from app.runtime import Runtime
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.metrics.samples import has, key_of, scrape, value
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Tenant]:
    """A tenant with two documents, on the embedded engine on disk."""
    app = make_app(make_settings(tmp_path, search_url=f"tantivy://{tmp_path / 'indexes'}"))
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1), page(2))
    yield tenant
    close_app(app)


def part_of(tenant: Tenant) -> Runtime:
    part: Runtime = tenant.app.extensions["runtime"]
    return part


def test_documents_index_size_and_disk_space_are_reported(installed: Tenant) -> None:
    before = scrape(installed.app)
    installed.index(*(page(number, content=f"word{number} " * 500) for number in range(3, 40)))

    after = scrape(installed.app)

    assert [value(samples, "search_documents") for samples in (before, after)] == [2, 39]
    sizes = [value(samples, "search_index_bytes", engine="tantivy") for samples in (before, after)]
    assert 0 < sizes[0] < sizes[1]
    assert 0 < value(after, "search_disk_free_bytes") <= value(after, "search_disk_bytes")
    assert value(after, "search_scrape_success", source="database") == 1


def test_deleted_sites_and_suspended_accounts_are_reported(installed: Tenant) -> None:
    before = scrape(installed.app)
    assert installed.browser.delete(f"/sites/{installed.site_id}").status_code == 200
    done = installed.app.test_cli_runner().invoke(args=["account", "suspend", installed.email])
    assert done.exit_code == 0

    after = scrape(installed.app)

    names = ("search_documents", "search_sites_deleted", "search_accounts_suspended")
    assert [value(before, name) for name in names] == [2, 0, 0]
    assert [value(after, name) for name in names] == [0, 1, 1]


@pytest.mark.slow
def test_waiting_events_and_outdated_indexes_are_reported(installed: Tenant) -> None:
    installed.find("page")
    installed.find("zeppelin")
    with part_of(installed).database.write() as session:
        session.execute(update(Site).values(revision=Site.revision + 1))

    samples = scrape(installed.app)

    assert value(samples, "search_events_waiting") == 2
    assert value(samples, "search_indexes_behind") == 1
    assert value(samples, "search_indexes_failing") == 0
    part_of(installed).events.flush()
    assert value(scrape(installed.app), "search_events_waiting") == 0


def test_failing_indexing_is_reported_with_its_duration(installed: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BackendUnavailable("too slow")

    monkeypatch.setattr(part_of(installed).engines.default, "upsert", refuse)
    assert installed.private.post("/api/v1/index/bulk", json={"documents": [page(9)]}).status_code == 503

    with time_machine.travel(now() + timedelta(hours=1)):
        samples = scrape(installed.app)

    assert value(samples, "search_indexes_behind") == value(samples, "search_indexes_failing") == 1
    assert 3600 <= value(samples, "search_indexes_behind_seconds") < 3700


def test_engine_without_a_size_is_omitted(app: Flask) -> None:
    samples = scrape(app)

    assert not has(samples, "search_index_bytes")
    assert 0.0 not in [found for (name, _), found in samples.items() if name == "search_scrape_success"]


def test_other_metrics_are_reported_while_the_database_is_unavailable(
    installed: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("away"))

    with monkeypatch.context() as patch:
        patch.setattr(part_of(installed).database, "read", refuse)
        samples = scrape(installed.app)

    assert not has(samples, "search_documents")
    assert value(samples, "search_scrape_success", source="database") == 0
    assert key_of("search_scrape_success", {"source": "database"}) in samples
    assert value(samples, "search_index_bytes", engine="tantivy") > 0
    assert has(samples, "http_requests_total")
    assert value(scrape(installed.app), "search_documents") == 2


def test_other_metrics_are_reported_while_the_engine_is_unavailable(
    installed: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BackendUnavailable

    monkeypatch.setattr(part_of(installed).engines.default, "index_bytes", refuse)

    samples = scrape(installed.app)

    assert not has(samples, "search_index_bytes")
    assert key_of("search_scrape_success", {"source": "indexes of tantivy"}) in samples
    assert value(samples, "search_scrape_success", source="indexes of tantivy") == 0
    assert value(samples, "search_documents") == 2


def test_hanging_engine_is_omitted_and_not_queried_again(installed: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PATIENCE_SECONDS", PATIENCE_SECONDS)
    goes_on, asked = threading.Event(), []

    def hang() -> int:
        asked.append(1)
        assert goes_on.wait(PATIENCE_SECONDS)
        return 12

    monkeypatch.setattr(part_of(installed).engines.default, "index_bytes", hang)

    for _ in range(2):
        # The time runs out when the engine's turn comes, after tables and events.
        moments = chain([0.0] * 3, repeat(PATIENCE_SECONDS))
        clocks = SimpleNamespace(monotonic=partial(next, moments), perf_counter=time.perf_counter)
        monkeypatch.setattr(metrics, "time", clocks)
        samples = scrape(installed.app)
        assert not has(samples, "search_index_bytes")
        assert value(samples, "search_documents") == 2
    assert len(asked) == 1
    goes_on.set()


def test_result_of_the_last_health_check_is_reported(installed: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise BackendUnavailable

    assert not has(scrape(installed.app), "search_dependency_up"), "the queue must not have been checked yet"
    monkeypatch.setattr(part_of(installed).engines.default, "check", refuse)
    part_of(installed).health.check()

    samples = scrape(installed.app)

    found = {
        name: value(samples, "search_dependency_up", dependency=name)
        for name in ("engine", "database", "disk", "counters")
    }
    assert found == {"engine": 0, "database": 1, "disk": 1, "counters": 1}
    assert key_of("search_dependency_check_seconds", {"dependency": "database"}) in samples


def test_number_of_queries_does_not_grow_with_the_number_of_sites(installed: Tenant) -> None:
    statements: list[str] = []
    engine = part_of(installed).database.engine
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))

    def ask() -> int:
        statements.clear()
        scrape(installed.app)
        return len(statements)

    few = ask()
    with part_of(installed).database.write() as session:
        for number in range(200):
            session.add(
                Site(
                    account_id=installed.account_id, name="s", url="https://example.com/", domain="example.com",
                    engine="tantivy", engine_index=f"none_{number}", created_at=now(), updated_at=now(),
                )
            )  # fmt: skip

    assert ask() == few
