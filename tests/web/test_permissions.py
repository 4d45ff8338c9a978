"""Restricted keys: private keys with scopes or for one site, and public keys with allowed origins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from app.apidoc.openapi import document
from app.application import create_app
from schemas.validation.keys import SCOPES, Scope
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.gateway.callers import Gateway, VisitorClient, assert_engine_error, used_today
from tests.responses import assert_error, assert_ok
from tests.web.operations import operations, policy_at
from tests.web.test_auth import NOT_FOR_KEYS, NOTHING, OWNED, TABLE, Row, assert_answer, filled, new_key, new_site, send


def narrow_key(tenant: Tenant, site_id: int | None = None, **fields: Any) -> tuple[dict[str, Any], ApiClient]:
    """Create a private key as its owner does."""
    path = f"/api/sites/{site_id or tenant.site_id}/keys"
    answer = assert_ok(tenant.browser.post(path, json={"name": "Narrow", "type": "private", **fields}), 201)
    return answer["key"], ApiClient(tenant.app, answer["api_key"])


class TestScopes:
    """Scopes of private keys."""

    @pytest.mark.parametrize("scope", SCOPES)
    def test_operation_is_rejected_with_all_scopes_but_its_own(self, ann: Tenant, scope: Scope) -> None:
        """This includes pages and operations that the API document does not describe."""
        _, client = narrow_key(ann, scopes=[other for other in SCOPES if other != scope])
        scoped = [operation for operation in operations(ann) if operation.policy.scope == scope]
        assert scoped
        for operation in scoped:
            error = assert_error(client.call(operation.method, operation.path), 403, "insufficient_permission")
            assert f"lacks the scope `{scope}`" in error["message"], str(operation)
            if operation.method == "GET":
                shown = client.get(operation.path, headers={"Accept": "text/html"})
                assert (shown.status_code, scope in shown.get_data(as_text=True)) == (403, True), str(operation)

    @pytest.mark.parametrize("row", [row for row in TABLE if not row.path.startswith(NOT_FOR_KEYS)], ids=str)
    def test_operation_succeeds_with_its_scope_alone(self, ann: Tenant, row: Row) -> None:
        path, body = filled(row, ann)
        scope = policy_at(ann.app, row.method, path).scope
        # The keys in the table are search keys, which only keys with the search scope can create and change.
        scopes = [] if scope is None else [scope, Scope.SEARCH] if scope is Scope.KEYS else [scope]
        _, client = narrow_key(ann, scopes=scopes)

        assert_answer(row, send(client, row, path, body))

    def test_private_key_without_scopes_has_all_permissions(self, ann: Tenant) -> None:
        key, client = narrow_key(ann)

        assert (key["scopes"], key["site_only"]) == (None, False)
        for path in ("/sites", "/dashboard", "/api/analytics", "/profile/edit", "/v1/search?q=x"):
            assert_ok(client.get(path))

    def test_search_rejected_for_its_scope_is_neither_charged_nor_counted_as_rejected(self, tenant: Tenant) -> None:
        tenant.set_plan("pro", searches_per_day=1)
        _, client = narrow_key(tenant, scopes=["sites"])
        for _ in range(2):
            assert_error(client.get("/v1/search?q=x"), 403, "insufficient_permission")

        usage = assert_ok(client.get("/dashboard"))["usage"]

        assert (usage["searches_this_month"], usage["refused_searches_this_month"]) == (0, 0)

    def test_search_is_charged_only_while_the_key_has_the_search_scope(self, tenant: Tenant) -> None:
        key, client = narrow_key(tenant, scopes=["sites"])
        for _ in range(2):
            assert_error(client.get("/v1/search?q=x"), 403, "insufficient_permission")
        path = f"/api/sites/{tenant.site_id}/keys/{key['id']}"
        assert_ok(tenant.browser.put(path, json={"scopes": ["search"]}))

        assert_ok(client.get("/v1/search?q=x"))
        assert used_today(tenant) == 1
        assert_ok(tenant.browser.put(path, json={"scopes": ["sites"]}))
        assert_error(client.get("/v1/search?q=x"), 403, "insufficient_permission")
        assert used_today(tenant) == 1

    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            (["search", "documents", "search"], ["documents", "search"]),
            (list(SCOPES), list(SCOPES)),
            ([], []),
            (None, None),
        ],
    )
    def test_duplicate_scopes_are_stored_once(self, ann: Tenant, sent: Any, kept: Any) -> None:
        key, _ = narrow_key(ann, scopes=sent)
        path = f"/api/sites/{ann.site_id}/keys/{key['id']}"

        assert key["scopes"] == kept
        assert assert_ok(ann.browser.put(path, json={"scopes": ["keys"]}))["key"]["scopes"] == ["keys"]
        assert assert_ok(ann.browser.put(path, json={"scopes": sent}))["key"]["scopes"] == kept
        assert assert_ok(ann.browser.get(path))["key"]["scopes"] == kept

    @pytest.mark.parametrize(
        ("sent", "field"),
        [
            (["documents", "everything"], "scopes[1]"),
            (["Documents"], "scopes[0]"),
            (["documents "], "scopes[0]"),
            ([""], "scopes[0]"),
            ([None], "scopes[0]"),
            ([1], "scopes[0]"),
            ([["documents"]], "scopes[0]"),
            (["documents"] * 101, "scopes"),
            ("documents", "scopes"),
            ({"documents": True}, "scopes"),
            (True, "scopes"),
        ],
    )
    def test_unknown_scopes_are_rejected(self, ann: Tenant, sent: Any, field: str) -> None:
        key, client = narrow_key(ann, scopes=["keys"])
        path = f"/api/sites/{ann.site_id}/keys"

        made = ann.browser.post(path, json={"name": "x", "type": "private", "scopes": sent})
        assert_error(made, 400, "validation_failed", field=field)
        for caller in (ann.browser, client):
            changed = caller.put(f"{path}/{key['id']}", json={"scopes": sent})
            assert_error(changed, 400, "validation_failed", field=field)
        assert assert_ok(client.get(f"{path}/{key['id']}"))["key"] == key

    @pytest.mark.parametrize("kind", ["public", "search"])
    @pytest.mark.parametrize("fields", [{"scopes": ["search"]}, {"scopes": []}, {"site_only": True}], ids=str)
    def test_scopes_and_site_only_are_rejected_for_public_and_search_keys(
        self, ann: Tenant, kind: str, fields: dict[str, Any]
    ) -> None:
        (field,) = fields
        path = f"/api/sites/{ann.site_id}/keys"
        key_id, _ = new_key(ann, ann.site_id, kind)

        made = ann.browser.post(path, json={"name": "x", "type": kind, **fields})
        assert_error(made, 400, "validation_failed", field=field)
        assert_error(ann.browser.put(f"{path}/{key_id}", json=fields), 400, "validation_failed", field=field)
        assert_ok(ann.browser.put(f"{path}/{key_id}", json={"scopes": None, "site_only": False}))


NAMING: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/v1/search?q=x&site_id={site}", None),
    ("POST", "/v1/search", {"q": "x"}),
    ("GET", "/v1/suggest?q=x&site_id={site}", None),
    ("GET", "/v1/related?id=page-1&site_id={site}", None),
    ("GET", "/v1/popular?site_id={site}", None),
    ("POST", "/v1/ask", {"q": "When is it open?"}),
    ("POST", "/api/v1/index/bulk?site_id={site}", {"documents": [page(1)]}),
    ("POST", "/api/v1/index/bulk", {"documents": [page(1)]}),
    ("DELETE", "/api/v1/index/destroy?id=page-1&site_id={site}", None),
    ("DELETE", "/api/v1/index/destroy", {"id": "page-1"}),
    ("PATCH", "/api/v1/documents", {"documents": [{"id": "page-1", "title": "x"}]}),
    ("POST", "/api/v1/documents/delete", {"all": True}),
    ("POST", "/api/v1/sync", {"source": "cms"}),
    ("POST", "/api/v1/sync/sync_00000000000000000000/finish", {}),
    ("GET", "/api/analytics?site_id={site}", None),
    ("GET", "/analytics/export?site_id={site}", None),
    ("PUT", "/api/analytics/inbox", {"query": "x", "ignored": True}),
]
"""Requests that name a site, in the query string if it has a placeholder, otherwise in the body."""


class TestOneSite:
    """A private key restricted to its own site."""

    @pytest.mark.parametrize("row", OWNED, ids=str)
    def test_site_only_key_gets_403_for_own_other_sites_and_404_for_other_accounts(
        self, ann: Tenant, eve: Tenant, row: Row
    ) -> None:
        _, client = narrow_key(ann, site_only=True)
        path, body = filled(row, ann)
        theirs, _ = filled(row, eve)
        nowhere = row.path.replace("{site}", "987654321").replace("{key}", "key_AAAAAAAAAA").format(**NOTHING)

        assert_error(send(client, row, path, body), 403, "insufficient_permission")
        found = [send(client, row, path, body) for path in (theirs, nowhere)]

        assert_error(found[0], 404, "site_not_found" if "{site}" in row.path else "key_not_found")
        assert found[0].get_json() == found[1].get_json()

    @pytest.mark.parametrize(("method", "path", "body"), NAMING)
    def test_site_only_key_cannot_name_another_site_in_query_or_body(
        self, ann: Tenant, eve: Tenant, method: str, path: str, body: dict[str, Any] | None
    ) -> None:
        _, client = narrow_key(ann, site_only=True)
        other = new_site(ann)

        def call(site_id: int) -> Any:
            in_body = body if body is None or "{site}" in path else {**body, "site_id": site_id}
            return client.call(method, path.format(site=site_id), **({} if body is None else {"json": in_body}))

        assert_error(call(other), 403, "insufficient_permission")
        for site_id in (eve.site_id, 987654321, 0):
            assert call(site_id).get_json()["error"] == "site_not_found"

    def test_every_operation_with_a_site_is_covered_by_these_tests(self, shared_app: Flask) -> None:
        with shared_app.app_context():
            described = document()
        taking = set()
        for path, item in described["paths"].items():
            for method, operation in item.items():
                if method == "parameters":
                    continue
                named = {found["name"] for found in [*item.get("parameters", ()), *operation.get("parameters", ())]}
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                reference = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                body = described["components"]["schemas"].get(reference, {})
                if "site_id" in named or "site_id" in body.get("properties", {}):
                    taking.add(f"{method.upper()} {path}")

        tried = {f"{row.method} {row.template}" for row in OWNED}
        tried |= {re.sub(r"sync_0+", "{sync_id}", f"{method} {path.partition('?')[0]}") for method, path, _ in NAMING}
        tried.add("POST /api/v1/click")  # Names a site of the key's collection; see test_collections.py.
        assert len(taking) > 30
        assert taking - tried == set()

    def test_site_only_key_can_use_its_own_site_with_or_without_naming_it(self, ann: Tenant) -> None:
        _, client = narrow_key(ann, site_only=True)
        own = ann.site_id

        assert_ok(client.post("/api/v1/index/bulk", json={"documents": [page(1)]}))
        for path in (
            "/v1/search?q=x", f"/v1/search?q=x&site_id={own}", f"/sites/{own}", f"/api/sites/{own}/keys",
            "/api/v1/documents", f"/api/v1/documents?site_id={own}", f"/api/analytics/inbox?site_id={own}",
            f"/api/sites/{own}/sources",
        ):  # fmt: skip
            assert_ok(client.get(path))

    def test_site_only_key_cannot_use_account_wide_operations(self, ann: Tenant) -> None:
        _, client = narrow_key(ann, site_only=True)
        of_the_account = [operation for operation in operations(ann) if operation.policy.whole_account]
        assert of_the_account
        for operation in of_the_account:
            error = assert_error(client.call(operation.method, operation.path), 403, "insufficient_permission")
            assert "the whole account" in error["message"], str(operation)

    def test_site_only_key_lists_sites_and_analytics_of_its_own_site_only(self, tenant: Tenant) -> None:
        other = new_site(tenant)
        _, client = narrow_key(tenant, site_only=True)
        tenant.find("own")
        assert_ok(tenant.private.get(f"/v1/search?q=other&site_id={other}"))
        tenant.app.extensions["runtime"].events.flush()

        listed = assert_ok(client.get("/sites"))
        told = assert_ok(client.get("/api/analytics"))

        assert ([site["id"] for site in listed["sites"]], listed["total"]) == ([tenant.site_id], 1)
        assert [query["query"] for query in told["top_queries"]] == ["own"]
        for path in ("/sites", "/api/analytics", "/analytics/export"):
            shown = client.get(path, headers={"Accept": "text/html"})
            assert shown.status_code == 200
            assert "Another" not in shown.get_data(as_text=True)
            assert "other" not in shown.get_data(as_text=True).replace("another", "")

    def test_site_only_key_gets_403_for_every_page_of_another_site(self, ann: Tenant) -> None:
        _, client = narrow_key(ann, site_only=True)
        other = new_site(ann)
        seen = 0
        for rule in ann.app.url_map.iter_rules():
            if "site_id" not in rule.arguments or "GET" not in (rule.methods or ()):
                continue
            path = ann.app.url_map.bind("localhost").build(
                rule.endpoint, {name: other if name == "site_id" else "x" for name in rule.arguments}
            )
            assert client.get(path, headers={"Accept": "text/html"}).status_code == 403, path
            seen += 1
        assert seen > 15

    def test_site_only_key_reports_usage_of_its_own_index_only(self, ann: Tenant, eve: Tenant) -> None:
        _, client = narrow_key(ann, site_only=True)

        def report(index: str) -> Any:
            return client.post("/v1/report-usage", json={"operation": "search", "count": 1, "index": index})

        assert_ok(report(ann.site["index"]))
        assert_error(report(f"site_{new_site(ann)}"), 403, "insufficient_permission")
        assert_error(report(eve.site["index"]), 404, "index_not_found")

    @pytest.mark.parametrize("sent", ["true", 1, None, []])
    def test_site_only_must_be_a_boolean(self, ann: Tenant, sent: Any) -> None:
        body = {"name": "x", "type": "private", "site_only": sent}

        made = ann.browser.post(f"/api/sites/{ann.site_id}/keys", json=body)

        assert_error(made, 400, "validation_failed", field="site_only")


class TestKeysOfKeys:
    """No key can create, widen, or rotate a key with more rights than its own; other changes require only the scope."""

    @pytest.mark.parametrize(
        ("held", "wanted"),
        [
            ({"scopes": ["keys"]}, {"type": "private"}),
            ({"scopes": ["keys"]}, {"type": "private", "scopes": None}),
            ({"scopes": ["keys"]}, {"type": "private", "scopes": ["keys", "sites"]}),
            ({"scopes": ["keys"]}, {"type": "private", "scopes": ["documents"], "site_only": True}),
            ({"scopes": ["keys"]}, {"type": "search"}),
            ({"scopes": ["keys"]}, {}),
            ({"scopes": list(SCOPES)}, {"type": "private"}),
            ({"site_only": True}, {"type": "private"}),
            ({"site_only": True}, {"type": "private", "scopes": ["search"]}),
            ({"scopes": ["keys"], "site_only": True}, {"type": "private", "scopes": ["keys"]}),
        ],
        ids=str,
    )
    def test_key_cannot_create_a_key_with_more_rights(
        self, ann: Tenant, held: dict[str, Any], wanted: dict[str, Any]
    ) -> None:
        _, client = narrow_key(ann, **held)
        path = f"/api/sites/{ann.site_id}/keys"
        before = ann.browser.get(path).get_json()["total"]

        assert_error(client.post(path, json={"name": "Wider", **wanted}), 403, "insufficient_permission")

        assert ann.browser.get(path).get_json()["total"] == before

    @pytest.mark.parametrize(
        ("held", "wanted"),
        [
            ({"scopes": ["keys"]}, {"type": "private", "scopes": ["keys"]}),
            ({"scopes": ["keys"]}, {"type": "private", "scopes": [], "site_only": True}),
            ({"scopes": ["keys"]}, {"type": "public"}),
            ({"scopes": ["keys", "search"]}, {"type": "search"}),
            ({"scopes": list(SCOPES)}, {"type": "private", "scopes": list(SCOPES)}),
            ({"site_only": True}, {"type": "private", "site_only": True}),
            ({"site_only": True}, {"type": "search"}),
            ({}, {"type": "private"}),
        ],
        ids=str,
    )
    def test_key_can_create_a_key_with_no_more_rights(
        self, ann: Tenant, held: dict[str, Any], wanted: dict[str, Any]
    ) -> None:
        _, client = narrow_key(ann, **held)

        assert_ok(client.post(f"/api/sites/{ann.site_id}/keys", json={"name": "New", **wanted}), 201)

    @pytest.mark.parametrize(
        "change", [{"scopes": None}, {"scopes": ["keys", "account"]}, {"site_only": False}], ids=str
    )
    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_key_cannot_widen_itself_or_another_key(self, ann: Tenant, method: str, change: dict[str, Any]) -> None:
        own, client = narrow_key(ann, scopes=["keys", "search"], site_only=True)
        other, _ = narrow_key(ann, scopes=["search"], site_only=True)
        for key in (own, other):
            path = f"/api/sites/{ann.site_id}/keys/{key['id']}"
            assert_error(client.call(method, path, json=change), 403, "insufficient_permission")
            assert assert_ok(ann.browser.get(path))["key"] == key

    def test_key_can_narrow_itself_but_not_widen_itself_again(self, ann: Tenant) -> None:
        key, client = narrow_key(ann, scopes=["keys", "search"])
        path = f"/api/sites/{ann.site_id}/keys/{key['id']}"

        assert_ok(client.put(path, json={"scopes": ["keys"]}))
        assert_error(client.put(path, json={"scopes": ["keys", "search"]}), 403, "insufficient_permission")
        assert_ok(client.put(path, json={"scopes": []}))
        assert_error(client.put(path, json={"name": "Mine"}), 403, "insufficient_permission")

    @pytest.mark.parametrize(
        ("method", "action", "body"),
        [
            ("PATCH", "", {"expires_at": "2101-01-01"}),
            ("PATCH", "", {"expires_at": None}),
            ("PUT", "", {"name": "Renamed", "expires_at": "2101-01-01"}),
            ("PUT", "", {"scopes": ["keys"], "expires_at": None}),
            ("PUT", "", {"scopes": None}),
            ("PUT", "", {"scopes": ["keys", "search"]}),
            ("PUT", "", {"site_only": False}),
            ("POST", "/rotate", None),
            ("POST", "/rotate", {"overlap_seconds": 600}),
            ("POST", "toggle", None),
            ("POST", "toggle", {"active": True}),
        ],
    )
    def test_key_with_more_rights_cannot_be_extended_enabled_or_rotated(
        self, ann: Tenant, method: str, action: str, body: Any
    ) -> None:
        _, narrow = narrow_key(ann, scopes=["keys"])
        _, of_site = narrow_key(ann, scopes=["keys"], site_only=True)
        wide, _ = narrow_key(ann, scopes=["keys", "documents"], site_only=True, expires_at="2100-01-01")
        wide = assert_ok(ann.browser.post(f"/api/keys/{wide['id']}/toggle", json={"active": False}))["key"]
        path = f"/api/sites/{ann.site_id}/keys/{wide['id']}"
        target = f"/api/keys/{wide['id']}/toggle" if action == "toggle" else path + action

        for caller in (narrow, of_site):
            response = caller.call(method, target, **({} if body is None else {"json": body}))
            assert_error(response, 403, "insufficient_permission")

        assert assert_ok(ann.browser.get(path))["key"] == wide

    @pytest.mark.parametrize("held", [{"scopes": ["keys"]}, {"scopes": ["keys"], "site_only": True}], ids=str)
    def test_renaming_narrowing_disabling_and_deleting_any_key_requires_only_the_scope(
        self, ann: Tenant, held: dict[str, Any]
    ) -> None:
        _, client = narrow_key(ann, **held)
        wide, lost = narrow_key(ann)
        path = f"/api/sites/{ann.site_id}/keys/{wide['id']}"

        for change in (
            {"name": "Renamed"},
            {"expires_at": "2101-01-01"},
            {"expires_at": "2100-01-01", "scopes": list(SCOPES)},
            {"scopes": ["search", "sites"], "site_only": True},
            {"scopes": ["sites"]},
        ):
            shown = assert_ok(client.put(path, json=change))["key"]
            assert change.items() <= {**shown, "expires_at": (shown["expires_at"] or "")[:10]}.items()
        assert_ok(client.delete(f"{path}/exposure"))
        assert assert_ok(client.post(f"/api/keys/{wide['id']}/toggle"))["key"]["status"] == "disabled"
        assert_ok(client.post(f"/api/keys/{wide['id']}/toggle", json={"active": False}))
        assert_error(lost.get("/sites"), 401, "key_disabled")
        assert_error(client.post(f"/api/keys/{wide['id']}/toggle"), 403, "insufficient_permission")
        assert_ok(client.delete(path))

    def test_site_only_key_cannot_disable_keys_of_other_sites(self, ann: Tenant, eve: Tenant) -> None:
        _, client = narrow_key(ann, scopes=["keys"], site_only=True)
        other = ann.browser.post(f"/api/sites/{new_site(ann)}/keys", json={"name": "Other"}).get_json()["key"]

        assert_error(client.post(f"/api/keys/{other['id']}/toggle"), 403, "insufficient_permission")
        assert_error(client.post(f"/api/keys/{eve.keys['search']['id']}/toggle"), 404, "key_not_found")

    def test_site_only_key_can_rotate_and_delete_itself(self, ann: Tenant) -> None:
        key, client = narrow_key(ann, scopes=["keys"], site_only=True)
        path = f"/api/sites/{ann.site_id}/keys/{key['id']}"

        rotated = assert_ok(client.post(f"{path}/rotate"))
        assert (rotated["key"]["scopes"], rotated["key"]["site_only"]) == (["keys"], True)
        assert_ok(ApiClient(ann.app, rotated["api_key"]).delete(path))

    def test_previous_token_after_a_rotation_has_the_same_restrictions(self, ann: Tenant) -> None:
        key, client = narrow_key(ann, scopes=["keys"])
        assert_ok(client.post(f"/api/sites/{ann.site_id}/keys/{key['id']}/rotate", json={"overlap_seconds": 600}))

        assert_error(client.get("/sites"), 403, "insufficient_permission")

    def test_page_forms_are_rejected_with_a_key(self, ann: Tenant) -> None:
        key, client = narrow_key(ann, scopes=["keys"])
        path = f"/api/sites/{ann.site_id}/keys"
        form = {"name": "Wider", "type": "private", "_method": "POST", "csrf_token": ann.browser.csrf_token}

        for target, method in ((path, "POST"), (f"{path}/{key['id']}", "PUT"), (f"{path}/{key['id']}/rotate", "POST")):
            response = client.call(method, target, data={**form, "_method": method}, headers={"Accept": "text/html"})
            assert response.status_code == 415, target
        assert_error(client.post(f"{path}/{key['id']}", data=form), 405, "method_not_allowed")
        assert assert_ok(ann.browser.get(f"{path}/{key['id']}"))["key"]["scopes"] == ["keys"]


@pytest.fixture
def two_processes(tmp_path: Path) -> Iterator[tuple[Flask, Flask]]:
    """Two applications on the same files, as in two worker processes."""
    settings = make_settings(tmp_path, search_url=f"tantivy://{tmp_path / 'indexes'}")
    first = make_app(settings)
    second = create_app(settings)
    yield first, second
    close_app(second)
    close_app(first)


def test_key_changes_take_effect_with_the_next_request_in_every_process(two_processes: tuple[Flask, Flask]) -> None:
    here, there = two_processes
    tenant = register_tenant(here, "ann@example.com")
    other = new_site(tenant)
    key, public = tenant.keys["private"], tenant.keys["public"]
    client, visitor = ApiClient(there, tenant.tokens["private"]), ApiClient(there, tenant.tokens["public"])
    path = f"/api/sites/{tenant.site_id}/keys/"
    engine_key = visitor.get("/v1/client-info").get_json()["engine_key"]
    page_of_evil = {"Origin": "https://evil.example"}

    def statuses() -> list[int]:
        searched = ApiClient(there, engine_key).get("/engine/indexes/site_1/search?q=x", headers=page_of_evil)
        return [
            client.get("/dashboard").status_code,
            client.get(f"/sites/{other}").status_code,
            visitor.get("/v1/client-info", headers=page_of_evil).status_code,
            searched.status_code,
        ]

    for _ in range(2):  # One process changes the key while the other has the old state cached.
        assert [statuses() for _ in range(2)] == [[200, 200, 200, 200]] * 2
        assert_ok(tenant.browser.put(path + key["id"], json={"scopes": ["analytics"]}))
        assert statuses() == [403, 403, 200, 200]
        assert_ok(tenant.browser.put(path + key["id"], json={"scopes": None, "site_only": True}))
        assert statuses() == [403, 403, 200, 200]
        assert_ok(tenant.browser.put(path + public["id"], json={"allowed_origins": ["https://good.example"]}))
        assert statuses() == [403, 403, 403, 403]
        assert_ok(tenant.browser.put(path + key["id"], json={"site_only": False}))
        assert_ok(tenant.browser.put(path + public["id"], json={"allowed_origins": None}))


GOOD, BAD = {"Origin": "https://www.example.com"}, {"Origin": "https://www.example.com.evil.example"}


def bound_key(tenant: Tenant, *origins: str) -> tuple[dict[str, Any], ApiClient]:
    """Create a public key for these origins, or for www.example.com."""
    body = {"name": "Box", "type": "public", "allowed_origins": list(origins) or ["https://www.example.com"]}
    answer = assert_ok(tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json=body), 201)
    return answer["key"], ApiClient(tenant.app, answer["api_key"])


class TestOrigins:
    """Public keys with allowed origins."""

    def test_requests_from_other_origins_are_rejected(self, ann: Tenant) -> None:
        _, client = bound_key(ann)
        public = [row for row in TABLE if policy_at(ann.app, row.method, filled(row, ann)[0]).access.public]
        assert public
        for row in public:
            path, body = filled(row, ann)
            sent = {} if body is None else {"json": body}
            for headers in (GOOD, {}):
                assert_answer(row, client.call(row.method, path, headers=headers, **sent))
            for origin in (BAD["Origin"], "null", "", "https://example.com", "http://www.example.com"):
                response = client.call(row.method, path, headers={"Origin": origin}, **sent)
                assert "allowed_origins" in assert_error(response, 403, "origin_not_allowed")["message"]
                assert response.headers["Access-Control-Allow-Origin"] == "*", "the page must be able to read the error"

    def test_public_key_without_allowed_origins_works_from_any_origin(self, ann: Tenant) -> None:
        assert ann.keys["public"]["allowed_origins"] is None
        assert_ok(ann.public.get("/v1/client-info", headers=BAD))

    def test_preflights_succeed_from_any_origin(self, ann: Tenant) -> None:
        headers = {**BAD, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}

        response = ApiClient(ann.app).call("OPTIONS", "/v1/client-info", headers=headers)

        assert (response.status_code, response.headers["Access-Control-Allow-Origin"]) == (204, "*")

    @pytest.mark.parametrize("field", ["engine_key", "engine_public_key"])
    def test_engine_keys_of_a_restricted_public_key_have_the_same_origins(self, tenant: Tenant, field: str) -> None:
        key, client = bound_key(tenant)
        tenant.index(page(1))
        engine = VisitorClient(tenant.app, client.get("/v1/client-info", headers=GOOD).get_json()[field])
        index = tenant.site["index"]
        calls = [
            ("POST", f"/engine/indexes/{index}/search", {"q": "page"}),
            ("GET", f"/engine/indexes/{index}/search?q=page", None),
            ("POST", "/engine/multi-search", {"queries": [{"indexUid": index, "q": "page"}]}),
            ("POST", f"/engine/indexes/{index}/facet-search", {"facetName": "author"}),
            ("POST", "/engine/suggest", {"q": "page"}),
            ("GET", "/engine/suggest?q=page", None),
        ]

        for method, path, body in calls:
            sent = {} if body is None else {"json": body}
            for headers in (GOOD, {}):
                assert_ok(engine.call(method, path, headers=headers, **sent))
            for headers in (BAD, {"Origin": "null"}):
                response = engine.call(method, path, headers=headers, **sent)
                assert_engine_error(response, 403, "origin_not_allowed")
                assert response.headers["Access-Control-Allow-Origin"] == "*"
        click = {"query": "page", "id": "page-1"}
        assert_ok(engine.post("/api/v1/click", json=click, headers=GOOD))
        assert_error(engine.post("/api/v1/click", json=click, headers=BAD), 403, "origin_not_allowed")
        path = f"/api/sites/{tenant.site_id}/keys/{key['id']}"
        assert_ok(tenant.browser.put(path, json={"allowed_origins": None}))
        assert_ok(engine.get("/engine/suggest?q=page", headers=BAD))

    def test_disabling_a_restricted_key_disables_its_public_engine_key_only(self, tenant: Tenant) -> None:
        key, client = bound_key(tenant)
        own = VisitorClient(tenant.app, client.get("/v1/client-info").get_json()["engine_public_key"])
        sites = Gateway(tenant, "search")
        assert_ok(own.get("/engine/suggest?q=x"))

        tenant.browser.post(f"/api/keys/{key['id']}/toggle")

        assert_engine_error(own.get("/engine/suggest?q=x"), 403, "invalid_api_key")
        assert sites.send({"q": "x"}, headers=BAD).status_code == 200

    def test_search_rejected_for_its_origin_is_not_charged(self, tenant: Tenant) -> None:
        _, client = bound_key(tenant)
        engine = VisitorClient(tenant.app, client.get("/v1/client-info").get_json()["engine_public_key"])
        path = f"/engine/indexes/{tenant.site['index']}/search"

        for _ in range(3):
            assert_engine_error(engine.post(path, json={"q": "page"}, headers=BAD), 403, "origin_not_allowed")
        assert used_today(tenant) == 0
        assert_ok(engine.post(path, json={"q": "page"}, headers=GOOD))
        assert used_today(tenant) == 1

    def test_first_search_after_allowing_its_origin_is_charged(self, tenant: Tenant) -> None:
        key, client = bound_key(tenant)
        engine = VisitorClient(tenant.app, client.get("/v1/client-info").get_json()["engine_public_key"])
        path = f"/engine/indexes/{tenant.site['index']}/search"
        assert_engine_error(engine.post(path, json={"q": "page"}, headers=BAD), 403, "origin_not_allowed")
        change = {"allowed_origins": [BAD["Origin"]]}
        assert_ok(tenant.browser.put(f"/api/sites/{tenant.site_id}/keys/{key['id']}", json=change))

        assert_ok(engine.post(path, json={"q": "page"}, headers=BAD))
        assert used_today(tenant) == 1

    def test_allowed_origins_support_wildcards_ports_and_international_names(self, ann: Tenant) -> None:
        key, client = bound_key(ann, "https://*.Example.com/", "http://localhost:3000", "https://bücher.example:443")

        assert key["allowed_origins"] == [
            "https://*.example.com", "http://localhost:3000", "https://xn--bcher-kva.example",
        ]  # fmt: skip
        for origin, status in {
            "https://a.b.example.com": 200,
            "https://example.com": 403,
            "https://evilexample.com": 403,
            "http://localhost:3000": 200,
            "http://localhost": 403,
            "https://xn--bcher-kva.example": 200,
        }.items():
            assert client.get("/v1/client-info", headers={"Origin": origin}).status_code == status, origin

    @pytest.mark.parametrize(
        ("sent", "field"),
        [
            ([], "allowed_origins"),
            ("https://example.com", "allowed_origins"),
            (["https://example.com", "example.com"], "allowed_origins[1]"),
            (["https://example.com/shop"], "allowed_origins[0]"),
            (["https://user@example.com"], "allowed_origins[0]"),
            (["https://example.com."], "allowed_origins[0]"),
            (["*"], "allowed_origins[0]"),
            (["null"], "allowed_origins[0]"),
            ([None], "allowed_origins[0]"),
            ([f"https://{number}.example" for number in range(101)], "allowed_origins"),
        ],
    )
    def test_invalid_origins_are_rejected(self, ann: Tenant, sent: Any, field: str) -> None:
        key, _ = bound_key(ann)
        path = f"/api/sites/{ann.site_id}/keys"

        made = ann.browser.post(path, json={"name": "x", "type": "public", "allowed_origins": sent})
        changed = ann.browser.put(f"{path}/{key['id']}", json={"allowed_origins": sent})

        for response in (made, changed):
            assert_error(response, 400, "validation_failed", field=field)

    def test_equivalent_origins_are_stored_once(self, ann: Tenant) -> None:
        key, _ = bound_key(ann, "https://a.example", "HTTPS://A.example:443/", "https://b.example")

        assert key["allowed_origins"] == ["https://a.example", "https://b.example"]

    @pytest.mark.parametrize("kind", ["search", "private"])
    def test_allowed_origins_are_rejected_for_search_and_private_keys(self, ann: Tenant, kind: str) -> None:
        body = {"name": "x", "type": kind, "allowed_origins": ["https://example.com"]}

        made = ann.browser.post(f"/api/sites/{ann.site_id}/keys", json=body)

        assert_error(made, 400, "validation_failed", field="allowed_origins")
