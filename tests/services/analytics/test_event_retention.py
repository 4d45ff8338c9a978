"""Expired events and events of deleted sites are deleted, and no others."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from sqlalchemy import func, select

from app.models import (
    Base,
    ClickAnchorDay,
    ClickDay,
    EventRemoval,
    OriginDay,
    QueryDay,
    QueryVisit,
    SearchClick,
    SearchEvent,
    SiteDay,
)
from app.services.analytics import event_retention
from app.services.analytics.event_retention import EventMaintenance, remove_step
from app.services.analytics.events import EventRecorder, delete_expired
from app.services.analytics.reports import get_analytics
from app.storage.database import Database

from .conftest import FIRST_ACCOUNT, MOMENT, SITES, TODAY, click, delete_site, search
from .oracle import Event
from .test_event_journal import eventually
from .test_reports import assert_counted

DAY_SECONDS = 86_400
RETENTION_DAYS = 400
DATED = (SearchEvent, SearchClick, QueryDay, ClickDay, ClickAnchorDay, QueryVisit, OriginDay)
History = list[Event]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small deletion steps, so that every deletion takes many of them."""
    monkeypatch.setattr(event_retention, "STEP", 7)


def rows(database: Database, table: type[Base]) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


@pytest.fixture
def history(database: Database, recorder: EventRecorder) -> History:
    """Record events of three sites over 500 days, at their own times."""
    happened: History = []
    for days in (500, 450, 402, 401, 400, 399, 95, 89, 40, 8, 3, 0):
        with time_machine.travel(MOMENT - timedelta(days=days), tick=False):
            for site_id in SITES:
                for number in range(4):
                    place = {"site_id": site_id, "seconds": -days * DAY_SECONDS}
                    query = f"q{number}-{days % 3}"
                    happened.append(
                        search(query, results=number % 2, session_id=f"s{number}", page=f"/{number}", **place)
                    )
                    happened.append(click(query, search_key=10 * days + number, anchor="a", **place))
                    recorder.record(happened[-2])
                    recorder.record(happened[-1])
            recorder.flush()
    return happened


def test_event_days_beyond_the_retention_period_are_deleted_and_newer_days_remain(
    database: Database, history: History
) -> None:
    with time_machine.travel(MOMENT, tick=False):
        delete_expired(database, RETENTION_DAYS)
    with database.read() as session:
        oldest = session.scalar(select(func.min(SearchEvent.occurred_at)))
        days = session.scalars(select(QueryDay.day).distinct().order_by(QueryDay.day)).all()
        site_days = session.scalars(select(SiteDay.day).distinct().order_by(SiteDay.day)).all()
    assert oldest == MOMENT - timedelta(days=RETENTION_DAYS)
    assert list(days) == list(site_days)
    assert len(days) == 8
    # A search is a visit, and also a visit with results or without.
    assert [rows(database, table) for table in DATED] == [8 * 3 * 4 * (1 + (table is QueryVisit)) for table in DATED]
    with database.read() as session:
        assert session.scalar(select(func.min(SearchClick.occurred_at))) == oldest
        for table in (ClickDay, ClickAnchorDay, QueryVisit, OriginDay):
            assert list(session.scalars(select(table.day).distinct().order_by(table.day))) == list(days)
    assert_counted(database, history, set(SITES), TODAY)


def test_maintenance_without_a_time_budget_finishes_due_deletions_in_small_steps(
    database: Database, history: History
) -> None:
    with time_machine.travel(MOMENT, tick=False):
        maintenance = EventMaintenance(database, RETENTION_DAYS)
        portions = 1
        while maintenance.run(budget_seconds=0):
            portions += 1
        assert not EventMaintenance(database, RETENTION_DAYS).run()
    assert portions > 10
    assert_counted(database, history, set(SITES), TODAY)


@pytest.mark.parametrize("completely", [False, True])
def test_deleting_a_site_removes_all_its_events_and_counts(
    database: Database, history: History, completely: bool
) -> None:
    delete_site(database, 1, completely=completely)
    if not completely:
        assert rows(database, EventRemoval) == 1
        with time_machine.travel(MOMENT, tick=False):
            EventMaintenance(database, RETENTION_DAYS).run(budget_seconds=60)
    with database.read() as session:
        for column in (
            *(table.site_id for table in DATED),
            SiteDay.site_id,
            EventRemoval.site_id,
        ):
            assert session.scalar(select(func.count()).where(column == 1)) == 0
    left = [event for event in history if event.site_id != 1]
    assert_counted(database, left, {2, 3}, TODAY)


def test_account_totals_exclude_a_deleted_site_before_its_events_are_removed(
    database: Database, history: History
) -> None:
    delete_site(database, 1, completely=False)
    with database.read() as session:
        assert get_analytics(session, FIRST_ACCOUNT, 7, today=TODAY).total_searches == 8
    while remove_step(database):
        pass


def test_clicks_without_a_search_on_their_day_also_expire(database: Database, recorder: EventRecorder) -> None:
    with time_machine.travel(MOMENT - timedelta(days=401), tick=False):
        recorder.record(click(seconds=-401 * DAY_SECONDS))
        recorder.flush()
    with time_machine.travel(MOMENT, tick=False):
        delete_expired(database, RETENTION_DAYS)
    assert {rows(database, table) for table in (SiteDay, *DATED)} == {0}


def test_deleting_a_site_without_events_leaves_no_pending_removal(database: Database) -> None:
    delete_site(database, 1)
    assert rows(database, EventRemoval) == 0


@pytest.mark.slow
def test_running_recorder_deletes_expired_events(database: Database, history: History, tmp_path: Path) -> None:
    with time_machine.travel(MOMENT, tick=True):
        recorder = EventRecorder(tmp_path / "other", database, retention_days=RETENTION_DAYS)
        recorder.start()
        try:
            eventually(lambda: rows(database, SearchEvent) == 8 * 3 * 4)
        finally:
            recorder.stop()
