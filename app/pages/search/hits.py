"""Hits as a page shows them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson
from markupsafe import Markup

from app.pages.layout import day_element, moment_element
from app.pages.search.reasons import Reasons, show_reasons
from backends.standard_fields import REQUIRED_HIT_FIELDS
from schemas.validation.instants import parse_instant

SNIPPET_LENGTH = 280
_MARK = re.compile(r"<em>(.*?)</em>", re.DOTALL)

Marked = Sequence[tuple[bool, str]]
"""Pieces of a text, and whether each is a match."""


@dataclass(frozen=True, slots=True)
class GroupHit:
    """A hit.

    Attributes:
        id: The document's.
        address: Where its document is; empty if its URL is none a page may link to.
        details: Author, date and further short fields, with their names.
        reasons: Why it stands there; ``None`` if nobody knows.
    """

    id: str
    title: Marked
    address: str
    shown_address: str
    snippet: Marked
    details: Sequence[tuple[str, str]]
    reasons: Reasons | None


def show_hits(hits: Sequence[bytes], site_url: str) -> list[GroupHit]:
    """Hits, as JSON, with their highlights, and links that lead to the site."""
    documents = map(orjson.loads, hits)
    return [_show(document, document.pop("_formatted", {}), site_url) for document in documents]


def _show(document: dict[str, Any], formatted: dict[str, Any], site_url: str) -> GroupHit:
    address = link_to(str(document["url"]), site_url)
    title = split_marks(str(formatted.get("title", ""))) if document["title"] else [(False, str(document["url"]))]
    shown = address or str(document["url"])
    reasons = show_reasons(document.pop("_explain", None))
    return GroupHit(document["id"], title, address, shown, _snippet(document, formatted), _details(document), reasons)


def _snippet(document: dict[str, Any], formatted: dict[str, Any]) -> Marked:
    """The place where the match is: in the content, else the summary, else how the content begins."""
    for field in ("content", "excerpt"):
        if "<em>" in str(formatted.get(field, "")):
            return split_marks(str(formatted[field]))
    plain = str(document.get("excerpt") or document["content"])
    return [(False, plain[:SNIPPET_LENGTH] + ("…" if len(plain) > SNIPPET_LENGTH else ""))]


def _details(document: dict[str, Any]) -> list[tuple[str, str]]:
    details = []
    for name, value in document.items():
        if name in REQUIRED_HIT_FIELDS or isinstance(value, dict) or value in ("", None, []):
            continue
        details.append((name, _date(value) if name == "date" else _short(value)))
    return details[:6]


def _date(value: str) -> Markup:
    """A document's date, which says as much of the time as the document does."""
    instant = parse_instant(value)
    return day_element(instant.date()) if len(value) == len("2024-05-31") else moment_element(instant)


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text[:80] + ("…" if len(text) > 80 else "")


def split_marks(text: str) -> list[tuple[bool, str]]:
    """A highlighted field as pieces of plain text; what is shown is escaped anew, whoever escaped it before."""
    pieces = []
    for position, piece in enumerate(_MARK.split(text)):
        if piece:
            pieces.append((position % 2 == 1, html.unescape(piece)))
    return pieces


def link_to(url: str, site_url: str) -> str:
    """The address of a document on its site; empty unless it is http or https."""
    try:
        address = urljoin(site_url, url)
        return address if urlsplit(address).scheme in ("http", "https") else ""
    except ValueError:
        return ""
