"""Further fields by the rules of a source: by a page's address, by CSS, by its JSON-LD, by ``<meta>``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from turbohtml import Document

from app.crawl.fetch.values import FieldRules
from app.crawl.read.bounds import cut_line
from app.crawl.read.links import absolute_address
from app.crawl.read.metadata import Metadata
from app.texts.formats import node_to_text
from backends.values import INT64
from schemas.validation.field_rules import SEGMENT

VARIANTS = ("version", "lang")
"""Names of segments in which addresses differ that are the same page otherwise."""
PAGE_FIELD = "page"
ADDRESSES = ("href", "src")
"""Attributes whose value is made absolute."""
MAX_VALUES = 100
MAX_NODES = 10_000
"""Places in a page's JSON-LD that are looked at for one field."""

Value = str | bool | int | float | list[Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """Parts of an HTML page that rules look at.

    Attributes:
        base: What its addresses are relative to.
    """

    document: Document
    metadata: Metadata
    base: str


def ruled_fields(rules: FieldRules, url: str, subject: Subject | None = None) -> dict[str, Value]:
    """The further fields of a page by a source's rules: each by the first rule that gives it a value.

    Also ``page``, if rules name a segment ``version`` or ``lang``: the path without these segments.

    Args:
        url: The page's own address.
        subject: ``None`` for what is no HTML; it has the fields of its address.

    Raises:
        ValueError: A selector is no CSS.
    """
    place = _place(url)
    fields: dict[str, Value] = {}
    left_out: set[int] = set()
    for rule in rules.rules:
        if "path" in rule:
            segments = match_path(rule["path"], place)
            if segments is not None:
                left_out |= {segments[name][0] for name in VARIANTS if name in segments and name not in fields}
                fields = _filled(rule["set"], segments) | fields
        elif subject is not None and rule["name"] not in fields and (values := _found(rule, subject)):
            fields[rule["name"]] = _listed(values) if rule.get("all") else values[0]
    if PAGE_FIELD not in fields and not all(set(VARIANTS).isdisjoint(named_segments(rule)) for rule in rules.rules):
        path = urlsplit(url).path.split("/")
        kept = "/".join(segment for position, segment in enumerate(path) if position not in left_out)
        fields[PAGE_FIELD] = cut_line(unquote(kept)) or "/"
    return fields


def named_segments(rule: Mapping[str, Any]) -> list[str]:
    """The names that a rule's path gives to segments."""
    return SEGMENT.findall(rule.get("path", ""))


def match_path(pattern: str, place: str) -> dict[str, tuple[int, str]] | None:
    """The segments that a pattern names, each with its number in the path; ``None`` if the pattern does not match.

    Args:
        pattern: In which ``*`` stands for anything and ``{name}`` for what is in one segment, which may have one.
        place: A path, with its query if it has one.
    """
    found: dict[str, tuple[int, str]] = {}
    parts = re.split(r"\*+", pattern)
    position = 0
    for number, part in enumerate(parts):
        # Between the literals, every second piece is a name.
        pieces = SEGMENT.split(part)
        expression = "".join("([^/?]+)" if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces))
        compiled = re.compile(expression + (r"\Z" if number == len(parts) - 1 else ""))
        match = compiled.search(place, position) if number else compiled.match(place)
        if match is None:
            return None
        for group, name in enumerate(pieces[1::2], 1):
            found[name] = (place.count("/", 0, match.start(group)), match[group])
        position = match.end()
    return found


def _place(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _filled(templates: Mapping[str, str], segments: Mapping[str, tuple[int, str]]) -> dict[str, Value]:
    """The values that a rule sets, with the segments that it names in place of their names."""

    def text(brace: re.Match[str]) -> str:
        return unquote(segments[brace[1]][1]) if brace[1] in segments else brace[0]

    filled = ((name, cut_line(SEGMENT.sub(text, template))) for name, template in templates.items())
    return {name: value for name, value in filled if value}


def _found(rule: Mapping[str, Any], subject: Subject) -> list[Any]:
    """The values that a rule finds on a page, each once, in the page's order."""
    if "selector" in rule:
        values: Iterator[Any] = _selected(subject, rule["selector"], rule.get("attribute"))
    elif "json_ld" in rule:
        values = _described(subject.metadata.json_ld, rule["json_ld"].split("."))
    else:
        values = (cut_line(content) for content in subject.metadata.named(rule["meta"].lower()))
    found: dict[tuple[type, Any], None] = {}
    for value in values:
        if value != "":
            found[type(value), value] = None
            if not rule.get("all") or len(found) == MAX_VALUES:
                break
    return [value for _, value in found]


def _selected(subject: Subject, selector: str, attribute: str | None) -> Iterator[str]:
    for element in subject.document.select(selector):
        if attribute is None:
            yield cut_line(node_to_text(element))
        else:
            value = cut_line(element.attr(attribute) or "")
            yield (absolute_address(value, subject.base) or value) if attribute in ADDRESSES and value else value


def _described(objects: Sequence[Mapping[str, Any]], path: Sequence[str]) -> Iterator[Any]:
    """The values at the end of a path into any of a page's objects, through the members of lists."""
    waiting: list[tuple[Any, int]] = [(item, 0) for item in reversed(objects)]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        value, depth = waiting.pop()
        if isinstance(value, list):
            waiting.extend((member, depth) for member in reversed(value[:MAX_NODES]))
        elif depth < len(path):
            if isinstance(value, dict) and path[depth] in value:
                waiting.append((value[path[depth]], depth + 1))
        elif isinstance(value, str):
            yield cut_line(value)
        elif isinstance(value, bool | int | float) and (isinstance(value, bool) or _is_kept(value)):
            yield value


def _is_kept(number: int | float) -> bool:
    """Tell whether a number is one that documents can have."""
    return number in INT64 if isinstance(number, int) else math.isfinite(number) and abs(number) < INT64.stop


def _listed(values: Sequence[Any]) -> list[Any]:
    """Values as one list: of numbers if all are, else of texts."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return list(values)
    return [value if isinstance(value, str) else str(value).lower() for value in values]
