"""A site's search settings, by a form."""

from __future__ import annotations

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
        weight_title="2",
    )

    assert person.notice.startswith("The search settings are saved")
    settings = tenant.private.get(f"/sites/{tenant.site_id}/search-settings").get_json()["settings"]
    assert settings == {
        "language": "en",
        "synonyms": [["car", "automobile"]],
        "stop_words": ["foo", "bar"],
        "pinned": [{"query": "hello", "ids": ["page-2"]}],
        "weights": {"title": 2.0},
    }
    assert tenant.found_ids("car") == ["page-1"]


def test_saved_settings_stand_in_the_form_and_saving_it_again_changes_nothing(person: Person, tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    written = {
        "language": None,
        "synonyms": [["car", "automobile"], ["tv", "television"]],
        "stop_words": None,
        "pinned": [{"query": "hours", "ids": ["1", "2"]}],
        "weights": {"content": 0.5},
    }
    tenant.private.put(path, json=written)
    person.go(path)

    person.press("Save")

    assert tenant.private.get(path).get_json()["settings"] == written


def test_mistakes_are_told_with_their_line_and_nothing_is_saved(person: Person, tenant: Tenant) -> None:
    path = f"/sites/{tenant.site_id}/search-settings"
    person.go(path)

    response = person.send("Save", synonyms="car, automobile\nalone", weight_title="eleven")

    assert response.status_code == 400
    assert person.problem_of("synonyms") == "Synonyms, line 2: must have 2 to 50 items."
    assert person.problem_of("weight_title") == "Weight of the title: must be a number."
    assert person.page.one("textarea", name="synonyms").text.split() == ["car,", "automobile", "alone"]
    assert tenant.private.get(path).get_json()["settings"]["synonyms"] == []
