"""Markdown files as HTML: headings with anchors, links between the files, nothing raw."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from app.apidoc.code_blocks import mark_own
from app.documentation import README, anchor_of

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a file."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A rendered file.

    Attributes:
        lead: Text of its first paragraph.
    """

    html: Markup
    headings: Sequence[Heading]
    lead: str


def render_markdown(text: str) -> MarkdownPage:
    """Render a Markdown file. HTML in it is shown as text, comments are left out."""
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    parser.add_render_rule("heading_close", _close_heading)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    tokens = parser.parse(COMMENT.sub("", text))
    headings = _name_headings(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs["href"] = _address(str(child.attrs["href"]))
            elif child.type == "image":
                child.attrs["src"] = f"/docs/images/{PurePosixPath(str(child.attrs['src'])).name}"
    return MarkdownPage(Markup(parser.renderer.render(tokens, parser.options, {})), headings, _lead(tokens))  # noqa: S704


def _lead(tokens: Sequence[Token]) -> str:
    for token, inline in itertools.pairwise(tokens):
        if token.type == "paragraph_open":
            return _text_of(inline)
    return ""


def _text_of(inline: Token) -> str:
    parts = (" " if part.type == "softbreak" else part.content for part in inline.children or ())
    return "".join(parts)


def _name_headings(tokens: Sequence[Token]) -> list[Heading]:
    headings: list[Heading] = []
    seen: set[str] = set()
    for token, inline in itertools.pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        anchor = anchor_of(text)
        if anchor and anchor not in seen:
            seen.add(anchor)
            token.attrs["id"] = anchor
            headings.append(Heading(int(token.tag[1]), text, anchor))
    return headings


def _address(href: str) -> str:
    """A link as the service answers it: ``docs/engines.md#size`` is ``/docs/engines#size``."""
    path, hash_, anchor = href.partition("#")
    if ":" in path or not path.endswith(".md"):
        return href
    name = PurePosixPath(path).stem
    return f"/docs/{README if name == 'README' else name}{hash_}{anchor}"


def _open_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="scroll" tabindex="0"><table>\n'


def _close_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"


def _close_heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """A section's heading ends with a link to itself, whose sign comes from the style sheet: it is no text."""
    opening, inline, closing = tokens[index - 2 : index + 1]
    link = ""
    if closing.tag != "h1" and "id" in opening.attrs:
        words = escape(f"Link to {_text_of(inline)}")
        link = f' <a class="anchor" href="#{opening.attrs["id"]}" aria-label="{words}"></a>'
    return f"{link}</{closing.tag}>\n"


def _code(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Code as the pages' own: it can be copied, and scrolled by keyboard."""
    code = mark_own(tokens[index].content.rstrip())
    button = '<button type="button" class="copy" data-copy hidden>Copy</button>'
    return f'<div class="code"><pre tabindex="0"><code>{code}</code></pre>{button}</div>\n'
