"""The page of members and invitations, and the pages that each role can see."""

from __future__ import annotations

import pytest
from flask import Flask

from app.pages.invitations import LINK
from tests.callers import PASSWORD, Tenant, accept_invitation, add_member, member_id, page
from tests.pages.people import Person, person_of
from tests.pages.sources.test_views import make_source
from tests.pages.test_every_page import MINE, make_collection
from tests.services.webhooks.receiver import add_webhook

BO = "bo@example.com"
PATH = "/api/members"


def link_on(person: Person) -> str:
    return person.page.one("pre").text


def test_invitation_link_is_shown_once(app: Flask, person: Person) -> None:
    person.go("/dashboard")
    person.follow("Members")
    response = person.send("Create invitation", email=BO, role="viewer")
    assert (response.status_code, response.headers["Location"]) == (303, PATH)
    cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert f"Path={PATH}" in cookie
    person.go(PATH)
    link = link_on(person)
    assert link.startswith("http://localhost/invitations/")
    assert BO in person.page.text

    person.go(PATH)
    assert person.page.all("pre") == []
    assert LINK.name not in {cookie.key for cookie in person.client._cookies.values()}
    accept_invitation(app, link, "Bo")
    assert "Bo" in person.go(PATH).text


def test_invitation_can_be_renewed_and_revoked(app: Flask, person: Person) -> None:
    person.go(PATH)
    person.press("Create invitation", email=BO)
    old = link_on(person)
    person.press("New link")
    new = link_on(person)
    assert old != new
    assert app.test_client().get(old.removeprefix("http://localhost")).status_code == 404
    person.press("Revoke")
    assert person.notice == "Invitation revoked. Its link no longer works."
    assert BO not in person.page.text
    assert app.test_client().get(new.removeprefix("http://localhost")).status_code == 404


def test_invalid_value_is_reported_beside_its_field(person: Person, tenant: Tenant) -> None:
    person.go(PATH)
    response = person.send("Create invitation", email="nobody")
    assert response.status_code == 400
    assert person.problem_of("email") == "Email must be an email address."
    person.send("Create invitation", email=tenant.email)
    assert person.problem_of("email") == "Email already belongs to a member."


def test_invitation_link_of_another_account_is_not_shown(person: Person, stranger: Tenant) -> None:
    url = stranger.browser.post("/api/invitations", json={"email": BO}).get_json()["url"]
    person.client.set_cookie(LINK.name, url.rpartition("/")[2], path=PATH)
    assert BO not in person.go(PATH).text
    person.client.set_cookie(LINK.name, "svc_inv_" + "x" * 43, path=PATH)
    assert person.go(PATH).all("pre") == []


def test_owner_can_change_a_role_and_remove_a_member(person: Person, tenant: Tenant) -> None:
    add_member(tenant, BO, "editor")
    path = f"{PATH}/{member_id(tenant, BO)}"
    token = tenant.browser.csrf_token
    person.call("POST", path, data={"_method": "PUT", "role": "viewer", "csrf_token": token})
    assert person.response.headers["Location"] == f"{PATH}?notice=role-changed"
    assert tenant.private.get(path).get_json()["member"]["role"] == "viewer"
    person.call("POST", path, data={"_method": "DELETE", "csrf_token": token})
    assert person.response.headers["Location"] == f"{PATH}?notice=member-removed"
    assert BO not in person.go(PATH).text


def test_last_owner_cannot_be_removed(person: Person) -> None:
    person.go(PATH)
    response = person.send("Remove member")
    assert response.status_code == 403
    assert person.alerts == ["An account must have an owner; make another member an owner first."]
    person.send("Save role", role="viewer")
    assert person.alerts == ["An account must have an owner; make another member an owner first."]


def test_owner_who_becomes_editor_is_redirected_to_the_dashboard(app: Flask, tenant: Tenant) -> None:
    bo = person_of(add_member(tenant, BO, "owner"))
    path = f"{PATH}/{member_id(tenant, BO)}"
    token = bo.go(PATH).all("input", name="csrf_token")[0].attributes["value"]
    response = bo.call("POST", path, data={"_method": "PUT", "role": "editor", "csrf_token": token})
    assert response.headers["Location"] == "/dashboard?notice=role-changed"
    assert bo.go("/dashboard").one("h1").text == "Dashboard"


def test_form_urls_redirect_to_members_page(person: Person, tenant: Tenant) -> None:
    for path in ("/api/invitations", f"{PATH}/{member_id(tenant, tenant.email)}"):
        person.go(path)
        assert person.path == PATH


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_roles_see_only_permitted_forms_and_links(tenant: Tenant, role: str) -> None:
    tenant.index(page(1, author="Ann"), page(2))
    source = make_source(tenant)
    webhook, _ = add_webhook(tenant, "https://example.com/hook")
    collection, collection_key = make_collection(tenant)
    for query in ("zeppelin", "page"):
        tenant.find(query, session_id="s")
    tenant.app.extensions["runtime"].events.flush()
    person = person_of(add_member(tenant, BO, role))
    looked_at = 0
    links: set[str] = set()
    for template in [
        *(path for path in MINE if "{token}" not in path and "{unsubscribe}" not in path),
        "/docs/search-box",
    ]:
        path = template.format(
            site=tenant.site_id,
            key=tenant.keys["search"]["id"],
            source=source["id"],
            collection=collection,
            collection_key=collection_key,
            run=source["last_run"]["id"],
            webhook=webhook["id"],
        )
        if person.call("GET", path).status_code == 403:
            continue
        looked_at += 1
        main = person.page.one("main")
        posted = {form.attributes["action"] for form in main.all("form", method="post")}
        if role == "viewer":
            assert posted <= {"/profile", "/profile/totp"}, path
        assert not posted & {PATH, "/api/invitations"}, path
        if path == "/docs/search-box" or not path.startswith(
            "/docs"
        ):  # The documentation also describes what owners can do.
            links |= {found.attributes["href"] for found in person.page.all("a")}
    assert looked_at > 20
    for link in sorted(links):
        if link.startswith("/") and not link.startswith("/docs"):
            assert person.call("GET", link.partition("#")[0]).status_code in (200, 303), link


def test_viewer_cannot_delete_the_account_on_the_profile_page(tenant: Tenant) -> None:
    person = person_of(add_member(tenant, BO, "viewer"))
    person.go("/profile/edit")
    assert "viewer" in person.page.text
    assert "Delete my account" not in person.page.text
    person.press("Save", name="Bo")
    assert person.notice == "Profile saved."


def test_forbidden_page_explains_required_role(tenant: Tenant) -> None:
    person = person_of(add_member(tenant, BO, "viewer"))
    response = person.call("GET", PATH)
    assert response.status_code == 403
    assert "Your role in this account is viewer; this operation requires the role owner." in person.page.text
    assert PASSWORD not in person.page.text
