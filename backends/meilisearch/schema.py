"""The fields of a Meilisearch index, and the index's settings.

Documents keep their own fields, so that they can be filtered and counted in Meilisearch's syntax; ``date`` is a number
of Unix seconds. The adapter adds fields with a leading ``_``:

- ``_pk``: the primary key (``encode_id``).
- ``_doc``: the document as JSON.
- ``_key``: a token of the document's id, because Meilisearch compares text case-insensitively.
- ``_date``: the date as sent.
- ``_changed_at``: the time of the last write.
- ``_blank``: tokens of the fields that contain an empty text, which Meilisearch does not count as a value.
- ``_n_name``: the numbers of the custom field ``name``, because Meilisearch's comparisons also match texts,
  alphabetically.
- ``_g_title`` and so on: the words of a text that Meilisearch folds or splits differently (``tokenizer``).
- ``_sections`` and ``_g_sections``: the titles of the document's sections.
- ``_places``: the sections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

import orjson

from backends.base import Document
from backends.distinct import distinct_field
from backends.field_rules import (
    NUMBER_KINDS,
    ONE_ERROR_FROM,
    SCALAR_KINDS,
    TWO_ERRORS_FROM,
    with_required_fields,
)
from backends.meilisearch.transport import MeilisearchTransport
from backends.query import FieldKinds, SearchQuery
from backends.sections import pack
from backends.servers.documents import as_list, encode_id, term
from backends.servers.synonyms import Entry
from backends.servers.tokenizer import folded_words, meilisearch_separators
from backends.standard_fields import SORTED_FIELDS, STANDARD_FIELDS, TEXT_FIELDS
from backends.values import parse_instant

PRIMARY_KEY = "_pk"
FOLDED_FIELDS = {name: f"_g_{name}" for name in TEXT_FIELDS}
"""The folded field beside each text field; indexes of earlier releases do not search them."""

FACET_VALUES = 1000
"""Number of facet values that Meilisearch returns; 100 are shown, the others settle ties."""

BLANK_FIELDS = "_blank"
SECTION_TITLES, FOLDED_TITLES = "_sections", "_g_sections"
STORED_SECTIONS = "_places"
_SEARCHABLE = [name for pair in FOLDED_FIELDS.items() for name in pair]
_SEARCHABLE[2:2] = [SECTION_TITLES, FOLDED_TITLES]
_FILTERABLE = (*STANDARD_FIELDS, "_key", "_date", BLANK_FIELDS)
_SORTABLE = (*SORTED_FIELDS, "_changed_at")
_RANKING = ("sort", "words", "typo", "attribute", "exactness", "proximity", "date:desc", "_changed_at:desc")
_MAX_TOTAL = 2_147_483_647
_MAX_POWER = 308
_MAX_DIGITS = 2.0**64


def index_settings(cutoff_ms: int) -> dict[str, Any]:
    """Return the settings of a new index.

    Args:
        cutoff_ms: Milliseconds after which Meilisearch returns partial results. Longer than the adapter's own timeout,
            so that a slow search fails instead of returning incomplete totals.
    """
    return {
        "searchableAttributes": _SEARCHABLE,
        "filterableAttributes": list(_FILTERABLE),
        "sortableAttributes": list(_SORTABLE),
        "rankingRules": list(_RANKING),
        "separatorTokens": list(meilisearch_separators()),
        "typoTolerance": {"minWordSizeForTypos": {"oneTypo": ONE_ERROR_FROM, "twoTypos": TWO_ERRORS_FROM}},
        "pagination": {"maxTotalHits": _MAX_TOTAL},
        "faceting": {"maxValuesPerFacet": FACET_VALUES, "sortFacetValuesBy": {"*": "count"}},
        "searchCutoffMs": cutoff_ms,
    }


def widened(settings: Mapping[str, Any], kinds: FieldKinds) -> dict[str, Any]:
    """Return the settings to change before documents with these fields can be written; empty if none."""
    changes: dict[str, Any] = {}
    sortable = {name for name, field_kinds in kinds.items() if field_kinds & SCALAR_KINDS}
    numbers = {f"_n_{name}" for name, field_kinds in kinds.items() if field_kinds & NUMBER_KINDS}
    for name, needed in (("filterableAttributes", set(kinds) | numbers), ("sortableAttributes", sortable)):
        existing = [field for field in settings[name] if isinstance(field, str)]
        if needed - set(existing):
            changes[name] = sorted({*existing, *needed})
    return changes


def engine_document(document: Document) -> dict[str, Any]:
    """Convert a document for Meilisearch."""
    fields = document.fields
    columns = {
        **fields,
        PRIMARY_KEY: encode_id(document.id),
        "id": document.id,
        "_key": id_token(document.id),
        "_doc": orjson.dumps(with_required_fields(fields)).decode(),
        "_changed_at": document.changed_at,
    }
    for name, value in fields.items():
        if name not in STANDARD_FIELDS and _is_number(value[0] if isinstance(value, list | tuple) and value else value):
            exact = list(map(exact_number, value)) if isinstance(value, list | tuple) else exact_number(value)
            columns[name] = columns[f"_n_{name}"] = exact
    if blank := [blank_token(name) for name, value in fields.items() if _has_blank_text(value)]:
        columns[BLANK_FIELDS] = blank
    for name, beside in FOLDED_FIELDS.items():
        if words := folded_words(fields.get(name, "")):
            columns[beside] = words
    if document.sections:
        columns[SECTION_TITLES] = [section.title for section in document.sections]
        columns[STORED_SECTIONS] = pack(document.sections).decode()
        if words := folded_words(" ".join(columns[SECTION_TITLES])):
            columns[FOLDED_TITLES] = words
    date = columns.pop("date", None)
    instant = parse_instant(date) if isinstance(date, str) else None
    if instant is not None:
        columns["date"], columns["_date"] = exact_number(seconds_of(instant)), date
    return columns


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def exact_number(value: int | float) -> int | float | orjson.Fragment:
    """Return a number as it must be sent for Meilisearch to store exactly this number, and 0.0 for -0.0.

    Meilisearch parses a number as its digits, as a double, times or divided by a power of ten. Of random numbers with
    17 digits, every ninth then became one of its neighbors, and comparisons with the number itself failed. Other digits
    give the number itself, except for about one of a thousand random numbers.
    """
    if isinstance(value, int) or _parsed(*_digits(orjson.dumps(abs(value)).decode())) == abs(value):
        return value + 0  # Turns -0.0 into 0.0, which Meilisearch treats as another number.
    for decimals in range(15, 20):
        digits, exponent = _digits(f"{abs(value):.{decimals}e}")
        near = float(digits)
        for candidate in (near, math.nextafter(near, math.inf), math.nextafter(near, 0.0)):
            if candidate < _MAX_DIGITS and _parsed(int(candidate), exponent) == abs(value):
                return orjson.Fragment(f"{'-' if value < 0 else ''}{int(candidate)}e{exponent}")
    return value


def _digits(text: str) -> tuple[int, int]:
    """``"1.25e3"`` -> ``(125, 1)``: the digits, and the power of ten that they are multiplied by."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(exponent or 0) - len(fraction)


