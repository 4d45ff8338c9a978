"""The schedule of runs: each source is due at its own time, without missed or duplicate runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.crawl.sources.schedule import PERIODS, next_run_at, queue_due
from app.models import Site, Source, SourceRun
from tests.callers import Tenant
from tests.crawl.sources.rows import add_source

MOMENT = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize("schedule", ["hourly", "daily", "weekly"])
def test_source_is_due_once_per_period_at_a_fixed_time(schedule: str) -> None:
    first = next_run_at("src_a", schedule, MOMENT)
    assert first is not None
    second = next_run_at("src_a", schedule, first)

    assert second == first + PERIODS[schedule]


def test_late_run_does_not_delay_the_next_run() -> None:
    due = next_run_at("src_a", "daily", MOMENT)
    assert due is not None

    assert next_run_at("src_a", "daily", due + timedelta(hours=5)) == next_run_at("src_a", "daily", due)


def test_due_times_of_many_sources_are_spread_over_the_period() -> None:
    due = [next_run_at(f"src_{number}", "daily", MOMENT) for number in range(240)]

    hours = {moment.hour for moment in due if moment is not None}
    assert hours == set(range(24))


@pytest.mark.parametrize("schedule", ["hourly", "daily", "weekly"])
def test_first_scheduled_run_is_due_within_one_period(schedule: str) -> None:
    period = PERIODS[schedule]
    assert period is not None

    for number in range(500):
        due = next_run_at(f"src_{number}", schedule, MOMENT)
        assert due is not None
        assert timedelta(0) < due - MOMENT <= period


def test_source_without_a_schedule_is_never_due() -> None:
    assert next_run_at("src_a", "none", MOMENT) is None


@time_machine.travel(MOMENT, tick=False)
def test_source_that_missed_a_week_of_daily_runs_gets_one_run(app: Flask, tenant: Tenant) -> None:
    database = app.extensions["runtime"].database
    source = add_source(app, tenant, schedule="daily", next_run_at=MOMENT - timedelta(days=7))

    with database.write() as session:
        queued = [queue_due(session, MOMENT), queue_due(session, MOMENT)]
    with database.read() as session:
        runs = session.scalars(select(SourceRun)).all()
        due = session.get_one(Source, source.id).next_run_at

    assert queued == [1, 0]
    assert [(run.source_id, run.status) for run in runs] == [(source.id, "queued")]
    assert due is not None
    assert timedelta(0) < due - MOMENT <= timedelta(hours=36)


@pytest.mark.parametrize("hours_late", [0, 1, 13, 23])
def test_next_run_is_due_at_least_half_a_period_after_a_late_run(app: Flask, tenant: Tenant, hours_late: int) -> None:
    database = app.extensions["runtime"].database
    due = next_run_at("src_0123456789abcdef", "daily", MOMENT)
    assert due is not None
    moment = due + timedelta(hours=hours_late)
    add_source(app, tenant, id="src_0123456789abcdef", schedule="daily", next_run_at=due)

    with time_machine.travel(moment, tick=False), database.write() as session:
        queue_due(session, moment)
    with database.read() as session:
        following = session.get_one(Source, "src_0123456789abcdef").next_run_at

    assert following == due + timedelta(days=1 if hours_late <= 12 else 2)


@time_machine.travel(MOMENT, tick=False)
def test_due_source_of_a_paused_site_is_not_queued(app: Flask, tenant: Tenant) -> None:
    database = app.extensions["runtime"].database
    add_source(app, tenant, schedule="hourly", next_run_at=MOMENT)
    with database.write() as session:
        session.get_one(Site, tenant.site_id).active = False

    with database.write() as session:
        queue_due(session, MOMENT)
    with database.read() as session:
        runs = session.scalars(select(SourceRun)).all()

    assert runs == []
