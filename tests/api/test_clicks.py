"""POST /api/v1/click."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from flask import Flask
from werkzeug.test import TestResponse

from app.services.analytics.clicks import make_query_id
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def owner(shared_app: Flask, request: pytest.FixtureRequest) -> Tenant:
    return register_tenant(shared_app, f"owner-{request.node.name.encode().hex()[-50:]}@example.com")


def click(client: ApiClient, **fields: Any) -> TestResponse:
    return client.post("/api/v1/click", json={"id": "page-1", **fields})


def told(tenant: Tenant) -> tuple[int, int]:
    """Return the site's total numbers of clicks and searches."""
    tenant.app.extensions["runtime"].events.flush()
    answer = assert_ok(tenant.private.get(f"/api/analytics?site_id={tenant.site_id}"))
    return answer["clicks"], answer["total_searches"]


def query_id(tenant: Tenant, query: str = "bicycle", *, site_id: int | None = None, at: datetime | None = None) -> str:
    secret = tenant.app.extensions["runtime"].settings.secret_key
    return make_query_id(secret, site_id or tenant.site_id, query, at or datetime.now(UTC))


def engine_keys(tenant: Tenant) -> list[str]:
    info = assert_ok(tenant.public.get("/v1/client-info"))
    return [info["engine_key"], info["engine_public_key"]]


@pytest.mark.parametrize("kind", ["public", "search", "private"])
def test_any_key_of_the_site_reports_clicks(owner: Tenant, kind: str) -> None:
    assert assert_ok(click(owner.client(kind), query="bicycle", position=2, session_id="s")) == {"success": True}

    assert told(owner) == (1, 0)


def test_engine_keys_of_the_site_report_clicks(owner: Tenant) -> None:
    for token in engine_keys(owner):
        assert_ok(click(ApiClient(owner.app, token), query="bicycle"))

    assert told(owner) == (2, 0)


def test_engine_key_of_a_paused_site_gets_invalid_api_key(owner: Tenant) -> None:
    _, token = engine_keys(owner)
    paused = owner.browser.put(f"/sites/{owner.site_id}", json={"active": False})
    assert paused.status_code == 200, paused.get_json()

    for rejected in (token, token + "x", "nonsense"):
        assert_error(click(ApiClient(owner.app, rejected), query="bicycle"), 401, "invalid_api_key")
    assert_error(ApiClient(owner.app, token).post("/api/v1/search-log", json={}), 401, "invalid_api_key")


def test_browser_session_cannot_report_clicks(owner: Tenant) -> None:
    response = owner.browser.post("/api/v1/click", json={"query": "x", "id": "page-1"})

    assert_error(response, 401, "missing_api_key")


def test_repeated_click_of_one_session_counts_once(owner: Tenant) -> None:
    for _ in range(3):
        assert_ok(click(owner.public, query="bicycle", session_id="s"))
    assert_ok(click(owner.public, query="bicycle", session_id="t"))

    assert told(owner) == (2, 0)


def test_query_id_takes_precedence_over_query(owner: Tenant) -> None:
    assert_ok(click(owner.public, query_id=query_id(owner), query="elsewhere"))

    owner.app.extensions["runtime"].events.flush()
    path = f"/api/analytics/query?site_id={owner.site_id}&q="
    assert assert_ok(owner.private.get(path + "bicycle"))["clicks"] == 1
    assert assert_ok(owner.private.get(path + "elsewhere"))["clicks"] == 0
    assert_error(click(owner.public, query_id="nonsense", query="bicycle"), 400, "validation_failed", field="query_id")


def test_query_id_is_valid_for_24_hours_and_for_its_site_only(owner: Tenant) -> None:
    with time_machine.travel(NOON, tick=False):
        made = query_id(owner, at=NOON - timedelta(hours=24))
        assert_ok(click(owner.public, query_id=made))
        old = query_id(owner, at=NOON - timedelta(hours=24, seconds=1))
        rejected = assert_error(click(owner.public, query_id=old), 400, "validation_failed", field="query_id")
        assert "24 hours" in rejected["message"]
        foreign = query_id(owner, site_id=owner.site_id + 1, at=NOON)
        assert_error(click(owner.public, query_id=foreign), 400, "validation_failed", field="query_id")


def test_click_accepts_unknown_document_ids_and_converts_numbers_to_strings(owner: Tenant) -> None:
    owner.index(page(1, title="Bicycle"))
    for document_id in ("page-1", "no such document", 7):
        assert_ok(click(owner.public, query="bicycle", id=document_id, session_id="s"))

    owner.app.extensions["runtime"].events.flush()
    answer = assert_ok(owner.private.get(f"/api/analytics/query?site_id={owner.site_id}&q=bicycle"))
    assert [(one["id"], one["title"]) for one in answer["clicked_documents"]] == [
        ("7", None),
        ("no such document", None),
        ("page-1", "Bicycle"),
    ]


def test_clicked_sections_are_sorted_by_clicks(owner: Tenant) -> None:
    for session, anchor in (("s", "prices"), ("t", "hours"), ("u", "hours"), ("v", None)):
        assert_ok(click(owner.public, query="bicycle", session_id=session, anchor=anchor))

    owner.app.extensions["runtime"].events.flush()
    answer = assert_ok(owner.private.get(f"/api/analytics/query?site_id={owner.site_id}&q=bicycle"))
    (document,) = answer["clicked_documents"]
    assert (document["clicks"], document["anchors"]) == (
        4,
        [{"anchor": "hours", "clicks": 2}, {"anchor": "prices", "clicks": 1}],
    )


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "query_id"),
        ({"query": None, "query_id": None}, "query_id"),
        ({"query_id": ""}, "query_id"),
        ({"query_id": "a" * 4097}, "query_id"),
        ({"query": " "}, "query"),
        ({"query": "é" * 257}, "query"),
        ({"query": "x", "id": ""}, "id"),
        ({"query": "x", "id": "a" * 513}, "id"),
        ({"query": "x", "id": None}, "id"),
        ({"query": "x", "id": "a\x00b"}, "id"),
        ({"query": "x", "position": 0}, "position"),
        ({"query": "x", "position": "first"}, "position"),
        ({"query": "x", "session_id": "s" * 65}, "session_id"),
        ({"query": "x", "anchor": ""}, "anchor"),
        ({"query": "x", "anchor": "a" * 201}, "anchor"),
        ({"query": "x", "anchor": "a\x00b"}, "anchor"),
        ({"query": "x", "anchor": 1}, "anchor"),
    ],
)
def test_click_with_invalid_fields_returns_400(owner: Tenant, fields: dict[str, Any], field: str) -> None:
    assert_error(click(owner.public, **fields), 400, "validation_failed", field=field)
    assert told(owner) == (0, 0)


def test_click_accepts_null_optional_fields_and_ignores_unknown_ones(owner: Tenant) -> None:
    nothing = dict.fromkeys(("query_id", "position", "anchor", "session_id"))
    assert_ok(click(owner.public, query="x", **nothing, device="phone"))

    assert told(owner) == (1, 0)


def test_click_after_a_placeholder_search_is_not_counted(owner: Tenant) -> None:
    assert_ok(click(owner.public, query="*"))

    assert told(owner) == (0, 0)


def test_clicks_share_the_rate_limit_of_search_box_calls(owner: Tenant) -> None:
    owner.set_plan("free", requests_per_minute=3)

    limits = [
        int(click(client, query="x").headers["X-RateLimit-Limit"])
        for client in (owner.search, owner.public, ApiClient(owner.app, engine_keys(owner)[1]))
    ]

    assert limits == [3, 30, 30]
