"""``account suspend`` and ``account resume``: blocked requests, their error message, and kept data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from flask import Flask
from sqlalchemy import func, select

from app.application import create_app
from app.commands.crawl import crawl_parts
from app.crawl.run.worker import Worker
from app.crawl.sources.runs import ClaimState, claim_run, count_waiting, renew_claim, request_run
from app.models import Source, SourceRun
from app.runtime import Runtime
from app.services.accounts import accounts
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, page
from tests.conftest import close_app
from tests.crawl.sources.rows import add_source
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, tzinfo=UTC)
REASON = "Please pay your bill."


def account(tenant: Tenant, command: str, *options: str) -> dict[str, Any]:
    result = tenant.app.test_cli_runner().invoke(args=["account", command, tenant.email, "--json", *options])
    assert result.exit_code == 0, result.output
    shown: dict[str, Any] = json.loads(result.output)
    return shown


def test_suspended_account_gets_403_with_the_reason_for_every_credential(tenant: Tenant, stranger: Tenant) -> None:
    tenant.index(page(1))
    engine_key = assert_ok(tenant.public.get("/v1/client-info"))["engine_key"]
    gateway = ApiClient(tenant.app, engine_key)
    search = f"/engine/indexes/{tenant.site['index']}/search"
    assert gateway.post(search, json={"q": "page"}).status_code == 200

    assert account(tenant, "suspend", "--reason", REASON)["suspension_reason"] == REASON

    for caller, method, path in (
        (tenant.search, "GET", "/v1/search?q=page"),
        (tenant.public, "GET", "/v1/client-info"),
        (tenant.private, "POST", "/api/v1/index/bulk"),
        (tenant.private, "DELETE", f"/sites/{tenant.site_id}"),
        (tenant.browser, "GET", "/dashboard"),
        (tenant.browser, "POST", f"/api/sites/{tenant.site_id}/keys"),
        (tenant.browser, "DELETE", "/profile"),
    ):
        body = {} if method == "GET" else {"json": {}}
        error = assert_error(caller.call(method, path, **body), 403, "account_suspended")
        assert error["message"] == f"The account is suspended. {REASON}"
    assert gateway.post(search, json={"q": "page"}).status_code == 403
    assert_ok(stranger.search.get("/v1/search?q=page"))


def test_member_of_a_suspended_account_can_log_in_read_the_reason_and_log_out(tenant: Tenant) -> None:
    account(tenant, "suspend", "--reason", REASON)
    client = tenant.app.test_client()

    answer = assert_ok(client.post("/login", json={"email": tenant.email, "password": PASSWORD}))

    shown = client.get("/dashboard", headers={"Accept": "text/html"})
    assert shown.status_code == 403
    assert REASON in shown.text
    assert "Go to the dashboard" not in shown.text
    assert_ok(Browser(client, answer["csrf_token"]).call("POST", "/logout"))


def test_resumed_account_keeps_sites_keys_and_documents(tenant: Tenant) -> None:
    tenant.index(page(1))
    before = assert_ok(tenant.browser.get("/sites")), assert_ok(tenant.browser.get("/dashboard"))
    account(tenant, "suspend")
    account(tenant, "suspend", "--reason", "Another one")

    assert account(tenant, "resume")["suspended_at"] is None

    assert tenant.found_ids("page") == ["page-1"]
    assert_ok(tenant.public.get("/v1/client-info"))
    after = assert_ok(tenant.browser.get("/sites")), assert_ok(tenant.browser.get("/dashboard"))
    assert (after[0], after[1]["siteCount"], after[1]["apiKeyCount"]) == (
        before[0], before[1]["siteCount"], before[1]["apiKeyCount"],
    )  # fmt: skip


def test_key_cached_by_another_process_follows_suspension_and_resumption(tenant: Tenant) -> None:
    other = create_app(tenant.app.extensions["runtime"].settings, background=False)
    try:
        search = ApiClient(other, tenant.tokens["search"])
        assert_ok(search.get("/v1/search?q=page"))
        assert_ok(search.get("/v1/search?q=page"))
        account(tenant, "suspend")
        assert_error(search.get("/v1/search?q=page"), 403, "account_suspended")
        account(tenant, "resume")
        assert_ok(search.get("/v1/search?q=page"))
    finally:
        close_app(other)


def test_sources_of_a_suspended_account_do_not_run(tenant: Tenant) -> None:
    database = tenant.app.extensions["runtime"].database
    source = add_source(tenant.app, tenant, schedule="hourly", next_run_at=NOON)
    with database.write() as session:
        request_run(session, session.get_one(Source, source.id))
        claim = claim_run(session)
    assert claim is not None

    account(tenant, "suspend")

    with database.write() as session:
        assert renew_claim(session, claim) is ClaimState.CANCELED
    with time_machine.travel(NOON + timedelta(days=1)):
        tenant.app.extensions["jobs"].run_all()
        late = add_source(tenant.app, tenant)
        with database.write() as session:
            assert session.scalar(select(func.count(SourceRun.id)).where(SourceRun.status == "queued")) == 0
            waiting = request_run(session, session.get_one(Source, late.id))
            assert claim_run(session, waiting.id) is None, "the request must wait"
    account(tenant, "resume")
    with database.write() as session:
        assert claim_run(session, waiting.id) is not None


def test_suspension_stops_a_run_that_was_not_explicitly_canceled(tenant: Tenant) -> None:
    """The process that suspended the account was killed before it could cancel the run."""
    part: Runtime = tenant.app.extensions["runtime"]
    source = add_source(tenant.app, tenant)
    with part.database.write() as session:
        request_run(session, session.get_one(Source, source.id))
        claim = claim_run(session)
        assert claim is not None
        accounts.suspend(session, tenant.account_id, "")
        assert renew_claim(session, claim) is ClaimState.CANCELED


def test_queued_runs_of_a_suspended_account_are_not_counted_as_waiting(tenant: Tenant) -> None:
    """Otherwise a worker process would be restarted again and again without work."""
    part: Runtime = tenant.app.extensions["runtime"]
    source = add_source(tenant.app, tenant)
    account(tenant, "suspend")
    with part.database.write() as session:
        request_run(session, session.get_one(Source, source.id))
        assert (count_waiting(session), claim_run(session)) == (0, None)
    account(tenant, "resume")
    with part.database.write() as session:
        assert count_waiting(session) == 1


def test_run_of_a_killed_process_is_canceled_while_the_account_is_suspended(tenant: Tenant) -> None:
    part: Runtime = tenant.app.extensions["runtime"]
    source = add_source(tenant.app, tenant)
    with time_machine.travel(NOON, tick=False) as clock:
        with part.database.write() as session:
            request_run(session, session.get_one(Source, source.id))
            assert claim_run(session) is not None
        account(tenant, "suspend")
        clock.shift(timedelta(hours=1))
        with crawl_parts(part) as parts:
            Worker(parts, runs_at_once=1).run(until_idle=True)
    with part.database.read() as session:
        assert session.scalars(select(SourceRun.status)).all() == ["cancelled"]


@pytest.mark.parametrize("way", ["hook", "request"])
def test_run_requested_after_resumption_is_not_lost(tenant: Tenant, way: str) -> None:
    """The worker of the cancelled run has not noticed the cancellation yet."""
    part: Runtime = tenant.app.extensions["runtime"]
    source = add_source(tenant.app, tenant)
    path = f"/api/sites/{tenant.site_id}/sources/{source.id}"
    hook = urlsplit(assert_ok(tenant.private.get(path))["source"]["hook_url"]).path
    with part.database.write() as session:
        request_run(session, session.get_one(Source, source.id))
        assert claim_run(session) is not None
    account(tenant, "suspend")
    account(tenant, "resume")
    assert_ok(ApiClient(tenant.app).post(hook) if way == "hook" else tenant.private.post(f"{path}/run"))
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1), tick=False), crawl_parts(part) as parts:
        working = Worker(parts, runs_at_once=1)
        claim = working._claim()
        assert claim is not None
        working.begin(claim).join(PATIENCE_SECONDS)
    with part.database.read() as session:
        assert sorted(session.scalars(select(SourceRun.status))) == ["cancelled", "queued"]


def test_crawl_command_of_a_suspended_account_fails_with_the_reason(tenant: Tenant) -> None:
    account(tenant, "suspend", "--reason", REASON)
    command = ["crawl", "--site", str(tenant.site_id), "https://www.example.com/"]
    result = tenant.app.test_cli_runner().invoke(args=command)
    assert (result.exit_code, result.output) == (1, f"Error: The account is suspended. {REASON}\n")


def test_invitation_to_a_suspended_account_cannot_be_accepted(tenant: Tenant) -> None:
    invited = assert_ok(tenant.private.post("/api/invitations", json={"email": "bo@example.com"}), 201)
    path = urlsplit(invited["url"]).path
    account(tenant, "suspend", "--reason", REASON)
    body = {"name": "Bo", "password": PASSWORD}
    for response in (ApiClient(tenant.app).get(path), ApiClient(tenant.app).post(path, json=body)):
        assert REASON in assert_error(response, 403, "account_suspended")["message"]
    account(tenant, "resume")
    assert_ok(ApiClient(tenant.app).post(path, json=body), 201)


def test_hooks_of_a_suspended_account_start_no_runs(tenant: Tenant) -> None:
    source = add_source(tenant.app, tenant)
    shown = assert_ok(tenant.private.get(f"/api/sites/{tenant.site_id}/sources/{source.id}"))["source"]
    hook = urlsplit(shown["hook_url"]).path
    account(tenant, "suspend", "--reason", REASON)

    error = assert_error(ApiClient(tenant.app).post(hook), 403, "account_suspended")
    assert REASON in error["message"]
    account(tenant, "resume")
    assert_ok(ApiClient(tenant.app).post(hook))


def test_deleted_sites_of_a_suspended_account_are_kept_past_the_deadline(tenant: Tenant) -> None:
    with time_machine.travel(NOON) as clock:
        assert_ok(tenant.private.delete(f"/sites/{tenant.site_id}"))
        account(tenant, "suspend")
        clock.shift(timedelta(days=31))
        tenant.app.extensions["jobs"].run_all()
        account(tenant, "resume")

        assert_error(tenant.search.get("/v1/search?q=page"), 403, "site_inactive")


def test_suspension_appears_in_account_list_and_audit_log(tenant: Tenant, app: Flask) -> None:
    account(tenant, "suspend", "--reason", REASON)

    listed = app.test_cli_runner().invoke(args=["account", "list"]).output
    assert "pro, suspended" in listed
    account(tenant, "resume")
    entries = assert_ok(tenant.browser.get("/api/audit-log?kind=account"))["entries"]
    assert [entry["actor"]["kind"] for entry in entries] == ["operator", "operator"]
    assert [change["field"] for change in entries[0]["changes"]] == ["suspended_at", "suspension_reason"]


@pytest.mark.parametrize("command", ["suspend", "resume"])
def test_suspending_or_resuming_an_unknown_account_fails(app: Flask, command: str) -> None:
    result = app.test_cli_runner().invoke(args=["account", command, "nobody@example.com"])

    assert result.exit_code == 1
    assert "No account has the email address nobody@example.com." in result.output


def test_overlong_suspension_reason_is_rejected(tenant: Tenant) -> None:
    command = ["account", "suspend", tenant.email, "--reason", "x" * 501]

    assert tenant.app.test_cli_runner().invoke(args=command).exit_code == 1
    assert_ok(tenant.browser.get("/dashboard"))
