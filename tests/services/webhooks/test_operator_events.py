"""Events for the operator: what they say, and that they arrive although accounts are suspended or deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import func, select
from standardwebhooks import Webhook

from app.models import AuditEntry, WebhookDelivery
from app.operations.operator import change_plan
from app.runtime import Runtime, create_runtime
from app.services.webhooks import TRIES
from tests.callers import PASSWORD, ApiClient, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok
from tests.services.webhooks.receiver import Receiver, add_webhook, receiving, send, tell

TOKEN = "o" * 32
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
ACCOUNTS = "/api/operator/accounts"
NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def app(tmp_path: Path, receiver: Receiver) -> Iterator[Flask]:
    """An installation whose operator receives events at a private address."""
    url = f"{receiver.base_url}/operator?source=search"
    settings = make_settings(tmp_path, operator_token=TOKEN, operator_webhook_url=url, operator_webhook_secret=SECRET)
    made = make_app(settings)
    yield made
    close_app(made)


@pytest.fixture
def operator(app: Flask) -> ApiClient:
    return ApiClient(app, TOKEN)


def events(app: Flask, receiver: Receiver) -> list[dict[str, Any]]:
    """Send all events, verify their signatures, and return the events since the last call."""
    send(app)
    verified = [Webhook(SECRET).verify(received.body, received.headers) for received in receiver.received]
    receiver.received.clear()
    return verified


def test_each_change_of_an_account_is_one_event(app: Flask, operator: ApiClient, receiver: Receiver) -> None:
    tenant = register_tenant(app, "ann@example.com")
    path = f"{ACCOUNTS}/{tenant.account_id}"
    (created,) = events(app, receiver)
    assert created["type"] == "account.created"
    assert created["data"]["account"] == {
        "id": tenant.account_id, "email": "ann@example.com", "name": "Somebody", "plan": "pro", "limits": {},
        "status": "active", "suspended_at": None, "suspension_reason": "",
        "created_at": created["data"]["account"]["created_at"],
    }  # fmt: skip

    assert_ok(operator.call("PATCH", path, json={"plan": "starter", "limits": {"keys": 9}}))
    assert_ok(operator.call("PATCH", path, json={"plan": "starter"}))  # Changes nothing.
    (changed,) = events(app, receiver)
    assert changed["type"] == "plan.changed"
    assert changed["data"]["previous"] == {"plan": "pro", "limits": {}}
    assert (changed["data"]["account"]["plan"], changed["data"]["account"]["limits"]) == ("starter", {"keys": 9})

    assert_ok(operator.post(f"{path}/suspend", json={"reason": "Unpaid"}))
    (suspended,) = events(app, receiver)
    assert suspended["type"] == "account.suspended"
    assert suspended["data"]["account"]["suspension_reason"] == "Unpaid"
    assert_ok(operator.post(f"{path}/resume"))
    assert events(app, receiver) == []

    tenant.index(page(1), page(2))
    tenant.find("page")
    assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))
    (deleted,) = events(app, receiver)
    assert deleted["type"] == "account.deleted"
    assert deleted["data"]["account"]["email"] == "ann@example.com"
    assert deleted["data"]["month"] == f"{datetime.now(UTC):%Y-%m}"
    assert deleted["data"]["usage"] == {
        "searches": 1, "refused_searches": 0, "indexing_operations": 2, "most_documents": 2, "pages_crawled": 0,
    }  # fmt: skip


def test_account_deleted_before_the_invoice_of_last_month_leaves_its_usage(
    app: Flask, operator: ApiClient, receiver: Receiver
) -> None:
    with time_machine.travel(datetime(2031, 5, 31, 23, 0, tzinfo=UTC), tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        tenant.index(page(1), page(2))
        tenant.find("page")
        clock.move_to(datetime(2031, 6, 1, 0, 30, tzinfo=UTC))  # May is not final yet.
        events(app, receiver)
        assert_ok(operator.delete(f"{ACCOUNTS}/{tenant.account_id}"))
        (deleted,) = events(app, receiver)

    assert deleted["data"]["month"] == "2031-06"
    assert deleted["data"]["usage"]["searches"] == 0
    assert deleted["data"]["last_month"] == {
        "month": "2031-05",
        "usage": {
            "searches": 1, "refused_searches": 0, "indexing_operations": 2, "most_documents": 2, "pages_crawled": 0,
        },
    }  # fmt: skip


def test_commands_and_the_operator_api_cause_the_same_events(
    app: Flask, operator: ApiClient, receiver: Receiver
) -> None:
    body = {"name": "Bo", "email": "bo@example.com", "password": PASSWORD}
    account_id = assert_ok(operator.post(ACCOUNTS, json=body), 201)["account"]["id"]
    for command in (["set-plan", "bo@example.com", "free"], ["suspend", "bo@example.com"], ["delete", "--yes", "2"]):
        app.test_cli_runner().invoke(args=["account", *command])
    assert_ok(operator.delete(f"{ACCOUNTS}/{account_id}"))

    assert [event["type"] for event in events(app, receiver)] == [
        "account.created", "plan.changed", "account.suspended", "account.deleted",
    ]  # fmt: skip


def test_reached_quota_is_reported_once_and_nearly_reached_ones_are_not(
    app: Flask, receiver: Receiver, part: Runtime
) -> None:
    tenant = register_tenant(app, "ann@example.com")
    tenant.set_plan("pro", documents=5)
    jobs = app.extensions["jobs"]
    events(app, receiver)
    tenant.index(*(page(number) for number in range(4)))
    jobs.run_all()
    assert events(app, receiver) == []
    tenant.index(page(4))
    jobs.run_all()
    jobs.run_all()

    (reached,) = events(app, receiver)

    assert reached["type"] == "quota.reached"
    details = {name: value for name, value in reached["data"].items() if name != "account"}
    assert details == {"quota": "documents", "used": 5, "allowed": 5}
    assert reached["data"]["account"]["id"] == tenant.account_id


def test_event_of_a_rejected_change_is_not_sent(app: Flask, operator: ApiClient, receiver: Receiver) -> None:
    body = {"name": "Bo", "email": "bo@example.com", "password": PASSWORD}
    assert_ok(operator.post(ACCOUNTS, json=body), 201)
    assert_error(operator.post(ACCOUNTS, json=body), 400, "validation_failed")
    assert_error(operator.call("PATCH", f"{ACCOUNTS}/1", json={"plan": "golden"}), 400, "validation_failed")

    assert [event["type"] for event in events(app, receiver)] == ["account.created"]


def test_customers_neither_see_nor_receive_the_operators_events(app: Flask, part: Runtime, receiver: Receiver) -> None:
    part.settings = replace(part.settings, crawl_private_addresses=True)
    tenant = register_tenant(app, "ann@example.com")
    path = "/api/webhooks/whk_operator"
    for response in (tenant.private.get(path), tenant.private.delete(path), tenant.private.get(f"{path}/deliveries")):
        assert_error(response, 404, "webhook_not_found")
    assert assert_ok(tenant.private.get("/api/webhooks"))["webhooks"] == []
    body = {"url": "https://a.example/", "events": ["account.created"]}
    assert_error(tenant.private.post("/api/webhooks", json=body), 400, "validation_failed")
    with part.database.read() as session:
        kinds = set(session.scalars(select(AuditEntry.kind)))
    assert "webhook" not in kinds


def test_customers_webhook_may_not_use_the_operators_private_address(
    app: Flask, part: Runtime, receiver: Receiver
) -> None:
    tenant = register_tenant(app, "ann@example.com")
    events(app, receiver)
    response = tenant.private.post(
        "/api/webhooks", json={"url": part.settings.operator_webhook_url, "events": ["quota.warning"]}
    )
    assert_error(response, 400, "validation_failed", field="url")


def test_failed_events_are_retried_for_a_day_and_do_not_block_later_events(
    app: Flask, part: Runtime, receiver: Receiver
) -> None:
    receiver.status = 500
    with time_machine.travel(NOON, tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        for _ in range(40):
            send(app)
            clock.shift(timedelta(hours=12))
        assert len(receiver.received) == TRIES
        assert len(set(receiver.ids)) == 1
        receiver.received.clear()
        receiver.status = 200

        change_plan(part, tenant.account_id, plan="free")

        send(app)
        assert [json.loads(received.body)["type"] for received in receiver.received] == ["plan.changed"]


def test_without_the_setting_nothing_is_queued_and_waiting_events_are_not_sent(
    app: Flask, part: Runtime, receiver: Receiver
) -> None:
    tenant = register_tenant(app, "ann@example.com")
    later = create_runtime(replace(part.settings, operator_webhook_url="", operator_webhook_secret=""))
    later.deliverer.send_due()
    later.deliverer.finish()
    with later.database.read() as session:
        (waiting,) = session.scalars(select(WebhookDelivery)).all()
    assert (waiting.status, waiting.error) == ("waiting", "OPERATOR_WEBHOOK_URL is no longer set.")
    change_plan(later, tenant.account_id, plan="free")
    with later.database.read() as session:
        assert session.scalar(select(func.count()).select_from(WebhookDelivery)) == 1
    later.database.dispose()
    assert receiver.received == []


def test_customers_webhooks_still_work_beside_the_operators(tmp_path: Path, receiver: Receiver) -> None:
    settings = make_settings(
        tmp_path / "other",
        crawl_private_addresses=True,
        operator_webhook_url=f"{receiver.base_url}/operator",
        operator_webhook_secret=SECRET,
    )
    made = make_app(settings)
    try:
        tenant: Tenant = register_tenant(made, "ann@example.com")
        _, secret = add_webhook(tenant, f"{receiver.base_url}/customer")
        tell(tenant)
        send(made)
        by_path = {received.path: received for received in receiver.received}
        assert sorted(by_path) == ["/customer", "/operator"]
        Webhook(secret).verify(by_path["/customer"].body, by_path["/customer"].headers)
        Webhook(SECRET).verify(by_path["/operator"].body, by_path["/operator"].headers)
    finally:
        close_app(made)
