"""Unmodified InstantSearch widgets with Meilisearch's adapter, configured from client-info or with a public key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.npm.conftest import Customer, Packages
from tests.service.clients import eventually

Picture = dict[str, Any]


def use(
    packages: Packages, customer: Customer, *steps: dict[str, Any], finite: bool = True, key: str | None = None
) -> list[Picture]:
    """Return what the widgets show initially and after each step. By default, they use an engine key."""
    info = customer.info
    wish = {
        "host": info["engine_host"],
        "key": key or info["engine_public_key"],
        "index": info["index"],
        "options": {"finitePagination": finite},
        "configure": {"hitsPerPage": 5, "attributesToSnippet": ["content:3"]},
        "facets": ["author", "price"],
        "orders": [f"{info['index']}:date:asc"],
        "steps": list(steps),
    }
    pictures: list[Picture] = packages.run("widgets.mjs", wish)
    return pictures


def ids(picture: Picture) -> list[str]:
    return [hit["id"] for hit in picture["hits"]]


def test_typing_updates_hits_and_total(packages: Packages, customer: Customer) -> None:
    start, typed = use(packages, customer, {"widget": "query", "value": "inst"})

    assert start["total"] == 25
    assert ids(start) == ["p24", "p23", "p22", "p21", "p20"]
    assert typed["total"] == 12
    assert all(int(name[1:]) % 2 for name in ids(typed))


def test_widgets_of_a_static_page_work_with_a_public_key(packages: Packages, customer: Customer) -> None:
    typing = {"widget": "query", "value": "upgrad"}, {"widget": "facet", "attribute": "author", "value": "Ann"}

    *_, refined = use(packages, customer, *typing, key=customer.tokens["public"])

    assert refined["facets"]["author"] == {"Ann": 5, "Bob Annan": 4, "Čeněk": 4}
    assert refined["total"] == 5


def test_matches_are_highlighted_and_documents_cannot_inject_markup(packages: Packages, customer: Customer) -> None:
    _, typed = use(packages, customer, {"widget": "query", "value": "upgrade guide"})

    shown = typed["hits"][0]["_highlightResult"]["title"]["value"]
    assert shown.startswith("<mark>Upgrade</mark> &lt;b&gt;<mark>guide</mark>&lt;/b&gt; ")
    assert typed["hits"][0]["_snippetResult"]["content"]["value"] == "How to run…"


def test_facets_are_counted_and_refine_the_search(packages: Packages, customer: Customer) -> None:
    start, refined, either = use(
        packages, customer, {"widget": "facet", "attribute": "author", "value": "Čeněk"},
        {"widget": "facet", "attribute": "author", "value": "Ann"},
    )  # fmt: skip

    assert start["facets"]["author"] == {"Ann": 9, "Bob Annan": 8, "Čeněk": 8}
    assert refined["total"] == 8
    assert refined["facets"]["author"] == start["facets"]["author"], "the other authors must still be selectable"
    assert refined["facets"]["price"]["23"] == 1
    assert either["total"] == 17


def test_facet_values_can_be_searched(packages: Packages, customer: Customer) -> None:
    _, found = use(packages, customer, {"widget": "searchFacet", "attribute": "author", "value": "cen"})

    assert found["facets"]["author"] == {"Čeněk": 8}


@pytest.mark.parametrize("finite", [True, False])
def test_pagination_shows_every_hit_once(packages: Packages, customer: Customer, finite: bool) -> None:
    *_, typed, second, third = use(
        packages, customer, {"widget": "query", "value": "install"}, {"widget": "page", "value": 1},
        {"widget": "page", "value": 2}, finite=finite,
    )  # fmt: skip

    seen = ids(typed) + ids(second) + ids(third)
    assert len(seen) == len(set(seen)) == 12
    assert third["page"] == 2
    if finite:
        assert (third["pages"], third["total"]) == (3, 12)


def test_sort_order_can_be_changed(packages: Packages, customer: Customer) -> None:
    order = f"{customer.info['index']}:date:asc"

    _, ordered = use(packages, customer, {"widget": "order", "value": order})

    assert ids(ordered) == ["p0", "p1", "p2", "p3", "p4"]


def test_initial_display_uses_no_quota_and_a_search_uses_one(packages: Packages, customer: Customer) -> None:
    before = customer.used_today

    use(packages, customer)
    opened = customer.used_today
    use(packages, customer, {"widget": "query", "value": "unlike what was searched before"})

    assert opened == before
    assert customer.used_today == before + 1


def test_analytics_count_typing_and_refining_as_one_search(packages: Packages, customer: Customer) -> None:
    typed = ("u", "upgr", "upgrade gui", "upgrade guide 14")
    facet = {"widget": "facet", "attribute": "author", "value": "Čeněk"}

    use(packages, customer, *({"widget": "query", "value": text} for text in typed), facet)

    def searched() -> dict[str, int]:
        analytics = customer.call("private", "GET", "/api/analytics", params={"site_id": customer.site["id"]})
        return {item["query"]: item["count"] for item in analytics["top_queries"]}

    def is_recorded() -> None:
        assert "upgrade guide 14" in searched()

    eventually(is_recorded)
    assert searched()["upgrade guide 14"] == 1, "requests for facets do not count as further searches"
    assert not set(typed[:-1]) & searched().keys()
