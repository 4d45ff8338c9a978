"""Inbox remedies show their effect before they are saved."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import Tenant, page
from tests.pages.analytics.test_inbox import INBOX, queries
from tests.pages.markup import Element
from tests.pages.people import Person
from tests.responses import assert_ok
from tests.services.inbox.test_items import missed


@pytest.fixture
def museum(tenant: Tenant) -> Tenant:
    """A site whose visitors search for zeppelins and picnics without results."""
    tenant.index(
        page(1, title="Airships of the harbour"),
        page(2, title="Getting here", content="Take the tram. Cars stop at the garage."),
        page(3, title="Opening hours"),
    )
    missed(tenant, "zeppelin", 5)
    missed(tenant, "picnic", 3)
    return tenant


def open_inbox(person: Person, tenant: Tenant) -> None:
    person.go(f"{INBOX}?site_id={tenant.site_id}")


def remedy(person: Person, label: str) -> None:
    (link,) = [link for link in person.page.all("a") if link.attributes.get("aria-label") == label]
    person.go(link.attributes["href"])


def effect(person: Person) -> tuple[list[str], list[str]]:
    """Return the titles of the results before and after the change."""
    section = person.page.one("section", **{"aria-labelledby": "effect-title"})
    now, then = section.one("div", class_="grid two").children[1::2]
    assert isinstance(now, Element)
    assert isinstance(then, Element)
    return _titles(now), _titles(then)


def _titles(card: Element) -> list[str]:
    return [item.text for item in card.all("li")]


def settings(tenant: Tenant) -> dict[str, Any]:
    found: dict[str, Any] = assert_ok(tenant.private.get(f"/sites/{tenant.site_id}/search-settings"))["settings"]
    return found


def test_synonym_is_previewed_saved_and_resolves_the_query(person: Person, museum: Tenant) -> None:
    open_inbox(person, museum)
    remedy(person, "Add a synonym for zeppelin")
    person.press("Show the effect", synonyms="airships")
    assert effect(person) == ([], ["Airships of the harbour new"])
    assert settings(museum)["synonyms"] == [], "nothing may be saved yet"

    person.press("Save")

    assert "Synonym saved. “zeppelin” now finds 1 page." in person.page.text
    assert queries(person) == ["picnic"]
    assert settings(museum)["synonyms"] == [["zeppelin", "airships"]]


def test_word_without_results_is_preselected_for_a_synonym(person: Person, museum: Tenant) -> None:
    person.go(f"/sites/{museum.site_id}/inbox/synonym?q=car+parking")

    options = person.page.one("select", id="word").all("option")
    assert [option.text for option in options] == [
        "car parking (finds 1 page)",
        "car (finds 1 page)",
        "parking (finds nothing)",
    ]
    assert [option.attributes["value"] for option in options if "selected" in option.attributes] == ["parking"]


def test_page_reports_that_a_synonym_has_no_effect(person: Person, museum: Tenant) -> None:
    open_inbox(person, museum)
    remedy(person, "Add a synonym for zeppelin")
    person.press("Show the effect", synonyms="balloon, blimp")

    assert effect(person) == ([], [])
    assert "This changes nothing: your pages don’t use these words either." in person.page.text


def test_synonym_preview_lists_other_affected_searches(person: Person, museum: Tenant) -> None:
    museum.find("harbour")
    museum.find("hours")
    museum.app.extensions["runtime"].events.flush()
    person.go(f"/sites/{museum.site_id}/inbox/synonym?q=zeppelin&word=hours&synonyms=getting")

    assert "It also changes the results of 1 frequent search of the last seven days: hours." in person.page.text


@pytest.mark.parametrize(
    ("synonyms", "problem"),
    [
        ("x" * 101, "Synonyms must have at most 100 characters each."),
        (",".join(f"word{number}" for number in range(60)), "Synonyms must have fewer than 50 words or phrases."),
        (" , ", "Synonyms must have a word or phrase."),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_invalid_synonyms_show_the_problem_next_to_the_field(
    person: Person, museum: Tenant, method: str, synonyms: str, problem: str
) -> None:
    path = f"/sites/{museum.site_id}/inbox/synonym"
    person.go(f"{path}?q=zeppelin&synonyms=airship")
    token = person.form("Save").one("input", name="csrf_token").attributes["value"]
    sent = {"q": "zeppelin", "word": "zeppelin", "synonyms": synonyms}
    if method == "GET":
        person.call("GET", path, query_string=sent)
    else:
        person.call("POST", path, data=sent | {"csrf_token": token})
        assert person.response.status_code == 400

    assert person.problem_of("synonyms") == problem
    assert person.page.one("input", id="synonyms").attributes["value"] == synonyms
    assert settings(museum)["synonyms"] == []


def test_page_is_searched_pinned_and_resolves_the_query(person: Person, museum: Tenant) -> None:
    open_inbox(person, museum)
    remedy(person, "Pin a page for zeppelin")
    assert "No pages found for “zeppelin”." in person.page.text
    person.press("Find", find="harbour")
    remedy(person, "Pin Airships of the harbour")
    assert effect(person) == ([], ["Airships of the harbour new"])
    assert settings(museum)["pinned"] == []

    person.press("Save")

    assert "Page pinned. “zeppelin” now finds 1 page." in person.page.text
    assert queries(person) == ["picnic"]
    assert settings(museum)["pinned"] == [{"query": "zeppelin", "ids": ["page-1"]}]


def test_page_removed_in_the_meantime_is_not_pinned(person: Person, museum: Tenant) -> None:
    path = f"/sites/{museum.site_id}/inbox/pin?q=zeppelin&find=harbour&id=page-1"
    person.go(path)
    museum.private.delete("/api/v1/index/destroy?id=page-1")
    person.send("Save")
    assert person.response.status_code == 404
    assert person.alerts == ["Page not found; it may have been removed."]
    assert settings(museum)["pinned"] == []

    person.go(path)
    assert person.alerts == ["Page not found; it may have been removed."]
    assert settings(museum)["pinned"] == []


def test_saving_a_synonym_does_not_change_other_settings(person: Person, museum: Tenant) -> None:
    before = settings(museum) | {"language": "en", "weights": {"title": 2.0}, "synonyms": [["tram", "bus"]]}
    museum.private.put(f"/sites/{museum.site_id}/search-settings", json=before)

    person.go(f"/sites/{museum.site_id}/inbox/synonym?q=zeppelin&synonyms=airships")
    person.press("Save")

    assert settings(museum) == before | {"synonyms": [["tram", "bus"], ["zeppelin", "airships"]]}


@pytest.mark.parametrize("query", ["", "%20", "x" * 513])
@pytest.mark.parametrize("form", ["synonym", "pin"])
def test_remedy_without_a_valid_query_returns_400(person: Person, museum: Tenant, form: str, query: str) -> None:
    person.call("GET", f"/sites/{museum.site_id}/inbox/{form}?q={query}")
    assert person.response.status_code == 400


@pytest.mark.parametrize("find", ["é" * 400, "\x00harbour", "   "])
def test_any_text_can_be_searched_for_on_the_pin_page(person: Person, museum: Tenant, find: str) -> None:
    path = f"/sites/{museum.site_id}/inbox/pin"
    person.call("GET", path, query_string={"q": "zeppelin", "find": find})
    assert person.response.status_code == 200


def test_synonym_previews_count_against_the_daily_preview_limit(
    person: Person, museum: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.usage.quota.SETTINGS_PREVIEW_LIMIT", 1)  # Other frequent queries are tried, too.
    path = f"/sites/{museum.site_id}/inbox/synonym?q=zeppelin&synonyms=airships"

    assert person.call("GET", path).status_code == 200
    assert person.call("GET", path).status_code == 429


def test_synonym_preview_on_a_paused_site_returns_403(person: Person, museum: Tenant) -> None:
    museum.browser.put(f"/sites/{museum.site_id}", json={"active": False})
    person.call("GET", f"/sites/{museum.site_id}/inbox/synonym?q=zeppelin&synonyms=airships")

    assert person.response.status_code == 403
    assert "The site is paused" in person.page.text
