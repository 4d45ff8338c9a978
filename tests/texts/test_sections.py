"""Sections of pages: headings with an anchor, and where their text begins."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.texts.formats import html_to_marked_text, html_to_text, markdown_to_marked_text
from app.texts.sections import take_sections, without_permalink_sign
from backends.sections import Section
from schemas.validation.documents import MAX_SECTION_TITLE, MAX_SECTIONS


def of_html(html: str) -> list[tuple[str, str, int]]:
    return [section[:3] for section in take_sections(html_to_marked_text(html))[1]]


def of_markdown(markdown: str) -> list[tuple[str, str]]:
    return [section[:2] for section in take_sections(markdown_to_marked_text(markdown))[1]]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<h2 id=a>One</h2>", [("a", "One", 2)]),
        ("<h2>One</h2>", []),
        ("<h3><a name=a></a>One</h3>", [("a", "One", 3)]),
        ("<h3><a id=a href='#a'>One</a></h3>", [("a", "One", 3)]),
        ("<h3><span><a name=a>One</a></span></h3>", [("a", "One", 3)]),
        ("<a name=a></a>\n<h3>One</h3>", [("a", "One", 3)]),
        ("<a name=a>Text of its own</a><h3>One</h3>", []),
        ("<section id=a><h2>One</h2><p>Text</p></section>", [("a", "One", 2)]),
        ("<div id=a><div><h2>One</h2></div><h3>Two</h3></div>", [("a", "One", 2)]),
        ("<article id=a><h2 id=b>One</h2></article>", [("b", "One", 2)]),
        ("<ul id=a><li><h2>One</h2></ul>", []),
        ("<h2 id=a>One</h2><h2 id=a>Two</h2>", [("a", "One", 2)]),
        ("<h2 id='a b'>One</h2>", []),
        ("<h2 id=a> </h2>", []),
        ("<h2 id=a>One <a class=headerlink href='#a'>¶</a></h2>", [("a", "One", 2)]),
        ("<h2 id=a>C#</h2>", [("a", "C#", 2)]),
        ("<h2 id=größe>Größe</h2>", [("größe", "Größe", 2)]),
        ("<h2 id=a>One\n  two <em>three</em></h2>", [("a", "One two three", 2)]),
        ("<pre><h2 id=a>One</h2></pre>", [("a", "One", 2)]),
        ("<script><h2 id=a>One</h2></script>", []),
    ],
)
def test_headings_with_an_anchor_become_sections(html: str, found: list[tuple[str, str, int]]) -> None:
    assert of_html(html) == found


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("## Getting started\n", [("getting-started", "Getting started")]),
        ("Title\n=====\n\nTwo\n---\n", [("title", "Title"), ("two", "Two")]),
        ("# What's new, in 2.0?\n", [("whats-new-in-20", "What's new, in 2.0?")]),
        ("# A\n# A\n# A\n", [("a", "A"), ("a-1", "A"), ("a-2", "A")]),
        ("# Größe & `code_name`\n", [("größe--code_name", "Größe & code_name")]),
        ('<a name="own"></a>\n\n# A\n', [("a", "A")]),
        ('# <a id="own"></a>A\n', [("own", "A")]),
        ("```\n# no heading\n```\n", []),
        ("# ?\n", []),
    ],
)
def test_markdown_headings_get_the_same_anchors_as_on_github(markdown: str, found: list[tuple[str, str]]) -> None:
    assert of_markdown(markdown) == found


def test_section_starts_at_its_heading_in_the_text() -> None:
    html = "<p>😀 Opening.</p><h2 id=a>One <a href='#a'>¶</a></h2><p>Text.</p><div id=b><h3>Two</h3><p>More.</p></div>"
    text, sections = take_sections(html_to_marked_text(html))
    assert text == "😀 Opening.\n\nOne\n\nText.\n\nTwo\n\nMore."
    assert sections == (Section("a", "One", 2, 12), Section("b", "Two", 3, 24))
    assert [text[section.start :][:3] for section in sections] == ["One", "Two"]


def test_sections_are_limited_in_number_and_title_length() -> None:
    html = "".join(f"<h2 id=h{number}>{'long ' * 200}</h2>" for number in range(MAX_SECTIONS + 5))
    sections = take_sections(html_to_marked_text(html))[1]
    assert len(sections) == MAX_SECTIONS
    assert {len(section.title) for section in sections} <= {MAX_SECTION_TITLE, MAX_SECTION_TITLE - 1}


def test_text_truncated_within_a_heading_keeps_no_marker() -> None:
    marked = html_to_marked_text("<p>Text</p><h2 id=anchor>Heading</h2>")
    for length in range(len(marked) + 1):
        text, sections = take_sections(marked[:length])
        assert "Text\n\nHeading".startswith(text)
        assert len(sections) == (length == len(marked))


def test_marker_characters_in_the_source_do_not_create_sections() -> None:
    own = "<p>\ufdd02b\ufdd1Fake\ufdd2 \ufdd02a b\ufdd1Blank\ufdd2</p>"
    text, sections = take_sections(html_to_marked_text(f"{own}<h2 id=b>Real</h2><p>\ufdd2 End"))
    assert [section.anchor for section in sections] == ["b"]
    assert text.split() == ["Fake", "Blank", "Real", "End"]


@pytest.mark.parametrize(
    "html",
    [
        "<h2 id=a>a{signs}b</h2>".format(signs="¶" * 500_000),
        "<h2 id=a><pre>a{lines}b</pre></h2>".format(lines="\n" * 500_000),
        "<pre>\ufdd02a\ufdd1a{lines}b</pre>".format(lines="\n" * 500_000),
        "<h2 id=a>a{signs}b</h2>".format(signs=" #" * 250_000),
    ],
    ids=["permalink signs", "lines of a heading", "lines after a marker character", "number signs"],
)
def test_long_runs_of_signs_and_spaces_take_linear_time(html: str) -> None:
    marked = html_to_marked_text(html)
    begun = time.process_time()
    text, _ = take_sections(marked)
    assert time.process_time() - begun < 1
    assert text == html_to_text(html).replace("\ufdd02a\ufdd1", "")


@pytest.mark.parametrize(
    ("heading", "text"),
    [("One ¶", "One"), ("One¶§", "One"), ("One ##", "One"), ("C#", "C#"), ("C# #", "C#"), ("##", "##"), ("¶", "")],
)
def test_permalink_signs_at_the_end_are_removed(heading: str, text: str) -> None:
    assert without_permalink_sign(heading) == text


MARKUP = st.lists(
    st.sampled_from(
        ["<h1 id=a>", "<h2 id=b>", "</h2>", "<h3>", "<section id=c>", "</section>", "<a name=d>", "<pre>", "</pre>",
         "words ", "x\n", "<p>", "<table><td>", "é😀"]
    ),
    max_size=20,
)  # fmt: skip


@given(MARKUP)
def test_markers_do_not_change_text_and_sections_are_in_order(pieces: list[str]) -> None:
    html = "".join(pieces)
    text, sections = take_sections(html_to_marked_text(html))
    assert text.split() == html_to_text(html).split()
    starts = [section.start for section in sections]
    assert starts == sorted(starts)
    assert all(start <= len(text) for start in starts)
    assert len({section.anchor for section in sections}) == len(sections)
