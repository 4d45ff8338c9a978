"""Hits in Algolia's format: pages with their fields, or sections with the titles above them for DocSearch."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import orjson

from app.services.access.credentials import SiteRecord
from backends.query import FieldKind, FieldKinds, Highlight
from backends.sections import SECTIONS
from backends.standard_fields import STANDARD_FIELDS, STRING_FIELDS

_LEVELS = tuple(f"lvl{level}" for level in range(7))
OPEN, CLOSE = "\0<", "\0>"
"""Temporary tags around matches. No document contains NUL."""
ENCODED_OPEN = orjson.dumps(OPEN)[1:-1]
Tags = tuple[str, str]


DOCSEARCH_HIGHLIGHT = Highlight(
    pre_tag=OPEN, post_tag=CLOSE, only_fields=frozenset({"title", "content"}), sentences=True
)


@dataclass(frozen=True, slots=True)
class HitShape:
    """The requested format of page hits. Field names are the service's, apart from ``objectID``.

    Attributes:
        retrieved: Fields of a hit; ``None`` for all except :attr:`omitted`.
        highlighted: Texts in ``_highlightResult``; ``None`` for all.
        snippets: Texts in ``_snippetResult``, with their lengths in words.
    """

    retrieved: Set[str] | None
    omitted: Set[str]
    highlighted: Set[str] | None
    snippets: Mapping[str, int]

    @classmethod
    def of(cls, parameters: Mapping[str, Any], kinds: FieldKinds) -> HitShape:
        """Return the format that a request's checked parameters describe."""
        names = parameters["attributesToRetrieve"]
        omitted = frozenset(name[1:] for name in names if name.startswith("-"))
        texts = [*STRING_FIELDS, *(name for name, field_kinds in kinds.items() if field_kinds & _TEXT_KINDS)]
        return cls(
            None if "*" in names or len(names) == len(omitted) > 0 else frozenset(names),
            omitted | {"id", SECTIONS},
            None if "*" in parameters["attributesToHighlight"] else frozenset(parameters["attributesToHighlight"]),
            _snippets(parameters["attributesToSnippet"], texts),
        )

    def highlight(self, parameters: Mapping[str, Any]) -> Highlight | None:
        """Return the highlighting for the engine, or ``None``.

        Text is HTML-escaped if the tags are HTML. InstantSearch sends other tags and escapes the text itself.
        """
        if self.highlighted is not None and not self.highlighted and not self.snippets:
            return None
        marked = None if self.highlighted is None else self.highlighted | self.snippets.keys()
        return Highlight(
            pre_tag=OPEN,
            post_tag=CLOSE,
            escape="<" in parameters["highlightPreTag"] + parameters["highlightPostTag"],
            crop_fields=self.snippets,
            crop_marker=parameters["snippetEllipsisText"],
            only_fields=marked,
        )

    def hit(self, document: Mapping[str, Any], site: SiteRecord, tags: Tags) -> dict[str, Any]:
        """Return the hit for a document with its marked texts."""
        marked = {
            name: _marked_value(value, tags)
            for name, value in document.get("_formatted", {}).items()
            if name not in ("id", SECTIONS) and (isinstance(value, str) or _is_texts(value))
        }
        hit = {
            name: value
            for name, value in document.items()
            if name not in self.omitted and name != "_formatted" and (self.retrieved is None or name in self.retrieved)
        }
        if "url" in hit:
            hit["url"] = urljoin(site.url, hit["url"])
        hit["objectID"] = document["id"]
        if self.highlighted is None or self.highlighted:
            highlighted_names = marked.keys() if self.highlighted is None else self.highlighted
            hit["_highlightResult"] = {name: value for name, value in marked.items() if name in highlighted_names}
        if self.snippets:
            hit["_snippetResult"] = {name: value for name, value in marked.items() if name in self.snippets}
        return hit


