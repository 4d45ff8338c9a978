"""The tantivy schema of an index, and how a document's custom fields are indexed.

Custom fields have any name and any kind, but tantivy's schema is fixed when an index is created. So:

* for equality filters, a value becomes a *filter term* ``name, kind, value`` in one field of exact terms;
* for facets, a value is stored as text in a JSON field;
* for sorting and comparison by size, a field gets a numbered *dynamic column* (one for text and one for numbers) when
  it first occurs. An index that runs out of columns is rebuilt with four times as many.
"""

from __future__ import annotations

import hashlib
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Final

import tantivy

from backends.analysis.normalization import ANALYZER, TOKENIZER
from backends.errors import BackendUnavailable
from backends.sections import SECTIONS
from backends.standard_fields import SORTED_FIELDS, TEXT_FIELDS
from backends.values import fold_to_bytes

SCHEMA_VERSION: Final = 9
"""Version of the index contents; increases with every change of this schema or of the terms of a document.

Indexes of an earlier version are rebuilt. ``tests/backends/embedded/index/test_schema.py`` contains its fingerprint.
"""

OLDEST_READABLE_VERSION: Final = 4
"""Oldest schema version that can be searched until its rebuild; indexes of older versions count as missing.

Raise this only when searches cannot work without the additions of newer versions, because sites with older indexes
get no results until the rebuild. When writing a document, tantivy ignores columns that an older index lacks; queries
must handle a missing column themselves.
"""

FIRST_DYNAMIC_COLUMNS: Final = 8
"""Initial number of dynamic columns; small, because opening an index reads its schema (half of the time with 32)."""

MAX_DYNAMIC_COLUMNS: Final = 8192
"""Maximum number of dynamic columns: tantivy numbers columns in 16 bits, which four times as many would exceed."""

MAX_PLAIN_VALUE_BYTES: Final = 32
"""Maximum length of a folded value in a term; longer values are hashed, because long terms slow writes and merges."""

MAX_TITLE_PREFIX_BYTES: Final = 60
"""Number of bytes of a folded title in the term by which a title that begins with the query is found."""

MAX_PATH_CHARS: Final = 60
"""Maximum length of the end of a URL's path in a term; the paths of a site rarely differ before it."""

_DIGEST_BYTES: Final = 12

ID: Final = "id"
FILTER_TERMS: Final = "marks"
FACETS: Final = "facets"
DATE: Final = "date"
SORTED_STANDARD_FIELDS: Final = tuple(name for name in SORTED_FIELDS if name != DATE)
UPDATED_AT: Final = "changed"
LANGUAGE: Final = "language"
SOURCE: Final = "answer"
DEFAULTED_FIELDS: Final = "padded"
STORED_SECTIONS: Final = "places"
WORD_PARTS: Final = "parts"
"""Field with the parts of words that are written as one word (``app table record`` for ``appTableRecord``)."""

COMPOUNDS: Final = "compounds"
"""Field with the long words of languages with compounds, in reverse."""

PARTED_WORDS: Final = "parted"
"""Words of the texts that are also indexed in other forms, separated by line breaks; stored for highlighting."""


