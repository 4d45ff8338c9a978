"""The webhook pages: creating with a secret shown once, deliveries, and turning off and on."""

from __future__ import annotations

import pytest
from flask import Flask

from app.pages.webhooks import SECRET
from app.runtime import Runtime
from app.services.webhook_delivery import NotSent
from tests.callers import Tenant, add_member
from tests.pages.people import Person, person_of
from tests.services.webhooks.receiver import add_webhook, deliveries, send, tell

PATH = "/api/webhooks"
HOOK = {"url": "https://example.com/hook", "events.run.finished": ""}


def test_new_webhooks_secret_is_shown_once(person: Person, tenant: Tenant) -> None:
    person.go("/dashboard")
    person.follow("Profile")
    person.follow("Webhooks")
    response = person.send("Create webhook", url="https://example.com/hook")
    assert (response.status_code, response.headers["Location"]) == (303, PATH)
    cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert f"Path={PATH}" in cookie
    person.go(PATH)
    (webhook,) = tenant.private.get(PATH).get_json()["webhooks"]
    assert webhook["events"] == ["run.finished", "run.failed", "quota.warning", "key.exposed"]
    secret = person.page.one("pre").text
    assert secret.startswith("whsec_")
    assert "It won’t be shown again." in person.page.text

    person.go(PATH)
    assert person.page.all("pre") == []
    assert secret not in person.response.get_data(as_text=True)
    assert SECRET.name not in {cookie.key for cookie in person.client._cookies.values()}


def test_secret_from_a_forged_cookie_is_not_shown(person: Person, tenant: Tenant) -> None:
    add_webhook(tenant, "https://example.com/hook")
    person.client.set_cookie(SECRET.name, "whsec_bm9uZQ==", path=PATH)
    person.go(PATH)

    assert person.page.all("pre") == []


def test_invalid_value_is_reported_beside_its_field(person: Person) -> None:
    person.go(PATH)
    response = person.send("Create webhook", url="http://10.0.0.1/")

    assert response.status_code == 400
    assert person.problem_of("url") == "URL must not be an address in a private network."


def test_failed_deliveries_are_listed_and_can_be_sent_again(
    app: Flask, person: Person, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    part: Runtime = app.extensions["runtime"]

    def refuse(*_: object) -> int:
        raise NotSent("example.com takes too long to answer.")

    monkeypatch.setattr(part.deliverer, "_post", refuse)
    webhook, _ = add_webhook(tenant, "https://example.com/hook")
    tell(tenant)
    send(app)
    person.go(PATH)
    assert "Failing" in person.page.text
    person.follow("https://example.com/hook")
    assert "example.com takes too long to answer." in person.page.text
    assert '"percent": 80' in person.page.one("pre").text
    assert "Deliveries have failed since" in person.page.text

    monkeypatch.setattr(part.deliverer, "_post", lambda *_: 200)
    person.press("Send again")
    assert person.notice == "The delivery will be sent again within seconds, with the same ID."
    send(app)
    person.go(f"{PATH}/{webhook['id']}/deliveries")
    assert "Delivered" in person.page.text
    assert "takes too long" not in person.page.text
    assert [each["status"] for each in deliveries(tenant, webhook)] == ["delivered"]


def test_webhook_can_be_turned_off_and_on_edited_and_deleted(person: Person, tenant: Tenant) -> None:
    webhook, _ = add_webhook(tenant, "https://example.com/hook")
    person.go(f"{PATH}/{webhook['id']}")
    person.press("Turn off")
    assert person.notice == "Webhook turned off. Waiting deliveries were canceled."
    person.press("Turn on")
    assert person.notice == "Webhook turned on."
    person.press("Save webhook", url="https://example.org/hook")
    assert person.notice == "Webhook saved."
    (changed,) = tenant.private.get(PATH).get_json()["webhooks"]
    assert (changed["url"], changed["events"], changed["active"]) == (
        "https://example.org/hook",
        webhook["events"],
        True,
    )
    person.press("Delete webhook")
    assert person.notice == "Webhook deleted."
    assert "No webhooks yet" in person.page.text


def test_webhook_form_is_hidden_at_the_limit_of_ten(person: Person, tenant: Tenant) -> None:
    for number in range(10):
        add_webhook(tenant, f"https://example.com/{number}")
    person.go(PATH)

    assert [form for form in person.page.all("form") if form.attributes.get("action") == PATH] == []
    assert "An account can have 10 webhooks." in person.page.text


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_owners_can_open_webhook_pages(tenant: Tenant, role: str) -> None:
    webhook, _ = add_webhook(tenant, "https://example.com/hook")
    person = person_of(add_member(tenant, "bo@example.com", role))

    for path in (PATH, f"{PATH}/{webhook['id']}", f"{PATH}/{webhook['id']}/deliveries"):
        assert person.call("GET", path).status_code == 403
    assert person.call("POST", PATH, data={"csrf_token": "x", **HOOK}).status_code == 403