_TEXT_KINDS = frozenset({FieldKind.STRING, FieldKind.STRING_LIST})
_SNIPPET_WORDS = 10
_MAX_SNIPPET_WORDS = 1_000


def _snippets(entries: Iterable[str], texts: Sequence[str]) -> dict[str, int]:
    """``["title:5", "content"], … -> {"title": 5, "content": 10}``: lengths in words; ``*`` stands for all texts."""
    lengths: dict[str, int] = {}
    for entry in entries:
        name, _, length = entry.partition(":")
        words = int(length[:10]) if length.isascii() and length.isdigit() else _SNIPPET_WORDS
        lengths |= dict.fromkeys(texts if name == "*" else [name], max(1, min(words, _MAX_SNIPPET_WORDS)))
    return lengths


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(member, str) for member in value)


def _marked_value(value: str | list[str], tags: Tags) -> dict[str, Any] | list[dict[str, Any]]:
    return _marked(value, tags) if isinstance(value, str) else [_marked(member, tags) for member in value]


def docsearch_hits(document: Mapping[str, Any], site: SiteRecord, tags: Tags) -> Iterator[dict[str, Any]]:
    """Yield the hits of a document: the document itself if its title or no section matches, and matching sections."""
    marked, sections = document["_formatted"], document.get(SECTIONS, [])
    page = [(_group(document, site), None), (document["title"], marked["title"])]
    address = urljoin(site.url, document["url"])
    if OPEN in marked["title"] or not sections:
        yield _hit(document, document["id"], address, None, page, marked.get("content", ""), tags)
    for section in sections:
        titles = [*page, *((title, None) for title in section["path"])]
        titles.append((section["title"], section["_formatted"]["title"]))
        name = f"{document['id']}#{section['anchor']}"
        text = section["_formatted"]["content"]
        yield _hit(document, name, address, section["anchor"], titles[: len(_LEVELS)], text, tags)


def _group(document: Mapping[str, Any], site: SiteRecord) -> str:
    section = document.get("section")
    return section if isinstance(section, str) and section else site.domain


def _hit(
    document: Mapping[str, Any],
    name: str,
    address: str,
    anchor: str | None,
    titles: list[tuple[str, str | None]],
    text: str,
    tags: Tags,
) -> dict[str, Any]:
    plain: dict[str, str | None] = dict.fromkeys(_LEVELS)
    marked = {}
    for level, (title, formatted) in zip(_LEVELS, titles, strict=False):
        plain[level] = title
        marked[level] = _marked(html.escape(title, quote=False) if formatted is None else formatted, tags)
    has_title = OPEN in (titles[-1][1] or "")
    plain_text = html.unescape(text.replace(OPEN, "").replace(CLOSE, ""))
    content = None if has_title and OPEN not in text else plain_text or None
    highlighted: dict[str, Any] = {"hierarchy": marked}
    if content is not None:
        highlighted["content"] = _marked(text, tags)
    custom_fields = {key: value for key, value in document.items() if key not in STANDARD_FIELDS and key[0] != "_"}
    custom_fields.pop(SECTIONS, None)
    return custom_fields | {
        "objectID": name,
        "url": address if anchor is None else f"{address.partition('#')[0]}#{anchor}",
        "url_without_anchor": address.partition("#")[0],
        "anchor": anchor,
        "type": _LEVELS[len(titles) - 1] if has_title or content is None else "content",
        "content": content,
        "hierarchy": plain,
        "_highlightResult": highlighted,
        "_snippetResult": highlighted,
    }


def _marked(text: str, tags: Tags) -> dict[str, Any]:
    words = re.findall(f"{OPEN}(.*?){CLOSE}", text, re.DOTALL)
    return {
        "value": text.replace(OPEN, tags[0]).replace(CLOSE, tags[1]),
        "matchLevel": "full" if words else "none",
        "matchedWords": list(dict.fromkeys(html.unescape(word).lower() for word in words)),
    }
