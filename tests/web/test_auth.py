"""Authorization: every operation by every kind of caller, on its own objects and on another account's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.apidoc.openapi import document
from app.tokens import make_token
from app.web.auth import BEARER
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, page, register_browser, register_tenant
from tests.responses import assert_error, assert_ok
from tests.web.operations import operations, policy_at


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        path: With ``{site}``, ``{key}`` and ``{index}`` for objects of the account, and ``{source}``, ``{run}``,
            ``{sync}``, ``{session}``, ``{member}``, ``{invitation}``, ``{webhook}`` and ``{delivery}`` for objects that
            do not exist.
        answer: The response to permitted callers: a status, or an error that only permitted callers get.
    """

    method: str
    path: str
    body: Any = None
    answer: int | tuple[int, str] = 200

    @property
    def template(self) -> str:
        return re.sub(r"{(\w+)}", r"{\1_id}", self.path.partition("?")[0])

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


KEYS = "/api/sites/{site}/keys"
SOURCES = "/api/sites/{site}/sources"
COLLECTION = "/api/collections/{collection}"
NO_COLLECTION = (404, "collection_not_found")
NO_SOURCE = (404, "source_not_found")
NO_MEMBER = (404, "member_not_found")
NO_INVITATION = (404, "invitation_not_found")
NO_WEBHOOK = (404, "webhook_not_found")
NO_SYNC = (404, "sync_not_found")
REPORT = {"operation": "search", "count": 1, "index": "{index}"}
SITE = {"name": "Another", "url": "https://another.example/"}

