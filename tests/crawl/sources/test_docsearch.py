"""DocSearch scraper configurations are converted to sources; options without a counterpart are reported."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import ValidationError

from app.crawl.sources.docsearch import read_config
from app.crawl.sources.docsearch_plan import MAX_ITEMS, Plan
from app.errors import ApiError
from schemas.sources import SourceCreateSchema
from tests.work import work_of

BASE = "https://docs.example.com"
SELECTORS = {"lvl0": "article h1", "lvl1": "article h2", "text": "article p, article li"}


def read(**config: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Convert a configuration; return each source's validated fields, and the ignored options."""
    plan = read_config(config)
    return [SourceCreateSchema().load(each.values) for each in plan.sources], list(plan.ignored)


def test_plain_configuration_becomes_one_source() -> None:
    (source,), ignored = read(
        index_name="example",
        start_urls=[f"{BASE}/guide/"],
        sitemap_urls=[f"{BASE}/sitemap.xml"],
        stop_urls=["/blog", f"{BASE}/guide/old/", r"\?print", "index.html$", "https://other.example.com/x"],
        selectors=SELECTORS,
        selectors_exclude=[".toc", "aside"],
        custom_settings={"separatorsToIndex": "_", "synonyms": []},
        nb_hits=12,
    )

    assert source == {
        "kind": "website",
        "url": f"{BASE}/guide/",
        "schedule": "daily",
        "include": ["/guide/*"],
        "exclude": ["*/blog*", "/guide/old/*", "*?print*", "*index.html"],
        "selectors": {
            "title": "article h1", "content": "article p, article li, article h2", "remove": ".toc, aside",
        },
        "fields": [],
        "max_pages": None,
        "max_depth": None,
        "render": "auto",
        "headers": {},
    }  # fmt: skip
    assert ignored == ["index_name", "custom_settings.separatorsToIndex", "custom_settings.synonyms", "nb_hits"]


def test_start_urls_with_selectors_fields_and_ranks_become_sources() -> None:
    sources, ignored = read(
        start_urls=[
            {"url": f"{BASE}/faq/", "selectors_key": "faq", "tags": ["faq", "help"], "page_rank": 3},
            {"url": f"{BASE}/api/", "extra_attributes": {"language": ["en"], "product": "cli"}, "page_rank": 100},
            {"url": f"{BASE}/", "scrape": False},
        ],
        selectors={"default": SELECTORS, "faq": {"lvl0": ".question", "text": ".answer"}, "unused": SELECTORS},
    )

    faq, api, everything = sources
    assert faq["selectors"] == {"title": ".question", "content": ".answer"}
    assert faq["fields"] == [{"path": "/*", "set": {"tags": "faq", "rank": "3"}}]
    assert api["fields"] == [{"path": "/*", "set": {"lang": "en", "product": "cli", "rank": "5"}}]
    assert [source["include"] for source in sources] == [["/faq/*"], ["/api/*"], []]
    assert (everything["exclude"], everything["selectors"]["title"]) == (["/faq/*", "/api/*"], "article h1")
    assert ignored == ["start_urls[0].tags[1]", "start_urls[1].page_rank", "start_urls[2].scrape"]


def test_variables_in_start_urls_become_fields() -> None:
    (source,), ignored = read(
        start_urls=[
            {
                "url": f"{BASE}/(?P<version>.*?)/(?P<lang>.*?)/",
                "variables": {"version": ["latest", "1.0"], "lang": ["en", "de"], "zone": {"url": "x", "js": "y"}},
            }
        ],
        selectors=SELECTORS,
    )

    paths = ["/latest/en/*", "/latest/de/*", "/1.0/en/*", "/1.0/de/*"]
    assert (source["url"], source["include"]) == (f"{BASE}/latest/en/", paths)
    assert [rule["path"] for rule in source["fields"]] == paths
    assert source["fields"][-1]["set"] == {"version": "1.0", "lang": "de"}
    assert ignored == ["start_urls[0].variables.zone"]


def test_start_urls_are_merged_into_one_source_per_host() -> None:
    sources, ignored = read(
        start_urls=[
            f"{BASE}/docs/", f"{BASE}/docs/start.html", f"{BASE}/.*/api/", f"{BASE}/.*/cli/", "http://old.example.com",
            f"{BASE}/docs/(?!v1)", f"{BASE}/app/#/en/",
        ],
        selectors=SELECTORS,
    )  # fmt: skip

    assert [(source["url"], source["include"]) for source in sources] == [
        (f"{BASE}/docs/", ["/docs/*"]),
        (f"{BASE}/", ["/*/cli/*", "/*/api/*"]),
        ("http://old.example.com/", []),
        (f"{BASE}/app/", ["/app/*"]),
    ]
    assert ignored == ["start_urls[5]"]


