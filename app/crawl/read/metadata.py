"""Metadata of a page: title, description, author, date, language, and custom fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any

from turbohtml import Document, Element

from app.crawl.read.text import cut_line
from app.texts.formats import node_to_text
from app.texts.sections import without_permalink_sign
from backends.standard_fields import STANDARD_FIELDS

SERVICE_PREFIX = "site-search:"
"""Prefix of the names of ``<meta>`` elements that address this service."""
OWN_ID = "id"
FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAX_FIELDS = 100
LOWER_HEADINGS = ("h2", "h3", "h4", "h5", "h6")
FRAME = frozenset(("aside", "dialog", "footer", "header", "nav"))
"""Elements whose headings do not name the page."""
MAX_ALTERNATIVES = 2
"""Maximum number of alternatives to a title."""
MAX_HEADINGS = 20
"""Maximum number of headings searched for a title, since the first headings may contain only images."""
MAX_ID_CHARACTERS = 512
LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
ADDRESS = re.compile(r"https?://|www\.", re.IGNORECASE)
MAX_JSON_LD_NODES = 10_000
EARLIEST_YEAR = 1000
"""Earlier dates are placeholders: programs write the year 1 for an unknown date."""


class Metadata:
    """The metadata of one page.

    Args:
        headers: The response's headers, names in lower case.
    """

    def __init__(self, document: Document, headers: Mapping[str, str]):
        self._document = document
        self._headers = headers
        self._meta: dict[str, list[str]] = {}
        for element in document.iter_elements("meta"):
            name = (element.attr("name") or element.attr("property") or element.attr("itemprop") or "").strip()
            content = element.attr("content")
            if name and content and not content.isspace():
                is_ours = name.lower().startswith(SERVICE_PREFIX)
                key = SERVICE_PREFIX + name[len(SERVICE_PREFIX) :] if is_ours else name.lower()
                self._meta.setdefault(key, []).append(content)
        self.json_ld: Sequence[Mapping[str, Any]] = tuple(_json_ld_objects(document))
        """The page's JSON-LD objects at the top level, in lists, and in graphs."""

    def title(self) -> str:
        """Return the title, or ``""`` if the page has none."""
        element = self._document.select_one("head > title, html > title")
        candidates = chain([element.text if element else ""], self.contents("og:title"), self._main_headings())
        return _first_line(candidates) or ""

    def headings(self, title: str) -> tuple[str, ...]:
        """Return at most two alternatives to a title: the page's ``h1``, ``og:title``, and first lower heading."""
        lower = (
            _heading_text(heading)
            for heading in islice(self._document.iter_elements(LOWER_HEADINGS), MAX_HEADINGS)
            if not any(isinstance(ancestor, Element) and ancestor.tag in FRAME for ancestor in heading.ancestors)
        )
        alternatives: dict[str, None] = {}
        for lines in (self._main_headings(), self.contents("og:title"), lower):
            if len(alternatives) < MAX_ALTERNATIVES and (line := _first_line(lines)) and line != title:
                alternatives[line] = None
        return tuple(alternatives)

    def excerpt(self) -> str | None:
        """Return the description that the page's author wrote."""
        return _first_line(
            [*self.contents("description", "og:description", "twitter:description"), *self._json("description")]
        )

    def author(self) -> str | None:
        """Return the names of the authors, separated by commas."""
        for item in self.json_ld:
            if names := list(dict.fromkeys(_names(item.get("author")))):
                return cut_line(", ".join(names))
        declared = [*self.contents("author", "article:author", "dc.creator", "dcterms.creator")]
        marked = [element.text for element in self._document.select("[itemprop~=author], a[rel~=author]")[:5]]
        return _first_line(text for text in [*declared, *marked] if not ADDRESS.match(text.strip()))

    def date(self) -> str | None:
        """Return the date of publication, otherwise of the last change, in ISO 8601."""
        times = [element.attr("datetime") or element.text for element in self._document.find_all("time", limit=20)]
        candidates = [
            *self._json("datePublished"),
            *self.contents("article:published_time", "datepublished", "date", "dc.date", "dcterms.created"),
            *self._json("dateCreated", "dateModified"),
            *self.contents("article:modified_time", "og:updated_time", "datemodified", "last-modified"),
            *times,
        ]
        return next((date for text in candidates if (date := iso_date(text)) is not None), None)

    def language(self) -> str | None:
        """Return the language tag of the page, such as ``en`` or ``pt-BR``."""
        root = self._document.root
        candidates = [
            (root.attr("lang") or root.attr("xml:lang") or "") if root else "",
            *self.contents("content-language"),
            self._headers.get("content-language", "").partition(",")[0],
        ]
        return next((text.strip() for text in candidates if LANGUAGE.fullmatch(text.strip())), None)

    def id(self) -> str | None:
        """Return the ID from ``<meta name="site-search:id">``."""
        text = next(iter(self._meta.get(SERVICE_PREFIX + OWN_ID, ())), "").strip()
        return text if 0 < len(text) <= MAX_ID_CHARACTERS and "\0" not in text else None

    def fields(self) -> dict[str, Any]:
        """Return the custom fields from ``<meta name="site-search:…">``: a string, or a list for a repeated name.

        Invalid names are skipped, as are fields after the first hundred.
        """
        fields: dict[str, Any] = {}
        our_contents = [
            (name.removeprefix(SERVICE_PREFIX), contents)
            for name, contents in self._meta.items()
            if name.startswith(SERVICE_PREFIX)
        ]
        for field, contents in our_contents:
            if field in STANDARD_FIELDS or not FIELD_NAME.fullmatch(field):
                continue
            values = list(dict.fromkeys(cut_line(content) for content in contents[:MAX_FIELDS]))
            fields[field] = values[0] if len(values) == 1 else values
            if len(fields) == MAX_FIELDS:
                break
        return fields

    def contents(self, *names: str) -> Iterator[str]:
        """Yield the contents of ``<meta>`` elements, in the order of the names."""
        return (content for name in names for content in self._meta.get(name, ()))

    def _main_headings(self) -> Iterator[str]:
        return (_heading_text(heading) for heading in self._document.find_all("h1", limit=MAX_HEADINGS))

    def _json(self, *keys: str) -> Iterator[str]:
        return (value for key in keys for item in self.json_ld if isinstance(value := item.get(key), str))


