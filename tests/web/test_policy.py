"""Policies of all operations. Defaults follow from the policies; exceptions are listed here."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app import application
from app.apidoc.openapi import document
from app.application import create_app
from app.compat import algolia, custom_search
from app.compat.agents import views as agents
from app.pages.negotiation import METHODS
from app.services.access.rights import Role
from app.web.auth import (
    ANY_KEY,
    ANY_KEY_OR_ENGINE_KEY,
    ANYONE,
    BEARER,
    FOR_OPERATOR,
    GATEWAY,
    INDEXING,
    LOGGED_IN,
    MANAGING,
    SEARCHING,
)
from app.web.policy import SAFE_METHODS, MissingPolicy, OperationPolicy, policies
from schemas.validation.keys import Scope
from tests.callers import ApiClient, Browser, Tenant, add_member
from tests.conftest import close_app, make_settings
from tests.gateway.callers import Gateway, assert_engine_error
from tests.responses import assert_error
from tests.web.operations import Operation, operations

SCRIPTS = {
    "docs_widget", "docs_widget_results", "docs_widget_texts", "widget", "widget_ask", "widget_related",
    "widget_results", "widget_texts",
}  # fmt: skip
UNCOUNTED = SCRIPTS | {"docs_image", "health.show_health", "health.show_readiness", "metrics", "static"}
DOCS_SEARCH = {"docs_client_info", "docs_search", "docs_suggest"}
OPENING_SESSIONS = {
    "accounts.login", "accounts.register_account", "invitations.accept_invitation", "pages.send_link",
    "pages.set_password", "pages.undo_email_change", "pages.confirm_email", "pages.choose_account",
}  # fmt: skip
GUIDE = {"openapi", "pages.show_docs", "pages.show_docs_page", "pages.show_docs_reference"}
FOR_ANYONE = UNCOUNTED | OPENING_SESSIONS | GUIDE | DOCS_SEARCH | {
    "accounts.logout", "engine.show_health", "invitations.show_invitation", "pages.show_email_change",
    "pages.show_confirmation", "pages.begin_login", "pages.finish_login",
    "pages.show_entrance", "pages.show_entrance.register", "pages.show_forgot", "pages.show_home", "pages.show_plans",
    "pages.show_docs_markdown", "pages.show_llms_txt", "pages.show_reset", "pages.show_unsubscribe",
    "pages.stop_digest", "sources.run_source_by_hook",
}  # fmt: skip
"""Every endpoint that is open to anyone; a new one must be added here."""

FOR_KEYS = {
    "client-info.show_client_info": ANY_KEY,
    "usage.log_search": ANY_KEY,
    "usage.report_usage": ANY_KEY,
    "clicks.report_click": ANY_KEY_OR_ENGINE_KEY,
    "search.search": SEARCHING,
    "search.search_by_body": SEARCHING,
    "suggestions.suggest": SEARCHING,
    "related-pages.list_popular_pages": ANY_KEY,
    "asks.ask": ANY_KEY,
    "asks.send_feedback": ANY_KEY,
    "related-pages.list_related_pages": ANY_KEY,
    "documents.index_documents": INDEXING,
    "documents.delete_document": INDEXING,
    "algolia.search_indexes": algolia.ACCESS,
    "algolia.search_one_index": algolia.ACCESS,
    "custom_search.custom_search": custom_search.ACCESS,
    "agents_call": ANY_KEY,
    **dict.fromkeys(
        (
            "agents_call_with_key", "agents_show_llms_full_txt", "agents_show_llms_txt", "agents_show_open_search",
            "agents_show_page",
        ),
        agents.IN_PATH,
    ),
}  # fmt: skip
FOR_THE_OPERATOR = {
    "operator.create_account", "operator.list_all_accounts", "operator.list_all_sites", "operator.list_engines",
    "operator.remove_account", "operator.resume_account",
    "operator.show_one_account", "operator.show_usage", "operator.suspend_account", "operator.update_account",
}  # fmt: skip
FOR_MEMBERS = {
    "profile.begin_codes", "profile.confirm_codes", "profile.end_other_sessions", "profile.end_session",
    "profile.list_sessions", "profile.remove_codes", "profile.show_codes",
}  # fmt: skip
OPERATOR_PAGES = {
    "pages.change_account_plan", "pages.check_language_model", "pages.enter_operator_code",
    "pages.resume_account", "pages.show_operator_account",
    "pages.show_operator_accounts", "pages.show_operator_charts", "pages.show_operator_health", "pages.suspend_account",
}  # fmt: skip
"""Pages for operators; see tests/pages/operator. For other callers, they do not exist."""
GATEWAY_SEARCHES = {
    "engine.multi_search", "engine.search_facet", "engine.search_index", "engine.search_index_by_query",
}  # fmt: skip
ALGOLIA_SEARCHES = {"algolia.search_indexes", "algolia.search_one_index"}
GATEWAY_OPERATIONS = GATEWAY_SEARCHES | {"engine.suggest", "engine.suggest_by_query"}
SEARCHES = {
    "agents_call", "agents_call_with_key",
    "custom_search.custom_search", "search.search", "search.search_by_body", "pages.show_collection_preview",
    "pages.show_search_preview",
}  # fmt: skip
SPECIAL: dict[str, tuple[Callable[[OperationPolicy], object], set[str]]] = {
    "uncounted": (lambda policy: policy.uncounted, UNCOUNTED),
    "without rate headers": (lambda policy: policy.without_rate_headers, {"static"}),
    "opens a session": (lambda policy: policy.opens_session, OPENING_SESSIONS),
    "reflects nothing": (
        lambda policy: policy.reflects_nothing,
        GUIDE | SCRIPTS | {"static"},
    ),
    "goes on without counters": (
        lambda policy: policy.searches,
        SEARCHES | ALGOLIA_SEARCHES | GATEWAY_OPERATIONS | DOCS_SEARCH | {
            "related-pages.list_popular_pages", "related-pages.list_related_pages", "suggestions.suggest",
        },
    ),
    "charges a search": (lambda policy: policy.charges, SEARCHES | ALGOLIA_SEARCHES | GATEWAY_SEARCHES),
    "charges an intent": (lambda policy: policy.searched_texts, ALGOLIA_SEARCHES | GATEWAY_SEARCHES),
    "reports usage": (lambda policy: policy.reports_usage, {"usage.report_usage"}),
    "of the whole account, beside its own scope": (
        lambda policy: policy.whole_account is not (policy.scope is Scope.ACCOUNT),
        {
            "collections.create_collection", "collections.create_key", "collections.delete_collection",
            "collections.delete_key", "collections.list_collections", "collections.list_keys",
            "collections.patch_collection", "collections.patch_key", "collections.rotate_key",
            "collections.show_collection", "collections.show_key", "collections.update_collection",
            "collections.update_key", "dashboard.show_dashboard", "dashboard.show_month",
            "pages.create_collection_box_key", "pages.export_months", "pages.show_collection_create_form",
            "pages.show_collection_edit_form", "pages.show_collection_preview", "sites.create_site",
            "sites.show_create_form",
        },
    ),
    "for owners": (
        lambda policy: policy.role is Role.OWNER,
        {
            "audit-log.list_entries", "invitations.create_invitation", "invitations.list_invitations",
            "invitations.renew_invitation", "invitations.revoke_invitation", "members.list_members",
            "members.patch_member", "members.remove_member", "members.show_member", "members.update_member",
            "pages.export_audit_log", "pages.restore_settings", "profile.delete_account",
            "webhooks.create_webhook", "webhooks.delete_webhook", "webhooks.list_deliveries", "webhooks.list_webhooks",
            "webhooks.patch_webhook", "webhooks.redeliver", "webhooks.show_webhook", "webhooks.update_webhook",
        },
    ),
    "for editors, although it only reads": (
        lambda policy: policy.role is Role.EDITOR,
        {
            "collections.show_key", "keys.show_edit_form", "keys.show_key", "pages.show_collection_create_form",
            "pages.show_collection_edit_form", "pages.show_import", "pages.show_pin_remedy",
            "pages.show_settings_section", "pages.show_source_create_form", "pages.show_source_edit_form",
            "pages.show_synonym_remedy",
            "search-settings.list_learned_clicks", "search-settings.show_search_settings", "sites.show_create_form",
            "sites.show_edit_form",
        },
    ),
    "written by viewers": (
        lambda policy: policy.access.session and policy.role_for("POST") is Role.VIEWER,
        FOR_MEMBERS | OPERATOR_PAGES | {"profile.update_profile", "pages.connect_login", "pages.send_confirmation"},
    ),
}  # fmt: skip
SCOPES = (
    (r"\w+ /api/v1/(index|documents|sync)\b", Scope.DOCUMENTS),
    (r"\w+ (/api)?/sites/\*/(sources|import|documents)\b", Scope.DOCUMENTS),
    (r"\w+ /v1/(search|suggest|related|popular|ask|ask/\*/feedback)$", Scope.SEARCH),
    (r"POST /mcp$|GET /(sites|collections)/\*/try$", Scope.SEARCH),
    (r"\w+ (/api)?/analytics\b", Scope.ANALYTICS),
    (r"\w+ (/api/((sites|collections)/\*/)?keys|/(sites|collections)/\*/box)\b", Scope.KEYS),
    (r"\w+ (/sites|(/api)?/collections|/dashboard|(/api)?/usage)\b", Scope.SITES),
    (r"\w+ (/profile|/api/members|/api/invitations|/api/webhooks|(/api)?/audit-log)\b", Scope.ACCOUNT),
)
"""The scope that a private key needs, by method and path."""


def test_access_of_each_operation_matches_the_list(shared_app: Flask) -> None:
    by_hand = {
        **dict.fromkeys(FOR_ANYONE, ANYONE),
        **FOR_KEYS,
        **dict.fromkeys(FOR_MEMBERS | OPERATOR_PAGES, LOGGED_IN),
        **dict.fromkeys(FOR_THE_OPERATOR, FOR_OPERATOR),
        **dict.fromkeys(GATEWAY_OPERATIONS, GATEWAY),
    }
    access = {endpoint: policy.access for endpoint, policy in policies(shared_app).items()}

    assert {endpoint: found for endpoint, found in access.items() if found != MANAGING} == by_hand


@pytest.mark.parametrize("name", SPECIAL)
def test_exceptional_policies_match_the_list(shared_app: Flask, name: str) -> None:
    is_special, endpoints = SPECIAL[name]

    assert {endpoint for endpoint, policy in policies(shared_app).items() if is_special(policy)} == endpoints


def test_scope_of_each_operation_matches_its_path(ann: Tenant) -> None:
    for operation in operations(ann):
        told = f"{operation.method} {re.sub('<[^>]+>', '*', operation.rule)}"
        needed = next((scope for address, scope in SCOPES if re.match(address, told)), None)
        free = not operation.policy.access.private or (operation.policy.access.public and needed is None)
        assert operation.policy.scope is (None if free else needed), told
        assert free or needed, told


def test_every_policy_belongs_to_a_route(shared_app: Flask) -> None:
    assert policies(shared_app).keys() == {rule.endpoint for rule in shared_app.url_map.iter_rules()}


@pytest.mark.parametrize("kind", ["nobody", "public", "search", "private", "session", "engine"])
def test_every_operation_rejects_callers_outside_its_policy(
    ann: Tenant, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes methods and paths that the API document does not describe."""
    monkeypatch.setattr("app.services.usage.quota.VISITOR_LIMIT", 1_000)
    tokens = {**ann.tokens, "engine": Gateway(ann).token}
    caller = ann.browser if kind == "session" else ApiClient(ann.app, tokens.get(kind))

    def is_allowed(operation: Operation) -> bool:
        access = operation.policy.access
        # At the gateway, a public key counts as an engine key.
        counts_as = "engine" if kind == "public" and operation.path.startswith("/engine/") else kind
        return access.anyone or getattr(access, counts_as, False)

    rejected = [
        operation
        for operation in operations(ann)
        if not is_allowed(operation)
        and operation.endpoint not in OPERATOR_PAGES
        # Other endpoints have their own error formats; see tests/compat.
        and operation.policy.token_locations is BEARER
    ]
    assert len(rejected) > 5
    for operation in rejected:
        response = caller.call(operation.method, operation.path)
        is_known = kind not in ("nobody", "session")
        if operation.policy.access.operator:
            assert_error(response, 404, "not_found")  # It is off; see tests/api/test_operator.py.
            continue
        if operation.path.startswith("/engine/"):
            code = "invalid_api_key" if is_known else "missing_authorization_header"
            assert_engine_error(response, 403 if is_known else 401, code)
        elif kind == "engine" or not is_known:
            assert_error(response, 401, "invalid_api_key" if is_known else "missing_api_key")
        else:
            assert_error(response, 403, "insufficient_permission")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
