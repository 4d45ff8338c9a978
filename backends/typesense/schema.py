"""The fields of a Typesense collection.

Callers who use Typesense's own syntax filter and facet by the fields as sent: ``title``, ``content``, ``url``,
``excerpt``, ``author``; ``date`` in Unix seconds; and custom fields, which are lists here (a field may have a single
value in one document and several in another): text as ``string[]``, numbers as ``int64[]`` until the first fraction
and as ``float[]`` from then on, booleans as ``bool``. A Typesense field has one type: if a custom field has several
kinds, the first kind gets its name, and the others are ``name__text``, ``name__number``, and ``name__bool``.

Fields with a leading ``_`` are the adapter's own, because callers cannot use such names. They make operations exact
that Typesense only approximates (equality ignores punctuation, ``float`` has 24 bits, sorting is by bytes), and they
never change type:
==================  =======================================================================================
``_doc``            the document as JSON, only stored, from which hits are built
``_id``             its id as sent, only stored; Typesense's ``id`` is its ``encode_id``
``_terms``          tokens for equality, presence, and emptiness of every field
``_changed_at``     time of the last write
``_bytes``          size of ``_doc``; missing in collections of earlier releases
``_g_title`` …      words of texts that Typesense folds differently (:mod:`backends.servers.tokenizer`)
``_sections``       titles of its sections; ``_g_sections`` their words that Typesense folds differently
``_places``         its sections, only stored
``_folding``        in no document: marks collections whose queries :func:`.tokenizer.fold_word` folds
``_s_name``         text to sort by
``_n_name``         number to sort and compare by; for ``date``, the instant in microseconds
``_lo_``, ``_hi_``  smallest and largest number of a list; ``_l_name`` all of them
``_v_name``         facet values
==================  =======================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from backends.base import Document
from backends.field_rules import with_required_fields
from backends.query import FieldKind, FieldKinds
from backends.sections import pack
from backends.servers.documents import (
    as_list,
    encode_id,
    facet_token,
    number_term,
    ordered_number,
    sort_text,
    term,
    text_term,
)
from backends.servers.tokenizer import extra_words, plain_punctuation
from backends.standard_fields import SORTED_FIELDS, STANDARD, TEXT_FIELDS
from backends.text import word_boundaries
from backends.values import INT64, parse_instant, value_text

STANDARD_SORTS = {name: f"_s_{name}" for name in SORTED_FIELDS if name != "date"}
_STRINGS = tuple(field for field in STANDARD if field.kind in ("text", "address"))
_EMPTY = {field.name: "" for field in _STRINGS if field.required}

_MAX_WORD_CHARACTERS = 10_000
"""Longer words are split: 0.24.1 never answers a search with highlights that finds a word of 99,000 characters."""

_LONG_WORD_OR_WORD = re.compile(rf"(\S{{{_MAX_WORD_CHARACTERS}}})|\S+")

SECTION_TITLES = "_sections"
STORED_SECTIONS = "_places"
DOCUMENT_BYTES = "_bytes"
FOLDING = "_folding"
"""A field of every collection except those created when fewer letters had their words in ``_g_…``."""


def _optional(name: str, kind: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "optional": True, **options}


def collection_schema(name: str) -> dict[str, Any]:
    """Return the schema of a new, empty collection."""
    return {
        "name": name,
        "token_separators": [
            char for char in word_boundaries() if char.isascii() and char.isprintable() and char != " "
        ],
        "fields": [
            *({"name": name, "type": "string"} for name in _EMPTY),
            _optional("excerpt", "string"),
            _optional("author", "string", facet=True),
            _optional("date", "int64", facet=True),
            _optional("_v_author", "string[]", facet=True),
            _optional("_v_date", "string[]", facet=True),
            _optional("_n_date", "int64", sort=True),
            {"name": "_changed_at", "type": "int64", "sort": True},
            {"name": "_terms", "type": "string[]"},
            *(_optional(f"_g_{field}", "string") for field in TEXT_FIELDS),
            _optional(SECTION_TITLES, "string[]"),
            _optional(f"_g{SECTION_TITLES}", "string"),
            _optional(STORED_SECTIONS, "string", index=False),
            *(_optional(field, "string", sort=True) for field in STANDARD_SORTS.values()),
            _optional("_doc", "string", index=False),
            _optional(DOCUMENT_BYTES, "int64", facet=True),
            _optional("_id", "string", index=False),
            _optional(FOLDING, "string", index=False),
        ],
    }


_GROUPS = {
    FieldKind.STRING: "text",
    FieldKind.STRING_LIST: "text",
    FieldKind.NUMBER: "number",
    FieldKind.NUMBER_LIST: "number",
    FieldKind.BOOLEAN: "bool",
}
_TYPES = {"string[]": "text", "int64[]": "number", "float[]": "number", "bool": "bool"}


def native_name(field: str, group: str, types: Mapping[str, str]) -> str:
    """Return the Typesense field for values of one group (``text``, ``number``, ``bool``) of a custom field."""
    return field if _TYPES.get(types.get(field, ""), group) == group else f"{field}__{group}"


def field_types(collection: Mapping[str, Any]) -> dict[str, str]:
    """Return a collection's fields and their types, from Typesense's description of it."""
    return {str(field["name"]): str(field["type"]) for field in collection["fields"]}


def schema_changes(types: Mapping[str, str], kinds: FieldKinds, documents: Iterable[Document]) -> list[dict[str, Any]]:
    """Return the fields to add, or to drop and add with a wider type, before ``documents`` can be written."""
    planned = dict(types)
    changes: list[dict[str, Any]] = []
    documents = list(documents)

    def need(name: str, kind: str, **options: Any) -> None:
        if name not in planned:
            planned[name] = kind
            changes.append(_optional(name, kind, **options))

    if any(document.sections for document in documents):
        need(SECTION_TITLES, "string[]")
        need(f"_g{SECTION_TITLES}", "string")
    fractions = _fields_with_fractions(documents, kinds)
    for field in sorted(kinds):
        for kind in sorted(kinds[field]):
            group = _GROUPS[kind]
            native = native_name(field, group, planned)
            if group == "number" and field in fractions and planned.get(native) == "int64[]":
                # Typesense cannot change a field's type; the field is dropped and added in one request.
                changes.append({"name": native, "drop": True})
                del planned[native]
            numbers = "float[]" if field in fractions else "int64[]"
            need(native, {"text": "string[]", "number": numbers, "bool": "bool"}[group], facet=True)
            need(f"_v_{field}", "string[]", facet=True)
            if kind in (FieldKind.STRING, FieldKind.BOOLEAN):
                need(f"_s_{field}", "string", sort=True)
            elif kind is FieldKind.NUMBER:
                need(f"_n_{field}", "int64", sort=True)
            elif kind is FieldKind.NUMBER_LIST:
                for prefix in ("_lo_", "_hi_"):
                    need(prefix + field, "int64")
                need(f"_l_{field}", "int64[]")
    return changes


def engine_document(document: Document, kinds: FieldKinds, types: Mapping[str, str]) -> dict[str, Any]:
    """Convert a document for Typesense."""
    fields = document.fields
    terms: set[str] = set()
    source = orjson.dumps(with_required_fields(fields))
    columns: dict[str, Any] = {
        "id": encode_id(document.id),
        "_id": document.id,
        "_doc": source.decode(),
        DOCUMENT_BYTES: len(source),
        "_changed_at": document.changed_at,
        **_EMPTY,
        "_s_id": sort_text(document.id),
    }
    for field in _STRINGS:
        value = fields.get(field.name)
        if isinstance(value, str):
            columns[field.name] = _searched_text(value)
            _add_standard_text(columns, field.name, value)
    terms.add(term("id", "exact", document.id))
    date = fields.get("date")
    instant = parse_instant(date) if isinstance(date, str) else None
    if isinstance(date, str) and instant is not None:
        columns["date"], columns["_n_date"], columns["_v_date"] = instant // 1_000_000, instant, [facet_token(date)]
        terms.add(term("date", "instant", str(instant)))
    for name, value in fields.items():
        terms |= _terms_of(name, value)
        if name in kinds:
            _add_custom_field(columns, name, value, types)
    if document.sections:
        titles = [section.title for section in document.sections]
        columns[SECTION_TITLES] = list(map(_searched_text, titles))
        columns[STORED_SECTIONS] = pack(document.sections).decode()
        if words := extra_words(" ".join(titles)):
            columns[f"_g{SECTION_TITLES}"] = words
    columns["_terms"] = sorted(terms)
    return columns


def _searched_text(text: str) -> str:
    """``"l’été"`` -> ``"l'été"``: a text with boundaries at which Typesense splits; very long words are split, too."""
    plain = plain_punctuation(text)
    if len(plain) <= _MAX_WORD_CHARACTERS or max(map(len, plain.split()), default=0) <= _MAX_WORD_CHARACTERS:
        return plain
    return _LONG_WORD_OR_WORD.sub(lambda match: f"{match[0]} " if match[1] else match[0], plain)


def _add_standard_text(columns: dict[str, Any], name: str, value: str) -> None:
    if name in STANDARD_SORTS:
        columns[STANDARD_SORTS[name]] = sort_text(value)
    if name in TEXT_FIELDS and (words := extra_words(value)):
        columns[f"_g_{name}"] = words
    if name == "author":
        columns["_v_author"] = [facet_token(value)]


def _add_custom_field(columns: dict[str, Any], name: str, value: Any, types: Mapping[str, str]) -> None:
    items = as_list(value)
    columns[f"_v_{name}"] = list(dict.fromkeys(facet_token(value_text(item)) for item in items))
    if isinstance(value, bool):
        columns[native_name(name, "bool", types)] = value
        columns[f"_s_{name}"] = sort_text(value_text(value))
    elif isinstance(value, str):
        columns[native_name(name, "text", types)] = [value]
        columns[f"_s_{name}"] = sort_text(value)
    elif not isinstance(value, list | tuple):
        native = native_name(name, "number", types)
        columns[native] = _numbers([value], types.get(native, ""))
        columns[f"_n_{name}"] = ordered_number(value)
    elif items and not isinstance(items[0], str):
        numbers = [ordered_number(item) for item in items]
        native = native_name(name, "number", types)
        columns[native] = _numbers(items, types.get(native, ""))
        columns[f"_lo_{name}"], columns[f"_hi_{name}"], columns[f"_l_{name}"] = min(numbers), max(numbers), numbers
    else:
        columns[native_name(name, "text", types)] = items


def _terms_of(name: str, value: Any) -> set[str]:
    terms = {term(name, "exists", "")}
    if value == "" or value == [] or value == ():
        terms.add(term(name, "empty", ""))
    for item in as_list(value):
        if isinstance(item, (bool, str)):
            terms.add(text_term(name, value_text(item)))
        else:
            terms.add(number_term(name, item))
            terms.add(term(name, "has number", ""))
    return terms


def _fields_with_fractions(documents: Iterable[Document], kinds: FieldKinds) -> set[str]:
    fields: set[str] = set()
    for document in documents:
        for name, value in document.fields.items():
            if name in kinds and name not in fields and any(_is_fraction(item) for item in as_list(value)):
                fields.add(name)
    return fields


def _is_fraction(item: Any) -> bool:
    if isinstance(item, float):
        return not item.is_integer() or int(item) not in INT64
    return type(item) is int and item not in INT64


def _numbers(items: list[Any], kind: str) -> list[Any]:
    return [int(item) for item in items] if kind == "int64[]" else items