def _parsed(digits: int, exponent: int) -> float:
    number = float(digits)
    if exponent < -_MAX_POWER:
        number, exponent = number / 10.0**_MAX_POWER, exponent + _MAX_POWER
    return number / float(f"1e{-exponent}") if exponent < 0 else number * float(f"1e{exponent}")


def _has_blank_text(value: Any) -> bool:
    return any(isinstance(item, str) and not item.strip() for item in as_list(value))


def blank_token(field: str) -> str:
    """Return the token that marks a document whose field contains an empty text."""
    return term(field, "blank", "")


def id_token(document_id: str) -> str:
    """Return the token for exact comparison of an ID."""
    return term("id", "exact", document_id)


def seconds_of(instant: int) -> int | float:
    """Convert microseconds to Unix seconds."""
    return instant // 1_000_000 if instant % 1_000_000 == 0 else instant / 1_000_000


class Settings:
    """The settings of indexes, as this process last read them.

    Attributes:
        filterable: The filterable fields of each index.
        folded: Whether each index has folded fields.
    """

    def __init__(self, transport: MeilisearchTransport):
        self._transport = transport
        self.filterable: dict[str, frozenset[str]] = {}
        self.folded: dict[str, bool] = {}

    def forget(self, name: str) -> None:
        """Forget the settings of an index."""
        self.filterable.pop(name, None)
        self.folded.pop(name, None)

    def read(self, name: str) -> dict[str, Any]:
        """Return the current settings of an index."""
        settings: dict[str, Any] = self._transport.ask("GET", f"/indexes/{name}/settings")
        self.folded[name] = FOLDED_FIELDS["title"] in settings["searchableAttributes"]
        self.filterable[name] = frozenset(field for field in settings["filterableAttributes"] if isinstance(field, str))
        return settings

    def filterable_of(self, name: str, query: SearchQuery) -> Set[str]:
        """Return the filterable fields of an index; reads its settings again if a field of the query is missing."""
        filterable = self.filterable.get(name)
        uses_fields = query.facets or query.portable_filter is not None or query.sort or distinct_field(query)
        needed = set(query.kinds) if uses_fields else set()
        if filterable is not None and needed <= filterable:
            return filterable
        self.read(name)
        return self.filterable[name]


def engine_synonyms(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """Return synonyms as Meilisearch stores them: the other phrases for each phrase."""
    by_phrase: dict[str, set[str]] = {}
    for searched, others in entries:
        phrases = set(map(" ".join, others))
        for phrase in map(" ".join, searched):
            by_phrase.setdefault(phrase, set()).update(phrases - {phrase})
    return {phrase: sorted(others) for phrase, others in by_phrase.items() if others}
