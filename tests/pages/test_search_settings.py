"""The pages of search settings: settings as rows and as JSON, with a preview of results."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.models import Site
from app.pages.settings_draft import SECTIONS
from backends.languages import LANGUAGES
from tests.callers import Tenant, page
from tests.pages.people import Person, filled

EVERYTHING: dict[str, Any] = {
    "language": "en",
    "synonyms": [["car", "automobile"], ["tv", "television"]],
    "stop_words": ["foo", "bar"],
    "pinned": [{"query": "hours", "ids": ["page-2", "page-1"]}],
    "hidden": [{"query": "jobs", "ids": ["page-1"]}],
    "weights": {"title": 2.0, "content": 0.5},
    "suggestions_hidden": ["a, b", "c*"],
    "distinct": "page",
    "preferred": {"field": "version", "value": "2.1"},
    "rules": [
        {
            "id": "tickets",
            "when": {
                "query": "tickets", "match": "words", "filters": "section = shop", "from": "2026-01-01",
                "to": "2027-01-01T10:00:00Z",
            },
            "do": {
                "pin": ["page-1"], "hide": ["page-2"], "boost": {"filters": "section = shop", "rank": -3},
                "filters": "section = shop", "replace": "ticket", "redirect": "/tickets",
                "notice": {"text": "Closed on Monday.", "url": "/hours"},
            },
            "enabled": False,
        },
        {"id": "all", "when": {"match": "is"}, "do": {"notice": {"text": "Hello."}}, "enabled": True},
    ],
    "boosts": [{"path": "/docs/*", "rank": 2}, {"filters": "section = news", "rank": -1}],
    "rank_field": "rank",
    "recency": {"field": "changed", "half_life_days": 30},
    "no_results_links": [{"text": "All", "url": "/all"}],
    "no_results_popular": 3,
    "answers": True,
}  # fmt: skip


def path_of(tenant: Tenant) -> str:
    return f"/sites/{tenant.site_id}/search-settings"


def settings_of(tenant: Tenant) -> dict[str, Any]:
    settings: dict[str, Any] = tenant.private.get(path_of(tenant)).get_json()["settings"]
    return settings


PAGES = ("synonyms", "rules", "pinned", "ranking", "results", "suggestions", "advanced")


def open_page(person: Person, tenant: Tenant, name: str) -> None:
    person.go(f"{path_of(tenant)}/{name}")


def write(person: Person, button: str, **values: Any) -> int:
    """Submit the form with a button. ``__`` in names becomes a dot; values can be lists, fields can be new."""
    form = next(form for form in person.page.all("form") if form.attributes.get("id") == "settings")
    sent: dict[str, Any] = {**filled(form), **{name.replace("__", "."): value for name, value in values.items()}}
    for box in form.all("input", type="checkbox"):
        name = box.attributes["name"]
        ticked = [each for each in form.all("input", name=name) if "checked" in each.attributes]
        if name.replace(".", "__") not in values and ticked:
            sent[name] = [each.attributes["value"] for each in ticked]
    pressed = next(found.attributes for found in form.all("button") if found.text == button)
    if "name" in pressed:
        sent[pressed["name"]] = pressed["value"]
    action = pressed.get("formaction") or form.attributes["action"]
    status = person.call("POST", action, data=sent).status_code
    if status == 303:
        person.go(person.response.headers["Location"])
    return status


def problems(person: Person) -> list[str]:
    return [found.text for each in person.page.all("div", class_="problem") for found in each.all("p")]


def test_row_of_synonyms_works_in_both_directions_or_in_one(person: Person, tenant: Tenant) -> None:
    person.go(f"/sites/{tenant.site_id}")
    person.follow("Search settings")
    rows = {"synonyms__0__kind": "one_way", "synonyms__0__from": "tablet", "synonyms__0__words": "ipad, galaxy tab"}
    # A row that was one-way keeps its first word when it means the same.
    rows |= {"synonyms__1__kind": "same", "synonyms__1__from": "car", "synonyms__1__words": "automobile"}

    assert write(person, "Save", **rows) == 303

    assert settings_of(tenant)["synonyms"] == [{"from": "tablet", "to": ["ipad", "galaxy tab"]}, ["car", "automobile"]]
    assert person.page.one("input", name="synonyms.0.from").attributes["value"] == "tablet"
    assert person.page.one("input", name="synonyms.0.words").attributes["value"] == "ipad, galaxy tab"
    assert person.page.one("input", name="synonyms.1.words").attributes["value"] == "car, automobile"
    assert write(person, "Save", **rows | {"synonyms__0__from": ""}) == 400


def test_saved_rows_affect_the_next_search(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Contact"))
    person.go(f"/sites/{tenant.site_id}")
    person.follow("Search settings")

    for link, values in {
        "Synonyms": {"synonyms__0__words": "car, automobile"},
        "Pinned and hidden": {"pinned__0__query": "Hello", "pinned__0__add": "contact"},
        "Rules": {"rules__0__when__query": "repair", "rules__0__do__hide__add": "page-1"},
        "Suggestions": {"suggestions_hidden__0__text": "*casino*"},
        "Ranking": {"recency__half_life_days": "30"},
    }.items():
        person.follow(link)
        assert write(person, "Save", **values) == 303
        assert person.notice.startswith("Search settings saved")

    settings = settings_of(tenant)
    assert settings["synonyms"] == [["car", "automobile"]]
    assert settings["pinned"] == [{"query": "hello", "ids": ["page-2"]}]
    rule = {"when": {"query": "repair", "match": "is"}, "do": {"hide": ["page-1"]}, "enabled": True}
    assert settings["rules"] == [{"id": "rule-1", **rule}]
    assert settings["suggestions_hidden"] == ["*casino*"]
    assert settings["recency"] == {"field": "date", "half_life_days": 30}
    assert tenant.found_ids("car") == ["page-1"]
    assert tenant.found_ids("repair") == []
    assert tenant.found_ids("hello") == ["page-2"]


@pytest.mark.parametrize("written", [EVERYTHING, {}], ids=["everything", "nothing"])
def test_saving_unchanged_settings_changes_nothing(person: Person, tenant: Tenant, written: dict[str, Any]) -> None:
    tenant.index(page(1), page(2))
    assert tenant.private.put(path_of(tenant), json=written).status_code == 200
    before = settings_of(tenant)

    for name in PAGES:
        open_page(person, tenant, name)
        assert write(person, "Save") == 303
        assert settings_of(tenant) == before, name


def test_every_setting_is_on_exactly_one_page_or_in_analytics(tenant: Tenant) -> None:
    names = [name for section in SECTIONS.values() for name in section.settings]

    assert tuple(SECTIONS) == PAGES
    assert sorted([*names, "learn_from_clicks"]) == sorted(settings_of(tenant))


def test_saving_a_settings_page_keeps_concurrent_changes_of_other_pages(person: Person, tenant: Tenant) -> None:
    open_page(person, tenant, "synonyms")
    written = {**settings_of(tenant), "answers": True, "suggestions_hidden": ["casino"]}
    tenant.private.put(path_of(tenant), json=written)

    assert write(person, "Save", synonyms__0__words="car, automobile") == 303

    assert settings_of(tenant) == {**written, "synonyms": [["car", "automobile"]]}


def test_former_search_settings_url_redirects_to_the_first_page(person: Person, tenant: Tenant) -> None:
    response = person.call("GET", f"{path_of(tenant)}?notice=search-settings-restored")

    assert response.status_code == 303
    assert response.headers["Location"] == f"{path_of(tenant)}/synonyms?notice=search-settings-restored"
    assert person.call("GET", f"{path_of(tenant)}/nope").status_code == 404


def test_rules_are_shown_as_sentences(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Prices"), page(2, title="Old prices"))
    tenant.private.put(path_of(tenant), json=EVERYTHING)
    open_page(person, tenant, "rules")

    sentences = [each.all("summary")[0].text for each in person.page.all("details", class_="wide rule")]

    assert sentences == [
        "When a search contains the words “tickets” with the filter section = shop from 2026-01-01 until "
        "2027-01-01T10:00:00Z, show “Prices” first, hide “Old prices”, show only pages with section = shop, rank pages "
        "with section = shop at -3, search for “ticket” instead, open /tickets, and show the notice “Closed on "
        "Monday.” Off",
        "For every search, show the notice “Hello.”",
    ]


def test_listed_pages_show_titles_and_can_be_removed(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="Tickets"))
    tenant.private.put(path_of(tenant), json={"pinned": [{"query": "a", "ids": ["page-1", "page-2", "gone"]}]})
    open_page(person, tenant, "pinned")
    labels = [box.text for box in person.page.one("fieldset", data_pages="pinned.0").all("label")]
    assert labels == ["Opening hours", "Tickets", "gone no page has this ID", "Add a page"]

    write(person, "Save", pinned__0__pages=["page-2"])

    assert settings_of(tenant)["pinned"] == [{"query": "a", "ids": ["page-2"]}]


@pytest.mark.parametrize(
    ("typed", "ids"),
    [("Opening hours", ["page-1"]), ("/hours-of-shops", ["page-2"]), ("page-3", ["page-3"]), ("tickets", ["page-3"])],
)
def test_page_can_be_added_by_title_url_id_or_words(person: Person, tenant: Tenant, typed: str, ids: list[str]) -> None:
    documents = (page(1, title="Opening hours"), page(2, title="Opening hours of shops", url="/hours-of-shops"))
    tenant.index(*documents, page(3, title="Buy tickets"))
    open_page(person, tenant, "pinned")

    assert write(person, "Save", pinned__0__query="a", pinned__0__add=typed) == 303

    assert settings_of(tenant)["pinned"] == [{"query": "a", "ids": ids}]


def test_ambiguous_page_offers_candidates(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"), page(2, title="Hours of shops"))
    open_page(person, tenant, "pinned")

    assert write(person, "Save", pinned__0__query="a", pinned__0__add="hours") == 400

    assert problems(person) == ["Several pages match “hours”. Select the right one."]
    offered = person.page.one("fieldset", data_pages="pinned.0").all("input", type="checkbox")
    assert sorted(box.attributes["value"] for box in offered) == ["page-1", "page-2"]
    assert not any("checked" in box.attributes for box in offered)
    assert settings_of(tenant)["pinned"] == []
    assert write(person, "Save", pinned__0__pages=["page-2"]) == 303
    assert settings_of(tenant)["pinned"] == [{"query": "a", "ids": ["page-2"]}]


MISTAKES = {
    "synonyms__0__words": ("alone", "Add 2 to 50 words."),
    "pinned__0__query": ("hours", "Add 1 to 50 pages."),
    "hidden__0__add": ("zeppelin", "No page was found for “zeppelin”."),
    "boosts__0__value": ("docs", "Path must begin with / or *, such as /blog/*."),
    "rules__0__do__redirect": (
        "javascript:x",
        "Redirect must be an http or https URL, or a path that starts with one /.",
    ),
    "rules__0__do__filters": (
        "section =",
        "Filter is not valid at character 9: Expected a value after =. Write section = value.",
    ),
    "rules__0__when__from": (
        "tomorrow",
        "From must be a date such as 2024-05-31, or a date-time such as 2024-05-31T12:00:00Z.",
    ),
    "recency__half_life_days": ("soon", "Half-life must be an integer."),
    "weights__title": ("eleven", "Title must be a number."),
    "distinct": ("no field", "This must be a letter, then letters, digits, _, and -."),
    "preferred_field": ("version", "Value must not be empty."),
    "no_results_links__0__text": ("All", "URL must not be empty."),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_invalid_setting_is_reported_beside_its_row(person: Person, tenant: Tenant, name: str) -> None:
    typed, sentence = MISTAKES[name]
    setting = name.partition("__")[0].removesuffix("_field")
    (opened,) = [section.name for section in SECTIONS.values() if setting in section.settings]
    open_page(person, tenant, opened)
    row = {"synonyms__1__words": "car, automobile"} if opened == "synonyms" else {"query": "car, automobile"}

    assert write(person, "Save", **{name: typed}, **row) == 400

    told = problems(person)
    assert [text for text in told if text.startswith(sentence)], told
    form = filled(next(form for form in person.page.all("form") if form.attributes.get("id") == "settings"))
    assert "car, automobile" in form.values()
    if not name.endswith("__add"):
        assert form[name.replace("__", ".")] == typed
    assert settings_of(tenant)["synonyms"] == []


@pytest.mark.parametrize("name", ["synonyms__0__words", "rules__0__do__redirect", "rules__0__when__from"])
def test_field_with_an_invalid_value_is_marked(person: Person, tenant: Tenant, name: str) -> None:
    open_page(person, tenant, name.partition("__")[0])

    assert write(person, "Save", **{name: MISTAKES[name][0]}) == 400

    marked = [field.attributes for field in person.page.all("input") if "aria-invalid" in field.attributes]
    assert [attributes["name"] for attributes in marked] == [name.replace("__", ".")]
    assert person.page.one("div", id=marked[0]["aria-describedby"]).text.startswith(MISTAKES[name][1])


def test_concurrent_settings_are_shown_for_comparison(person: Person, tenant: Tenant) -> None:
    open_page(person, tenant, "synonyms")
    tenant.private.put(path_of(tenant), json={"synonyms": [["tv", "television"]]})

    assert write(person, "Save", synonyms__0__words="car, automobile") == 412

    assert "Someone else saved different settings in the meantime" in person.page.text
    assert "synonyms: added (“tv”, “television”); removed (“car”, “automobile”)" in person.page.text
    assert settings_of(tenant)["synonyms"] == [["tv", "television"]]
    assert write(person, "Save") == 303
    assert settings_of(tenant)["synonyms"] == [["car", "automobile"]]


def test_languages_are_listed_by_name(person: Person, tenant: Tenant) -> None:
    tenant.private.put(path_of(tenant), json={"language": "de"})
    open_page(person, tenant, "advanced")
    options = person.page.one("select", name="language").all("option")
    names = sorted(language.name for language in LANGUAGES.values())
    assert [found.text for found in options] == ["Detect for each page", *names]
    assert [found.text for found in options if "selected" in found.attributes] == ["German"]


def shown_lists(person: Person) -> list[list[str]]:
    """Return the preview's lists of results, with the new and current settings, for each affected query."""
    return [[found.text for found in listed.all("li")] for listed in person.page.one("div", id="results").all("ol")]


