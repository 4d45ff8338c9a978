"""Reading an HTML page returns its text, metadata, and links."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import FieldRules, Page, Reason, Selectors
from app.crawl.read.html_pages import read_html
from tests.crawl.read.samples import fetched

PAGE = """<!doctype html><html lang=en><head>
    <title>Harbor | Acme</title><link rel=canonical href="/harbor">
    <meta name=description content="All boats."><meta name=author content="Ada Berg">
    <meta property="article:published_time" content="2024-05-06">
    <meta name="site-search:id" content="harbor"><meta name="site-search:section" content="Guide">
    </head><body><nav><a href="/">Home</a></nav>
    <main><h1>Harbor</h1><p class=lead>Boats leave at <a href="ten.html">ten</a>.</p>
    <div data-site-search-ignore>Not this <a href="ignored">link</a> <time datetime=2020-01-01>then</time></div>
    <p class=more>Back at six.</p></main></body></html>"""


def read(html: str, selectors: Selectors | None = None, **headers: str) -> Page:
    return read_html(html, fetched(html, **headers), selectors or Selectors(), FieldRules())


def test_reading_an_html_page_returns_text_metadata_and_links() -> None:
    assert read(PAGE) == Page(
        id="harbor",
        title="Harbor | Acme",
        content="Harbor\n\nBoats leave at ten.\n\nBack at six.",
        canonical="https://docs.example.com/harbor",
        links=(
            "https://docs.example.com/",
            "https://docs.example.com/guide/ten.html",
            "https://docs.example.com/guide/ignored",
        ),
        excerpt="All boats.",
        author="Ada Berg",
        date="2024-05-06",
        lang="en",
        fields={"section": "Guide"},
        headings=("Harbor",),
    )


def test_first_heading_is_the_title_of_a_page_without_title() -> None:
    html = "<h2>Cranes</h2><h3>Ropes</h3>"
    assert (read(html).title, read(html).headings) == ("Cranes", ())
    chosen = read(f"<title>Harbor</title>{html}", Selectors(title="h3"))
    assert (chosen.title, chosen.headings) == ("Ropes", ())


@pytest.mark.parametrize(
    ("selectors", "title", "content"),
    [
        (Selectors(content=".lead"), "Harbor | Acme", "Boats leave at ten."),
        (Selectors(content="p, .more, main"), "Harbor | Acme", "Harbor\n\nBoats leave at ten.\n\nBack at six."),
        (Selectors(content="nav, .more"), "Harbor | Acme", "Home\n\nBack at six."),
        (Selectors(title="h1"), "Harbor", "Harbor\n\nBoats leave at ten.\n\nBack at six."),
        (Selectors(title="h1", content=".more", remove="h1"), "Harbor | Acme", "Back at six."),
        (Selectors(remove=".lead, h1"), "Harbor | Acme", "Back at six."),
        (Selectors(title=".none"), "Harbor | Acme", "Harbor\n\nBoats leave at ten.\n\nBack at six."),
        (Selectors(content=".none"), "Harbor | Acme", ""),
    ],
)
def test_selectors_choose_title_and_content(selectors: Selectors, title: str, content: str) -> None:
    page = read(PAGE, selectors)

    assert (page.title, page.content) == (title, content)


@pytest.mark.parametrize("selector", ["p[[", ":has(", "p:nosuch", ">>"])
@pytest.mark.parametrize("name", ["content", "title", "remove"])
def test_invalid_selectors_raise_value_error(name: str, selector: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        read(PAGE, Selectors(**{name: selector}))


@pytest.mark.parametrize(
    ("html", "headers", "left_out"),
    [
        (PAGE, {}, None),
        (f'<meta name=robots content="noindex">{PAGE}', {}, Reason.NOINDEX),
        (PAGE, {"x_robots_tag": "noindex"}, Reason.NOINDEX),
        ("<title>Harbor</title><script>app()</script>", {}, Reason.EMPTY),
        ("<title>Page not found</title><p>Try the search.", {}, Reason.SOFT_404),
    ],
)
def test_noindex_empty_and_soft_404_pages_have_a_skip_reason(
    html: str, headers: dict[str, str], left_out: Reason | None
) -> None:
    page = read(html, **headers)

    assert page.skip_reason == left_out
    assert page.noindex == (left_out == Reason.NOINDEX)


def test_links_of_a_skipped_page_are_still_followed() -> None:
    assert read('<meta name=robots content=noindex><a href="/a">a</a>').links == ("https://docs.example.com/a",)


@pytest.mark.parametrize("content", ["nofollow", "none"])
def test_nofollow_page_returns_no_links(content: str) -> None:
    assert read(f'<meta name=robots content="{content}"><a href="/a">a</a>').links == ()
    assert read('<a href="/a">a</a>', x_robots_tag=content).links == ()


MANUAL = """<title>Manual</title><body><nav><h2 id=menu>Menu</h2><a href=/>Home</a></nav><main><h1 id=top>Manual</h1>
    <p>All about boats.</p><section id=moor><h2>Moor <a class=headerlink href="#moor">¶</a></h2><p>Throw a line.</p>
    </section><h2 id=sail>Sail</h2><div class=more><p>Hoist it.</p></div></main></body>"""


@pytest.mark.parametrize(
    "selectors", [Selectors(), Selectors(content="main"), Selectors(content="h1, section, main > h2, .more")]
)
def test_headings_with_an_anchor_become_sections(selectors: Selectors) -> None:
    page = read(MANUAL, selectors)

    assert [section[:3] for section in page.sections] == [
        ("top", "Manual", 1),
        ("moor", "Moor", 2),
        ("sail", "Sail", 2),
    ]
    assert [page.content[section.start :].split("\n")[0] for section in page.sections] == ["Manual", "Moor", "Sail"]


@pytest.mark.parametrize(
    "sign", ["<a id=sail href=#sail>#</a>", "<span><a id=sail href=#sail aria-hidden=true><b>#</b></a></span>"]
)
def test_heading_uses_the_anchor_of_its_removed_permalink_sign(sign: str) -> None:
    page = read(f"<h1>Manual</h1><h2>Sail{sign}</h2><p>Hoist it.</p>")
    assert [section[:3] for section in page.sections] == [("sail", "Sail", 2)]


def test_removed_headings_are_not_sections() -> None:
    page = read(MANUAL, Selectors(remove="section"))

    assert [section.anchor for section in page.sections] == ["top", "sail"]


LISTING = "<title>Index</title><main><ul>" + "<li><a href=/a>A page about boats</a>" * 25 + "</ul></main>"


@pytest.mark.parametrize(
    ("head", "rank"),
    [
        ('<meta name="site-search:rank" content="2">', 2),
        ('<meta name="site-search:rank" content="-1.5">', -1.5),
        ('<meta name="site-search:rank" content="high">', "high"),
        ("", -3),
    ],
)
def test_rank_comes_from_the_page_and_link_lists_rank_low(head: str, rank: object) -> None:
    assert read(head + LISTING).fields["rank"] == rank


def test_ordinary_pages_have_no_rank() -> None:
    assert "rank" not in read(PAGE).fields
    assert "rank" not in read(LISTING, Selectors(content="main")).fields
