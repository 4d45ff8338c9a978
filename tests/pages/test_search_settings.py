"""A site's search settings, by a form."""

from __future__ import annotations

import pytest

from backends.languages import LANGUAGES
from tests.callers import Tenant, page
from tests.pages.people import Person


def test_settings_are_saved_and_the_next_search_follows_them(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Contact"))
    person.go(f"/sites/{tenant.site_id}")
    person.follow("Search settings")

    person.press(
        "Save",
        language="en",
        synonyms="car, automobile",
        stop_words="foo, bar",
        pinned="hello => page-2",
        hidden="repair => page-1",
        suggestions_hidden="Evil corp\n\n*casino*",
        distinct="page",
        preferred_field="version",
        preferred_value="latest",
        weight_title="2",
    )

    assert person.notice.startswith("Search settings saved")
    settings = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    assert settings == {
        "language": "en",
        "synonyms": [["car", "automobile"]],
        "stop_words": ["foo", "bar"],
        "pinned": [{"query": "hello", "ids": ["page-2"]}],
        "hidden": [{"query": "repair", "ids": ["page-1"]}],
        "weights": {"title": 2.0},
        "suggestions_hidden": ["evil corp", "*casino*"],
        "distinct": "page",
        "preferred": {"field": "version", "value": "latest"},
        "rules": [],
        "boosts": [],
        "rank_field": None,
        "recency": None,
        "no_results_links": [],
    }
    assert tenant.found_ids("car") == ["page-1"]
    assert tenant.found_ids("repair") == []


def test_saved_settings_stand_in_the_form_and_saving_it_again_changes_nothing(person: Person, tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    written = {
        "language": None,
        "synonyms": [["car", "automobile"], ["tv", "television"]],
        "stop_words": None,
        "pinned": [{"query": "hours", "ids": ["1", "2"]}],
        "hidden": [{"query": "jobs", "ids": ["3"]}],
        "weights": {"content": 0.5},
        "suggestions_hidden": ["a, b", "c*"],
        "distinct": "page",
        "preferred": {"field": "version", "value": "2.1"},
        "rules": [{"id": "a", "when": {"match": "is"}, "do": {"replace": "b"}, "enabled": True}],
        "boosts": [{"path": "/docs/*", "rank": 2}],
        "rank_field": "rank",
        "recency": {"field": "date", "half_life_days": 30},
        "no_results_links": [{"text": "All", "url": "/all"}],
    }
    tenant.private.put(path, json=written)
    person.go(path)

    person.press("Save")

    assert tenant.private.get(path).get_json()["settings"] == written


LONG = "x" * 101
MISTAKES = {
    "synonyms": (
        "\n\ncar, automobile\n \nalone\ntv, television\nlonely,\na, " + LONG + "\n" + ", ".join("abcdefghijk" * 5),
        [
            "Line 5 has only one word; enter at least two synonyms, separated by commas.",
            "Line 7 has only one word; enter at least two synonyms, separated by commas.",
            "Line 8 has an invalid word: it must have at most 100 characters.",
            "Line 9 has 55 words; at most 50 are allowed.",
        ],
    ),
    "pinned": (
        "\nhours => 1\nopening hours 12, 7\n\n=> 4\nmap =>\n" + "é" * 300 + " => 1\nx => " + "y" * 513,
        [
            "Line 3 has no => between the query and the ids.",
            "Line 5 has no query before =>.",
            "Line 6 has no id after =>.",
            "Line 7 has an invalid query: it must have at most 512 bytes.",
            "Line 8 has an invalid id: it must have at most 512 characters.",
        ],
    ),
    "hidden": ("jobs 31", ["Line 1 has no => between the query and the ids."]),
    "suggestions_hidden": ("a\n" + "é" * 300, ["Line 2 is invalid: it must have at most 512 bytes."]),
    "stop_words": (f"the, {LONG}", [f"The word “{'x' * 30}…” is invalid: it must have at most 100 characters."]),
    "weight_title": ("eleven", ["This must be a number from 0 to 10, such as 0.5."]),
    "weight_content": ("11", ["This must be a number from 0 to 10, such as 0.5."]),
    "distinct": ("no field", ["This must be the name of a field: a letter, then letters, digits, _ and -."]),
    "preferred_field": ("", ["This must be the name of a field: a letter, then letters, digits, _ and -."]),
    "preferred_value": ("x" * 101, ["This must have at most 100 characters."]),
    "language": ("xx", ["This language is not supported; choose one from the list."]),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_mistake_is_told_by_its_line_in_plain_words_and_nothing_is_saved(
    person: Person, tenant: Tenant, line_end: str
) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    person.go(path)

    response = person.send("Save", **{name: text.replace("\n", line_end) for name, (text, _) in MISTAKES.items()})

    assert response.status_code == 400
    for name, (_, sentences) in MISTAKES.items():
        assert person.problem_of(name) == " ".join(sentences), name
    told = [found.text for found in person.page.one("div", class_="banner").all("li")]
    assert len(told) == sum(len(sentences) for _, sentences in MISTAKES.values())
    assert "Pinned results: Line 3 has no => between the query and the ids." in told
    assert person.page.one("textarea", name="pinned").raw_text.removeprefix("\n") == MISTAKES["pinned"][0]
    settings = tenant.private.get(path).get_json()["settings"]
    assert (settings["synonyms"], settings["pinned"]) == ([], [])


def test_of_very_many_mistakes_the_first_are_told(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/search-settings")
    person.send("Save", synonyms="alone\n" * 50)
    shown = person.problem_of("synonyms")
    assert shown.count("has only one word") == 10
    assert "Line 10 has" in shown
    assert shown.endswith("There are more problems; only the first ones are listed.")
    person.send("Save", synonyms="a, b\n" * 501)
    assert person.problem_of("synonyms") == "There are 501 lines; at most 500 are allowed."


def test_languages_are_called_by_their_names(person: Person, tenant: Tenant) -> None:
    tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json={"language": "de"})
    person.go(f"/sites/{tenant.site_id}/search-settings")
    options = person.page.one("select", name="language").all("option")
    names = sorted(language.name for language in LANGUAGES.values())
    assert [found.text for found in options] == ["Detect automatically for each page", *names]
    assert [found.text for found in options if "selected" in found.attributes] == ["German"]


def shown_lists(person: Person) -> list[list[str]]:
    """What a preview lists: before and after, for each query that changes."""
    section = person.page.one("section", class_="card")
    return [[found.text for found in listed.all("li")] for listed in section.all("ol")]


def test_a_preview_shows_before_and_after_with_the_form_as_it_was_filled_in_and_saves_on_request(
    person: Person, tenant: Tenant
) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Bread"), page(3, title="Bread rolls"))
    path = f"/sites/{tenant.site_id}/search-settings"
    person.go(path)

    person.press(
        "Preview",
        synonyms="car, automobile",
        hidden="rolls => page-3",
        pinned="bread => page-3",
        queries="car\n\nbread",
    )

    assert "Queries that would find other pages, or in another order: 2 of 2." in person.page.text
    assert shown_lists(person) == [
        ["Automobile repair new here"],
        ["Bread", "Bread rolls"],
        ["Bread rolls was 2", "Bread was 1"],
    ]
    assert "No results" in person.page.text
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == []
    assert person.page.one("textarea", name="queries").raw_text.removeprefix("\n") == "car\n\nbread"

    person.press("Save")

    assert person.notice.startswith("Search settings saved")
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == [["car", "automobile"]]
    assert tenant.found_ids("bread") == ["page-3", "page-2"]


def test_a_preview_of_what_was_searched_last_week_needs_no_queries(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Bread"))
    person.go(f"/sites/{tenant.site_id}/search-settings")
    person.press("Preview")
    assert "Nothing was searched in the last seven days." in person.page.text
    tenant.find("bread")
    tenant.app.extensions["runtime"].events.flush()

    person.press("Preview", hidden="bread => page-1")

    assert shown_lists(person) == [["Bread no longer here"]]


def test_mistakes_are_told_by_a_preview_as_when_saving(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}/search-settings")

    response = person.send("Preview", synonyms="alone", queries="fine\n" + "é" * 257)

    assert response.status_code == 400
    assert person.problem_of("synonyms").startswith("Line 1 has only one word")
    assert person.problem_of("queries") == "Line 2 is invalid: it must have at most 512 bytes."


def test_a_preview_of_a_paused_site_is_refused_with_the_form_kept(person: Person, tenant: Tenant) -> None:
    tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False})
    person.go(f"/sites/{tenant.site_id}/search-settings")

    response = person.send("Preview", synonyms="car, automobile", queries="car")

    assert response.status_code == 403
    assert person.alerts == ["The site is paused; resume it to search or index."]
    assert person.page.one("textarea", name="synonyms").raw_text.removeprefix("\n") == "car, automobile"


@pytest.mark.parametrize("button", ["Save", "Preview"])
def test_ids_that_no_page_has_are_named(person: Person, tenant: Tenant, button: str) -> None:
    tenant.index(page(1))
    person.go(f"/sites/{tenant.site_id}/search-settings")

    person.press(button, pinned="a => page-1, gone")

    assert "No page has this id, which the settings pin or hide: gone." in person.page.text