def test_members_cannot_exceed_their_role(ann: Tenant, role: Role) -> None:
    """Every operation with every method, as an API call and as a page."""
    browser = add_member(ann, f"{role}@example.com", role)
    rejected = [
        operation
        for operation in operations(ann)
        if operation.policy.access.session and not role.covers(operation.policy.role_for(operation.method))
    ]
    assert len(rejected) > 10
    for operation in rejected:
        assert_error(browser.call(operation.method, operation.path, json={}), 403, "insufficient_permission")
        response = _open_as_page(browser, operation, {"csrf_token": browser.csrf_token})
        assert (response.status_code, role.value in response.get_data(as_text=True)) == (403, True), str(operation)


def _open_as_page(browser: Browser, operation: Operation, form: dict[str, str]) -> TestResponse:
    """Return the response to a browser, which writes with forms."""
    sent = {"data": {**form, "_method": operation.method}} if operation.writes else {}
    method = "POST" if operation.writes else operation.method
    return browser.client.open(operation.path, method=method, headers={"Accept": "text/html"}, **sent)


def test_every_write_with_a_session_requires_its_csrf_token(ann: Tenant) -> None:
    writes = [
        operation
        for operation in operations(ann)
        if operation.writes
        and (operation.policy.access.session or operation.policy.access.anyone)
        and operation.endpoint not in OPERATOR_PAGES
    ]
    assert len(writes) > 40
    for operation in writes:
        headers = {"Origin": "https://elsewhere.example"} if operation.policy.opens_session else {}
        response = ann.browser.client.open(operation.path, method=operation.method, headers=headers)
        assert_error(response, 403, "csrf_failed")
        if not operation.policy.opens_session:
            assert _open_as_page(ann.browser, operation, {}).status_code == 403, str(operation)