TABLE = [
    Row("GET", "/v1/search?q=x"),
    Row("POST", "/v1/search", {"q": "x"}),
    Row("GET", "/v1/suggest?q=x"),
    Row("GET", "/v1/related?id=none", None, (404, "document_not_found")),
    Row("GET", "/v1/popular"),
    Row("POST", "/v1/ask", {"q": "When is it open?"}, (403, "ask_disabled")),
    Row("POST", "/v1/ask/{ask}/feedback", {"helpful": True}, (404, "ask_not_found")),
    Row("GET", "/api/analytics/asks?site_id={site}"),
    Row("GET", "/v1/client-info"),
    Row("POST", "/api/v1/index/bulk", {"documents": [page(1)]}),
    Row("DELETE", "/api/v1/index/destroy", {"id": "no such document"}, (404, "document_not_found")),
    Row("GET", "/api/v1/documents?site_id={site}"),
    Row(
        "PATCH",
        "/api/v1/documents?site_id={site}",
        {"documents": [{"id": "no such document", "title": "x"}]},
        (404, "document_not_found"),
    ),
    Row("POST", "/api/v1/documents/delete?site_id={site}", {"ids": ["no such document"]}),
    Row("POST", "/api/v1/sync?site_id={site}", {"source": "cms"}, 201),
    Row("GET", "/api/v1/sync/{sync}?site_id={site}", None, NO_SYNC),
    Row("DELETE", "/api/v1/sync/{sync}?site_id={site}", None, NO_SYNC),
    Row("POST", "/api/v1/sync/{sync}/finish?site_id={site}", None, NO_SYNC),
    Row("POST", "/api/v1/search-log", {"query": "x", "results_count": 1}),
    Row("POST", "/api/v1/click", {"query": "x", "id": "page-1"}),
    Row("POST", "/v1/report-usage", REPORT),
    Row("GET", "/api/analytics"),
    Row("GET", "/api/analytics/query?site_id={site}&q=x"),
    Row("DELETE", "/api/analytics/visitors?site_id={site}&session_id=x"),
    Row("GET", "/api/analytics/inbox?site_id={site}"),
    Row("PUT", "/api/analytics/inbox", {"site_id": "{site}", "query": "x", "ignored": True}),
    Row("GET", "/dashboard"),
    Row("GET", "/api/usage"),
    Row("GET", "/sites"),
    Row("POST", "/sites", SITE, 201),
    Row("GET", "/sites/create"),
    Row("GET", "/sites/{site}"),
    Row("GET", "/sites/{site}/edit"),
    Row("PUT", "/sites/{site}", {"name": "Renamed"}),
    Row("PATCH", "/sites/{site}", {"name": "Renamed"}),
    Row("DELETE", "/sites/{site}"),
    Row("POST", "/sites/{site}/restore"),
    Row("GET", "/sites/{site}/search-settings"),
    Row("PUT", "/sites/{site}/search-settings", {}),
    Row("POST", "/sites/{site}/search-settings/preview", {"settings": {}, "queries": ["a"]}),
    Row("GET", "/sites/{site}/learned-clicks"),
    Row("DELETE", "/sites/{site}/learned-clicks"),
    Row("POST", "/api/sites/{site}/import?format=jsonl", page(1)),
    Row("GET", SOURCES),
    Row("POST", SOURCES, {"kind": "website", "url": SITE["url"]}, 201),
    Row(
        "POST",
        "/api/sites/{site}/import-config?format=docsearch",
        {"start_urls": [SITE["url"]], "selectors": {"text": "p"}},
        201,
    ),
    Row("POST", SOURCES + "/preview", {"url": "https://elsewhere.test/"}, (400, "validation_failed")),
    Row("GET", SOURCES + "/lookup?url=https://elsewhere.test/"),
    Row("GET", SOURCES + "/{source}", None, NO_SOURCE),
    Row("PUT", SOURCES + "/{source}", {"schedule": "none"}, NO_SOURCE),
    Row("PATCH", SOURCES + "/{source}", {"schedule": "none"}, NO_SOURCE),
    Row("DELETE", SOURCES + "/{source}", None, NO_SOURCE),
    Row("POST", SOURCES + "/{source}/run", None, NO_SOURCE),
    Row("POST", SOURCES + "/{source}/cancel", None, NO_SOURCE),
    Row("POST", SOURCES + "/{source}/hook", None, NO_SOURCE),
    Row("GET", SOURCES + "/{source}/runs", None, NO_SOURCE),
    Row("GET", SOURCES + "/{source}/runs/{run}", None, NO_SOURCE),
    Row("GET", SOURCES + "/{source}/dead-links", None, NO_SOURCE),
    Row("GET", KEYS),
    Row("POST", KEYS, {"name": "New"}, 201),
    Row("GET", KEYS + "/{key}"),
    Row("GET", KEYS + "/{key}/edit"),
    Row("PUT", KEYS + "/{key}", {"name": "Renamed"}),
    Row("PATCH", KEYS + "/{key}", {"name": "Renamed"}),
    Row("DELETE", KEYS + "/{key}"),
    Row("POST", KEYS + "/{key}/rotate"),
    Row("DELETE", KEYS + "/{key}/exposure"),
    Row("POST", "/api/keys/{key}/toggle"),
    Row("GET", "/api/collections"),
    Row("POST", "/api/collections", {"name": "All", "sites": [{"site_id": 987654321}]}, (404, "site_not_found")),
    Row("GET", COLLECTION, None, NO_COLLECTION),
    Row("PUT", COLLECTION, {"name": "All"}, NO_COLLECTION),
    Row("PATCH", COLLECTION, {"name": "All"}, NO_COLLECTION),
    Row("DELETE", COLLECTION, None, NO_COLLECTION),
    Row("GET", COLLECTION + "/keys", None, NO_COLLECTION),
    Row("POST", COLLECTION + "/keys", {"name": "New"}, NO_COLLECTION),
    Row("GET", COLLECTION + "/keys/{collection_key}", None, NO_COLLECTION),
    Row("PUT", COLLECTION + "/keys/{collection_key}", {"name": "Renamed"}, NO_COLLECTION),
    Row("PATCH", COLLECTION + "/keys/{collection_key}", {"name": "Renamed"}, NO_COLLECTION),
    Row("DELETE", COLLECTION + "/keys/{collection_key}", None, NO_COLLECTION),
    Row("POST", COLLECTION + "/keys/{collection_key}/rotate", None, NO_COLLECTION),
    Row("GET", "/profile/edit"),
    Row("PUT", "/profile", {"name": "Renamed"}),
    Row("DELETE", "/profile", {"password": "not this one"}, (403, "password_incorrect")),
    Row("GET", "/profile/totp"),
    Row("POST", "/profile/totp", {"current_password": "not this one"}, (403, "password_incorrect")),
    Row("POST", "/profile/totp/confirm", {"code": "000000"}, (400, "validation_failed")),
    Row("DELETE", "/profile/totp", {"current_password": "not this one"}, (403, "password_incorrect")),
    Row("GET", "/profile/sessions"),
    Row("DELETE", "/profile/sessions"),
    Row("DELETE", "/profile/sessions/{session}", None, (404, "session_not_found")),
    Row("GET", "/api/members"),
    Row("GET", "/api/members/{member}", None, NO_MEMBER),
    Row("PUT", "/api/members/{member}", {"role": "owner"}, NO_MEMBER),
    Row("PATCH", "/api/members/{member}", {"role": "owner"}, NO_MEMBER),
    Row("DELETE", "/api/members/{member}", None, NO_MEMBER),
    Row("GET", "/api/invitations"),
    Row("POST", "/api/invitations", {"email": "ann@example.com"}, (400, "validation_failed")),
    Row("POST", "/api/invitations/{invitation}/renew", None, NO_INVITATION),
    Row("DELETE", "/api/invitations/{invitation}", None, NO_INVITATION),
    Row("GET", "/api/audit-log"),
    Row("GET", "/api/webhooks"),
    Row("POST", "/api/webhooks", {"url": SITE["url"], "events": ["run.failed"]}, 201),
    Row("GET", "/api/webhooks/{webhook}", None, NO_WEBHOOK),
    Row("PUT", "/api/webhooks/{webhook}", {"active": False}, NO_WEBHOOK),
    Row("PATCH", "/api/webhooks/{webhook}", {"active": False}, NO_WEBHOOK),
    Row("DELETE", "/api/webhooks/{webhook}", None, NO_WEBHOOK),
    Row("GET", "/api/webhooks/{webhook}/deliveries", None, NO_WEBHOOK),
    Row("POST", "/api/webhooks/{webhook}/deliveries/{delivery}/redeliver", None, NO_WEBHOOK),
]
NOT_FOR_KEYS = ("/profile/totp", "/profile/sessions")
"""Prefixes of paths that accept no key."""
NOTHING = {
    "source": "src_0000000000000000",
    "run": "run_00000000000000000000",
    "ask": "ask_0",
    "sync": "sync_00000000000000000000",
    "member": "987654321",
    "collection": "987654321",
    "collection_key": "key_AAAAAAAAAA",
    "session": "ses_00000000000000000000",
    "invitation": "inv_0000000000000000",
    "webhook": "whk_00000000000000000000",
    "delivery": "msg_000000000000000000000000",
}
OWNED = [row for row in TABLE if "{site}" in row.path or "{key}" in row.path]


