"""Hits as pages show them, with the reasons for their positions."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson
from markupsafe import Markup

from app.pages.layout import day_element, moment_element
from app.services.search.preview import PreviewedSection, read_sections
from app.wording import counted, number
from backends.standard_fields import REQUIRED_HIT_FIELDS
from schemas.validation.documents import parse_instant

SNIPPET_LENGTH = 280
_MARK = re.compile(r"<em>(.*?)</em>", re.DOTALL)

Marked = Sequence[tuple[bool, str]]
"""Pieces of a text; the boolean says whether the piece is a match."""


@dataclass(frozen=True, slots=True)
class DisplaySection:
    """A matching section of a page.

    Attributes:
        title: Its title, after the headings above it.
        address: Its URL; empty if it can't be linked safely.
    """

    title: str
    address: str


def show_sections(sections: Sequence[PreviewedSection], site_url: str) -> list[DisplaySection]:
    """Return sections with links to the site."""
    return [DisplaySection(section.title, link_to(section.url, site_url)) for section in sections]


@dataclass(frozen=True, slots=True)
class DisplayHit:
    """A hit.

    Attributes:
        id: The document's ID.
        address: The document's URL; empty if it can't be linked safely.
        sections: The matching sections, with their links to the site.
        details: Names and values of author, date, and other short fields.
        reasons: Reasons for its position; ``None`` if they are unknown.
        site_id: The site of a collection that it is from; ``None`` in searches of one site.
        label: Name of that site.
    """

    id: str
    title: Marked
    address: str
    display_address: str
    snippet: Marked
    sections: Sequence[DisplaySection]
    details: Sequence[tuple[str, str]]
    reasons: Reasons | None
    site_id: int | None
    label: str


def show_hits(hits: Sequence[bytes], site_url: str, site_urls: Mapping[int, str]) -> list[DisplayHit]:
    """Convert hits from JSON, with highlights and with links to the site.

    Args:
        site_urls: URLs of the sites of a collection, by ID; empty in searches of one site.
    """
    documents = map(orjson.loads, hits)
    return [_show(document, document.pop("_formatted", {}), site_url, site_urls) for document in documents]


def _show(
    document: dict[str, Any], formatted: dict[str, Any], site_url: str, site_urls: Mapping[int, str]
) -> DisplayHit:
    site: dict[str, Any] = document.pop("site") if site_urls else {"id": None, "label": ""}
    site_url = site_urls.get(site["id"], site_url)
    address = link_to(str(document["url"]), site_url)
    title = split_marks(str(formatted.get("title", ""))) if document["title"] else [(False, str(document["url"]))]
    shown_url = address or str(document["url"])
    reasons = show_reasons(document.pop("_explain", None))
    sections = show_sections(read_sections(document), site_url)
    document.pop("sections", None)
    return DisplayHit(
        document["id"], title, address, shown_url, _snippet(document, formatted), sections, _details(document), reasons,
        site["id"], site["label"],
    )  # fmt: skip


def _snippet(document: dict[str, Any], formatted: dict[str, Any]) -> Marked:
    """Return the highlighted content or, if it has no match, the excerpt or the beginning of the content."""
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
    """Format a document's date, with the time only if the document has one."""
    instant = parse_instant(value)
    return day_element(instant.date()) if len(value) == len("2024-05-31") else moment_element(instant)


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text[:80] + ("…" if len(text) > 80 else "")


def split_marks(text: str) -> list[tuple[bool, str]]:
    """Split a highlighted field into pieces of plain text, which templates escape again."""
    pieces = []
    for position, piece in enumerate(_MARK.split(text)):
        if piece:
            pieces.append((position % 2 == 1, html.unescape(piece)))
    return pieces


def link_to(url: str, site_url: str) -> str:
    """Return the absolute URL of a document; empty unless it is http or https."""
    try:
        address = urljoin(site_url, url)
        return address if urlsplit(address).scheme in ("http", "https") else ""
    except ValueError:
        return ""


