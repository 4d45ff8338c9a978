"""Unmodified InstantSearch widgets with Algolia's client show the fields of pages, their highlights, and snippets."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.npm.conftest import Customer, Packages


def use(
    packages: Packages, customer: Customer, *steps: dict[str, Any], configure: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return what the widgets show initially and after each step."""
    address = urlsplit(customer.server.base_url)
    wish = {
        "algolia": {"host": address.netloc, "protocol": address.scheme},
        "key": customer.tokens["public"],
        "index": "any",
        "configure": {"hitsPerPage": 5, "attributesToSnippet": ["content:3"], **(configure or {})},
        "facets": ["author"],
        "orders": [],
        "templates": {"title": "highlight", "content": "snippet", "author": "highlight"},
        "steps": list(steps),
    }
    pictures: list[dict[str, Any]] = packages.run("widgets.mjs", wish)
    return pictures


def test_highlight_and_snippet_components_show_titles_and_texts(packages: Packages, customer: Customer) -> None:
    start, matched, typed, refined = use(
        packages, customer, {"widget": "query", "value": "small machine"}, {"widget": "query", "value": "install"},
        {"widget": "facet", "attribute": "author", "value": "Ann"},
    )  # fmt: skip

    assert (start["total"], start["pages"], len(start["hits"])) == (25, 5, 5)
    assert start["shown"][0] == {
        "title": "Upgrade &lt;b&gt;guide&lt;/b&gt; 24",
        "content": "How to run…",
        "author": "Ann",
    }
    assert all("machine</mark>" in each["content"] and "…" in each["content"] for each in matched["shown"])
    assert typed["total"] == 12
    assert all("<mark" in each["title"] and ">Install</mark> guide" in each["title"] for each in typed["shown"])
    assert typed["facets"]["author"] == {"Ann": 4, "Bob Annan": 4, "Čeněk": 4}
    assert (refined["total"], {hit["author"] for hit in refined["hits"]}) == (4, {"Ann"})


def test_hits_have_only_the_requested_attributes(packages: Packages, customer: Customer) -> None:
    (start,) = use(packages, customer, configure={"attributesToRetrieve": ["title", "price"]})

    assert {name for hit in start["hits"] for name in hit if not name.startswith("_")} == {"objectID", "title", "price"}