def caller(tenant: Tenant, kind: str) -> ApiClient | Browser:
    return tenant.browser if kind == "session" else tenant.client(kind)


def new_site(tenant: Tenant) -> int:
    return int(assert_ok(tenant.browser.post("/sites", json=SITE), 201)["site"]["id"])


def new_key(tenant: Tenant, site_id: int, kind: str = "search") -> tuple[str, str]:
    """Create a key. Returns its ID and token."""
    answer = assert_ok(tenant.browser.post(f"/api/sites/{site_id}/keys", json={"name": "One", "type": kind}), 201)
    return answer["key"]["id"], answer["api_key"]


def filled(row: Row, owner: Tenant) -> tuple[str, Any]:
    """Return path and body with fresh objects of ``owner``, so that deleting them does not affect other tests."""
    site, key = "", ""
    if "{site}" in row.path or "{key}" in row.path:
        site = str(new_site(owner))
    if "{key}" in row.path:
        key, _ = new_key(owner, int(site))
    body = row.body
    if isinstance(body, dict) and body.get("index") == "{index}":
        body = {**body, "index": owner.site["index"]}
    if isinstance(body, dict) and body.get("site_id") == "{site}":
        body = {**body, "site_id": owner.site_id}
    return row.path.replace("{site}", site).replace("{key}", key).format(**NOTHING), body


