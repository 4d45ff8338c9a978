"""Webhooks of an account: creating, changing, deleting, permissions, and the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import func, select

from app.models import Webhook, WebhookDelivery
from app.runtime import Runtime
from tests.callers import PASSWORD, Tenant, register_tenant
from tests.responses import assert_error, assert_ok
from tests.services.webhooks.receiver import add_webhook, deliveries, tell

PATH = "/api/webhooks"
HOOK = {"url": "https://example.com/hook", "events": ["run.failed", "key.exposed"]}


def field_of(answer: Any) -> tuple[str, str]:
    (detail,) = answer["details"]
    return detail["field"], detail["code"]


def test_webhook_can_be_created_read_updated_and_deleted(tenant: Tenant) -> None:
    response = tenant.private.post(PATH, json={**HOOK, "events": ["key.exposed", "run.failed", "key.exposed"]})
    answer = assert_ok(response, 201)
    webhook = answer["webhook"]
    assert set(answer) == {"webhook", "secret"}
    assert answer["secret"].startswith("whsec_")
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Location"] == f"{PATH}/{webhook['id']}"
    assert webhook == {
        "id": webhook["id"], **HOOK, "active": True, "failing_since": None,
        "created_at": webhook["created_at"], "updated_at": webhook["created_at"],
    }  # fmt: skip
    path = f"{PATH}/{webhook['id']}"
    assert assert_ok(tenant.private.get(path)) == {"webhook": webhook}
    assert assert_ok(tenant.private.get(PATH)) == {"webhooks": [webhook], "total": 1, "limit": 20, "offset": 0}

    changed = assert_ok(tenant.private.put(path, json={"url": "https://example.org/?a=b#c"}))["webhook"]
    assert (changed["url"], changed["events"]) == ("https://example.org/?a=b", HOOK["events"])
    changed = assert_ok(tenant.private.call("PATCH", path, json={"active": False, "events": ["run.finished"]}))
    assert (changed["webhook"]["active"], changed["webhook"]["events"]) == (False, ["run.finished"])

    assert assert_ok(tenant.private.delete(path)) == {"success": True}
    assert_error(tenant.private.get(path), 404, "webhook_not_found")
    assert assert_ok(tenant.private.get(PATH))["total"] == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"events": ["run.failed"]}, ("url", "required")),
        ({"url": "https://example.com"}, ("events", "required")),
        ({**HOOK, "events": []}, ("events", "too_short")),
        ({**HOOK, "events": ["run.started"]}, ("events[0]", "invalid_choice")),
        ({**HOOK, "url": "ftp://example.com"}, ("url", "invalid_url")),
        ({**HOOK, "url": "https://ann:secret@example.com"}, ("url", "invalid_url")),
        ({**HOOK, "url": "http://127.0.0.1/"}, ("url", "private_address")),
        ({**HOOK, "url": "http://0x7f.1/"}, ("url", "private_address")),
        ({**HOOK, "url": "http://169.254.169.254/latest"}, ("url", "private_address")),
        ({**HOOK, "url": "https://[::1]/"}, ("url", "private_address")),
        ({**HOOK, "url": "https://[::ffff:10.0.0.1]/"}, ("url", "private_address")),
        ({**HOOK, "url": "https://example.com/" + "ä" * 1000}, ("url", "too_long")),
        ({**HOOK, "secret": "whsec_mine"}, ("secret", "unknown")),
    ],
)
def test_webhook_with_invalid_fields_is_rejected(
    tenant: Tenant, body: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert field_of(assert_error(tenant.private.post(PATH, json=body), 400, "validation_failed")) == problem


def test_webhook_cannot_be_moved_to_a_private_ip_address(tenant: Tenant) -> None:
    webhook, _ = add_webhook(tenant, "https://example.com/")
    answer = assert_error(
        tenant.private.put(f"{PATH}/{webhook['id']}", json={"url": "http://10.0.0.1/"}), 400, "validation_failed"
    )
    assert field_of(answer) == ("url", "private_address")


def test_account_has_at_most_ten_webhooks(app: Flask, tenant: Tenant) -> None:
    webhooks = [add_webhook(tenant, f"https://example.com/{number}")[0] for number in range(10)]
    answer = assert_error(tenant.private.post(PATH, json=HOOK), 403, "webhook_limit_reached")
    assert answer["message"] == "An account can have 10 webhooks; delete one."
    add_webhook(register_tenant(app, "bo@example.com"), "https://example.com/")

    assert_ok(tenant.private.delete(f"{PATH}/{webhooks[0]['id']}"))
    add_webhook(tenant, "https://example.com/")


def test_another_accounts_webhooks_return_404_and_receive_no_events(app: Flask, tenant: Tenant) -> None:
    stranger = register_tenant(app, "bo@example.com")
    webhook, _ = add_webhook(tenant, "https://example.com/")
    add_webhook(stranger, "https://example.org/")
    tell(tenant)
    (delivery,) = deliveries(tenant, webhook)
    path = f"{PATH}/{webhook['id']}"
    for method, at, body in [
        ("GET", path, None),
        ("PUT", path, {"active": False}),
        ("PATCH", path, {"active": False}),
        ("DELETE", path, None),
        ("GET", f"{path}/deliveries", None),
        ("POST", f"{path}/deliveries/{delivery['id']}/redeliver", None),
        ("GET", f"{PATH}/%00", None),
        ("GET", f"{PATH}/whk_", None),
    ]:
        assert_error(stranger.private.call(method, at, json=body), 404, "webhook_not_found")
    (own,) = assert_ok(stranger.private.get(PATH))["webhooks"]
    assert deliveries(stranger, own) == []
    assert_error(
        stranger.private.post(f"{PATH}/{own['id']}/deliveries/{delivery['id']}/redeliver"), 404, "delivery_not_found"
    )
    assert deliveries(tenant, webhook) == [delivery]


def test_webhook_receives_only_its_events(tenant: Tenant) -> None:
    webhook, _ = add_webhook(tenant, "https://example.com/", "run.failed", "key.exposed")
    for event in ("run.failed", "run.finished", "quota.warning", "key.exposed"):
        tell(tenant, event)
    assert {each["event"] for each in deliveries(tenant, webhook)} == {"run.failed", "key.exposed"}


def test_audit_log_records_webhook_creation_changes_and_deletion(tenant: Tenant) -> None:
    webhook, _ = add_webhook(tenant, "https://example.com/")
    path = f"{PATH}/{webhook['id']}"
    assert_ok(tenant.private.put(path, json={"events": ["run.failed"], "active": False}))
    assert_ok(tenant.private.delete(path))

    deleted, changed, created = assert_ok(tenant.private.get("/api/audit-log?kind=webhook"))["entries"]
    assert [entry["action"] for entry in (created, changed, deleted)] == ["created", "changed", "deleted"]
    assert created["object"] == {
        "kind": "webhook", "id": webhook["id"], "name": "https://example.com/", "site_id": None,
    }  # fmt: skip
    assert changed["changes"] == [
        {"field": "events", "added": ["run.failed"], "removed": ["quota.warning"]},
        {"field": "active", "before": True, "after": False},
    ]


def test_deleting_the_account_deletes_its_webhooks_and_deliveries(app: Flask, tenant: Tenant) -> None:
    add_webhook(tenant, "https://example.com/")
    tell(tenant)
    assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))

    part: Runtime = app.extensions["runtime"]
    with part.database.read() as session:
        for table in (Webhook, WebhookDelivery):
            assert session.scalar(select(func.count()).select_from(table)) == 0