def _json_ld_objects(document: Document) -> Iterator[Mapping[str, Any]]:
    waiting: list[Any] = list(reversed(document.json_ld()))
    for _ in range(MAX_JSON_LD_NODES):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(item[:MAX_JSON_LD_NODES]))
        elif isinstance(item, dict):
            yield item
            waiting.extend(item[key] for key in ("mainEntity", "@graph") if isinstance(item.get(key), (list, dict)))


def _names(author: object) -> Iterator[str]:
    for item in author if isinstance(author, list) else [author]:
        name = item.get("name") if isinstance(item, dict) else item
        if isinstance(name, str) and name.strip() and not ADDRESS.match(name.strip()):
            yield cut_line(name)


def _heading_text(heading: Element) -> str:
    # Most headings are text with at most a link, which needs no conversion.
    is_simple = [child.tag for child in heading.children if isinstance(child, Element)] in ([], ["a"])
    return without_permalink_sign(cut_line(heading.text if is_simple else node_to_text(heading)))


def _first_line(texts: Iterable[str]) -> str | None:
    return next((line for text in texts if (line := cut_line(text))), None)


def iso_date(text: str) -> str | None:
    """Return a text as an ISO 8601 date or date-time; ``None`` if it is not one."""
    text = text.strip().upper()
    try:
        moment = datetime.fromisoformat(text)
        # Raises for dates at the limits of the calendar that have no equivalent in UTC.
        moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    # Python accepts offsets with seconds, but ISO 8601 does not.
    if moment.year < EARLIEST_YEAR or moment.strftime("%z")[5:]:
        return None
    return text if len(text) == len("2024-05-01") else moment.isoformat()
