"""Text out of HTML and Markdown: blocks apart, markup gone, entities decoded. Time and memory grow with the input."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyromark
from turbohtml import Element, Node, Text, parse

UNREAD = frozenset(
    {"annotation", "annotation-xml", "audio", "canvas", "datalist", "head", "iframe", "noembed", "noframes", "noscript"}
    | {"object", "rp", "rt", "script", "style", "svg", "template", "title", "video"}
)
"""Elements whose text nobody reads on the page: code, fallbacks, and second renderings of the text beside them."""

PREFORMATTED = frozenset(("listing", "plaintext", "pre", "textarea", "xmp"))


NONE, WORD, CELL, LINE, BLOCK = range(5)
"""Breaks between two pieces of text; the strongest one wins."""

WRITTEN = ("", " ", "\t", "\n", "\n\n")
WORDS = ("button", "img", "input", "label", "meter", "progress")
CELLS = ("td", "th")
LINES = ("br", "dd", "li", "optgroup", "option", "summary", "tr")
BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "center", "details", "dialog", "dir", "div", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup"),
    *("hr", "legend", "listing", "main", "menu", "nav", "ol", "p", "plaintext", "pre", "search", "section", "select"),
    *("table", "textarea", "ul", "xmp"),
)
BREAKS = (
    dict.fromkeys(WORDS, WORD) | dict.fromkeys(CELLS, CELL) | dict.fromkeys(LINES, LINE) | dict.fromkeys(BLOCKS, BLOCK)
)
"""What is before and after an element. Custom elements are words apart; all others run on."""

SURROGATE = re.compile("[\ud800-\udfff]")
MARKDOWN = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
)


def html_to_text(html: str) -> str:
    """The text of a page or a fragment of HTML. See :func:`node_to_text`."""
    return node_to_text(parse(SURROGATE.sub("\N{REPLACEMENT CHARACTER}", html)))


def markdown_to_text(markdown: str) -> str:
    """The text of Markdown (CommonMark with GitHub's tables, and HTML in between), without its front matter."""
    return html_to_text(pyromark.html(SURROGATE.sub("\N{REPLACEMENT CHARACTER}", markdown), options=MARKDOWN))


def node_to_text(node: Node) -> str:
    """The text of a part of a page.

    Blocks are apart by a blank line, rows and list items by a line break, cells by a tab, words by one blank.
    Preformatted text keeps its lines and indents.
    """
    parts: list[str] = []
    pending = NONE
    preformatted_from: int | None = None
    open_elements: list[tuple[Iterator[Node], int, bool]] = [(iter(node.children), NONE, False)]
    while open_elements:
        children, after, ends_preformatted = open_elements[-1]
        for child in children:
            if isinstance(child, Text):
                data = child.data
                if preformatted_from is not None:
                    parts += (WRITTEN[pending], data)
                    pending = NONE
                elif words := data.split():
                    if pending == NONE and data[0].isspace():
                        pending = WORD
                    parts += (WRITTEN[pending], " ".join(words))
                    pending = WORD if data[-1].isspace() else NONE
                elif pending == NONE:
                    pending = WORD
            elif isinstance(child, Element) and (tag := child.tag) not in UNREAD:
                around = BREAKS.get(tag) or (WORD if "-" in tag else NONE)
                starts_preformatted = False
                if preformatted_from is not None:
                    around = min(around, LINE)
                elif tag in PREFORMATTED:
                    starts_preformatted = True
                    preformatted_from = len(parts)
                if around > pending:
                    pending = around
                open_elements.append((iter(child.children), around, starts_preformatted))
                break
        else:
            open_elements.pop()
            if ends_preformatted:
                text = "".join(parts[preformatted_from:])
                parts[preformatted_from:] = [WRITTEN[BLOCK], code] if (code := trimmed_lines(text)) else []
                preformatted_from = None
            if after > pending:
                pending = after
    return "".join(parts).replace("\0", "").strip()


def trimmed_lines(text: str) -> str:
    """Text without blank lines around it and without blanks at the end of lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
