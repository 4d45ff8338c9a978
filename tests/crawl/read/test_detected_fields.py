"""Fields detected without configuration: section, breadcrumbs, image, and type."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from turbohtml import parse

from app.crawl.read.html_pages import MAX_CRUMBS, detected_fields
from app.crawl.read.metadata import Metadata

PAGE = "https://www.example.com/docs/guide/install"


def found(html: str, start: str | None = None) -> dict[str, Any]:
    document = parse(html)
    return detected_fields(document, Metadata(document, {}), PAGE, start)


def json_ld(*values: Any) -> str:
    return "".join(f'<script type="application/ld+json">{orjson.dumps(value).decode()}</script>' for value in values)


def crumbs(*items: Any) -> dict[str, Any]:
    listed = [{"@type": "ListItem", "position": number, **item} for number, item in enumerate(items, 1)]
    return {"@type": "BreadcrumbList", "itemListElement": listed}


HOME = {"name": "Acme", "item": "https://www.example.com/"}
DOCS = {"name": "Docs", "item": {"@id": "https://www.example.com/docs/"}}
GUIDE = {"item": {"@id": "/docs/guide", "name": "Guide"}}


@pytest.mark.parametrize(
    ("html", "breadcrumbs", "section"),
    [
        (json_ld(crumbs(HOME, DOCS, GUIDE)), ["Acme", "Docs", "Guide"], "Docs"),
        (json_ld(crumbs(DOCS, GUIDE)), ["Docs", "Guide"], "Docs"),
        (json_ld(crumbs({"name": "Startseite"}, {"name": "Hilfe"})), ["Startseite", "Hilfe"], "Hilfe"),
        (json_ld(crumbs({"name": "Acme", "item": "/de-ch/"}, DOCS)), ["Acme", "Docs"], "Docs"),
        (json_ld(crumbs(HOME)), ["Acme"], None),
        (json_ld({"@graph": [{"@type": "WebPage", "breadcrumb": crumbs(HOME, DOCS)}]}), ["Acme", "Docs"], "Docs"),
        (json_ld({"@type": ["https://schema.org/BreadcrumbList"], **crumbs(HOME, DOCS)}), ["Acme", "Docs"], "Docs"),
        (
            json_ld({**crumbs(), "itemListElement": [{"position": "2", "name": "B"}, {"position": "1", "name": "A"}]}),
            ["A", "B"],
            "A",
        ),
        (
            "<nav aria-label=Breadcrumbs><ol><li><a href=/ aria-label='Home page'><svg></svg></a></li>"
            "<li><a href=/docs>Docs</a> ›</li><li aria-current=page>Install</li></ol></nav>",
            ["Home page", "Docs", "Install"],
            "Docs",
        ),
        (
            "<div role=navigation aria-label='The breadcrumb'><a href=/>Acme</a> / <a href=/docs>Docs</a></div>",
            ["Acme", "Docs"],
            "Docs",
        ),
        (
            json_ld(crumbs(HOME, DOCS)) + "<nav aria-label=breadcrumb><a href=/x>Other</a></nav>",
            ["Acme", "Docs"],
            "Docs",
        ),
        ("<nav aria-label='Main menu'><ul><li>Shop</ul></nav>", None, None),
    ],
)
def test_breadcrumbs_and_section_are_detected_from_json_ld_and_navigation(
    html: str, breadcrumbs: list[str] | None, section: str | None
) -> None:
    fields = found(html)

    assert (fields.get("breadcrumbs"), fields.get("section")) == (breadcrumbs, section)


def test_section_skips_the_breadcrumb_of_the_sources_start_page() -> None:
    html = json_ld(crumbs({"name": "Manual", "item": "/docs/"}, {"name": "Guide"}))

    assert found(html, "https://www.example.com/docs/")["section"] == "Guide"
    assert found(html)["section"] == "Manual"


@pytest.mark.parametrize(
    ("html", "image"),
    [
        ('<meta property="og:image" content="/a.png">' + json_ld({"image": "/b.png"}), "https://www.example.com/a.png"),
        (json_ld({"@type": "Article", "image": ["b.png", "c.png"]}), "https://www.example.com/docs/guide/b.png"),
        (json_ld({"image": {"@type": "ImageObject", "url": "https://cdn.example.net/b"}}), "https://cdn.example.net/b"),
        (
            '<meta property="og:image" content="/a?s=0123456789abcdef01">',
            "https://www.example.com/a?s=0123456789abcdef01",
        ),
        ('<meta property="og:image" content="data:image/png;base64,AAAA">', None),
        ('<meta property="og:image" content="javascript:alert(1)">', None),
        (json_ld({"@type": "Organization", "image": "/logo.png"}), None),
        (json_ld({"image": {"@id": "#image"}}), None),
    ],
)
def test_image_is_detected_from_open_graph_and_json_ld(html: str, image: str | None) -> None:
    assert found(html).get("image") == image


@pytest.mark.parametrize(
    ("objects", "kind"),
    [
        ([{"@type": "Product"}], "Product"),
        ([{"@type": "http://schema.org/NewsArticle"}], "NewsArticle"),
        ([{"@type": ["TechArticle", "Article"]}], "TechArticle"),
        ([{"@graph": [{"@type": "WebSite"}, {"@type": "WebPage"}, {"@type": "Recipe"}]}], "Recipe"),
        ([{"@type": "WebPage"}], "WebPage"),
        ([{"@type": "NewsMediaOrganization"}, {"@type": "BreadcrumbList"}], None),
        ([{"@type": 5}, {"@type": [None, {}]}], None),
    ],
)
def test_page_type_is_detected_from_json_ld(objects: list[Any], kind: str | None) -> None:
    assert found(json_ld(*objects)).get("type") == kind


@pytest.mark.parametrize(
    "value",
    [
        {"@type": "BreadcrumbList", "itemListElement": "none"},
        {"@type": "BreadcrumbList", "itemListElement": [1, None, [], {"position": 1e999, "name": {"a": 1}}]},
        {"@type": "BreadcrumbList", "itemListElement": [{"position": "9" * 5000, "item": "http://[", "name": " "}]},
        {"@type": {"a": []}, "breadcrumb": [[]], "image": [[["x"]], {"url": 5}]},
    ],
)
def test_malformed_json_ld_sets_no_fields(value: Any) -> None:
    text = orjson.dumps(value).decode().replace("null", "1e999") if value else ""

    assert found(f'<script type="application/ld+json">{text}</script>') == {}


def test_breadcrumb_count_is_bounded() -> None:
    listed = [{"name": f"Crumb {number}", "position": number} for number in range(50_000)]
    html = json_ld({"@type": "BreadcrumbList", "itemListElement": listed})

    assert found(html)["breadcrumbs"] == [f"Crumb {number}" for number in range(MAX_CRUMBS)]
    assert len(found("<nav aria-label=breadcrumb>" + "<li>x" * 50_000)["breadcrumbs"]) == MAX_CRUMBS