def test_preview_shows_results_without_saving(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Automobile repair"), page(2, title="Bread"), page(3, title="Bread rolls"))
    open_page(person, tenant, "pinned")

    assert write(person, "Preview", pinned__0__query="bread", pinned__0__add="page-3", query="bread") == 200

    assert shown_lists(person) == [["Bread rolls was 2", "Bread was 1"], ["Bread", "Bread rolls"]]
    selected = [link.text for link in person.page.all("a") if "aria-current" in link.attributes]
    assert selected == ["Sites", "Search settings", "Settings", "Pinned and hidden"], (
        "each navigation must contain the link"
    )
    assert settings_of(tenant)["pinned"] == []
    assert person.page.one("input", id="query").attributes["value"] == "bread"
    assert write(person, "Save") == 303
    assert tenant.found_ids("bread") == ["page-3", "page-2"]


def test_preview_without_query_compares_frequent_queries(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Bread"))
    open_page(person, tenant, "pinned")
    write(person, "Preview")
    assert "There were no searches in the last seven days." in person.page.text
    tenant.find("bread")
    tenant.app.extensions["runtime"].events.flush()

    write(person, "Preview", hidden__0__query="bread", hidden__0__add="page-1")

    assert shown_lists(person) == [["Bread no longer here"]]


def test_preview_shows_effects_of_rules_on_a_search_whose_pages_stay_the_same(person: Person, tenant: Tenant) -> None:
    tenant.index(page(1, title="Opening hours"))
    open_page(person, tenant, "rules")
    rule = {"rules__0__when__query": "hours", "rules__0__do__notice__text": "Closed on Monday."}

    write(person, "Preview", **rule, rules__0__do__redirect="/hours", query="hours")

    shown = person.page.one("div", id="results").text
    assert "With these settings, the results of this search change." in shown
    assert "Opens /hours instead of showing results. Closed on Monday. Opening hours" in shown
    write(person, "Preview", query="nothing like it", **rule)
    assert "stay the same" in person.page.one("div", id="results").text


def test_preview_shows_the_answer_the_sections_and_the_links(person: Person, tenant: Tenant) -> None:
    text = "The museum has a cafe. On Sundays the museum opens at ten."
    section = {"anchor": "sunday", "title": "Sundays", "level": 2, "start": text.index("On Sundays")}
    tenant.index(page(1, title="Opening hours", content=text, sections=[section]))
    open_page(person, tenant, "results")

    write(person, "Preview", answers="true", query="when does the museum open on sundays")

    shown = person.page.one("div", id="results")
    assert "With these settings, the results of this search change." in shown.text
    assert [quote.text for quote in shown.all("blockquote")] == ["On Sundays the museum opens at ten."]
    assert [each.text for each in shown.all("ul", class_="where sections")][:1] == ["Sundays"]
    links = {"no_results_links__0__text": "All pages", "no_results_links__0__url": "/"}
    write(person, "Preview", query="zeppelin", **links)
    assert "No results Visitors see these links: All pages" in person.page.one("div", id="results").text


def test_enter_key_previews_instead_of_saving(person: Person, tenant: Tenant) -> None:
    open_page(person, tenant, "rules")
    form = next(form for form in person.page.all("form") if form.attributes.get("id") == "settings")
    first = next(button for button in form.all("button") if button.attributes.get("type", "submit") == "submit")
    assert first.attributes["formaction"].endswith("/preview")


def test_preview_on_a_paused_site_returns_403_and_preserves_the_form(person: Person, tenant: Tenant) -> None:
    tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False})
    open_page(person, tenant, "synonyms")

    assert write(person, "Preview", synonyms__0__words="car, automobile", query="car") == 403

    assert person.alerts == ["The site is paused; resume it to search or index."]
    assert person.page.one("input", name="synonyms.0.words").attributes["value"] == "car, automobile"