def send(client: ApiClient | Browser, row: Row, path: str, body: Any) -> TestResponse:
    return client.call(row.method, path, **({} if body is None else {"json": body}))


def assert_answer(row: Row, response: TestResponse) -> None:
    """Assert the response that only permitted callers get."""
    if isinstance(row.answer, tuple):
        assert_error(response, *row.answer)
    else:
        assert_ok(response, row.answer)


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_permitted_callers_get_the_expected_response(ann: Tenant, row: Row) -> None:
    """The permitted callers, and the rejection of all others, are checked in test_policy."""
    for kind in ("public", "search", "private", "session"):
        path, body = filled(row, ann)
        if getattr(policy_at(ann.app, row.method, path).access, kind):
            assert_answer(row, send(caller(ann, kind), row, path, body))


def test_table_contains_every_documented_operation(ann: Tenant) -> None:
    with ann.app.app_context():
        described = document()["paths"]
    closed = {
        (operation.method, template)
        for operation in operations(ann)
        if not operation.policy.access.anyone
        and not operation.policy.access.operator  # See tests/api/test_operator.py.
        and operation.policy.token_locations is BEARER
        and (template := re.sub(r"<(?:[^<>]+:)?(\w+)>", r"{\1}", operation.rule)) in described
        and operation.method.lower() in described[template]
        and not template.startswith("/engine")
    }

    assert closed == {(row.method, row.template) for row in TABLE}


@pytest.mark.parametrize("kind", ["private", "session"])
@pytest.mark.parametrize("row", OWNED, ids=str)
def test_objects_of_another_account_return_the_same_404_as_missing_ones(
    ann: Tenant, eve: Tenant, row: Row, kind: str
) -> None:
    path, body = filled(row, eve)
    nowhere = row.path.replace("{site}", "987654321").replace("{key}", "key_AAAAAAAAAA").format(**NOTHING)

    theirs = send(caller(ann, kind), row, path, body)
    nobodys = send(caller(ann, kind), row, nowhere, body)

    assert_error(theirs, 404, "site_not_found" if "{site}" in row.path else "key_not_found")
    assert theirs.get_json() == nobodys.get_json()


@pytest.mark.parametrize("row", [row for row in OWNED if "{site}" in row.path and "{key}" in row.path], ids=str)
def test_key_is_found_only_below_its_own_site(ann: Tenant, eve: Tenant, row: Row) -> None:
    key_id, _ = new_key(ann, new_site(ann))
    other_site, her_key = new_site(ann), new_key(eve, new_site(eve))[0]

    for key in (key_id, her_key):
        path = row.path.replace("{site}", str(other_site)).replace("{key}", key)
        assert_error(send(ann.browser, row, path, row.body), 404, "key_not_found")


@pytest.mark.parametrize("name", ["bulk", "destroy"])
@pytest.mark.parametrize("place", ["query", "body"])
def test_private_key_indexes_into_any_site_of_its_account_and_no_other(
    ann: Tenant, eve: Tenant, name: str, place: str
) -> None:
    method, body = {"bulk": ("POST", {"documents": [page(1)]}), "destroy": ("DELETE", {"id": "page-1"})}[name]
    mine = new_site(ann)
    assert_ok(ann.private.post(f"/api/v1/index/bulk?site_id={mine}", json={"documents": [page(1)]}))

    def send(site_id: int) -> Any:
        if place == "query":
            return ann.private.call(method, f"/api/v1/index/{name}?site_id={site_id}", json=body)
        return ann.private.call(method, f"/api/v1/index/{name}", json={**body, "site_id": site_id})

    assert_ok(send(mine))
    assert_error(send(eve.site_id), 404, "site_not_found")
    assert_error(send(987654321), 404, "site_not_found")
    assert_error(send(-1), 404, "site_not_found")


