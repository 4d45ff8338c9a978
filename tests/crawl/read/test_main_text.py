"""The main text is extracted completely, with code and tables, and without the page's frame, however it is named."""

from __future__ import annotations

import pytest
from turbohtml import parse

from app.crawl.read.main_text import Roles, main_part, main_text, only_lists, roles_of_names

PROSE = "Boats leave the harbor at ten and are back in the evening, if the weather allows it. " * 8
LINKS = "".join(f'<li><a href="/{n}">A page about number {n}</a>' for n in range(12))


@pytest.mark.parametrize(
    "chrome",
    [
        "<nav>Chrome</nav>",
        "<header>Chrome</header>",
        "<footer>Chrome</footer>",
        "<div role=navigation>Chrome</div>",
        "<div class='cookie-banner'>Chrome</div>",
        "<div id=page><header><p>Chrome</p></header></div>",
        "<div id=page><div><footer><p>Chrome</p></footer></div></div>",
        "<div role=complementary><div>Chrome</div></div>",
        "<div class=site-header><b>Chrome</b></div>",
        "<div id=footer><div><p>Chrome</p></div></div>",
        "<div class='col-3 left-sidebar'><div>Chrome</div></div>",
        "<a class=skip-link href=#main>Chrome</a>",
        "<div class='siteBreadcrumb breadcrumbs'>Chrome</div>",
        "<div id=comments>Chrome</div>",
        "<div class=navheader><table><tr><td>Chrome</table></div>",
        "<div class=sphinxsidebar><a href=/>Chrome</a></div>",
        "<aside><a href=/>Chrome</a></aside>",
        f"<div><ul>{LINKS}<li><a href=/>Chrome</a></ul></div>",
        "<p class=sr-only>Chrome</p>",
        "<div aria-hidden=true>Chrome</div>",
        "<dialog>Chrome</dialog>",
        "<dialog open class=cookie-notice>Chrome</dialog>",
        "<div hidden>Chrome <b hidden>twice</b></div>",
    ],
)
def test_navigation_banners_and_other_frame_elements_are_removed(chrome: str) -> None:
    text = main_text(parse(f"<body>{chrome}<div><h1>Harbor</h1><p>{PROSE}</p></div>{chrome}"))

    assert text == f"Harbor\n\n{PROSE.strip()}"


@pytest.mark.parametrize(
    "part",
    [
        "<pre class=share><code><span class=comment># Kept</span></code></pre>",
        "<pre>Kept <a href=#1>here</a></pre>",
        "<table class=data><tr><td>Kept<td>2</table>",
        "<table><tr><td><a href=/x>Kept</a></table>",
        "<h2 class=share>Kept</h2>",
        "<aside class=sidebar>Kept, as a note beside the text with <a href=x>a link</a>.</aside>",
        "<div class=note>Kept</div>",
        "<dialog open>Kept</dialog>",
        "<details><summary>Kept</summary>Kept</details>",
        "<div hidden=until-found>Kept</div>",
        "<div role=tabpanel hidden>Kept</div>",
        "<div hidden id='S:0'>Kept</div>",
        "<div class=has-sidebar>Kept</div>",
        "<section class=card><div class=card-header>Kept</div></section>",
        "<blockquote><p>Words</p><footer>Kept</footer></blockquote>",
        "<section><header>Kept</header><div>More</div></section>",
        "<div class=header><h2 class=title>Kept</h2></div>",
        "<div class=header><div class=headertitle>Kept</div></div>",
        "<div class=header><h1><a href=x>Kept</a></h1></div>",
        "<ul><li><a href=x>Kept</a></ul>",
        "<p>Kept <a href=#kept>here</a>",
        "<details><summary>Kept</summary></details>",
        "<section id=cookies><h2>Cookies <a href=#cookies>¶</a></h2><p>Kept</section>",
        "<section class=detail id=SKIP><h3>SKIP</h3><p>Kept</section>",
        f"<dl><dt>See also<dd><ul>{LINKS}<li><a href=/>Kept</a></ul></dl>",
        f"<div class='admonition seealso'><p>See also<ul>{LINKS}<li><a href=/>Kept</a></ul></div>",
        f"<table><colgroup><col></colgroup><tr><td><ul>{LINKS}</ul><td><a href=/>Kept</a></table>",
        f"<section class=method-summary><h3>Methods</h3><code><a href=/>{'kept, ' * 30}Kept</a></code></section>",
        f"<section class=summary><h3>Methods</h3><code><a href=/>{'kept, ' * 30}Kept</a></code></section>",
    ],
)
def test_code_tables_notes_and_headings_in_the_text_are_not_removed(part: str) -> None:
    assert "Kept" in main_text(parse(f"<body><div>{part}<p>{PROSE}</p></div>"))


