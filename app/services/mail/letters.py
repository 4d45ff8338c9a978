"""The text of mails: written once, shown as plain text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_COLUMNS = 72
_STYLE = "font-family: sans-serif; line-height: 1.5; max-width: 38em"


@dataclass(frozen=True, slots=True)
class Link:
    """An address to open, on a line of its own."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list below a heading."""

    title: str
    items: Sequence[str]


Block = str | Link | Listing
"""A paragraph, a link, or a list."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail's subject and what it says."""

    subject: str
    blocks: Sequence[Block]

    @property
    def text(self) -> str:
        """As plain text; links are on lines of their own, since some programs break long ones."""
        return "\n\n".join(map(_as_text, self.blocks)) + "\n"

    @property
    def html(self) -> str:
        """As an HTML document that loads nothing."""
        body = Markup("\n").join(map(_as_html, self.blocks))
        return Markup(
            '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{}</title></head>\n'
            '<body style="{}">\n{}\n</body>\n</html>\n'
        ).format(self.subject, _STYLE, body)


def _as_text(block: Block) -> str:
    match block:
        case Link(text, url):
            return f"{_wrapped(text)}:\n{url}"
        case Listing(title, items):
            return "\n".join([_wrapped(title), *(_wrapped(item, "- ", "  ") for item in items)])
        case _:
            return _wrapped(block)


def _wrapped(text: str, first: str = "", other: str = "") -> str:
    return textwrap.fill(
        text, _COLUMNS, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )


def _as_html(block: Block) -> Markup:
    match block:
        case Link(text, url):
            return Markup('<p><a href="{}">{}</a></p>').format(url, text)
        case Listing(title, items):
            lines = Markup("\n").join(Markup("<li>{}</li>").format(item) for item in items)
            return Markup("<p>{}</p>\n<ul>\n{}\n</ul>").format(title, lines)
        case _:
            return Markup("<p>{}</p>").format(block)
