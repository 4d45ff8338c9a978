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

from app.documentation import anchor_of

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a file."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A rendered file."""

    html: Markup
    headings: Sequence[Heading]


def render_markdown(text: str) -> MarkdownPage:
    """Render a Markdown file. HTML in it is shown as text, comments are left out."""
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    tokens = parser.parse(_COMMENT.sub("", text))
    headings = _name_headings(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs["href"] = _address(str(child.attrs["href"]))
            elif child.type == "image":
                child.attrs["src"] = f"/docs/images/{PurePosixPath(str(child.attrs['src'])).name}"
    return MarkdownPage(Markup(parser.renderer.render(tokens, parser.options, {})), headings)  # noqa: S704


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
    return ("/docs" if name == "README" else f"/docs/{name}") + hash_ + anchor


def _open_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="scroll" tabindex="0"><table>\n'


def _close_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"


def _code(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Code as the pages' own: it can be copied, and scrolled by keyboard."""
    code = escape(tokens[index].content.rstrip())
    button = '<button type="button" class="copy" data-copy hidden>Copy</button>'
    return f'<div class="code"><pre tabindex="0"><code>{code}</code></pre>{button}</div>\n'