def test_every_write_rejects_unknown_fields_in_its_body(ann: Tenant) -> None:
    """A caller may intend the body as a condition, such as ``{"name": "Other"}``, for deleting a site."""
    with ann.app.app_context():
        described = document()["paths"]
    writes = [
        operation
        for operation in operations(ann)
        if operation.writes and operation.policy.access.session and not operation.endpoint.startswith("pages.")
    ]
    assert sum(operation.method == "DELETE" for operation in writes) > 10
    for operation in writes:
        path = re.sub(r"<(?:[^<>]+:)?(\w+)>", r"{\1}", operation.rule)
        if "text/csv" in described[path][operation.method.lower()].get("requestBody", {}).get("content", {}):
            continue  # A file with arbitrary content.
        response = ann.browser.call(operation.method, operation.path, json={"unheard_of": True})
        assert_error(response, 400, "validation_failed")
        text = ann.browser.call(operation.method, operation.path, data="name=Other")
        assert text.status_code in (400, 415), str(operation)


def test_every_route_handles_only_its_declared_methods(shared_app: Flask) -> None:
    """HEAD is GET without the body, OPTIONS reaches no view, and a form's method field can only select a method that
    writes."""
    for rule in shared_app.url_map.iter_rules():
        assert rule.provide_automatic_options is True, rule
        assert ("HEAD" in rule.methods) == ("GET" in rule.methods), rule
    assert METHODS.isdisjoint(SAFE_METHODS)


