"""A source's rules set fields from URL paths, CSS, JSON-LD, and meta tags; the first rule with a value wins."""

from __future__ import annotations

import re
import time
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from turbohtml import parse

from app.crawl.fetch.values import FieldRules
from app.crawl.read.field_rules import MAX_VALUES, Subject, match_path, ruled_fields
from app.crawl.read.metadata import Metadata
from schemas.validation.sites import MAX_RULES, path_problem

PAGE = "https://www.example.com/docs/2.1/install"
PRODUCT = {
    "@type": "Product",
    "offers": [{"price": 5, "inStock": True}, {"price": 7.5}],
    "brand": {"name": " Acme "},
    "none": None,
}
HTML = f"""
    <meta name="Product-Line" content="Boats"><meta name=tag content=sea><meta name=tag content=sun>
    <script type="application/ld+json">{orjson.dumps({**PRODUCT, "huge": 1e300}).decode()}</script>
    <h1>Install <b>it</b></h1><p class=badge>Stable</p><p class=badge> </p><p class=badge>New</p>
    <a class=edit href="../edit" title="Edit">Edit</a><div class=box><p>One</p><p>Two</p></div>
"""


def ruled(*rules: dict[str, Any], url: str = PAGE, html: str | None = HTML) -> dict[str, Any]:
    subject = None
    if html is not None:
        document = parse(html)
        subject = Subject(document, Metadata(document, {}), url)
    return ruled_fields(FieldRules(rules), url, subject)


@pytest.mark.parametrize(
    ("pattern", "path", "segments"),
    [
        ("/docs/{version}/*", "/docs/2.1/install", {"version": (2, "2.1")}),
        ("/docs/{version}/*", "/docs/2.1/", {"version": (2, "2.1")}),
        ("/docs/{version}/*", "/docs/2.1", None),
        ("/docs/{version}/*", "/docs//install", None),
        ("/docs/{version}", "/docs/2.1/install", None),
        ("/docs/v{version}/*", "/docs/v3/a", {"version": (2, "3")}),
        ("/{lang}/docs/{version}/*", "/de/docs/3/a/b", {"lang": (1, "de"), "version": (3, "3")}),
        ("*/{version}/api/*", "/a/b/2/api/x", {"version": (3, "2")}),
        ("/docs/*", "/docs/a?b=c", {}),
        ("/docs/*.html", "/docs/a.htm", None),
        ("*/{name}", "/a/b", {"name": (2, "b")}),
        ("/a.c", "/abc", None),
        ("/q?v={version}", "/q?v=3", {"version": (1, "3")}),
    ],
)
def test_path_pattern_captures_named_segments(pattern: str, path: str, segments: dict[str, Any] | None) -> None:
    assert match_path(pattern, path) == segments


def test_path_rule_sets_fields_from_the_url() -> None:
    rule = {"path": "/docs/{version}/*", "set": {"version": "{version}", "product": "cli {version}"}}

    assert ruled(rule) == {"version": "2.1", "product": "cli 2.1", "page": "/docs/install"}
    assert ruled(rule, html=None) == ruled(rule)
    assert ruled(rule, url="https://www.example.com/docs/a%C3%A4%20b/x")["version"] == "aä b"


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"selector": "h1"}, "Install it"),
        ({"selector": ".badge", "all": True}, ["Stable", "New"]),
        ({"selector": ".box"}, "One Two"),
        ({"selector": ".edit", "attribute": "title"}, "Edit"),
        ({"selector": ".edit", "attribute": "href"}, "https://www.example.com/docs/edit"),
        ({"selector": ".edit", "attribute": "rel"}, None),
        ({"selector": ".missing", "all": True}, None),
        ({"json_ld": "brand.name"}, "Acme"),
        ({"json_ld": "offers.price"}, 5),
        ({"json_ld": "offers.price", "all": True}, [5, 7.5]),
        ({"json_ld": "offers.inStock"}, True),
        ({"json_ld": "brand"}, None),
        ({"json_ld": "huge"}, None),
        ({"json_ld": "none"}, None),
        ({"json_ld": "brand.name.first"}, None),
        ({"meta": "product-line"}, "Boats"),
        ({"meta": "tag", "all": True}, ["sea", "sun"]),
        ({"meta": "tag"}, "sea"),
    ],
)
def test_rules_extract_fields_from_css_json_ld_and_meta_tags(rule: dict[str, Any], value: Any) -> None:
    fields = ruled({"name": "found", **rule})

    assert fields.get("found") == value
    assert type(fields.get("found")) is type(value)


