"""The forms for API keys: creating, showing once, editing, and disabling."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
import time_machine
from flask import Flask

from tests.callers import ApiClient, Tenant
from tests.pages.people import Person
from tests.responses import assert_ok

TOKEN = re.compile(r"svc_(?:pub|srch|prv)_[0-9A-Za-z]{38}")


def _shown_tokens(person: Person) -> list[str]:
    """Return the private and search tokens on a page; public tokens are always shown."""
    return sorted({found for found in TOKEN.findall(person.response.get_data(as_text=True)) if "_pub_" not in found})


def _key(tenant: Tenant, kind: str) -> dict[str, object]:
    key: dict[str, object] = tenant.browser.get(
        f"/api/sites/{tenant.site_id}/keys/{tenant.keys[kind]['id']}"
    ).get_json()["key"]
    return key


def _path(tenant: Tenant) -> str:
    return f"/api/sites/{tenant.site_id}/keys"


def test_public_key_stays_readable_after_rotation(person: Person, tenant: Tenant) -> None:
    path = f"{_path(tenant)}/{tenant.keys['public']['id']}"
    person.go(_path(tenant))
    assert tenant.tokens["public"] in person.page.text
    assert (
        person.client.get(path, headers={"Accept": "application/json"}).get_json()["api_key"] == tenant.tokens["public"]
    )
    person.call("POST", f"{path}/rotate", data={"csrf_token": tenant.browser.csrf_token, "overlap_seconds": "0"})
    person.client.delete_cookie("new_token", path=_path(tenant))
    person.go(_path(tenant))
    token = person.client.get(path, headers={"Accept": "application/json"}).get_json()["api_key"]
    assert token != tenant.tokens["public"]
    assert token in person.page.text
    assert tenant.tokens["public"] not in person.page.text


@pytest.mark.parametrize("kind", ["search", "private"])
def test_new_key_is_shown_once_with_example(app: Flask, person: Person, tenant: Tenant, kind: str) -> None:
    person.go(_path(tenant))
    response = person.send("Create key", name="Shop", type=kind)
    assert (response.status_code, response.headers["Location"]) == (303, _path(tenant))
    cookie = response.headers["Set-Cookie"]
    for promise in ("HttpOnly", "SameSite=Strict", "Max-Age=120", f"Path={_path(tenant)}"):
        assert promise in cookie
    person.go(_path(tenant))
    assert person.response.headers["Cache-Control"] == "no-store"
    (token,) = _shown_tokens(person)
    assert ApiClient(app, token).get("/v1/client-info").status_code == 200
    examples = {"search": "/v1/search?q=", "private": "/api/v1/index/bulk"}
    assert examples[kind] in person.page.one("section", class_="card fresh").text
    person.go(_path(tenant))
    assert _shown_tokens(person) == []
    assert person.page.all("section", class_="card fresh") == []


def test_cookie_with_another_token_is_not_shown(person: Person, tenant: Tenant, stranger: Tenant) -> None:
    own = tenant.tokens["search"]
    tampered = own[:-1] + ("x" if own[-1] != "x" else "y")
    for token in (stranger.tokens["private"], "svc_prv_invented", "<script>", tampered):
        person.client.set_cookie("new_token", token, path=_path(tenant))
        person.go(_path(tenant))
        assert person.page.all("section", class_="card fresh") == []
        assert token not in person.response.get_data(as_text=True)


def test_invalid_key_form_keeps_input(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    response = person.send("Create key", name="Old", type="public", expires_at="2001-01-01T10:00")
    assert response.status_code == 400
    assert person.problem_of("expires_at") == "Expires at must be in the future."
    chosen = [option for option in person.page.all("option") if "selected" in option.attributes]
    assert [option.attributes["value"] for option in chosen] == ["public"]
    assert person.page.one("input", name="expires_at").attributes["value"] == "2001-01-01T10:00"
    response = person.send("Create key", name=" ", expires_at="")
    assert person.problem_of("name") == "Name must not be empty."


def test_expiry_is_utc_and_can_be_removed(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    person.press("Create key", name="Timed", expires_at="2999-05-04T10:30")
    key = tenant.browser.get(_path(tenant)).get_json()["keys"][-1]
    assert key["expires_at"] == "2999-05-04T10:30:00.000Z"
    person.go(f"{_path(tenant)}/{key['id']}/edit")
    assert person.page.one("input", name="expires_at").attributes["value"] == "2999-05-04T10:30"
    person.press("Save", expires_at="")
    assert person.notice == "Key saved."
    assert tenant.browser.get(_path(tenant)).get_json()["keys"][-1]["expires_at"] is None


def test_expired_key_can_be_renamed_without_changing_its_expiry(person: Person, tenant: Tenant) -> None:
    with time_machine.travel(datetime(2030, 1, 1, tzinfo=UTC), tick=False) as clock:
        person.go("/login")
        person.press("Log in", email=tenant.email, password="correct horse battery")
        person.go(_path(tenant))
        person.press("Create key", name="Timed", expires_at="2030-01-02T10:30")
        key = tenant.browser.get(_path(tenant)).get_json()["keys"][-1]
        clock.move_to(datetime(2030, 1, 3, tzinfo=UTC))
        person.go(f"{_path(tenant)}/{key['id']}/edit")
        person.press("Save", name="Renamed")
        assert person.notice == "Key saved."
        assert "Expired" in person.page.text
        assert "Renamed" in person.page.text


def test_disabled_key_is_rejected_until_it_is_enabled(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    buttons = [found.attributes["aria-label"] for found in person.page.all("button", class_="link")]
    assert buttons == ["Disable public", "Disable search", "Disable private"]
    values = {"csrf_token": tenant.browser.csrf_token, "active": "false"}
    path = f"/api/keys/{tenant.keys['search']['id']}/toggle"
    response = person.call("POST", path, data=values)
    assert (response.status_code, response.headers["Location"]) == (303, f"{_path(tenant)}?notice=key-disabled")
    assert tenant.search.get("/v1/search?q=x").get_json()["error"] == "key_disabled"
    person.call("POST", path, data=values)
    assert _key(tenant, "search")["status"] == "disabled"
    person.go(_path(tenant))
    person.press("Enable")
    assert person.notice.startswith("Key enabled.")
    assert tenant.search.get("/v1/search?q=x").status_code == 200


def test_rotated_key_keeps_old_token_during_overlap(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    path = f"{_path(tenant)}/{tenant.keys['search']['id']}/rotate"
    response = person.call("POST", path, data={"csrf_token": tenant.browser.csrf_token, "overlap_seconds": "3600"})
    assert response.status_code == 303
    person.go(response.headers["Location"])
    (token,) = _shown_tokens(person)
    assert token != tenant.tokens["search"]
    assert tenant.search.get("/v1/search?q=x").status_code == 200
    response = person.call("POST", path, data={"csrf_token": tenant.browser.csrf_token, "overlap_seconds": "never"})
    assert response.status_code == 400
    assert "overlap_seconds" in person.page.text


def test_deleted_key_is_rejected(person: Person, tenant: Tenant) -> None:
    path = f"{_path(tenant)}/{tenant.keys['search']['id']}"
    response = person.call("POST", path, data={"csrf_token": tenant.browser.csrf_token, "_method": "DELETE"})
    assert (response.status_code, response.headers["Location"]) == (303, f"{_path(tenant)}?notice=key-deleted")
    assert tenant.search.get("/v1/search?q=x").status_code == 401
    assert (
        person.call("POST", path, data={"csrf_token": tenant.browser.csrf_token, "_method": "DELETE"}).status_code
        == 404
    )


def test_key_limit_of_plan_is_shown(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    assert "Your sites have 3 of the 10 keys your plan allows." in person.page.text
    tenant.set_plan("pro", keys=1)
    assert person.send("Create key", name="Fourth").status_code == 403
    assert person.alerts == ["The plan allows 1 key; delete one or change the plan."]
    assert person.page.one("input", name="name").attributes["value"] == "Fourth"


def test_key_form_is_replaced_by_advice_at_the_limit(person: Person, tenant: Tenant) -> None:
    tenant.set_plan("pro", keys=2)
    person.go(_path(tenant))
    section = person.page.one("section", aria_labelledby="create-title")
    assert section.text == (
        "Create a key Your plan doesn’t allow any more keys. To create another, delete one or ask the operator of this "
        "service for a larger plan."
    )
    assert "Your sites have 3 keys, more than the 2 your plan allows." in person.page.text
    assert section.all("form") == []


def test_times_have_text_and_machine_readable_value(person: Person, tenant: Tenant) -> None:
    with time_machine.travel(datetime(2030, 1, 1, 9, 5, tzinfo=UTC), tick=False):
        person.go("/login")
        person.press("Log in", email=tenant.email, password="correct horse battery")
        person.go(_path(tenant))
        person.press("Create key", name="Timed", expires_at="2030-02-03T10:30")
        row = person.page.one("ul", class_="rows").all("li")[-1]
    times = {found.attributes["datetime"]: found.text for found in row.all("time")}
    assert times == {
        "2030-01-01T09:05:00.000Z": "1 Jan 2030",
        "2030-02-03T10:30:00.000Z": "3 Feb 2030, 10:30 UTC",
    }
    assert "never used" in row.text


def _newest(tenant: Tenant) -> dict[str, object]:
    key: dict[str, object] = tenant.browser.get(_path(tenant)).get_json()["keys"][-1]
    return key


SCOPES = ("documents", "search", "analytics", "sites", "keys", "account")


def test_private_key_can_be_restricted_on_creation(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    group = person.page.one("fieldset", id="scopes")
    assert group.one("legend").text == "Scopes: what a private key can do"
    boxes = [found for found in group.all("input", type="checkbox") if "checked" in found.attributes]
    assert [found.attributes["name"] for found in boxes] == [f"scopes.{scope}" for scope in SCOPES]
    sent = {"name": "CMS", "type": "private", "scopes": "", "scopes.documents": "true", "scopes.search": "true"}
    person.call("POST", _path(tenant), data={"csrf_token": tenant.browser.csrf_token, "site_only": "true", **sent})
    made = _newest(tenant)

    assert (made["scopes"], made["site_only"]) == (["documents", "search"], True)
    row = person.go(_path(tenant)).one("ul", class_="rows").all("li")[-1]
    assert "Only documents, search, for this site only" in row.text


def test_unchanged_form_creates_key_with_all_scopes(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    person.press("Create key", name="Server", type="private")

    made = _newest(tenant)
    assert (made["scopes"], made["site_only"], made["allowed_origins"]) == (None, False, None)


def test_scopes_of_a_private_key_can_be_edited(person: Person, tenant: Tenant) -> None:
    path = f"{_path(tenant)}/{tenant.keys['private']['id']}"
    assert_ok(tenant.browser.put(path, json={"scopes": ["keys"]}))
    person.go(f"{path}/edit")
    assert person.page.all("textarea") == []
    boxes = [found for found in person.page.all("input", type="checkbox") if "checked" in found.attributes]
    assert [found.attributes["name"] for found in boxes] == ["scopes.keys"]

    person.press("Save", **{"scopes.sites": "true", "site_only": "true"})
    assert (_key(tenant, "private")["scopes"], _key(tenant, "private")["site_only"]) == (["sites", "keys"], True)
    person.go(f"{path}/edit")
    person.press("Save", **{f"scopes.{scope}": "true" for scope in SCOPES})
    assert _key(tenant, "private")["scopes"] is None
    form = {"csrf_token": tenant.browser.csrf_token, "_method": "PUT", "scopes": "", "site_only": "false"}
    assert person.call("POST", path, data=form).status_code == 303
    assert (_key(tenant, "private")["scopes"], _key(tenant, "private")["site_only"]) == ([], False)
    assert "Only client info, logs, reports, and clicks" in person.go(_path(tenant)).text


def test_allowed_origins_are_entered_as_lines(person: Person, tenant: Tenant) -> None:
    person.go(f"{_path(tenant)}/{tenant.keys['public']['id']}/edit")
    assert person.page.all("fieldset") == []
    person.press("Save", allowed_origins=" https://Example.com/ \r\n\r\nhttps://*.example.com")
    assert _key(tenant, "public")["allowed_origins"] == ["https://example.com", "https://*.example.com"]
    assert "Only pages on https://example.com, https://*.example.com" in person.page.text

    person.go(f"{_path(tenant)}/{tenant.keys['public']['id']}/edit")
    (area,) = person.page.all("textarea")
    assert area.raw_text.split() == ["https://example.com", "https://*.example.com"]
    assert person.send("Save", allowed_origins="https://ok.example\nexample.com\n<b>").status_code == 400
    assert person.problem_of("allowed_origins") == (
        "“example.com” must be an origin, such as https://example.com, without path or user. "
        "“<b>” must be an origin, such as https://example.com, without path or user."
    )
    (area,) = person.page.all("textarea")
    assert area.raw_text.split() == ["https://ok.example", "example.com", "<b>"]
    person.press("Save", allowed_origins=" \n")
    assert _key(tenant, "public")["allowed_origins"] is None


def test_fields_of_other_key_types_are_rejected(person: Person, tenant: Tenant) -> None:
    person.go(_path(tenant))
    form = {
        "csrf_token": tenant.browser.csrf_token,
        "name": "Box",
        "type": "public",
        "scopes": "",
        "scopes.keys": "true",
    }
    assert person.call("POST", _path(tenant), data=form).status_code == 400
    assert "Scopes can only be set for a private key." in person.page.one("fieldset", id="scopes").text
    boxes = [found for found in person.page.all("input", type="checkbox") if "checked" in found.attributes]
    assert [found.attributes["name"] for found in boxes] == ["scopes.keys"]

    person.go(_path(tenant))
    assert person.send("Create key", name="S", type="search", allowed_origins="https://a.example").status_code == 400
    assert person.problem_of("allowed_origins") == "Allowed origins can only be set for a public key."
