"""A health check detects failures and their start, and no request waits for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from flask import Flask

from app.counters.values import CountersUnavailable
from app.runtime import Runtime
from app.services.health import COUNTERS, DATABASE, DISK, ENGINE, INDEXES_SECONDS, HealthMonitor
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings

BEGAN, LATER = datetime(2026, 3, 10, 12, 0, tzinfo=UTC), datetime(2026, 3, 10, 12, 5, tzinfo=UTC)


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Tenant]:
    """A tenant with a document, with all files in one folder."""
    settings = make_settings(
        tmp_path,
        search_url=f"tantivy://{tmp_path / 'indexes'}",
        database_url=f"sqlite:///{tmp_path / 'service.db'}",
        database_timeout_seconds=0.1,
    )
    app = make_app(settings)
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1))
    yield tenant
    close_app(app)


@pytest.fixture
def part(installed: Tenant) -> Runtime:
    found: Runtime = installed.app.extensions["runtime"]
    return found


@pytest.fixture
def health(part: Runtime) -> HealthMonitor:
    return part.health


def failing(health: HealthMonitor) -> dict[str, datetime | None]:
    """Return the dependencies that failed in the last check, with the start of each failure."""
    found = {name: health.failing_since(name) for name in health.probe_results}
    return {name: since for name, since in found.items() if since is not None}


def test_healthy_service_has_no_failing_dependencies_or_missing_indexes(health: HealthMonitor) -> None:
    assert health.probe_results == {}
    health.check()

    assert set(health.probe_results) == {DATABASE, DISK, COUNTERS, ENGINE}
    assert failing(health) == {}
    assert health.missing_indexes == {}


def test_failure_keeps_its_start_time_until_it_ends_and_is_logged_once(
    health: HealthMonitor, part: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise BackendUnavailable("It is away.")

    with monkeypatch.context() as patch:
        patch.setattr(part.engines.default, "check", refuse)
        with time_machine.travel(BEGAN, tick=False):
            health.check()
        with time_machine.travel(LATER, tick=False):
            health.check()
        assert failing(health) == {ENGINE: BEGAN}
        assert health.engine_failing_since(part.engines.default.identity) == BEGAN
        assert health.engine_failing_since("another") is None
    health.check()

    assert failing(health) == {}
    told = [record.getMessage() for record in caplog.records if record.name == "app.services.health"]
    assert told == ["the engine fails: It is away.", "the engine works again"]


def test_each_dependency_is_checked_even_if_others_fail(
    health: HealthMonitor, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise CountersUnavailable

    monkeypatch.setattr(part.counters, "check", refuse)
    monkeypatch.setattr(health, "_folder", part.settings.data_path / "gone")
    health.check()

    assert set(failing(health)) == {DISK, COUNTERS}


def test_database_locked_by_another_process_is_reported_as_failing(health: HealthMonitor, part: Runtime) -> None:
    with closing(sqlite3.connect(part.settings.data_path / "service.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        health.check()
        with part.database.read() as session:
            session.connection()
        assert set(failing(health)) == {DATABASE}
        other.execute("ROLLBACK")
    health.check()

    assert failing(health) == {}


def test_unexpected_exceptions_of_a_check_are_raised(
    health: HealthMonitor, part: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(part.counters, "check", break_down)
    with pytest.raises(ZeroDivisionError):
        health.check()


class TestMissingIndexes:
    """A missing index is detected within a minute, and its return with the next check."""

    def test_missing_index_is_reported_with_its_start_until_it_is_restored(
        self, health: HealthMonitor, part: Runtime, installed: Tenant
    ) -> None:
        (index,) = part.engines.default.list_indexes()
        part.engines.default.delete_index(index)
        with time_machine.travel(BEGAN, tick=False):
            health.check()
        assert health.missing_indexes == {installed.site_id: BEGAN}

        installed.find("page")
        health.check()
        assert health.missing_indexes == {}

    def test_indexes_are_checked_once_a_minute_while_none_is_missing(
        self, health: HealthMonitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[float] = []
        clock = [1000.0]
        monkeypatch.setattr("app.services.health.time.monotonic", lambda: clock[0])
        monkeypatch.setattr("app.services.health.missing_indexes", lambda *_: looks.append(clock[0]) or [])

        for seconds in (0, 10, INDEXES_SECONDS - 11, 2, 10):
            clock[0] += seconds
            health.check()

        assert looks == [1000.0, 1000.0 + INDEXES_SECONDS + 1]


def test_health_check_runs_as_a_separate_background_job(app: Flask) -> None:
    (job,) = [job for job in app.extensions["jobs"].jobs if job.name == "health"]
    job.run()

    assert app.extensions["runtime"].health.probe_results
    assert job.apart, "a hanging server must not delay other jobs"