def test_first_rule_with_a_value_wins() -> None:
    rules = (
        {"name": "label", "selector": ".missing"},
        {"path": "/blog/*", "set": {"label": "blog"}},
        {"name": "label", "meta": "product-line"},
        {"path": "/docs/*", "set": {"label": "docs", "kind": "manual"}},
    )

    assert ruled(*rules) == {"label": "Boats", "kind": "manual"}


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("/en/docs/2.1/install", "/docs/install"),
        ("/de/docs/3/install/", "/docs/install/"),
        ("/docs/install", "/docs/install"),
        ("/fr/about?x=1", "/about"),
        ("/fr/", "/"),
        ("/", "/"),
    ],
)
def test_page_field_omits_the_version_and_language_of_the_url(url: str, page: str) -> None:
    rules = (
        {"path": "/docs/*", "set": {"lang": "en"}},
        {"path": "/{lang}/docs/{version}/*", "set": {"version": "{version}"}},
        {"path": "/{lang}/*", "set": {"lang": "{lang}"}},
    )

    assert ruled(*rules, url=f"https://www.example.com{url}")["page"] == page


def test_page_field_keeps_segments_if_an_earlier_rule_set_the_version() -> None:
    rules = (
        {"path": "/docs/latest-guide/*", "set": {"version": "3"}},
        {"path": "/docs/{version}/*", "set": {"version": "{version}"}},
    )

    assert ruled(*rules, url="https://www.example.com/docs/latest-guide/a")["page"] == "/docs/latest-guide/a"


def test_page_field_is_set_only_with_a_version_or_language_rule() -> None:
    assert ruled({"path": "/{product}/*", "set": {"product": "{product}"}}) == {"product": "docs"}
    named = {"path": "/docs/{version}/*", "set": {"page": "mine", "version": "{version}"}}
    assert ruled(named)["page"] == "mine"


def test_field_values_are_bounded_in_length_and_count() -> None:
    html = f"<p class=a>{'word ' * 100_000}</p>" + "".join(f"<i>{number}</i>" for number in range(1_000))
    fields = ruled({"name": "a", "selector": ".a"}, {"name": "i", "selector": "i", "all": True}, html=html)

    assert len(fields["a"]) <= 1_000
    assert len(fields["i"]) == MAX_VALUES


def test_huge_json_ld_is_searched_only_up_to_a_bound() -> None:
    html = f'<script type="application/ld+json">{{"a":{"[" * 500}1{"]" * 500},"b":[{"[1]," * 50_000}1]}}</script>'

    fields = ruled({"name": "a", "json_ld": "a"}, {"name": "b", "json_ld": "b.c", "all": True}, html=html)

    assert "b" not in fields


@pytest.mark.parametrize(
    "pattern",
    [
        *("*a" * 200 + "b", "/{a}*" * 80 + "b", "*/{a}/*/{b}/*/{c}/x", "*{a}x", "*aa{a}x*", "*" + "a" * 100 + "{a}x"),
        *("*{a}" + "a" * 200 + "x", "/*" + "a" * 100 + "{a}" + "a" * 100 + "x*", "*{a}aa/{b}x/*"),
    ],
)
@pytest.mark.parametrize("path", ["/" + "a/" * 1_000 + "a" * 500, "/" + "a" * 2_040])
def test_hostile_path_patterns_match_in_linear_time(pattern: str, path: str) -> None:
    begun = time.process_time()

    for _ in range(MAX_RULES):
        assert match_path(pattern, path) is None
    assert time.process_time() - begun < 1


@given(
    st.lists(st.sampled_from(["a", "b", "/", "?", "*", "{x}"]), min_size=1, max_size=9).map("".join),
    st.text(st.sampled_from("ab/?"), max_size=12),
)
def test_path_patterns_match_as_a_search_from_every_position(pattern: str, path: str) -> None:
    assume(path_problem(pattern) is None)

    assert (match_path(pattern, path) is not None) is searched_in_parts(pattern, path)


def searched_in_parts(pattern: str, path: str) -> bool:
    *parts, last = (re.escape(part).replace(r"\{x\}", "[^/?]+") for part in re.split(r"\*+", pattern))
    position = 0
    for number, part in enumerate([*parts, rf"{last}\Z"]):
        match = re.compile(part).search(path, position) if number else re.match(part, path)
        if match is None:
            return False
        position = match.end()
    return True
