"""Pinning and hiding results on the page to try a site's search."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.callers import Tenant, page
from tests.pages.people import Person


@pytest.fixture
def bakery(person: Person, tenant: Tenant) -> Tenant:
    """A customer with four pages, who has searched for "bread"."""
    tenant.index(
        page(1, title="Bread", content="Bread, bread, bread."),
        page(2, title="Bread rolls", content="Small bread."),
        page(3, title="Rye bread", content="Dark bread."),
        page(4, title="Opening hours", content="When there is bread."),
    )
    person.go(f"/sites/{tenant.site_id}/try?q=Bread")
    return tenant


def titles(person: Person) -> list[str]:
    return [found.text for found in person.page.one("ol", class_="hits").all("h2")]


def click(person: Person, label: str) -> None:
    """Press the button with this accessible name."""
    for form in person.page.all("form"):
        for button in form.all("button"):
            if button.attributes.get("aria-label") == label:
                sent = {f.attributes["name"]: f.attributes["value"] for f in form.all("input")}
                person.call("POST", form.attributes["action"], data=sent)
                if person.response.status_code == 303:
                    person.go(person.response.headers["Location"])
                return
    raise AssertionError(f"no button is called {label!r}")


def settings(tenant: Tenant) -> dict[str, Any]:
    found: dict[str, Any] = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    return found


def told(person: Person) -> str:
    return " ".join(found.text for found in person.page.all("div", class_="notice tuned"))


def test_page_is_pinned_with_one_click_and_can_be_unpinned(person: Person, bakery: Tenant) -> None:
    before = titles(person)
    assert before[-1] == "Opening hours"

    click(person, "Pin: Opening hours")

    assert titles(person) == ["Opening hours", *before[:-1]]
    assert "“Opening hours” is pinned for the search “Bread”." in told(person)
    assert settings(bakery)["pinned"] == [{"query": "bread", "ids": ["page-4"]}]
    assert bakery.found_ids("BREAD")[0] == "page-4"
    click(person, "Undo: Opening hours")
    assert titles(person) == before
    assert settings(bakery)["pinned"] == []


def test_last_pinned_page_comes_first_and_undo_restores_its_position(person: Person, bakery: Tenant) -> None:
    for title in ("Rye bread", "Bread rolls", "Opening hours"):
        click(person, f"Pin: {title}")
    assert titles(person)[:3] == ["Opening hours", "Bread rolls", "Rye bread"]

    click(person, "Unpin: Bread rolls")

    assert titles(person)[:2] == ["Opening hours", "Rye bread"]
    click(person, "Undo: Bread rolls")
    assert titles(person)[:3] == ["Opening hours", "Bread rolls", "Rye bread"]


def test_page_is_hidden_with_one_click_listed_and_can_be_restored(person: Person, bakery: Tenant) -> None:
    before = titles(person)

    click(person, "Hide: Bread rolls")

    assert titles(person) == [title for title in before if title != "Bread rolls"]
    assert "“Bread rolls” is hidden from the search “Bread”." in told(person)
    assert bakery.found_ids("bread") == ["page-1", "page-3", "page-4"]
    person.go(f"/sites/{bakery.site_id}/try?q=bread")
    assert "Bread rolls" in person.page.one("section", class_="tuned").text
    click(person, "Show again: Bread rolls")
    assert titles(person) == before
    click(person, "Undo: Bread rolls")
    assert settings(bakery)["hidden"] == [{"query": "bread", "ids": ["page-2"]}]


def test_tuning_preserves_page_number_and_facets_of_the_search(person: Person, bakery: Tenant) -> None:
    bakery.index(*(page(number, title=f"Bread {number}", section="ab"[number % 2]) for number in range(10, 40)))
    person.go(f"/sites/{bakery.site_id}/try?q=Bread+1&f=section:a&page=2")
    first = titles(person)[0]

    click(person, f"Hide: {first}")

    assert "f=section%3Aa&page=2" in person.path
    assert "Page 2 of 2" in person.page.text


def test_pinning_does_not_change_other_settings(person: Person, bakery: Tenant) -> None:
    bakery.private.put(
        f"/sites/{bakery.site_id}/search-settings",
        json={
            "synonyms": [["bread", "loaf"]],
            "pinned": [{"query": "bread", "ids": ["page-9"]}, {"query": "loaf", "ids": ["page-1"]}],
        },
    )

    click(person, "Pin: Rye bread")

    assert settings(bakery)["synonyms"] == [["bread", "loaf"]]
    assert settings(bakery)["pinned"] == [
        {"query": "bread", "ids": ["page-3", "page-9"]},
        {"query": "loaf", "ids": ["page-1"]},
    ]
    assert "page-9 no page has this ID" in person.page.one("section", class_="tuned").text
    click(person, "Unpin: page-9")
    assert settings(bakery)["pinned"][0]["ids"] == ["page-3"]


def test_tuning_beyond_a_limit_shows_the_error_and_the_results(person: Person, bakery: Tenant) -> None:
    path = f"/sites/{bakery.site_id}/search-settings"
    bakery.private.put(path, json={"pinned": [{"query": "bread", "ids": [f"x{number}" for number in range(50)]}]})
    click(person, "Pin: Rye bread")
    assert person.response.status_code == 400
    assert person.alerts == ["Pinned results can have at most 50 pages for one query."]
    assert len(titles(person)) == 4

    bakery.private.put(path, json={"hidden": [{"query": f"q{number}", "ids": ["x"]} for number in range(500)]})
    click(person, "Hide: Rye bread")
    assert person.alerts == ["Hidden results can contain pages for at most 500 searches."]


def test_concurrent_pins_are_all_saved(bakery: Tenant) -> None:
    path, token = f"/sites/{bakery.site_id}/try?q=bread", bakery.browser.csrf_token
    statuses: list[int] = []

    def pin(number: int) -> None:
        with bakery.app.test_client() as client:
            client.set_cookie("session", cookie)
            form = {"csrf_token": token, "do": "pin", "id": f"page-{number}"}
            statuses.append(client.post(path, data=form).status_code)

    found = bakery.browser.client.get_cookie("session")
    assert found is not None
    cookie = found.value
    threads = [threading.Thread(target=pin, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert statuses == [303] * 8
    assert sorted(settings(bakery)["pinned"][0]["ids"]) == [f"page-{number}" for number in range(1, 9)]


@pytest.mark.parametrize(
    "form",
    [{"do": "pin"}, {"do": "pin", "id": "x" * 513}, {"do": "pin", "id": "\x00"}, {"do": "erase", "id": "page-1"}, {}],
)
def test_malformed_tuning_form_returns_400_and_changes_nothing(
    person: Person, bakery: Tenant, form: dict[str, str]
) -> None:
    form = {**form, "csrf_token": bakery.browser.csrf_token}
    assert person.call("POST", f"/sites/{bakery.site_id}/try?q=bread", data=form).status_code == 400
    assert person.alerts
    assert person.call("POST", f"/sites/{bakery.site_id}/try?q=", data={**form, "id": "page-1"}).status_code == 400
    assert settings(bakery)["pinned"] == []


def test_tuning_requires_the_account_of_the_site_and_a_csrf_token(
    person: Person, bakery: Tenant, stranger: Tenant
) -> None:
    form = {"do": "pin", "id": "page-1"}
    path = f"/sites/{bakery.site_id}/try?q=bread"
    assert person.call("POST", path, data=form).status_code == 403
    strange = {**form, "csrf_token": stranger.browser.csrf_token}
    assert stranger.browser.client.post(path, data=strange).status_code == 404
    assert bakery.private.post(path, data=form).status_code == 415
    assert settings(bakery)["pinned"] == []


def test_last_entry_of_a_query_pinned_twice_applies_and_is_changed(person: Person, bakery: Tenant) -> None:
    twice = [{"query": "bread", "ids": ["page-1"]}, {"query": "bread", "ids": ["page-2"]}]
    bakery.private.put(f"/sites/{bakery.site_id}/search-settings", json={"pinned": twice})
    person.go(f"/sites/{bakery.site_id}/try?q=bread")
    click(person, "Unpin: Bread rolls")
    assert settings(bakery)["pinned"] == []