_KINDS = {
    "exact": "as typed",
    "stem": "another form of “{}”",
    "prefix": "which begins with “{}”",
    "typo": "similar to “{}”",
    "synonym": "a synonym of “{}”",
    "joined": "“{}” written as one word",
    "compound": "a longer word that ends with “{}”",
    "split": "“{}” written as separate words",
}
"""Descriptions of matches, by the kind of the word's variant."""
_HAS_ALL = "It contains all the words of the search."
_DEMANDED = {"all_terms": _HAS_ALL, "any_term": "It contains some of the words of the search."}
_PHRASES = {
    True: "It contains the quoted words next to each other, so it comes before all results that don’t.",
    False: "It doesn’t contain the quoted words next to each other, so it comes after all results that do.",
}
MAX_WORDS = 20
_NEUTRAL = 0.005
"""Maximum difference from 1 at which a factor is omitted as insignificant."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons for the position of a hit.

    Attributes:
        score: Rounded score by words and ranks; empty if there is none.
        is_whole: Whether hits are ordered by this score alone.
        factors: Name and factor of each signal that changes the score.
    """

    sentences: Sequence[str]
    score: str
    factors: Sequence[tuple[str, str]]
    is_whole: bool


def show_reasons(explanation: Mapping[str, Any] | None) -> Reasons | None:
    """Convert a hit's ``_explain`` to sentences; ``None`` if there is nothing to explain."""
    if not explanation:
        return None
    score = explanation.get("score")
    factors = [
        (str(signal["name"]).replace("_", " "), f"{signal['share']:.2f}")
        for signal in explanation.get("signals", ())
        if abs(signal["share"] - 1) > _NEUTRAL
    ]
    sentences = list(_sentences(explanation))
    if not sentences and score is None:
        return None
    return Reasons(
        sentences,
        "" if score is None else f"{score:.2f}",
        [] if score is None else factors,
        "meaning" not in explanation,
    )


def _sentences(explanation: Mapping[str, Any]) -> Iterator[str]:
    if explanation.get("pinned"):
        yield "It is pinned for this search."
    demanded = _DEMANDED.get(explanation.get("relaxation", ""))
    # If one word is enough to match, a signal shows which hits contain all of them.
    if any(signal["name"] == "all_terms" and signal["share"] > 1 for signal in explanation.get("signals", ())):
        yield _HAS_ALL
    elif demanded is not None:
        yield demanded
    for word in explanation.get("words", ())[:MAX_WORDS]:
        if word["field"] == "parts":
            yield f"“{word['variant']}” as a part of a longer word."
        else:
            yield f"“{word['variant']}” in the {word['field']}, {_KINDS[word['kind']].format(word['word'])}."
    if explanation.get("rank"):
        yield f"Its rank is {explanation['rank']:+g}."
    if explanation.get("beyond_ranks"):
        yield "It comes after the results that were ordered by rank."
    if "has_phrase" in explanation:
        yield _PHRASES[explanation["has_phrase"]]
    if "preferred_over" in explanation:
        yield f"It replaces “{explanation['preferred_over']}”, which matches better but is not the preferred page."
    if "meaning" in explanation:
        yield from _meaning(explanation["meaning"])
    if "clicks" in explanation:
        yield _clicks(explanation["clicks"])
    if explanation.get("limits"):
        yield explanation["limits"]


def _meaning(meaning: Mapping[str, Any]) -> Iterator[str]:
    yield f"Ranked by words only, it would be result {number(meaning['place_by_words'])}."
    if meaning["cosine"] is None:
        yield "Its meaning hasn’t been analyzed yet, so it gets the average score of the other results."
    else:
        yield f"Its similarity in meaning to the search is {meaning['cosine']:.2f}, where 1 is identical."
    yield f"Its combined score for words and meaning is {meaning['score']:.3f}, which determines its position."


def _clicks(clicks: Mapping[str, Any]) -> str:
    moved, gain = clicks["moved_up"], f"{clicks['gain']:.1f}"
    if moved > 0:
        return f"Clicks moved it up by {counted(moved, 'position')}; clicks on this page are worth {gain}."
    return (
        f"Clicks on other results moved it down by {counted(-moved, 'position')}; clicks on this page are worth {gain}."
    )