class TestJson:
    """The JSON editor of the same settings."""

    def test_json_editor_shows_and_saves_settings(self, person: Person, tenant: Tenant) -> None:
        tenant.index(page(1), page(2))
        tenant.private.put(path_of(tenant), json=EVERYTHING)
        open_page(person, tenant, "advanced")
        shown = orjson.loads(person.page.one("textarea", name="json").raw_text)
        assert shown == settings_of(tenant)

        person.press("Save this JSON", json=orjson.dumps({**shown, "language": "de"}).decode())

        assert person.notice.startswith("Search settings saved")
        assert settings_of(tenant) == {**shown, "language": "de"}

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("{", "json: This must be a JSON object."),
            ("[]", "json: This must be a JSON object."),
            ('{"rules": 7}', "rules: This must be a list."),
            ('{"rules": [7], "nope": 1}', "nope: This is not a field."),
        ],
    )
    def test_invalid_json_is_reported_beside_the_editor(
        self, person: Person, tenant: Tenant, text: str, told: str
    ) -> None:
        open_page(person, tenant, "advanced")
        assert person.send("Save this JSON", json=text).status_code == 400
        assert told.partition(": ")[0] in " ".join(problems(person))
        assert person.page.one("textarea", name="json").raw_text.removeprefix("\n") == text
        assert settings_of(tenant)["language"] is None


def test_settings_of_a_site_on_an_engine_that_is_not_configured_are_shown(person: Person, tenant: Tenant) -> None:
    with tenant.app.extensions["runtime"].database.write() as session:
        session.get_one(Site, tenant.site_id).engine = "typesense:gone"
    for name in ("ranking", "synonyms"):
        person.go(f"/sites/{tenant.site_id}/search-settings/{name}")
        assert person.response.status_code == 200
