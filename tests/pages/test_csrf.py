"""Forms from another site, another session, or an expired session change nothing."""

from __future__ import annotations

import pytest

from tests.callers import Tenant, add_member, member_id
from tests.pages.people import Person, person_of

WRITES = {
    "/sites": {"name": "Another", "url": "https://www.example.com/"},
    "/sites/{site}": {"_method": "DELETE"},
    "/sites/{site}/documents": {"_method": "DELETE", "id": "page-1"},
    "/api/sites/{site}/keys": {"name": "Another"},
    "/api/sites/{site}/keys/{key}": {"_method": "DELETE"},
    "/api/sites/{site}/keys/{key}/rotate": {"overlap_seconds": "0"},
    "/api/keys/{key}/toggle": {"active": "false"},
    "/api/sites/{site}/import": {"format": "csv"},
    "/profile": {"_method": "PUT", "name": "Changed"},
    "/api/invitations": {"email": "bo@example.com"},
    "/api/members/{member}": {"_method": "PUT", "role": "owner"},
    "/api/webhooks": {"url": "https://example.com/hook", "events": "", "events.run.failed": "true"},
    "/logout": {"sure": "yes"},
}


@pytest.mark.parametrize("path", WRITES)
def test_form_without_csrf_token_is_rejected(tenant: Tenant, stranger: Tenant, path: str) -> None:
    person = person_of(tenant)
    add_member(tenant, "cy@example.com", "viewer")
    member = member_id(tenant, "cy@example.com")
    address = path.format(site=tenant.site_id, key=tenant.keys["search"]["id"], member=member)
    own = tenant.browser.csrf_token
    before = _everything(tenant)
    for token in (None, "", "x" * 43, stranger.browser.csrf_token, own + "x", own[:-1], own.swapcase(), "\u00e9"):
        sent = {} if token is None else {"csrf_token": token}
        # A token in the URL, which logs and other sites can see, is ignored.
        response = person.call("POST", address, data={**WRITES[path], **sent}, query_string={"csrf_token": own})
        assert (response.status_code, response.mimetype) == (403, "text/html"), token
        assert "Nothing was changed" in person.page.text
    assert _everything(tenant) == before


def _everything(tenant: Tenant) -> list[object]:
    paths = ("/sites", f"/api/sites/{tenant.site_id}/keys", "/profile/edit", "/api/members", "/api/invitations")
    answers = [tenant.browser.get(path) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * len(paths)
    return [answer.get_json() for answer in answers]


def test_every_form_contains_the_csrf_token(person: Person, tenant: Tenant) -> None:
    key = tenant.keys["search"]["id"]
    for path in (
        "/dashboard",
        "/sites",
        "/sites/create",
        f"/sites/{tenant.site_id}",
        f"/sites/{tenant.site_id}/edit",
        f"/sites/{tenant.site_id}/import",
        f"/sites/{tenant.site_id}/try",
        f"/api/sites/{tenant.site_id}/keys",
        "/profile/edit",
        "/api/members",
        "/api/audit-log",
        "/api/analytics",
        f"/api/sites/{tenant.site_id}/keys/{key}/edit",
        "/docs",
        "/",
    ):
        person.go(path)
        forms = person.page.all("form", method="post")
        assert forms, path
        for form in forms:
            assert form.one("input", name="csrf_token").attributes["value"] == tenant.browser.csrf_token, path
        for form in person.page.all("form", method="get"):
            assert form.all("input", name="csrf_token") == [], f"{path}: a GET form would put the token into the URL"
