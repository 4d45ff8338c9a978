"""Reads a page's metadata; sources are listed in order of precedence."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from turbohtml import parse

from app.crawl.read.metadata import Metadata


def metadata(html: str, **headers: str) -> Metadata:
    return Metadata(parse(html), {name.replace("_", "-"): value for name, value in headers.items()})


def json_ld(value: Any) -> str:
    return f'<script type="application/ld+json">{orjson.dumps(value).decode()}</script>'


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> Harbor\n tours </title><h1>Other</h1>", "Harbor tours"),
        ('<title> </title><meta property="og:title" content="Harbor"><h1>Other</h1>', "Harbor"),
        ("<svg><title>Icon</title></svg><h1>Harbor <b>tours</b></h1>", "Harbor tours"),
        ("<title></title><h1><img src=logo.png></h1><h1>Harbor</h1>", "Harbor"),
        ("<h1>Harbor <a href=#x>¶</a></h1>", "Harbor"),
        ("<p>text", ""),
    ],
)
def test_title_comes_from_title_element_then_open_graph_then_heading(html: str, title: str) -> None:
    assert metadata(html).title() == title


@pytest.mark.parametrize(
    ("html", "headings"),
    [
        ('<title>T</title><h1><img></h1><h1>Crane</h1><meta property="og:title" content="Yard"><h3>Ropes</h3>',
         ("Crane", "Yard")),
        ("<header><h2>Menu</h2></header><dialog><h2>Login</h2></dialog><h2>Crane <a href=#>#</a></h2>", ("Crane",)),
        ("<h1>Crane</h1><h2>Crane</h2>", ("Crane",)),
        ('<h1>T</h1><meta property="og:title" content="T"><h2>Crane<br>Yard</h2><h2>Ropes</h2>', ("Crane Yard",)),
        ("<p>text", ()),
    ],
)  # fmt: skip
def test_headings_are_alternatives_to_a_shared_title(html: str, headings: tuple[str, ...]) -> None:
    assert metadata(html).headings("T") == headings


@pytest.mark.parametrize(
    ("html", "excerpt"),
    [
        (
            '<meta name="Description" content="Boats &amp; more"><meta property="og:description" content="x">',
            "Boats & more",
        ),
        ('<meta name=description content=" "><meta property="og:description" content="Boats">', "Boats"),
        (json_ld({"@type": "Article", "description": "Boats"}), "Boats"),
        ("", None),
    ],
)
def test_excerpt_comes_from_description_then_open_graph_then_json_ld(html: str, excerpt: str | None) -> None:
    assert metadata(html).excerpt() == excerpt


PUBLISHED = '<meta property="article:published_time" content="2024-03-02T10:00:00+01:00">'
MODIFIED = '<meta property="article:modified_time" content="2024-04-05">'


@pytest.mark.parametrize(
    ("html", "date"),
    [
        (json_ld({"@type": "Article", "datePublished": "2024-01-02"}) + PUBLISHED, "2024-01-02"),
        (
            json_ld({"@graph": [{"@type": "WebSite"}, {"datePublished": "2024-01-02T03:04:05Z"}]}),
            "2024-01-02T03:04:05+00:00",
        ),
        (json_ld([{"mainEntity": {"dateModified": "2024-01-02"}}]) + MODIFIED, "2024-01-02"),
        (MODIFIED + PUBLISHED, "2024-03-02T10:00:00+01:00"),
        (MODIFIED + "<time datetime=2024-01-01>", "2024-04-05"),
        ('<time datetime="P3D"></time><time datetime="2024-05-06 07:08">May</time>', "2024-05-06T07:08:00"),
        ("<time>2024-05-06</time>", "2024-05-06"),
        (json_ld({"datePublished": "yesterday"}) + MODIFIED, "2024-04-05"),
        (json_ld({"datePublished": "0001-01-01T00:00:00"}), None),
        (json_ld({"datePublished": "9999-12-31T23:59:59-10:00"}), None),
        (json_ld({"datePublished": ["2024"], "dateModified": 5}), None),
        ('<script type="application/ld+json">{broken</script>', None),
        ('<script type="application/ld+json">' + "[" * 100_000 + "</script>", None),
        ("", None),
    ],
)
def test_date_prefers_json_ld_then_meta_tags_then_time_elements(html: str, date: str | None) -> None:
    assert metadata(html).date() == date


@pytest.mark.parametrize(
    ("html", "author"),
    [
        (json_ld({"author": {"@type": "Person", "name": "Ada Berg"}}) + "<meta name=author content=x>", "Ada Berg"),
        (json_ld({"author": [{"name": "Ada Berg"}, "Bo Lund", {"name": "Ada Berg"}]}), "Ada Berg, Bo Lund"),
        ('<meta name="author" content="Ada Berg">', "Ada Berg"),
        ('<meta property="article:author" content="https://social.example/ada"><a rel=author>Bo Lund</a>', "Bo Lund"),
        ('<span itemprop="author">Ada Berg</span>', "Ada Berg"),
        (json_ld({"author": None}), None),
        ("", None),
    ],
)
def test_author_comes_from_json_ld_then_meta_tags_then_links(html: str, author: str | None) -> None:
    assert metadata(html).author() == author


@pytest.mark.parametrize(
    ("html", "header", "language"),
    [
        ("<html lang=pt-BR>", "de", "pt-BR"),
        ('<html lang=""><meta http-equiv=content-language content=x><p>', "de, en", "de"),
        ('<meta name="content-language" content="fr">', "", "fr"),
        ("<html lang='english, of course'>", "", None),
        ("", "", None),
    ],
)
def test_language_comes_from_html_lang_then_header_then_meta_tag(html: str, header: str, language: str | None) -> None:
    assert metadata(html, content_language=header).language() == language


def test_id_that_a_page_declares_is_read_if_it_is_valid() -> None:
    assert metadata('<meta name="site-search:id" content=" harbor-1 ">').id() == "harbor-1"
    assert metadata(f'<meta name="site-search:id" content="{"x" * 513}">').id() is None
    assert metadata('<meta name="site-search:id" content="">').id() is None
    assert metadata("").id() is None


def test_site_search_meta_tags_become_fields() -> None:
    html = """
        <meta name="site-search:section" content=" Guide &amp; more ">
        <meta name="Site-Search:productLine" content="Boats">
        <meta name="site-search:tag" content="sea"><meta name="site-search:tag" content="sun">
        <meta name="site-search:tag" content="sea">
        <meta name="site-search:id" content="1"><meta name="site-search:title" content="x">
        <meta name="site-search:9lives" content="x"><meta name="site-search:a b" content="x">
        <meta name="site-search:" content="x"><meta name="site-search:empty" content=" ">
        <meta name="section" content="x">
    """

    assert metadata(html).fields() == {"section": "Guide & more", "productLine": "Boats", "tag": ["sea", "sun"]}


def test_only_the_first_hundred_meta_fields_are_read() -> None:
    html = "".join(f'<meta name="site-search:f{n}" content="x">' for n in range(150))

    assert list(metadata(html).fields()) == [f"f{n}" for n in range(100)]
