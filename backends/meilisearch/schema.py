"""The fields that a Meilisearch index has for one document, and the index's settings.

The fields are the document's own, so they can be filtered and counted in Meilisearch's syntax; ``date`` is a number of
Unix seconds. Fields with a leading ``_`` are the adapter's: ``_pk`` the primary key (``encode_id``), ``_doc`` the
document as JSON, ``_key`` a token of its id (Meilisearch compares text without case), ``_date`` the date as sent,
``_changed_at`` the time of the last write, ``_blank`` tokens of the fields with an empty text (Meilisearch does not
count it among their values), ``_n_name`` the numbers of a further field (Meilisearch compares text too, by its
letters), ``_g_title`` … the words of texts that it folds or splits otherwise (``tokenizer``), ``_sections`` and
``_g_sections`` the titles of its sections, ``_places`` the sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from backends.base import Document, FieldKinds
from backends.field_rules import (
    NUMBER_KINDS,
    ONE_ERROR_FROM,
    SCALAR_KINDS,
    TWO_ERRORS_FROM,
    with_required_fields,
)
from backends.sections import pack
from backends.servers.document_ids import encode_id
from backends.servers.sort_text import as_list, term
from backends.servers.tokenizer import folded_words, meilisearch_separators
from backends.standard_fields import SORTED_FIELDS, STANDARD_FIELDS, TEXT_FIELDS
from backends.values import parse_instant

PRIMARY_KEY = "_pk"
FOLDED_FIELDS = {name: f"_g_{name}" for name in TEXT_FIELDS}
"""The field beside each text; indexes made by earlier versions do not search them."""

FACET_VALUES = 1000
"""Facet values Meilisearch gives; 100 are shown, the others settle ties."""

BLANK_FIELDS = "_blank"
SECTION_TITLES, FOLDED_TITLES = "_sections", "_g_sections"
STORED_SECTIONS = "_places"
_SEARCHABLE = [name for pair in FOLDED_FIELDS.items() for name in pair]
_SEARCHABLE[2:2] = [SECTION_TITLES, FOLDED_TITLES]
_FILTERABLE = (*STANDARD_FIELDS, "_key", "_date", BLANK_FIELDS)
_SORTABLE = (*SORTED_FIELDS, "_changed_at")
_RANKING = ("sort", "words", "typo", "attribute", "exactness", "proximity", "date:desc", "_changed_at:desc")
_MAX_TOTAL = 2_147_483_647


def index_settings(cutoff_ms: int) -> dict[str, Any]:
    """The settings of a new index.

    Args:
        cutoff_ms: Time after which Meilisearch gives what it has; longer than we wait, so that no total is cut.
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
    """The settings to change before documents with these fields can be written; empty if there are none."""
    changes: dict[str, Any] = {}
    sortable = {name for name, seen in kinds.items() if seen & SCALAR_KINDS}
    numbers = {f"_n_{name}" for name, seen in kinds.items() if seen & NUMBER_KINDS}
    for name, wanted in (("filterableAttributes", set(kinds) | numbers), ("sortableAttributes", sortable)):
        there = [each for each in settings[name] if isinstance(each, str)]
        if wanted - set(there):
            changes[name] = sorted({*there, *wanted})
    return changes


def engine_document(document: Document) -> dict[str, Any]:
    """One document as Meilisearch gets it."""
    fields = document.fields
    made = {
        **fields,
        PRIMARY_KEY: encode_id(document.id),
        "id": document.id,
        "_key": id_token(document.id),
        "_doc": orjson.dumps(with_required_fields(fields)).decode(),
        "_changed_at": document.changed_at,
    }
    for name, value in fields.items():
        if name not in STANDARD_FIELDS and _is_number(value[0] if isinstance(value, list | tuple) and value else value):
            made[f"_n_{name}"] = value
    if blank := [blank_token(name) for name, value in fields.items() if _has_blank_text(value)]:
        made[BLANK_FIELDS] = blank
    for name, beside in FOLDED_FIELDS.items():
        if words := folded_words(fields.get(name, "")):
            made[beside] = words
    if document.sections:
        made[SECTION_TITLES] = [section.title for section in document.sections]
        made[STORED_SECTIONS] = pack(document.sections).decode()
        if words := folded_words(" ".join(made[SECTION_TITLES])):
            made[FOLDED_TITLES] = words
    date = made.pop("date", None)
    instant = parse_instant(date) if isinstance(date, str) else None
    if instant is not None:
        made["date"], made["_date"] = seconds_of(instant), date
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_blank_text(value: Any) -> bool:
    return any(isinstance(each, str) and not each.strip() for each in as_list(value))


def blank_token(field: str) -> str:
    """The token of a field that holds an empty text."""
    return term(field, "blank", "")


def id_token(document_id: str) -> str:
    """The token by which an id is compared exactly."""
    return term("id", "exact", document_id)


def seconds_of(instant: int) -> int | float:
    """Microseconds as Unix seconds."""
    return instant // 1_000_000 if instant % 1_000_000 == 0 else instant / 1_000_000
