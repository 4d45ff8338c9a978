"""The fields of an index in tantivy, and where a document's own fields go.

A document's own fields have any name and any kind, and tantivy's schema is fixed when an index is made. So:

* what can be compared for equality is a *filter term* ``name, kind, value`` in one field of exact terms;
* what can be counted is a JSON field of texts;
* what can be sorted by or compared by size takes a numbered *dynamic column*, one for text and one for numbers, given
  out when a field is first seen. An index that has given out all of them is rebuilt with four times as many.
"""

from __future__ import annotations

import hashlib
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Final

import tantivy

from backends.embedded.analysis.normalization import ANALYZER, TOKENIZER
from backends.errors import BackendUnavailable
from backends.sections import SECTIONS
from backends.standard_fields import SORTED_FIELDS, TEXT_FIELDS
from backends.values import fold_to_bytes

SCHEMA_VERSION: Final = 5
"""Counts up with every change of what is written: of this schema, or of the terms that a document gets.

Indexes of an earlier version are built anew. ``tests/backends/embedded/index/test_schema.py`` has its fingerprint.
"""

OLDEST_READABLE_VERSION: Final = 4
"""Indexes of this version on are searched until they are built anew; older ones count as missing.

To be raised only when searches cannot do without what older indexes lack: their sites are then without results until
they are built. Tantivy passes over a column that an older index does not have when a document is written to it; a query
must ask for its own.
"""

FIRST_DYNAMIC_COLUMNS: Final = 8
"""Few, since whoever opens an index reads its schema: with 32, that took half of the time."""

MOST_DYNAMIC_COLUMNS: Final = 8192
"""Tantivy counts the columns of an index in 16 bits; four times as many would be beyond that."""

LONGEST_PLAIN_VALUE: Final = 32
"""Bytes of a folded value beyond which its term holds its digest: a term costs by its length, written or merged."""

LONGEST_TITLE_BEGINNING: Final = 60
"""Bytes of a folded title by which it is found as one that begins with the query."""

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


def build_schema(dynamic_columns: int) -> tantivy.Schema:
    """The schema of an index with so many dynamic columns."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID, stored=True, tokenizer_name="raw", index_option="basic")
    for name in (*TEXT_FIELDS, SECTIONS):
        builder.add_text_field(name, tokenizer_name=TOKENIZER)
        builder.add_text_field(toned_column(name), tokenizer_name="whitespace", index_option="freq")
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
    return builder.build()


def enough_dynamic_columns(capacity: int, wanted: int) -> int:
    """The number of columns for an index that has some and needs more: many more, so that it is rarely written anew.

    Raises:
        BackendUnavailable: No index can have so many.
    """
    if wanted > MOST_DYNAMIC_COLUMNS:
        raise BackendUnavailable("The documents have more different fields than the search engine can hold.")
    while capacity < wanted:
        capacity *= 4
    return capacity


def register_tokenizers(index: tantivy.Index) -> None:
    """Tell an opened index how text is split; tantivy keeps only the name."""
    index.register_tokenizer(TOKENIZER, ANALYZER)


def toned_column(name: str) -> str:
    """The words of a text field that have tones, with them; the text field itself has them folded."""
    return f"toned_{name}"


TONED: Final = "\x1ftoned"
"""The filter term of documents that have their words in the toned columns, too."""


def sort_column(name: str) -> str:
    return f"sort_{name}"


def text_column(dynamic_column: int) -> str:
    return f"text_{dynamic_column}"


def number_column(dynamic_column: int) -> str:
    return f"number_{dynamic_column}"


def column_of(name: str, dynamic_columns: Mapping[str, int]) -> str | None:
    """The column a field is sorted by, ``None`` when no document has held a value to sort by."""
    if name == DATE:
        return DATE
    if name in SORTED_STANDARD_FIELDS:
        return sort_column(name)
    dynamic_column = dynamic_columns.get(name)
    return None if dynamic_column is None else text_column(dynamic_column)


def facet_path(name: str) -> str:
    return f"{FACETS}.{name}"


def exists_term(name: str) -> str:
    """The filter term of documents that have the field, whatever it holds."""
    return f"{name}\x1f+"


def empty_term(name: str) -> str:
    """The filter term of documents whose field is ``""`` or ``[]``."""
    return f"{name}\x1f-"


def sortable_term(name: str) -> str:
    """The filter term of documents whose field holds one value to sort by."""
    return f"{name}\x1f^"


def title_beginning(text: str) -> str:
    """The beginning of the term of a title that begins with the text. Of long titles it is the beginning only."""
    beginning = fold_to_bytes(text)[:LONGEST_TITLE_BEGINNING].decode(errors="ignore")
    return f"title\x1f^{beginning}"


def section_term(title: str) -> str:
    """The filter term of documents with a section of this title; no field is named like it."""
    return equality_term("#", title)


def equality_term(name: str, value: str) -> str:
    """The filter term of documents whose field equals, or as a list holds, the text."""
    folded = fold_to_bytes(value)
    if len(folded) <= LONGEST_PLAIN_VALUE:
        return f"{name}\x1f={folded.decode()}"
    digest = hashlib.blake2b(folded, digest_size=_DIGEST_BYTES).digest()
    return f"{name}\x1f~{b2a_base64(digest, newline=False).decode()}"


def number_term(name: str, value: int | float) -> str:
    """The filter term of documents whose field equals, or as a list holds, the number; 5 and 5.0 are one number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{name}\x1f#{value!r}"
