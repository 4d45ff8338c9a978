"""The pages of collections."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from tests.callers import Tenant, page, register_tenant
from tests.pages.people import Person, person_of, register_person
from tests.responses import assert_error


@pytest.fixture
def second(tenant: Tenant) -> int:
    """The ID of a second site of the tenant."""
    site = tenant.browser.post("/sites", json={"name": "Handbook", "url": "https://docs.example.com/"}).get_json()
    return int(site["site"]["id"])


@pytest.fixture
def collection(person: Person, tenant: Tenant, second: int) -> int:
    """The ID of a collection of both sites, created with the form."""
    person.go("/dashboard")
    person.follow("Collections")
    person.follow("Create a collection")
    values = {"name": "Everything", "sites.0.chosen": "true", "sites.1.chosen": "true", "sites.1.label": "Manual"}
    response = person.send("Create collection", **values)
    assert response.status_code == 303, person.page.text
    person.go(response.headers["Location"])
    return int(person.path.partition("?")[0].rpartition("/")[2])


def stored(tenant: Tenant, collection: int) -> list[dict[str, object]]:
    sites: list[dict[str, object]] = tenant.browser.get(f"/api/collections/{collection}").get_json()["collection"][
        "sites"
    ]
    return sites


def index(tenant: Tenant, site: int, *documents: dict[str, object]) -> None:
    response = tenant.private.post(f"/api/v1/index/bulk?site_id={site}", json={"documents": list(documents)})
    assert response.status_code == 200


def test_collection_is_created_with_the_code_of_its_search_box(person: Person, tenant: Tenant, collection: int) -> None:
    assert person.notice.startswith("Collection created.")
    assert person.page.one("h1").text == "Everything"
    assert stored(tenant, collection) == [
        {"site_id": tenant.site_id, "weight": 1.0, "filters": "", "label": ""},
        {"site_id": tenant.site_id + 1, "weight": 1.0, "filters": "", "label": "Manual"},
    ]
    (code,) = (found.raw_text for found in person.page.all("code") if "widget.js" in found.raw_text)
    token = re.findall(r"svc_pub_\w+", code)[0]
    (key,) = tenant.browser.get(f"/api/collections/{collection}/keys").get_json()["keys"]
    assert token.endswith(key["last4"])
    person.go("/api/collections")
    assert "2 sites" in person.page.text


def test_collection_is_edited_and_keeps_what_the_form_does_not_offer(
    person: Person, tenant: Tenant, collection: int, second: int
) -> None:
    sites = [{"site_id": second, "weight": 3}, {"site_id": tenant.site_id, "filters": "author = Ann"}]
    tenant.browser.call("PATCH", f"/api/collections/{collection}", json={"sites": sites})
    person.go(f"/collections/{collection}/edit")
    assert "× 3" in [option.text for option in person.page.all("option")]
    person.press("Save", name="All", **{"sites.1.weight": "0.67"})
    assert person.notice.startswith("Collection saved.")
    assert [(entry["site_id"], entry["weight"], entry["filters"]) for entry in stored(tenant, collection)] == [
        (second, 3.0, ""), (tenant.site_id, 0.67, "author = Ann"),
    ]  # fmt: skip
    assert "Lower" in person.page.text
    assert "author = Ann" in person.page.text


def test_form_shows_problems_beside_the_site_and_keeps_what_was_entered(person: Person, collection: int) -> None:
    person.go(f"/collections/{collection}/edit")
    form = {"name": " ", "sites.1.filters": "author = ", "sites.1.weight": "1.5"}
    assert person.send("Save", **form).status_code == 400
    assert person.problem_of("name") == "Name must not be empty."
    assert person.send("Save", name="All", **{"sites.1.filters": "author = "}).status_code == 400
    assert person.problem_of("sites.1.filters") == "Expected a value after =. Write author = value."
    assert person.page.one("input", name="sites.1.filters").attributes["value"] == "author ="
    values = dict.fromkeys(("sites.0.chosen", "sites.1.chosen"), "")
    assert person.send("Save", **values, **{"sites.1.filters": ""}).status_code == 400
    assert "Choose 1 to 10 sites" in person.page.text
    assert any("Please correct" in alert for alert in person.alerts)


def test_deleted_and_paused_sites_are_named_and_can_be_removed(
    person: Person, tenant: Tenant, collection: int, second: int
) -> None:
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    person.go(f"/sites/{second}")
    assert "Everything searches this site, and will skip it." in person.page.text
    person.press("Delete site", name="Handbook")
    person.go(f"/api/collections/{collection}")
    assert "Handbook is deleted, so searches skip it." in person.page.text
    assert f"{tenant.site['name']} is paused, so searches skip it." in person.page.text
    person.go("/api/collections")
    assert "2 sites skipped" in person.page.text
    person.go(f"/collections/{collection}/edit")
    person.press("Save", **{"sites.1.chosen": ""})
    assert [entry["site_id"] for entry in stored(tenant, collection)] == [tenant.site_id]


def test_collection_is_deleted_after_confirmation(person: Person, tenant: Tenant, collection: int) -> None:
    person.press("Delete collection")
    assert person.notice == "Collection deleted, with its keys and statistics."
    assert "No collections yet" in person.page.text
    assert_error(tenant.browser.get(f"/api/collections/{collection}"), 404, "collection_not_found")


def test_keys_of_a_collection_are_created_edited_rotated_disabled_and_deleted(
    person: Person, tenant: Tenant, collection: int
) -> None:
    path = f"/api/collections/{collection}/keys"
    person.go(path)
    assert [option.attributes["value"] for option in person.form("Create key").all("option")] == ["public", "search"]
    person.press("Create key", name="Web server", type="search")
    assert person.path == path
    (token,) = set(re.findall(r"svc_srch_\w{38}", person.response.get_data(as_text=True)))
    index(tenant, tenant.site_id, page(1, title="Lighthouse"))
    found = tenant.app.test_client().get("/v1/search?q=lighthouse", headers={"Authorization": f"Bearer {token}"})
    assert found.get_json()["results"]["hits"][0]["site"]["id"] == tenant.site_id
    person.go(path)
    assert token not in person.page.text
    person.follow("Edit")
    person.press("Save", name="Backend")
    assert (person.path.partition("?")[0], person.notice) == (path, "Key saved.")
    person.press("Disable")
    assert (person.path.partition("?")[0], person.notice) == (path, "Key disabled. It no longer works.")
    person.press("Create a new key")
    person.press("Delete key")
    assert (person.path.partition("?")[0], person.notice) == (path, "Key deleted. It no longer works.")


def test_trying_the_search_shows_the_site_of_each_hit_and_is_neither_charged_nor_recorded(
    person: Person, tenant: Tenant, collection: int, second: int
) -> None:
    index(tenant, tenant.site_id, page(1, title="Lighthouse", url="/lighthouse"))
    index(tenant, second, page(1, title="Repair a lighthouse", url="/repair"), page(2, title="Lighthouse keys"))
    person.go(f"/collections/{collection}/try")
    person.press("Search", q="lighthouse")
    assert "3 results" in person.page.text
    hits = [item for item in person.page.one("ol").all("li") if item.all("h2")]
    shown = {hit.one("h2").text: hit.one("p", class_="where") for hit in hits}
    assert shown["Repair a lighthouse"].one("span").text == "Manual"
    assert shown["Lighthouse"].one("span").text == tenant.site["name"]
    links = {link.text: link.attributes["href"] for link in person.page.all("a")}
    assert links["Repair a lighthouse"] == "https://docs.example.com/repair"
    assert links["Tune the search of Manual"] == f"/sites/{second}/try?q=lighthouse"
    person.follow("Manual")
    assert "2 results" in person.page.text
    tenant.app.extensions["runtime"].events.flush()
    report = tenant.browser.get(f"/api/analytics?site_id={collection}").get_json()
    assert report["total_searches"] == 0
    assert tenant.search.get("/v1/client-info").get_json()["limits"]["used_today"] == 0


def test_analytics_of_a_collection_have_their_pages(
    person: Person, tenant: Tenant, collection: int, second: int
) -> None:
    index(tenant, tenant.site_id, page(1, title="Lighthouse"))
    index(tenant, second, page(1, title="Boat"))
    body = {"name": "Server", "type": "search"}
    token = tenant.browser.post(f"/api/collections/{collection}/keys", json=body).get_json()["api_key"]
    client, headers = tenant.app.test_client(), {"Authorization": f"Bearer {token}"}
    found = client.get("/v1/search?q=lighthouse&session_id=s", headers=headers).get_json()["results"]
    click = {"query": "lighthouse", "id": "page-1", "position": 1, "session_id": "s", "site_id": tenant.site_id}
    assert client.post("/api/v1/click", json=click, headers=headers).status_code == 200, found
    tenant.app.extensions["runtime"].events.flush()
    person.go(f"/api/collections/{collection}")
    person.go(person.page.one("nav", aria_label="Collection").first("a", "Analytics").attributes["href"])
    assert "lighthouse" in person.page.text
    assert "Open the inbox" not in person.page.text
    assert "Lighthouse or Boat" in person.page.text, "both sites have a document with the ID of the clicked page"
    person.follow("lighthouse")
    assert [found.text for found in person.page.one("section", aria_labelledby="now-title").all("li")] == ["Lighthouse"]
    assert "(removed)" not in person.page.text
    assert "Add a synonym" not in person.page.text
    for path in ("list=top_queries&", ""):
        person.go(f"/api/analytics?{path}site_id={collection}")
        assert person.response.status_code == 200
    assert person.call("GET", f"/analytics/export?site_id={collection}").status_code == 200
    assert person.call("GET", f"/api/analytics/inbox?site_id={collection}").status_code == 404


def test_box_key_is_created_again_after_it_was_deleted(person: Person, tenant: Tenant, collection: int) -> None:
    (key,) = tenant.browser.get(f"/api/collections/{collection}/keys").get_json()["keys"]
    tenant.browser.delete(f"/api/collections/{collection}/keys/{key['id']}")
    person.go(f"/api/collections/{collection}")
    person.press("Create a public key")
    assert "widget.js" in person.page.text


def test_collections_of_other_accounts_have_no_pages(app: Flask, tenant: Tenant, collection: int) -> None:
    other = person_of(register_tenant(app, "other@example.com"))
    for path in ("/api/collections/{}", "/collections/{}/edit", "/collections/{}/try?q=x", "/api/collections/{}/keys",
                 "/api/analytics?site_id={}"):  # fmt: skip
        assert other.call("GET", path.format(collection)).status_code == 404, path


def test_account_without_sites_is_told_to_add_them(app: Flask) -> None:
    ann = register_person(app, "ann@example.com")
    ann.go("/api/collections")
    assert "Add at least two sites first." in ann.page.text
    ann.go("/collections/create")
    assert "No sites yet" in ann.page.text
