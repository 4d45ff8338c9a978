"""The audit log page."""

from __future__ import annotations

from tests.callers import Browser, Tenant, add_member, member_id
from tests.pages.people import Person

PATH = "/api/audit-log"


def rows(person: Person) -> list[str]:
    return [row.text for row in person.page.one("tbody").all("tr")]


def test_audit_log_shows_actor_and_change(person: Person, tenant: Tenant) -> None:
    tenant.private.put(f"/sites/{tenant.site_id}", json={"name": "Renamed", "active": False})
    settings = {
        "synonyms": [["car", "auto"], ["boat", "ship"]],
        "language": "de",
        "pinned": [{"query": "tram", "ids": ["2"]}],
    }
    tenant.browser.put(f"/sites/{tenant.site_id}/search-settings", json=settings)
    tenant.browser.post(f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}/rotate")
    tenant.browser.post("/login", json={"email": tenant.email, "password": "correct horse battery"})
    person.go("/api/members")
    person.follow("Audit log")

    login, rotated, saved, renamed, *_ = rows(person)
    assert tenant.email in login
    assert "Logged in" in login
    assert "Changed key “search (svc_srch_…" in rotated
    assert "token changed" in rotated
    assert "Changed search settings of “Renamed”" in saved
    assert "language: “de”" in saved
    assert "synonyms: added (“car”, “auto”), (“boat”, “ship”)" in saved
    assert "pinned: added (query “tram”, ids “2”)" in saved
    assert "private (svc_prv_…" in renamed
    assert "name: “Pages” → “Renamed”" in renamed
    assert "active: yes → no" in renamed
    assert "127.0.0.1" in renamed


def test_audit_log_is_filtered_by_form(person: Person, tenant: Tenant) -> None:
    bo = add_member(tenant, "bo@example.com", "editor")
    bo.put(f"/sites/{tenant.site_id}", json={"name": "Renamed"})
    person.go(PATH)
    person.press("Show", kind="site", member_id=str(member_id(tenant, "bo@example.com")))
    assert len(rows(person)) == 1
    export = person.page.first("a", "Download CSV").attributes["href"]
    assert len(person.call("GET", export).get_data(as_text=True).splitlines()) == 2
    person.go(f"{PATH}?kind=site&since=2001-01-01&until=2002-01-01")
    assert "Nothing matches" in person.page.text
    assert person.page.one("input", name="since").attributes["value"] == "2001-01-01"


def test_link_to_older_entries_keeps_filters(person: Person, tenant: Tenant) -> None:
    for number in range(55):
        tenant.private.put(f"/sites/{tenant.site_id}", json={"name": f"Name {number}"})
    person.go(f"{PATH}?kind=site")
    assert len(rows(person)) == 50
    person.follow("Older")
    assert "kind=site" in person.path
    assert len(rows(person)) == 6
    person.follow("Newest")
    assert len(rows(person)) == 50


def test_invalid_query_parameter_is_reported(person: Person) -> None:
    assert person.call("GET", f"{PATH}?since=yesterday").status_code == 400
    assert person.call("GET", f"{PATH}?kind=%FF").status_code == 400


def restore(browser: Browser, entry: int) -> int:
    """Press the restore button of an entry, and return the status code."""
    return browser.client.post(f"/audit-log/{entry}/restore", data={"csrf_token": browser.csrf_token}).status_code


def test_only_owners_can_restore_and_only_search_settings(tenant: Tenant, stranger: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    for word in ("car", "tv"):
        tenant.browser.put(path, json={"synonyms": [[word, "other"]]})
    entries = tenant.private.get(f"{PATH}?limit=100").get_json()["entries"]
    change = next(entry["id"] for entry in entries if entry["object"]["kind"] == "search_settings")
    others = [entry["id"] for entry in entries if entry["object"]["kind"] != "search_settings"]
    for role in ("editor", "viewer"):
        browser = add_member(tenant, f"{role}@example.com", role)
        assert restore(browser, change) == 403
        assert browser.client.get(f"{PATH}?kind=search_settings", headers={"Accept": "text/html"}).status_code == 403
        assert browser.client.get("/audit-log/export").status_code == 403
    assert restore(stranger.browser, change) == 404
    for entry in (*others, 0, 10**9, 2**63 - 1, 2**63, 10**19 - 1):
        assert restore(tenant.browser, entry) == 404, entry
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == [["tv", "other"]]

    assert restore(tenant.browser, change) == 303
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == [["car", "other"]]
    actor = tenant.private.get(f"{PATH}?kind=search_settings&limit=1").get_json()["entries"][0]["actor"]
    assert (actor["kind"], actor["name"]) == ("member", tenant.email)


def test_settings_of_a_deleted_site_cannot_be_restored(tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    for word in ("car", "tv"):
        tenant.browser.put(path, json={"synonyms": [[word, "other"]]})
    (change, *_) = tenant.private.get(f"{PATH}?kind=search_settings").get_json()["entries"]
    tenant.browser.delete(f"/sites/{tenant.site_id}")
    assert restore(tenant.browser, change["id"]) == 404
    tenant.browser.post(f"/sites/{tenant.site_id}/restore")
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == [["tv", "other"]]


def test_previous_search_settings_can_be_restored_with_a_button(person: Person, tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    for word in ("car", "tv"):
        tenant.browser.put(path, json={"synonyms": [[word, "other"]]})

    person.go("/api/audit-log?kind=search_settings")
    assert "synonyms: added (“tv”, “other”); removed (“car”, “other”)" in person.page.text
    person.press("Restore the previous settings")

    assert person.notice.startswith("Search settings restored")
    assert person.page.one("input", name="synonyms.0.words").attributes["value"] == "car, other"
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == [["car", "other"]]
    person.go("/api/audit-log?kind=search_settings")
    assert "synonyms: added (“car”, “other”); removed (“tv”, “other”)" in person.page.text
