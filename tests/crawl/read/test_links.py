"""Links are resolved as in a browser, except links that the page marks as nofollow."""

from __future__ import annotations

import pytest
from turbohtml import parse

from app.crawl.read.links import MAX_LINKS, canonical_address, page_base, page_links

URL = "https://docs.example.com/guide/harbor.html"


def links(html: str, headers: dict[str, str] | None = None) -> tuple[str, ...]:
    document = parse(html)
    return page_links(document, headers or {}, page_base(document, URL))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="boats.html">', ("https://docs.example.com/guide/boats.html",)),
        ('<a href=" /boats?utm_source=x&id=1#top ">', ("https://docs.example.com/boats?id=1",)),
        ('<a href="#top">', (URL,)),
        (
            '<a href="a"><a href="b"><a href="a#x">',
            ("https://docs.example.com/guide/a", "https://docs.example.com/guide/b"),
        ),
        ('<base href="/manual/"><a href="a">', ("https://docs.example.com/manual/a",)),
        ('<base href="javascript:x"><a href="a">', ("https://docs.example.com/guide/a",)),
        ('<base target=_blank><base href="/m/"><a href="a">', ("https://docs.example.com/m/a",)),
        ('<a rel="Nofollow ugc" href="a"><a rel=noopener href="b">', ("https://docs.example.com/guide/b",)),
        ('<a href="mailto:a@b.c"><a href="javascript:x()"><a href="tel:1"><a href="http://[::"><a>', ()),
        ('<map><area href="a"></map>', ("https://docs.example.com/guide/a",)),
        ('<frameset><frame src="a"></frameset>', ("https://docs.example.com/guide/a",)),
        ('<iframe src="a"></iframe>', ("https://docs.example.com/guide/a",)),
        ('<link rel=next href="2"><link rel=stylesheet href="s">', ("https://docs.example.com/guide/2",)),
        ('<meta http-equiv=refresh content="0; url=a">', ("https://docs.example.com/guide/a",)),
        ('<a href="' + "a" * 5_000 + '">', ()),
    ],
)
def test_links_are_absolute_and_unique(html: str, expected: tuple[str, ...]) -> None:
    assert links(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<link rel=alternate hreflang=de href="/de/">', ("https://docs.example.com/de/",)),
        ('<link rel="alternate nofollow" hreflang=de href="/de/">', ()),
        ('<link rel=alternate type="application/rss+xml" href="/feed">', ()),
        ('<link rel=alternate media=print href="/print">', ()),
    ],
)
def test_translations_that_only_link_elements_name_are_links(html: str, expected: tuple[str, ...]) -> None:
    assert links(html) == expected


def test_translations_that_only_headers_name_are_links() -> None:
    link = '</a.css>; rel=preload, </de>; rel="alternate"; hreflang="de", </fr>; hreflang=fr; rel=alternate'

    assert links("", {"link": f"{link}, </x>; rel=alternate"}) == (
        "https://docs.example.com/de",
        "https://docs.example.com/fr",
    )


def test_number_of_links_per_page_is_bounded() -> None:
    assert len(links("".join(f'<a href="/{n}">' for n in range(MAX_LINKS + 10)))) == MAX_LINKS


@pytest.mark.parametrize(
    ("html", "header", "expected"),
    [
        ('<link rel=canonical href="/harbor#x">', "", "https://docs.example.com/harbor"),
        (
            '<link rel="Canonical" href="/a"><link rel=canonical href="/b">',
            "</c>; rel=canonical",
            "https://docs.example.com/a",
        ),
        ("", '</style.css>; rel=preload, </harbor>; rel="canonical"', "https://docs.example.com/harbor"),
        ("", "</harbor>; rel=alternate", None),
        ('<link rel=canonical href="javascript:x">', "", None),
        ("", "", None),
    ],
)
def test_canonical_url_comes_from_link_element_or_header(html: str, header: str, expected: str | None) -> None:
    assert canonical_address(parse(html), {"link": header}, URL, URL) == expected