class TestMissingPolicies:
    """A view without a policy."""

    def test_application_with_views_without_a_policy_does_not_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def register(started: Flask) -> None:
            started.add_url_rule("/one", "forgotten", lambda: "secret")
            started.add_url_rule("/two", "forgotten.too", lambda: "secret")

        monkeypatch.setattr(application.metrics, "register", lambda app, _: register(app))

        with pytest.raises(MissingPolicy, match=r": forgotten, forgotten\.too\."):
            create_app(make_settings(tmp_path))

    def test_view_added_after_startup_without_a_policy_is_not_reachable(self, tmp_path: Path) -> None:
        app = create_app(
            make_settings(tmp_path), background=False
        )  # The applications of other tests share their routes.
        app.testing = True
        app.add_url_rule("/late", "late", lambda: "secret")

        with pytest.raises(KeyError, match="late"):
            app.test_client().get("/late")
        close_app(app)

    def test_unmatched_routes_return_404_or_405_and_count_towards_the_rate_limit(self, app: Flask) -> None:
        for method, path, status in (("GET", "/nowhere", 404), ("DELETE", "/plans", 405)):
            response = app.test_client().open(path, method=method)
            assert response.status_code == status
            assert int(response.headers["X-RateLimit-Remaining"]) < int(response.headers["X-RateLimit-Limit"])

    def test_uncounted_policy_must_be_for_anyone(self) -> None:
        with pytest.raises(ValueError, match="open to anyone"):
            OperationPolicy(MANAGING, uncounted=True)


def test_each_role_covers_the_lower_roles() -> None:
    assert [[role.covers(needed) for needed in Role] for role in Role] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_no_hook_waits_in_vain_for_requests(shared_app: Flask) -> None:
    """The application calls its entrance instead of hooks. Flask-Limiter's would check decorated blueprints only."""
    hooks = (shared_app.before_request_funcs, shared_app.after_request_funcs, shared_app.teardown_request_funcs)
    functions = [getattr(added, "func", added) for by_name in hooks for added in chain(*by_name.values())]
    assert {function.__module__ for function in functions} == {"flask_limiter._extension"}
