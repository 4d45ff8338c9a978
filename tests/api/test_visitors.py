"""DELETE /api/analytics/visitors removes one visitor's events and does not change other visitors' events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from sqlalchemy import inspect, select, text

from app.models import (
    ClickAnchorDay,
    ClickDay,
    ClickLessons,
    QueryDay,
    QueryVisit,
    SearchClick,
    SearchEvent,
    SiteDay,
    VisitorErasure,
)
from tests.callers import Tenant, page
from tests.responses import assert_error, assert_ok

MOMENT = datetime(2031, 5, 14, 12, tzinfo=UTC)
ROLLUPS = (SiteDay, QueryDay, ClickDay, ClickAnchorDay, QueryVisit)
EVENTS = (SearchEvent, SearchClick)


def rows(tenant: Tenant, *tables: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows with counts, without row IDs and without the `last_` columns."""
    found = {}
    with tenant.app.extensions["runtime"].database.read() as session:
        for table in tables:
            columns = [column for column in inspect(table).columns if column.name not in {"id", "recorded_at"}]
            columns = [column for column in columns if not column.name.startswith("last_")]
            read = (tuple(row) for row in session.execute(select(*columns)))
            found[table.__tablename__] = sorted((row for row in read if any(row[2:])), key=repr)
    return found


def flush(tenant: Tenant) -> None:
    tenant.app.extensions["runtime"].events.flush()


def visit(tenant: Tenant, session_id: str, *queries: str, key: str = "search") -> None:
    """Search, then click on pages 1 and 2, the latter on a section."""
    client = tenant.client(key)
    for query in queries:
        if key == "public":
            entry = {"query": query, "results_count": 3, "session_id": session_id}
            assert_ok(client.post("/api/v1/search-log", json=entry))
        else:
            assert_ok(client.get("/v1/search", query_string={"q": query, "session_id": session_id}))
        for position in (1, 2):
            click = {"query": query, "id": f"page-{position}", "position": position, "session_id": session_id}
            section = {"anchor": "top"} if position == 2 else {}
            assert_ok(client.post("/api/v1/click", json={**click, **section}))


def erase(tenant: Tenant, session_id: str) -> dict[str, Any]:
    path = f"/api/analytics/visitors?site_id={tenant.site_id}&session_id={session_id}"
    return assert_ok(tenant.private.delete(path))


@pytest.mark.parametrize("key", ["search", "public"])
def test_erasing_a_visitor_restores_events_and_counts_to_those_of_others(tenant: Tenant, key: str) -> None:
    with time_machine.travel(MOMENT, tick=False) as clock:
        tenant.index(page(1), page(2), page(3))
        visit(tenant, "other", "page", "harbour", key=key)
        flush(tenant)
        before, events = rows(tenant, *ROLLUPS), rows(tenant, *EVENTS)
        visit(tenant, "theirs", "pa", "page", "my own name", "harbour", key=key)
        clock.shift(timedelta(days=1))
        visit(tenant, "theirs", "page", key=key)
        flush(tenant)
        assert rows(tenant, *ROLLUPS) != before

        assert erase(tenant, "theirs") == {"success": True, "searches": 5, "clicks": 10, "questions": 0}

        assert rows(tenant, *EVENTS) == events
        after = rows(tenant, *ROLLUPS)
        anchors = after.pop("click_anchor_days")
        assert [row[:-1] for row in anchors] == [row[:-1] for row in before.pop("click_anchor_days")]
        assert after == before
        assert erase(tenant, "theirs") == {"success": True, "searches": 0, "clicks": 0, "questions": 0}
        assert rows(tenant, *EVENTS) == events


def test_erased_visitors_unflushed_events_are_never_counted(tenant: Tenant) -> None:
    tenant.index(page(1))
    visit(tenant, "theirs", "page")
    visit(tenant, "other", "page")

    assert erase(tenant, "theirs") == {"success": True, "searches": 0, "clicks": 0, "questions": 0}
    flush(tenant)

    with tenant.app.extensions["runtime"].database.read() as session:
        assert set(session.scalars(select(SearchEvent.session_id))) == {"other"}
        assert set(session.scalars(select(SearchClick.session_id))) == {"other"}