def test_global_level_becomes_the_section_and_lang_selectors_are_ignored() -> None:
    (source,), ignored = read(
        start_urls=f"{BASE}/",
        selectors={
            "lvl0": {"selector": ".menu .active", "global": True, "default_value": "Manual", "strip_chars": "#"},
            "lvl1": "header h1",
            "lvl2": "article h2",
            "lvl3": "article dt, article h3",
            "lvl4": {"selector": "//h4", "type": "xpath"},
            "text": "article p",
            "lang": {"selector": "/html/@lang", "type": "xpath", "global": True},
            "version": {"selector": "meta[name=version]", "global": True, "default_value": "2"},
            "title": ".x",
        },
    )

    assert source["selectors"] == {"title": "header h1", "content": "article p, article h2, article dt, article h3"}
    assert source["fields"] == [
        {"name": "section", "selector": ".menu .active"},
        {"path": "/*", "set": {"section": "Manual"}},
        {"name": "version", "selector": "meta[name=version]"},
        {"path": "/*", "set": {"version": "2"}},
    ]
    assert ignored == ["selectors.lvl0.strip_chars", "selectors.lvl4", "selectors.lvl3", "selectors.title"]


def test_xpath_text_selector_falls_back_to_automatic_extraction() -> None:
    (source,), ignored = read(
        start_urls=f"{BASE}/", selectors={"lvl0": "h1", "lvl1": "h2", "text": {"selector": "//p", "type": "xpath"}}
    )
    assert (source["selectors"], ignored) == ({"title": "h1"}, ["selectors.text"])


def test_nonstandard_sitemap_urls_become_sitemap_sources() -> None:
    (website, sitemap), _ = read(
        start_urls=[{"url": f"{BASE}/docs/", "tags": "docs"}],
        sitemap_urls=[f"{BASE}/docs/map.xml"],
        stop_urls=["/old/"],
        selectors=SELECTORS,
    )
    assert (sitemap["kind"], sitemap["url"]) == ("sitemap", f"{BASE}/docs/map.xml")
    assert {**website, "kind": "", "url": ""} == {**sitemap, "kind": "", "url": ""}
    (alone,), _ = read(sitemap_urls=[f"{BASE}/sitemap.xml"])
    assert (alone["kind"], alone["include"]) == ("sitemap", [])


def test_options_beyond_a_sources_limits_are_dropped_and_reported() -> None:
    values = [f"v{number}" for number in range(60)]
    (source,), ignored = read(
        start_urls=[{"url": f"{BASE}/(?P<version>.*?)/", "variables": {"version": values}}],
        stop_urls=[f"/stop{number}/" for number in range(51)],
        selectors_exclude=["." + "x" * 400, "." + "y" * 400, "p:nope("],
    )
    assert (len(source["include"]), len(source["fields"]), len(source["exclude"])) == (50, 50, 50)
    assert source["selectors"] == {"remove": "." + "x" * 400}
    expected = {"start_urls[0].variables", "stop_urls[50]", "selectors_exclude[1]", "selectors_exclude[2]"}
    assert set(ignored) == expected


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ([], "body"),
        ({}, "start_urls"),
        ({"start_urls": [f"{BASE}/(?!x)"]}, "start_urls"),
        ({"start_urls": ["/docs"]}, "start_urls[0].url"),
        ({"start_urls": [1]}, "start_urls[0]"),
        ({"sitemap_urls": ["http://["]}, "sitemap_urls[0]"),
        ({"start_urls": [{"url": BASE, "page_rank": "high"}]}, "start_urls[0].page_rank"),
        ({"start_urls": [{"url": BASE, "variables": []}]}, "start_urls[0].variables"),
        ({"start_urls": BASE, "selectors": []}, "selectors"),
        ({"start_urls": BASE, "selectors": {"text": 1}}, "selectors.text"),
        ({"start_urls": BASE, "stop_urls": [1]}, "stop_urls"),
        ({"start_urls": BASE, "stop_urls": ["/"] * (MAX_ITEMS + 1)}, "stop_urls"),
        ({"start_urls": [f"{BASE}/{number}/" for number in range(201)]}, "start_urls"),
        ({"start_urls": ["https://ann:secret@docs.example.com/guide/"]}, "start_urls[0].url"),
        ({"start_urls": ["https:/ann@docs.example.com/(a|b)/"]}, "start_urls[0].url"),
        ({"start_urls": [{"url": BASE, "page_rank": "9" * 5000}]}, "start_urls[0].page_rank"),
    ],
)
def test_malformed_configuration_is_rejected_with_the_field(config: Any, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_config(config)
    assert [detail.field for detail in refused.value.details] == [field]


SMALL = st.sampled_from([
    None, True, 0, -1, 1e300, "", " ", "h1", ".a", "p:has(", "//p", "default", "lang", BASE, f"{BASE}/a/",
    f"{BASE}/(a|b)+/c", f"{BASE}/(?P<lang>.*?)/", "(?P<lang>", "https://[", "http://u:p@x/", "^", "$", "*", "\\d{9}",
    "a{1,99999}", "(a|a)*$",
])  # fmt: skip
NAMES_OF_ALL = st.sampled_from([
    "start_urls", "sitemap_urls", "stop_urls", "selectors", "selectors_exclude", "url", "variables", "lang", "tags",
    "page_rank", "extra_attributes", "selectors_key", "default", "lvl0", "lvl1", "text", "selector", "type", "global",
    "default_value", "custom_settings", "x\x00\n", "",
])  # fmt: skip
ANYTHING = st.recursive(
    SMALL, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES_OF_ALL, inner, max_size=4), max_leaves=20
)