@pytest.mark.parametrize("element", ["main", "div role=main", "article", "div itemprop=articleBody"])
def test_element_marked_as_main_content_is_the_main_text(element: str) -> None:
    html = f"<body><div>Around</div><{element}><p>{PROSE}</p></{element.split()[0]}><div>Around</div>"

    assert main_text(parse(html)) == PROSE.strip()


def test_nearly_empty_main_element_is_ignored() -> None:
    assert PROSE.strip() in main_text(parse(f"<body><main></main><div><p>{PROSE}</p></div>"))


def test_several_articles_are_all_part_of_the_main_text() -> None:
    text = main_text(parse(f"<body>{f'<article><p>{PROSE}</p></article>' * 3}"))

    assert text.count("Boats leave") == 24


def test_links_of_a_contents_page_are_not_removed() -> None:
    assert main_text(parse(f"<body><h1>Contents</h1><ul>{LINKS}</ul>")).count("A page about") == 12


def test_only_text_is_not_removed_because_of_its_class_name() -> None:
    assert PROSE.strip() in main_text(parse(f"<body><div class=comments><p>{PROSE}</p></div>"))


@pytest.mark.parametrize("name", ["header", "footer", "sidebar", "cookie-banner", "navbar"])
def test_most_of_the_text_is_never_removed_because_of_a_class_name(name: str) -> None:
    html = f"<body><div class={name}><p>{PROSE}</p></div><div><p>Beside it</p></div>"

    assert main_text(parse(html)) == f"{PROSE.strip()}\n\nBeside it"


def test_site_heading_does_not_protect_the_frame_if_the_page_has_its_own() -> None:
    frame = "<h1>Acme</h1><p>Boats since 1901</p>"
    text = main_text(
        parse(f"<body><div><div id=header>{frame}</div><h1>Harbor</h1><p>{PROSE}</p><footer>{frame}</footer></div>")
    )

    assert text == f"Harbor\n\n{PROSE.strip()}"


@pytest.mark.parametrize("name", ["header", "footer", "sidebar", "cookie-banner", "site-nav"])
def test_frame_elements_next_to_the_text_are_removed(name: str) -> None:
    assert main_text(parse(f"<body><div id={name}>Chrome</div><p>{PROSE}</p>")) == PROSE.strip()


def test_frame_of_a_short_page_is_removed() -> None:
    html = "<body><div id=header>Acme</div><div><h1>Hours</h1><p>Nine to five.</p></div><div id=footer>Acme</div>"

    assert main_text(parse(html)) == "Hours\n\nNine to five."


@pytest.mark.parametrize("main", ["<main></main>", "<div role=main> <p></p></div>"])
def test_page_with_an_empty_main_element_has_no_text(main: str) -> None:
    html = (
        "<body><a class=skip-link href=#m>Skip to the content</a><header><h1>Acme</h1></header>"
        f"<div class=cookie-banner><p>{PROSE}</p></div>{main}<div id=sidebar>Newest</div><footer>Acme</footer>"
    )

    assert main_text(parse(html)) == ""


def test_unclosed_header_element_does_not_remove_the_text() -> None:
    html = f"<body><header class=header><nav>Chrome</nav><div><p>{PROSE}</p></div>"

    assert main_text(parse(html)) == PROSE.strip()