def test_erased_visitor_who_returns_is_counted_again(tenant: Tenant) -> None:
    with time_machine.travel(MOMENT, tick=False) as clock:
        tenant.index(page(1))
        erase(tenant, "theirs")
        clock.shift(timedelta(seconds=1))
        visit(tenant, "theirs", "page")
        flush(tenant)

        assert erase(tenant, "theirs") == {"success": True, "searches": 1, "clicks": 2, "questions": 0}


def test_clicks_reported_by_query_id_are_erased(tenant: Tenant) -> None:
    tenant.index(page(1))
    found = assert_ok(tenant.search.get("/v1/search?q=page&session_id=theirs"))["results"]
    click = {"query_id": found["query_id"], "id": "page-1", "session_id": "theirs"}
    assert_ok(tenant.public.post("/api/v1/click", json=click))
    flush(tenant)

    assert erase(tenant, "theirs") == {"success": True, "searches": 1, "clicks": 1, "questions": 0}
    assert rows(tenant, *EVENTS) == {"search_events": [], "search_clicks": []}


def test_clicks_without_a_stored_session_are_erased_through_their_search(tenant: Tenant) -> None:
    tenant.index(page(1))
    visit(tenant, "theirs", "page", key="public")
    flush(tenant)
    with tenant.app.extensions["runtime"].database.write() as session:
        session.execute(text("UPDATE search_clicks SET session_id = NULL"))

    assert erase(tenant, "theirs")["clicks"] == 2


def test_erasure_keeps_the_same_session_on_other_sites_and_accounts(tenant: Tenant, stranger: Tenant) -> None:
    for each in (tenant, stranger):
        each.index(page(1))
        visit(each, "same", "page")
    flush(tenant)

    erase(tenant, "same")

    with tenant.app.extensions["runtime"].database.read() as session:
        assert set(session.scalars(select(SearchEvent.site_id))) == {stranger.site_id}
    path = f"/api/analytics/visitors?site_id={tenant.site_id}&session_id=same"
    assert_error(stranger.private.delete(path), 404, "site_not_found")


def test_visitor_of_a_deleted_site_can_be_erased(tenant: Tenant) -> None:
    tenant.index(page(1))
    visit(tenant, "theirs", "page")
    flush(tenant)
    assert_ok(tenant.browser.delete(f"/sites/{tenant.site_id}"))

    path = f"/api/analytics/visitors?site_id={tenant.site_id}&session_id=theirs"
    assert assert_ok(tenant.browser.delete(path))["searches"] == 1


def test_erasure_resets_click_lessons(tenant: Tenant) -> None:
    tenant.index(page(1))
    visit(tenant, "theirs", "page")
    flush(tenant)
    with tenant.app.extensions["runtime"].database.write() as session:
        session.add(ClickLessons(site_id=tenant.site_id, learned_day=5, clicks_since=None, gains={}))

    erase(tenant, "theirs")

    with tenant.app.extensions["runtime"].database.read() as session:
        assert session.get_one(ClickLessons, tenant.site_id).learned_day is None


def test_erasure_in_small_steps_removes_everything(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.analytics.event_retention.STEP", 2)
    tenant.index(page(1), page(2))
    visit(tenant, "theirs", "page", "harbour", "quay")
    flush(tenant)

    assert erase(tenant, "theirs") == {"success": True, "searches": 3, "clicks": 6, "questions": 0}
    assert rows(tenant, *ROLLUPS) == {table.__tablename__: [] for table in ROLLUPS}


def test_erasure_records_expire_with_the_events_of_their_time(tenant: Tenant) -> None:
    with time_machine.travel(MOMENT) as clock:
        erase(tenant, "theirs")
        clock.shift(timedelta(days=402))
        runtime = tenant.app.extensions["runtime"]
        maintenance = runtime.events._maintenance
        assert maintenance is not None
        while maintenance.run():
            pass
    assert rows(tenant, VisitorErasure) == {"visitor_erasures": []}


@pytest.mark.parametrize(
    ("query", "field"),
    [("session_id=a", "site_id"), ("site_id=1", "session_id"), ("site_id=1&session_id=", "session_id"),
     ("site_id=x&session_id=a", "site_id"), (f"site_id=1&session_id={'x' * 65}", "session_id")],
)  # fmt: skip
def test_erasure_with_invalid_parameters_returns_400(tenant: Tenant, query: str, field: str) -> None:
    answer = tenant.private.delete(f"/api/analytics/visitors?{query}")

    assert_error(answer, 400, "validation_failed", field=field)
