"""Annotations in pages that were made for other search services."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import Page
from tests.crawl.read.test_html_pages import read as read_html_page

FRAME = "<p>Harbour tours begin here every hour.</p>"


def read(head: str = "", body: str = FRAME) -> Page:
    return read_html_page(f"<!doctype html><title>Tours</title>{head}<body>{body}")


@pytest.mark.parametrize(
    ("html", "field", "value"),
    [
        ('<meta class="swiftype" name="price" data-type="float" content="5">', "price", "5"),
        ('<meta class="swiftype" name="tags" content="sea"><meta class="swiftype" name="tags" content="tour">',
         "tags", ["sea", "tour"]),
        ('<meta class="elastic" name="product" content="boats">', "product", "boats"),
        ('<meta name="docsearch:docusaurus_tag" content="docs-default-current">', "docusaurus_tag",
         "docs-default-current"),
        ('<meta name="docsearch:version" content="2.1,latest">', "version", ["2.1", "latest"]),
        ('<meta name="docsearch:language" content="de">', "lang", "de"),
        ('<b data-pagefind-filter="guide">Ann</b>', "guide", "Ann"),
        ('<b data-pagefind-filter="guide:Bob">x</b>', "guide", "Bob"),
        ('<img data-pagefind-meta="picture[src], picture_text[alt]" src="/a.png" alt="A ship">', "picture_text",
         "A ship"),
        ('<b data-swiftype-name="place" data-swiftype-type="enum">Pier</b>', "place", "Pier"),
    ],
)  # fmt: skip
def test_annotations_of_other_search_services_set_fields(html: str, field: str, value: object) -> None:
    page = read(html) if html.startswith("<meta") else read(body=FRAME + html)

    assert page.fields[field] == value


def test_site_search_annotations_take_precedence() -> None:
    page = read('<meta name="site-search:price" content="6"><meta class="swiftype" name="price" content="5">')

    assert page.fields["price"] == "6"


def test_annotations_can_set_title_excerpt_author_and_date() -> None:
    page = read(
        '<meta class="swiftype" name="title" content="All tours"><meta class="swiftype" name="published_at" '
        'content="2024-05-01"><meta class="swiftype" name="description" content="By boat">',
        f'<b data-pagefind-meta="author">Ann</b>{FRAME}',
    )

    assert (page.title, page.excerpt, page.author, page.date) == ("All tours", "By boat", "Ann", "2024-05-01")


@pytest.mark.parametrize(
    "attribute",
    ["data-pagefind-ignore", 'data-pagefind-ignore="all"', "data-elastic-exclude", 'data-swiftype-index="false"'],
)
def test_elements_excluded_for_other_search_services_are_not_content(attribute: str) -> None:
    assert "Chatter" not in read(body=f"{FRAME}<div {attribute}><p>Chatter</p></div>").content


@pytest.mark.parametrize("attribute", ["data-pagefind-body", "data-elastic-include", 'data-swiftype-index="true"'])
def test_only_elements_included_for_other_search_services_are_content(attribute: str) -> None:
    body = f"<p>Around it.</p><div {attribute}><h2 id=boats>Boats</h2><p>They sail.</p></div><p>Below it.</p>"

    page = read(body=body)

    assert page.content == "Boats\n\nThey sail."
    assert [section.anchor for section in page.sections] == ["boats"]


@pytest.mark.parametrize(
    "html",
    [
        '<meta class="swiftype" name="" content="x">', '<meta class="swiftype" name="a b" content="x">',
        '<meta class="swiftype" name="url" content="https://elsewhere.example/">', '<meta class="swiftype" name="n">',
        '<b data-pagefind-meta="[src]">x</b>', '<b data-pagefind-meta=",,">x</b>',
        '<meta name="docsearch:" content="x">',
    ],
)  # fmt: skip
def test_annotations_with_invalid_field_names_are_ignored(html: str) -> None:
    page, plain = read(html), read()

    assert (page.fields, page.title) == (plain.fields, plain.title)


def test_page_has_at_most_100_annotated_fields() -> None:
    page = read("".join(f'<meta class="swiftype" name="n{number}" content="x">' for number in range(500)))

    assert len(page.fields) <= 100