def test_deeply_nested_frame_elements_are_read() -> None:
    html = "<body>" + "<div class=sidebar>" * 20_000 + "<h1>Deep</h1>"

    assert main_text(parse(html)) == "Deep"


def test_permalink_signs_after_headings_are_removed() -> None:
    html = f"<body><h1>Harbor<a class=headerlink href=#harbor>¶</a></h1><p>{PROSE} <a href=#1>1</a></p>"

    assert main_text(parse(html)) == f"Harbor\n\n{PROSE}1"


def test_page_without_text_returns_an_empty_string() -> None:
    assert main_text(parse("<nav>Chrome</nav><script>x()</script>")) == ""


def links(count: int) -> str:
    return "".join(f'<li><a href="/{n}">A page about number {n}</a>, ' for n in range(count))


@pytest.mark.parametrize(
    "body",
    [
        f"<h1>Index</h1><ul>{links(20)}</ul>",
        f"<h1>Tags</h1><div class=cloud>{links(40)}</div><p>All that we wrote about.</p>",
        "<h1>Search</h1><p>Please type what you look for.</p><form><input name=q></form>",
    ],
)
def test_link_lists_tag_clouds_and_search_forms_only_list(body: str) -> None:
    page = f"<nav>{links(9)}</nav><main>{body}</main>"

    assert only_lists(main_part(parse(page)))


@pytest.mark.parametrize(
    "body",
    [
        f"<h1>Guide</h1><p>{PROSE}</p><ul>{links(20)}</ul>",
        f"<h1>Short</h1><ul>{links(12)}</ul>",
        f"<h1>Form</h1><p>{PROSE}</p><form><input name=q></form>",
        "<h1>Little</h1><p>A word.</p>",
    ],
)
def test_page_with_text_is_not_a_list_of_links(body: str) -> None:
    page = f"<header><form><input type=search></form>{links(30)}</header><main>{body}</main>"

    assert not only_lists(main_part(parse(page)))


@pytest.mark.parametrize(
    "names",
    ["navbar", "subNav", "spirit-nav", "cookie_banner", "footer2", "site-header", "inner-footer"],
)
def test_class_names_of_bars_headers_and_footers_mark_the_frame(names: str) -> None:
    assert roles_of_names(f"col-3 {names}").frame


@pytest.mark.parametrize(
    "names", ["site-comments", "Share-Buttons", "related-posts", "wp-block-author-box", "jp-relatedposts"]
)
def test_class_names_of_comments_share_buttons_and_related_posts_mark_noise(names: str) -> None:
    roles = roles_of_names(f"col-3 {names}")
    assert (roles.frame, roles.noise) == (False, True)


@pytest.mark.parametrize("names", ["sidebar", "jtpl-sidebar", "sphinxsidebar", "right-bar", "sidebar-1"])
def test_class_names_of_sidebars_are_recognized(names: str) -> None:
    assert roles_of_names(f"col-3 {names}").sidebar


@pytest.mark.parametrize("names", ["toc", "sphinxsidebar", "page-header", "bottomlang", "footer-links", "tags"])
def test_names_of_link_lists_are_links(names: str) -> None:
    assert roles_of_names(names).links


@pytest.mark.parametrize(
    "names",
    [
        *("", "deprecation-comment", "table-contents", "content", "note", "method-summary-table", "shared-memory"),
        *("has-sidebar", "no-footer", "with-navbar", "is-header", "headerless", "cookiecutter", "navy-blue-text"),
    ],
)
def test_ordinary_class_names_have_no_role(names: str) -> None:
    assert roles_of_names(names) == Roles()


def test_extremely_long_class_names_have_no_role() -> None:
    assert roles_of_names("nav-" * 100_000 + " " + "x " * 100_000) == Roles()


def test_hidden_element_with_most_of_a_page_is_its_text() -> None:
    assert main_text(parse(f"<div hidden><p>{PROSE}</p></div><p>Loading</p>")) == f"{PROSE.strip()}\n\nLoading"
