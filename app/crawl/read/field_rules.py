"""Custom fields from a source's rules: from a page's URL, CSS selectors, JSON-LD, or ``<meta>`` elements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from turbohtml import Document

from app.crawl.fetch.values import FieldRules
from app.crawl.read.links import absolute_address
from app.crawl.read.metadata import Metadata
from app.crawl.read.text import cut_line
from app.texts.formats import node_to_text
from backends.globs import literals_of
from backends.values import INT64
from schemas.validation.sites import SEGMENT

VARIANTS = ("version", "lang")
"""Names of path segments that distinguish versions of the same page."""
PAGE_FIELD = "page"
URL_ATTRIBUTES = ("href", "src")
"""Attributes whose values are resolved to absolute URLs."""
MAX_VALUES = 100
_SEGMENT_END = re.compile(r"[/?]|\Z")
MAX_NODES = 10_000
"""Maximum number of JSON-LD nodes of a page that are visited for one field."""

Value = str | bool | int | float | list[Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """An HTML page to which rules are applied.

    Attributes:
        base: Base URL of the page's relative URLs.
    """

    document: Document
    metadata: Metadata
    base: str


def ruled_fields(rules: FieldRules, url: str, subject: Subject | None = None) -> dict[str, Value]:
    """Return the custom fields of a page. The first rule that yields a value for a field wins.

    If a rule calls a path segment ``version`` or ``lang``, the field ``page`` is the path without these segments.

    Args:
        url: The page's canonical URL.
        subject: ``None`` for a file that is not HTML, which only gets fields from its URL.

    Raises:
        ValueError: A selector is not valid CSS.
    """
    path = _path_and_query(url)
    fields: dict[str, Value] = {}
    variant_positions: set[int] = set()
    for rule in rules.rules:
        if "path" in rule:
            segments = match_path(rule["path"], path)
            if segments is not None:
                variant_positions |= {segments[name][0] for name in VARIANTS if name in segments and name not in fields}
                fields = _filled(rule["set"], segments) | fields
        elif subject is not None and rule["name"] not in fields and (values := _page_values(rule, subject)):
            fields[rule["name"]] = _uniform(values) if rule.get("all") else values[0]
    if PAGE_FIELD not in fields and not all(set(VARIANTS).isdisjoint(named_segments(rule)) for rule in rules.rules):
        all_segments = urlsplit(url).path.split("/")
        common = "/".join(segment for position, segment in enumerate(all_segments) if position not in variant_positions)
        fields[PAGE_FIELD] = cut_line(unquote(common)) or "/"
    return fields


def named_segments(rule: Mapping[str, Any]) -> list[str]:
    """Return the names of the segments in a rule's path: ``"/{lang}/docs/*" -> ["lang"]``."""
    return SEGMENT.findall(rule.get("path", ""))


def match_path(pattern: str, path: str) -> dict[str, tuple[int, str]] | None:
    """Match a path against a pattern.

    Args:
        pattern: ``*`` matches anything, and ``{name}`` matches text within one segment.
        path: A path, with its query if it has one.

    Returns:
        The named segments, each with its position in the path and its text; ``None`` if the pattern does not match.
    """
    segments: dict[str, tuple[int, str]] = {}
    parts = literals_of(pattern)
    position = 0
    for number, part in enumerate(parts):
        # ``SEGMENT`` has one group, so every second piece is a name.
        pieces = SEGMENT.split(part)
        expression = "".join("([^/?]+)" if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces))
        compiled = re.compile(expression + (r"\Z" if number == len(parts) - 1 else ""))
        match = _search(compiled, pieces[0], path, position) if number else compiled.match(path)
        if match is None:
            return None
        for group, name in enumerate(pieces[1::2], 1):
            segments[name] = (path.count("/", 0, match.start(group)), match[group])
        position = match.end()
    return segments


def _search(expression: re.Pattern[str], literal: str, path: str, position: int) -> re.Match[str] | None:
    """Search for an expression that begins with a literal, in linear time."""
    if expression.groups == 0:
        return expression.search(path, position)
    starts = re.compile(re.escape(literal))
    while position <= len(path) and (start := starts.search(path, position)) is not None:
        match = expression.match(path, start.start())
        if match is not None:
            return match
        # The named segment failed up to its end, so it also fails from any later start in the same segment.
        after = _SEGMENT_END.search(path, start.end())
        assert after is not None
        position = max(start.start(), after.start() - len(literal)) + 1
    return None


def _path_and_query(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _filled(templates: Mapping[str, str], segments: Mapping[str, tuple[int, str]]) -> dict[str, Value]:
    def text(brace: re.Match[str]) -> str:
        return unquote(segments[brace[1]][1]) if brace[1] in segments else brace[0]

    filled = ((name, cut_line(SEGMENT.sub(text, template))) for name, template in templates.items())
    return {name: value for name, value in filled if value}


def _page_values(rule: Mapping[str, Any], subject: Subject) -> list[Any]:
    """Return the distinct values that a rule selects on a page, in the page's order."""
    if "selector" in rule:
        values: Iterator[Any] = _selected(subject, rule["selector"], rule.get("attribute"))
    elif "json_ld" in rule:
        values = _described(subject.metadata.json_ld, rule["json_ld"].split("."))
    else:
        values = (cut_line(content) for content in subject.metadata.contents(rule["meta"].lower()))
    # Keyed by type as well, since True == 1 and 1 == 1.0.
    distinct: dict[tuple[type, Any], None] = {}
    for value in values:
        if value != "":
            distinct[type(value), value] = None
            if not rule.get("all") or len(distinct) == MAX_VALUES:
                break
    return [value for _, value in distinct]


def _selected(subject: Subject, selector: str, attribute: str | None) -> Iterator[str]:
    for element in subject.document.select(selector):
        if attribute is None:
            yield cut_line(node_to_text(element))
        else:
            value = cut_line(element.attr(attribute) or "")
            is_url = attribute in URL_ATTRIBUTES and value
            yield (absolute_address(value, subject.base, is_file=attribute == "src") or value) if is_url else value


def _described(objects: Sequence[Mapping[str, Any]], path: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path in any of a page's JSON-LD objects, including values inside lists along the path."""
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
        elif isinstance(value, bool | int | float) and (isinstance(value, bool) or _is_storable(value)):
            yield value


def _is_storable(number: int | float) -> bool:
    """Whether a document can store a number."""
    return number in INT64 if isinstance(number, int) else math.isfinite(number) and abs(number) < INT64.stop


def _uniform(values: Sequence[Any]) -> list[Any]:
    """Return the values as numbers if all of them are numbers, otherwise as strings."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return list(values)
    return [value if isinstance(value, str) else str(value).lower() for value in values]