def test_site_ids_in_query_and_body_must_agree(ann: Tenant) -> None:
    path = f"/api/v1/index/bulk?site_id={ann.site_id}"

    assert_ok(ann.private.post(path, json={"documents": [page(1)], "site_id": ann.site_id}))
    assert_error(
        ann.private.post(path, json={"documents": [page(1)], "site_id": ann.site_id + 1}),
        400, "validation_failed", field="site_id",
    )  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_search_key_searches_only_its_site_and_private_key_any_site_of_the_account(
    ann: Tenant, eve: Tenant, method: str
) -> None:
    other = new_site(ann)

    def search(kind: str, site_id: int) -> Any:
        client = ann.client(kind)
        if method == "GET":
            return client.get(f"/v1/search?q=x&site_id={site_id}")
        return client.post("/v1/search", json={"q": "x", "site_id": site_id})

    for kind in ("search", "private"):
        assert_ok(search(kind, ann.site_id))
        assert_error(search(kind, eve.site_id), 404, "site_not_found")
        assert_error(search(kind, 987654321), 404, "site_not_found")
        assert_error(search(kind, 0), 404, "site_not_found")
    assert_ok(search("private", other))
    assert_error(search("search", other), 403, "insufficient_permission")


@pytest.mark.parametrize("kind", ["private", "session"])
def test_analytics_are_limited_to_the_accounts_sites(ann: Tenant, eve: Tenant, kind: str) -> None:
    assert_ok(caller(ann, kind).get(f"/api/analytics?site_id={new_site(ann)}"))
    assert_error(caller(ann, kind).get(f"/api/analytics?site_id={eve.site_id}"), 404, "site_not_found")
    assert_error(caller(ann, kind).get("/api/analytics?site_id=x"), 400, "validation_failed", field="site_id")


REPORTS = [
    ("public", {"count": 10}, None),
    ("public", {"count": 11}, (403, "insufficient_permission")),
    ("public", {"operation": "indexing"}, (403, "insufficient_permission")),
    ("public", {"index": "other"}, (403, "insufficient_permission")),
    ("public", {"index": "hers"}, (404, "index_not_found")),
    ("search", {"count": 100}, None),
    ("search", {"count": 101}, (403, "insufficient_permission")),
    ("search", {"operation": "indexing"}, (403, "insufficient_permission")),
    ("search", {"index": "other"}, (403, "insufficient_permission")),
    ("search", {"index": "hers"}, (404, "index_not_found")),
    ("private", {"count": 10_000}, None),
    ("private", {"operation": "indexing", "count": 10_000}, None),
    ("private", {"index": "other"}, None),
    ("private", {"index": "hers"}, (404, "index_not_found")),
    ("private", {"index": "nowhere"}, (404, "index_not_found")),
    ("public", {"count": 10_001}, (400, "validation_failed")),
    ("private", {"count": 10_001}, (400, "validation_failed")),
    ("private", {"count": 0}, (400, "validation_failed")),
]


@pytest.mark.parametrize(("kind", "report", "error"), REPORTS, ids=str)
def test_usage_reports_are_limited_by_kind_of_key(
    ann: Tenant, eve: Tenant, kind: str, report: dict[str, Any], error: tuple[int, str] | None
) -> None:
    indexes = {"own": ann.site["index"], "other": f"site_{new_site(ann)}", "hers": eve.site["index"]}
    name = str(report.get("index", "own"))
    body = {"operation": "search", "count": 1, **report, "index": indexes.get(name, name)}

    response = ann.client(kind).post("/v1/report-usage", json=body)

    if error is None:
        assert assert_ok(response) == {"success": True}
    else:
        assert_error(response, *error)


def test_private_key_can_manage_and_delete_itself(ann: Tenant) -> None:
    site = new_site(ann)
    key_id, token = new_key(ann, site, "private")
    client = ApiClient(ann.app, token)

    assert_ok(client.put(f"/api/sites/{site}/keys/{key_id}", json={"name": "Mine"}))
    assert_ok(client.delete(f"/api/sites/{site}/keys/{key_id}"))
    assert_error(client.get("/dashboard"), 401, "invalid_api_key")


