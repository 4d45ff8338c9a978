"""Background jobs: a site that cannot be indexed is retried rarely and delays no other site."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from flask import Flask
from sqlalchemy import insert, select

from app.clock import Backoff, Pauses, now
from app.jobs import SITES_AT_ONCE, Jobs
from app.models import Site
from app.services.health import ENGINE, ProbeResult
from backends.errors import BackendUnavailable
from tests.callers import Tenant
from tests.patience import PATIENCE_SECONDS

HOUR = 3600


class Clock:
    """A monotonic clock that moves only when a test sets it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def jobs(app: Flask, clock: Clock) -> Iterator[Jobs]:
    jobs = Jobs(app.extensions["runtime"])
    jobs._lagging_sites._failing = Backoff(clock, Pauses(2.0, 300.0, chance=lambda: 1.0))
    yield jobs
    jobs._stopping.set()
    for thread in jobs._threads:
        thread.join()


class Engine:
    """Replace the indexer: record each lagging site and fail the chosen sites."""

    def __init__(self, app: Flask, monkeypatch: pytest.MonkeyPatch):
        self.failing: set[int] = set()
        self.tried: list[int] = []
        self._database = app.extensions["runtime"].database
        monkeypatch.setattr(app.extensions["runtime"].indexer, "apply", self.apply)

    def apply(self, site_id: int, revision: int) -> None:
        self.tried.append(site_id)
        if site_id in self.failing:
            raise BackendUnavailable("It cannot be indexed.")
        with self._database.write() as session:
            session.get_one(Site, site_id).applied_revision = revision


@pytest.fixture
def engine(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(app, monkeypatch)


def make_sites(app: Flask, tenant: Tenant, count: int) -> list[int]:
    """Create sites with an outdated index."""
    common = {
        "account_id": tenant.account_id, "name": "Lagging", "url": "https://example.com", "domain": "example.com",
        "created_at": now(), "updated_at": now(), "engine": "memory:", "revision": 1,
    }  # fmt: skip
    with app.extensions["runtime"].database.write() as session:
        session.execute(insert(Site), [common] * count)
        return list(session.scalars(select(Site.id).where(Site.name == "Lagging").order_by(Site.id)))


def run(jobs: Jobs, *names: str) -> None:
    for job in jobs.jobs:
        if job.name in (names or ("lagging-sites", "failing-sites")):
            job.run()


@pytest.mark.slow
def test_failing_site_is_retried_with_backoff(
    app: Flask, tenant: Tenant, jobs: Jobs, clock: Clock, engine: Engine
) -> None:
    engine.failing = set(make_sites(app, tenant, 1))
    moments = []

    for second in range(HOUR):
        clock.now = 1000.0 + second
        run(jobs)
        moments += [second] * len(engine.tried)
        engine.tried.clear()

    assert moments[:9] == [0, 2, 6, 14, 30, 62, 126, 254, 510]
    assert {later - before for before, later in pairwise(moments[8:])} == {300}


def test_recovered_site_is_indexed_without_backoff(
    app: Flask, tenant: Tenant, jobs: Jobs, clock: Clock, engine: Engine
) -> None:
    (site_id,) = make_sites(app, tenant, 1)
    engine.failing = {site_id}
    run(jobs)
    clock.now += 2
    engine.failing = set()
    run(jobs)
    assert engine.tried == [site_id, site_id]

    with app.extensions["runtime"].database.write() as session:
        session.get_one(Site, site_id).revision = 2
    run(jobs)

    assert engine.tried == [site_id, site_id, site_id]


def test_failing_site_is_retried_when_its_engine_works_again(
    app: Flask, tenant: Tenant, jobs: Jobs, clock: Clock, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site_id,) = make_sites(app, tenant, 1)
    engine.failing = {site_id}
    health = app.extensions["runtime"].health
    monkeypatch.setattr(health, "_probe_results", {ENGINE: ProbeResult(now(), 0.0)})
    for _ in range(8):
        clock.now += 300
        run(jobs)
    tries = len(engine.tried)
    engine.failing = set()
    run(jobs)
    assert len(engine.tried) == tries

    health._probe_results = {ENGINE: ProbeResult(None, 0.0)}
    run(jobs)

    assert len(engine.tried) == tries + 1


def test_many_failing_sites_do_not_delay_a_healthy_site(app: Flask, tenant: Tenant, jobs: Jobs, engine: Engine) -> None:
    *failing, other = make_sites(app, tenant, SITES_AT_ONCE + 6)
    engine.failing = set(failing)

    run(jobs)
    run(jobs)

    assert other in engine.tried
    assert len(engine.tried) == SITES_AT_ONCE + 6


@pytest.mark.slow
def test_slow_failing_site_does_not_delay_other_jobs(
    app: Flask, tenant: Tenant, jobs: Jobs, clock: Clock, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, other = make_sites(app, tenant, 2)
    engine.failing = {failing, other}
    run(jobs)
    clock.now += 2
    with app.extensions["runtime"].database.write() as session:
        session.get_one(Site, other).applied_revision = 1
    begun, served, over = threading.Event(), threading.Event(), threading.Event()

    def apply(site_id: int, _: int) -> None:
        if site_id == failing:
            begun.set()
            over.wait(PATIENCE_SECONDS)
            raise BackendUnavailable("It cannot be indexed.")
        served.set()

    monkeypatch.setattr(app.extensions["runtime"].indexer, "apply", apply)
    jobs.start()
    try:
        assert begun.wait(PATIENCE_SECONDS)
        with app.extensions["runtime"].database.write() as session:
            session.get_one(Site, other).revision = 2
        assert served.wait(PATIENCE_SECONDS)
    finally:
        over.set()