def build_schema(dynamic_columns: int) -> tantivy.Schema:
    """Return the schema of an index with this number of dynamic columns."""
    builder = tantivy.SchemaBuilder()
    # ``basic`` stores no frequencies and positions, which only scored text and phrases need.
    builder.add_text_field(ID, stored=True, tokenizer_name="raw", index_option="basic")
    for name in (*TEXT_FIELDS, SECTIONS):
        builder.add_text_field(name, tokenizer_name=TOKENIZER)
        builder.add_text_field(toned_column(name), tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(WORD_PARTS, tokenizer_name=TOKENIZER)
    builder.add_text_field(COMPOUNDS, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(FILTER_TERMS, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(LANGUAGE, tokenizer_name="raw", index_option="basic")
    builder.add_json_field(FACETS, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field(DATE, indexed=True, fast=True)
    builder.add_integer_field(UPDATED_AT, fast=True)
    for name in SORTED_STANDARD_FIELDS:
        builder.add_text_field(sort_column(name), fast=True, tokenizer_name="raw", index_option="basic")
    for dynamic_column in range(dynamic_columns):
        builder.add_text_field(text_column(dynamic_column), fast=True, tokenizer_name="raw", index_option="basic")
        builder.add_float_field(number_column(dynamic_column), fast=True)
    builder.add_bytes_field(DEFAULTED_FIELDS, stored=True)
    builder.add_bytes_field(SOURCE, stored=True)
    builder.add_bytes_field(STORED_SECTIONS, stored=True)
    builder.add_bytes_field(PARTED_WORDS, stored=True)
    return builder.build()


def enough_dynamic_columns(capacity: int, needed: int) -> int:
    """Return the new number of dynamic columns for an index: ``capacity`` times a power of four, at least ``needed``.

    Raises:
        BackendUnavailable: ``needed`` exceeds :data:`MAX_DYNAMIC_COLUMNS`.
    """
    if needed > MAX_DYNAMIC_COLUMNS:
        raise BackendUnavailable("The documents have more different fields than the search engine supports.")
    while capacity < needed:
        capacity *= 4
    return capacity


def register_tokenizers(index: tantivy.Index) -> None:
    """Register the analyzer of an opened index; tantivy stores only its name."""
    index.register_tokenizer(TOKENIZER, ANALYZER)


def toned_column(name: str) -> str:
    """Return the column for a text field's words with their tones; the text field itself contains the folded words."""
    return f"toned_{name}"


TONED: Final = "\x1ftoned"
"""Filter term of documents whose words are also in the toned columns."""


def sort_column(name: str) -> str:
    return f"sort_{name}"


def text_column(dynamic_column: int) -> str:
    return f"text_{dynamic_column}"


def number_column(dynamic_column: int) -> str:
    return f"number_{dynamic_column}"


def column_of(name: str, dynamic_columns: Mapping[str, int]) -> str | None:
    """Return the column by which a field is sorted; ``None`` if no document has had a sortable value in the field."""
    if name == DATE:
        return DATE
    if name in SORTED_STANDARD_FIELDS:
        return sort_column(name)
    dynamic_column = dynamic_columns.get(name)
    return None if dynamic_column is None else text_column(dynamic_column)


def facet_path(name: str) -> str:
    return f"{FACETS}.{name}"


def exists_term(name: str) -> str:
    """Return the filter term of documents that have the field, with any value."""
    return f"{name}\x1f+"


def empty_term(name: str) -> str:
    """Return the filter term of documents whose field is ``""`` or ``[]``."""
    return f"{name}\x1f-"


def sortable_term(name: str) -> str:
    """Return the filter term of documents whose field has a single value, by which they can be sorted."""
    return f"{name}\x1f^"


def folder_term(folder: str) -> str:
    """Return the filter term of documents whose URL's path is in a folder; of all documents with a URL for ``""``."""
    return f"url\x1f/{folder}"


def path_term(path: str) -> str:
    """Return the filter term of documents whose URL has a path, or a last segment, folded and without a final slash."""
    return f"url\x1f@{path[-MAX_PATH_CHARS:]}"


def title_beginning(text: str) -> str:
    """Return the common prefix of the terms of all titles that begin with a text. Long texts are truncated."""
    beginning = fold_to_bytes(text)[:MAX_TITLE_PREFIX_BYTES].decode(errors="ignore")
    return f"title\x1f^{beginning}"


def section_term(title: str) -> str:
    """Return the filter term of documents with a section of this title; no field can be named ``#``."""
    return equality_term("#", title)


def equality_term(name: str, value: str) -> str:
    """Return the filter term of documents whose field equals the text, or is a list that contains it."""
    folded = fold_to_bytes(value)
    if len(folded) <= MAX_PLAIN_VALUE_BYTES:
        return f"{name}\x1f={folded.decode()}"
    digest = hashlib.blake2b(folded, digest_size=_DIGEST_BYTES).digest()
    return f"{name}\x1f~{b2a_base64(digest, newline=False).decode()}"


def number_term(name: str, value: int | float) -> str:
    """Return the filter term of documents whose field is the number, or a list that contains it; 5 equals 5.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{name}\x1f#{value!r}"