class TestTokens:
    """Bearer tokens in the Authorization header."""

    @pytest.mark.parametrize(
        ("query", "headers", "seen"),
        [
            ("?key={token}", {}, "The query parameter key is ignored, because URLs are logged."),
            ("?q=a&api_key={token}", {}, "The query parameter api_key is ignored, because URLs are logged."),
            ("", {"X-API-Key": "{token}"}, "The header X-API-Key is ignored."),
            ("", {"X-Meili-API-Key": "{token}"}, "The header X-Meili-API-Key is ignored."),
            (
                "",
                {"Authorization": "{token}"},
                "The header Authorization must begin with Bearer, followed by the API key.",
            ),
            (
                "",
                {"Authorization": "Token {token}"},
                "The header Authorization must begin with Bearer, followed by the API",
            ),
            ("?token=&key=", {"X-API-Key": ""}, "Send an API key: "),
        ],
    )
    def test_key_in_the_wrong_header_gets_a_hint_where_to_send_it(
        self, ann: Tenant, query: str, headers: dict[str, str], seen: str
    ) -> None:
        token = ann.tokens["search"]
        filled_in = {name: value.format(token=token) for name, value in headers.items()}

        response = ApiClient(ann.app).get(f"/v1/search{query.format(token=token)}", headers=filled_in)

        message = assert_error(response, 401, "missing_api_key")["message"]
        assert message.startswith(seen)
        assert message.endswith("Authorization: Bearer <API_KEY>.")
        assert token not in response.text

    @pytest.mark.parametrize(
        ("header", "code"),
        [
            (None, "missing_api_key"),
            ("", "missing_api_key"),
            ("Bearer", "missing_api_key"),
            ("Bearer ", "missing_api_key"),
            ("Basic {token}", "missing_api_key"),
            ("Token {token}", "missing_api_key"),
            ("{token}", "missing_api_key"),
            ("Bearer x", "invalid_api_key"),
            ("Bearer {token}x", "invalid_api_key"),
            ("Bearer {unknown}", "invalid_api_key"),
            ("Bearer svc_srch_{rest}", "invalid_api_key"),
            ("Bearer \u00fc", "invalid_api_key"),
            ("Bearer {token}, Bearer {token}", "invalid_api_key"),
        ],
    )
    def test_missing_or_malformed_token_returns_401(self, ann: Tenant, header: str | None, code: str) -> None:
        token = ann.tokens["private"]
        headers = {}
        if header is not None:
            filled_in = header.format(token=token, unknown=make_token("private"), rest=token.removeprefix("svc_prv_"))
            headers["Authorization"] = filled_in.encode().decode("latin-1")

        assert_error(ApiClient(ann.app).get("/v1/client-info", headers=headers), 401, code)

    @pytest.mark.parametrize(
        ("token", "reason"),
        [
            ("sk_live_0123456789", "keys of this service begin with svc_pub_, svc_srch_, or svc_prv_"),
            ("svc_inv_0123456789", "keys of this service begin with svc_pub_, svc_srch_, or svc_prv_"),
            ("{private}x", "it is incomplete or mistyped"),
            ("svc_srch_{rest}", "it is incomplete or mistyped"),
            ("svc_prv_", "it is incomplete or mistyped"),
            ("{unknown}", "it was deleted or rotated, or belongs to another installation"),
        ],
    )
    def test_message_for_an_invalid_key_names_the_probable_reason(self, ann: Tenant, token: str, reason: str) -> None:
        private = ann.tokens["private"]
        sent = token.format(private=private, rest=private[8:], unknown=make_token("private"))

        body = assert_error(ApiClient(ann.app, sent).get("/v1/client-info"), 401, "invalid_api_key")

        assert body["message"] == f"The API key is invalid: {reason}."

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
    def test_bearer_scheme_is_case_insensitive(self, ann: Tenant, scheme: str) -> None:
        headers = {"Authorization": f"{scheme} {ann.tokens['search']}"}

        assert_ok(ApiClient(ann.app).get("/v1/client-info", headers=headers))

    def test_bearer_token_takes_precedence_over_the_session_cookie(self, ann: Tenant, eve: Tenant) -> None:
        def authorized(token: str) -> dict[str, str]:
            return {"Authorization": f"Bearer {token}"}

        assert_error(ann.browser.get("/dashboard", headers=authorized("nonsense")), 401, "invalid_api_key")
        assert_error(
            ann.browser.get("/dashboard", headers=authorized(ann.tokens["public"])), 403, "insufficient_permission"
        )
        shown = assert_ok(ann.browser.get("/profile/edit", headers=authorized(eve.tokens["private"])))
        assert shown["user"]["email"] == eve.email

    def test_bearer_token_needs_no_csrf_token_even_with_a_cookie(self, ann: Tenant) -> None:
        headers = {"Authorization": f"Bearer {ann.tokens['private']}", "X-CSRF-Token": ""}

        assert_ok(ann.browser.put("/profile", json={"name": "Ann"}, headers=headers))

    def test_disabled_and_deleted_keys_return_different_401_errors(self, ann: Tenant) -> None:
        site = new_site(ann)
        key_id, token = new_key(ann, site)
        client = ApiClient(ann.app, token)
        assert_ok(client.get("/v1/client-info"))

        ann.browser.post(f"/api/keys/{key_id}/toggle")
        assert_error(client.get("/v1/client-info"), 401, "key_disabled")
        ann.browser.post(f"/api/keys/{key_id}/toggle")
        assert_ok(client.get("/v1/client-info"))
        ann.browser.delete(f"/api/sites/{site}/keys/{key_id}")
        assert_error(client.get("/v1/client-info"), 401, "invalid_api_key")

    def test_keys_of_deleted_sites_and_accounts_are_invalid(self, shared_app: Flask) -> None:
        tenant = register_tenant(shared_app, "gone@example.com")
        site = new_site(tenant)
        _, token = new_key(tenant, site)
        assert_ok(ApiClient(shared_app, token).get("/v1/client-info"))

        tenant.browser.delete(f"/sites/{site}?purge=true")
        assert_error(ApiClient(shared_app, token).get("/v1/client-info"), 401, "invalid_api_key")
        assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))
        assert_error(tenant.private.get("/v1/client-info"), 401, "invalid_api_key")