@given(st.dictionaries(NAMES_OF_ALL, ANYTHING))
def test_arbitrary_configuration_becomes_sources_or_is_rejected_with_details(config: dict[str, Any]) -> None:
    plan = Plan()
    refusal = None
    try:
        plan = read_config({"start_urls": f"{BASE}/docs/", **config})
    except ApiError as error:
        refusal = error
    assert plan.sources or (refusal is not None and refusal.status == 400 and refusal.details)
    for each in plan.sources:
        with suppress(ValidationError):
            SourceCreateSchema().load(each.values)


MANY = range(MAX_ITEMS)
HOSTILE: dict[str, dict[str, Any]] = {
    "a long address": {"start_urls": [f"{BASE}/{'a' * 900_000}"]},
    "a long stop": {"stop_urls": ["a" * 900_000]},
    "alternatives": {"stop_urls": ["(a|b)" * 5 + "x" * 400 + str(number) for number in MANY]},
    "values": {
        "start_urls": [
            {"url": f"{BASE}/(?P<v>.*?)/{'a' * 300}/", "variables": {"v": [f"{at}" for at in range(50)]}} for _ in MANY
        ]
    },
    "values that are one": {
        "start_urls": [{"url": f"{BASE}/(?P<v>.*?)/{'a' * 300}/", "variables": {"v": ["x"] * 50}} for _ in MANY]
    },
    "addresses within each other": {"start_urls": [f"{BASE}/{'a/' * number}" for number in range(200)]},
    "addresses beside each other": {"start_urls": [f"{BASE}/{number}/" for number in range(200)]},
    "selectors": {
        "start_urls": [{"url": f"{BASE}/{number}/", "selectors_key": f"k{number}"} for number in range(30)],
        "selectors": {f"field{number}": f"div.a{number} > p:not(.b) ~ span" for number in range(20_000)},
    },
    "exclusions": {"selectors_exclude": [f"div.a{number} > p" for number in MANY]},
    "groups": {"stop_urls": ["(" * 20 + "a" + ")" * 20] * MAX_ITEMS},
    "repetitions": {"stop_urls": ["(a+)+$" * 3 + "b" * 100] * MAX_ITEMS},
}


@pytest.mark.parametrize("config", HOSTILE.values(), ids=HOSTILE)
def test_hostile_configuration_is_read_with_bounded_work(config: dict[str, Any]) -> None:
    def read_it() -> None:
        with suppress(ApiError):
            read_config({"start_urls": f"{BASE}/docs/", **config})

    assert work_of(read_it).calls < 1_000_000


def test_selector_set_has_at_most_a_hundred_selectors() -> None:
    selectors = {"text": "p", **{f"field{number}": f".a{number}" for number in range(120)}}

    plan = read_config({"start_urls": f"{BASE}/", "selectors": selectors})

    assert [each for each in plan.ignored if each.startswith("selectors.")] == [
        f"selectors.field{number}" for number in range(99, 120)
    ]