class TestSessions:
    """Session cookies."""

    @pytest.fixture
    def browser(self, shared_app: Flask, request: pytest.FixtureRequest) -> Browser:
        return register_browser(shared_app, f"{abs(hash(request.node.name))}@example.com")[0]

    @pytest.mark.parametrize("token", [None, "", "wrong", "\u00fc"])
    def test_write_without_a_valid_csrf_token_is_rejected(self, browser: Browser, token: str | None) -> None:
        headers = {} if token is None else {"X-CSRF-Token": token.encode().decode("latin-1")}

        response = browser.client.put("/profile", json={"name": "Mallory"}, headers=headers)

        assert_error(response, 403, "csrf_failed")
        assert browser.get("/profile/edit").get_json()["user"]["name"] == "Somebody"

    def test_csrf_token_of_another_session_is_rejected(self, browser: Browser, ann: Tenant) -> None:
        headers = {"X-CSRF-Token": ann.browser.csrf_token}

        assert_error(browser.client.put("/profile", json={"name": "M"}, headers=headers), 403, "csrf_failed")

    def test_reading_needs_no_csrf_token(self, browser: Browser) -> None:
        assert_ok(browser.client.get("/dashboard"))

    def test_logout_requires_the_csrf_token_and_ends_the_session(self, browser: Browser) -> None:
        assert_error(browser.client.post("/logout"), 403, "csrf_failed")
        cookie = browser.client.get_cookie("session")
        assert cookie is not None
        assert_ok(browser.post("/logout"))
        assert browser.client.get_cookie("session") is None

        browser.client.set_cookie("session", cookie.value)
        assert_error(browser.get("/dashboard"), 401, "missing_api_key")

    def test_logout_without_a_session_succeeds(self, shared_app: Flask) -> None:
        assert assert_ok(ApiClient(shared_app).post("/logout")) == {"success": True}

    @pytest.mark.parametrize("cookie", ["", "x", "a" * 43, "\u00fc" * 30, "a" * 5000])
    def test_invalid_session_cookie_is_treated_as_anonymous(self, shared_app: Flask, cookie: str) -> None:
        client: FlaskClient = shared_app.test_client(use_cookies=False)
        header = f"session={cookie.encode().decode('latin-1')}"

        assert_error(client.get("/dashboard", headers={"Cookie": header}), 401, "missing_api_key")
