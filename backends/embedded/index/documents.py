"""Converting documents between the service and tantivy, and rebuilding an index from its stored documents."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson
import tantivy

from backends.analysis.compounds import compound_keys
from backends.analysis.languages import detect_language, has_tones, toned_words
from backends.analysis.normalization import analyze
from backends.base import Document
from backends.embedded.index.schema import (
    COMPOUNDS,
    DATE,
    DEFAULTED_FIELDS,
    FACETS,
    FILTER_TERMS,
    ID,
    LANGUAGE,
    PARTED_WORDS,
    SOURCE,
    STORED_SECTIONS,
    TONED,
    UPDATED_AT,
    WORD_PARTS,
    column_of,
    empty_term,
    equality_term,
    exists_term,
    folder_term,
    number_column,
    number_term,
    path_term,
    section_term,
    sort_column,
    sortable_term,
    title_beginning,
    toned_column,
)
from backends.field_rules import NUMBER_KINDS, SCALAR_KINDS, with_required_fields
from backends.query import FieldKind, FieldKinds
from backends.sections import SECTIONS, pack, unpack
from backends.standard_fields import REQUIRED_HIT_FIELDS, TEXT_FIELDS, UNCOUNTED_FIELDS
from backends.text import beyond_ascii, words_with_forms
from backends.values import fold_to_sort, parse_instant, value_text

MAX_INDEXED_CHARS = 400_000
"""Maximum number of characters of one field that are searched; the rest is only stored and returned."""

MAX_MARKED_WORDS = 200
"""Maximum number of words made of parts per document that are highlighted if one of their other forms matches."""

MAX_FOLDERS = 5
"""Maximum number of folders of a URL by which documents are boosted without comparing all URLs."""

MAX_FACET_VALUE_CHARS = 1000


def needs_dynamic_column(kinds: frozenset[FieldKind]) -> bool:
    """Whether values of these kinds can be sorted, or compared by size."""
    return bool(kinds & (SCALAR_KINDS | NUMBER_KINDS))


def searched_characters(documents: Iterable[Document]) -> int:
    """Return the number of characters of documents that are searched, except the titles of sections."""
    texts = (document.fields.get(name) for document in documents for name in TEXT_FIELDS)
    return sum(len(text) for text in texts if isinstance(text, str))


def to_tantivy(document: Document, dynamic_columns: Mapping[str, int]) -> tantivy.Document:
    """Convert a document for indexing; ``dynamic_columns`` must cover its custom fields."""
    fields = document.fields
    texts = {name: str(fields.get(name, ""))[:MAX_INDEXED_CHARS] for name in TEXT_FIELDS}
    language = detect_language(f"{texts['title']} {texts['excerpt'][:200]} {texts['content'][:600]}")
    filter_terms: list[str] = []
    columns: dict[str, Any] = {
        ID: document.id, LANGUAGE: language, UPDATED_AT: document.changed_at, FILTER_TERMS: filter_terms
    }  # fmt: skip
    if texts["title"]:
        filter_terms.append(title_beginning(texts["title"]))
    words: dict[str, Sequence[str]] = {}
    is_tonal = False
    for name, text in texts.items():
        if text:
            foreign = beyond_ascii(text)
            is_tonal = is_tonal or has_tones(text, foreign)
            columns[name] = _with_joined_forms(text, foreign, words)
    if document.sections:
        titles = [section.title for section in document.sections]
        texts[SECTIONS] = " ".join(titles)
        is_tonal = is_tonal or has_tones(texts[SECTIONS])
        columns[SECTIONS] = [form for title in titles for form in _with_joined_forms(title, None, words)]
        filter_terms += map(section_term, dict.fromkeys(titles))
    columns[COMPOUNDS] = compound_keys(language, chain.from_iterable(columns.get(name, ()) for name in texts))
    if is_tonal:
        filter_terms.append(TONED)
        columns |= {toned_column(name): toned_words(text) for name, text in texts.items()}
    parts = sorted({form for forms in words.values() for form in forms if " " in form})
    if parts:
        # A value for each word, because phrases don't match across values.
        columns[WORD_PARTS] = analyze("\n".join(parts)).split("\n")
    facets: dict[str, list[str]] = {}
    for name, value in fields.items():
        filter_terms.append(exists_term(name))
        column = None if isinstance(value, list) else column_of(name, dynamic_columns)
        if column is not None:
            key = parse_instant(value) if column == DATE else sort_text(value)
            if key is not None:
                columns[column] = key
                filter_terms.append(sortable_term(name))
        if not isinstance(value, str):
            facets[name] = _add_values(columns, filter_terms, name, value, dynamic_columns)
        elif name != ID:
            filter_terms.append(equality_term(name, value))
            if name == "url":
                filter_terms += folder_terms(columns[sort_column(name)])
            if not value:
                filter_terms.append(empty_term(name))
            if name not in UNCOUNTED_FIELDS:
                facets[name] = [value[:MAX_FACET_VALUE_CHARS]]
    entry = tantivy.Document(**columns)
    # Hits are sent from these bytes without decoding, so the required fields must be in them. The names of the added
    # fields are stored, too, so that a rebuild restores the document as it was sent.
    missing = [name for name in REQUIRED_HIT_FIELDS if name not in fields]
    entry.add_bytes(SOURCE, orjson.dumps(with_required_fields(fields)))
    for name in missing:
        entry.add_bytes(DEFAULTED_FIELDS, name.encode())
    if facets:
        entry.add_json(FACETS, facets)
    if document.sections:
        entry.add_bytes(STORED_SECTIONS, pack(document.sections))
    if words:
        marked = "\n".join(sorted(words)[:MAX_MARKED_WORDS])
        entry.add_bytes(PARTED_WORDS, marked.encode("utf-8", "surrogatepass"))
    return entry


def _with_joined_forms(text: str, foreign: str | None, words: dict[str, Sequence[str]]) -> list[str]:
    """``"the U-Bahn"`` -> ``["the U-Bahn", "UBahn"]``; adds the words and their forms to ``words``."""
    forms_by_word = words_with_forms(text, foreign)
    if not forms_by_word:
        return [analyze(text, foreign)]
    words |= forms_by_word
    joined = {form for forms in forms_by_word.values() for form in forms if " " not in form}
    return [analyze(text, foreign), analyze(" ".join(sorted(joined)))]


def from_tantivy(entry: tantivy.Document, changed_at: int) -> Document:
    """Restore a document from the stored fields of the index."""
    fields = orjson.loads(bytes(entry.get_first(SOURCE) or b"{}"))
    for name in entry.get_all(DEFAULTED_FIELDS):
        del fields[bytes(name).decode()]
    sections = entry.get_first(STORED_SECTIONS)
    return Document(str(entry.get_first(ID)), fields, changed_at, unpack(bytes(sections)) if sections else ())


def sort_text(value: str | int | float | bool) -> str:
    """Return a text that sorts like the value: numbers by size, then other values, ignoring case and accents."""
    if isinstance(value, str):
        return f"1{fold_to_sort(value)}"
    if isinstance(value, bool):
        return f"1{str(value).lower()}"
    # The bits of floating-point numbers sort like the numbers once the sign bit is flipped, and all bits of negative
    # ones. Adding zero turns -0.0 into 0.0. Integers of 64 bits differ from the nearest float by at most 512, and the
    # difference sorts those with the same float.
    nearest = float(value)
    bits = int.from_bytes(struct.pack(">d", nearest + 0.0), "big")
    ordered = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 0x8000000000000000)
    rest = value - int(nearest) if isinstance(value, int) else 0
    return f"0{ordered:016x}{rest + 0x8000:04x}"


_URL_PATH = re.compile(r"1(?:https?://[^/?#]*)?([^?#]*)")


def folder_terms(sort_key: str) -> list[str]:
    """Return the filter terms of a URL's path, its last segment, and its first :data:`MAX_FOLDERS` folders.

    Args:
        sort_key: The URL's :func:`sort_text`.
    """
    path = _URL_PATH.match(sort_key)[1]  # type: ignore[index]
    terms = [folder_term("")]
    slash = path.find("/")
    while slash >= 0 and len(terms) <= MAX_FOLDERS:
        terms.append(folder_term(path[: slash + 1]))
        slash = path.find("/", slash + 1)
    page = path.rstrip("/")
    if page:
        terms += path_term(page), path_term(page[page.rfind("/") + 1 :])
    return terms


def _add_values(
    columns: dict[str, Any], filter_terms: list[str], name: str, value: Any, dynamic_columns: Mapping[str, int]
) -> list[str]:
    """Index a number, a boolean, or the members of a list, and return the values to count in facets."""
    if value == []:
        filter_terms.append(empty_term(name))
    counted: dict[str, None] = {}
    for item in value if isinstance(value, list) else (value,):
        text = value_text(item)
        if isinstance(item, bool | str):
            filter_terms.append(equality_term(name, text))
        else:
            filter_terms.append(number_term(name, item))
            # Adding 0.0 turns -0.0, which is below 0.0 in the engine's order, into 0.0.
            columns.setdefault(number_column(dynamic_columns[name]), []).append(float(item) + 0.0)
        counted[text[:MAX_FACET_VALUE_CHARS]] = None
    return list(counted)


def dynamic_columns_for(kinds: FieldKinds, assigned: Mapping[str, int]) -> dict[str, int]:
    """Return the ``assigned`` dynamic columns, plus a new one for each other custom field that needs one."""
    dynamic_columns = dict(assigned)
    for name in sorted(kinds):
        if name not in dynamic_columns and needs_dynamic_column(kinds[name]):
            dynamic_columns[name] = len(dynamic_columns)
    return dynamic_columns


_PAGE = 1000


def stored_documents(searcher: tantivy.Searcher, query: tantivy.Query | None = None) -> Iterator[Document]:
    """Yield the stored documents that match a query, or all documents."""
    selection = tantivy.Query.all_query() if query is None else query
    # tantivy panics for a limit of 0, and a panic is not an ``Exception``.
    if searcher.num_docs == 0:
        return
    addresses = [address for _, address in searcher.search(selection, limit=searcher.num_docs, count=False).hits]
    for start in range(0, len(addresses), _PAGE):
        yield from documents_at(searcher, addresses[start : start + _PAGE])


def documents_at(searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress]) -> Iterator[Document]:
    """Yield the stored documents at these addresses, in this order."""
    for address, changed_at in zip(addresses, searcher.fast_field_values(UPDATED_AT, list(addresses)), strict=True):
        yield from_tantivy(searcher.doc(address), int(changed_at or 0))


def stored_ids(searcher: tantivy.Searcher) -> Iterator[str]:
    """Yield the id of every document."""
    if searcher.num_docs:
        for _, address in searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False).hits:
            yield str(searcher.doc(address).get_first(ID))


def changes_by_id(searcher: tantivy.Searcher) -> dict[str, int]:
    """Return the time of each document's last change, by ID."""
    if searcher.num_docs == 0:
        return {}
    hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False).hits
    addresses = [address for _, address in hits]
    moments = searcher.fast_field_values(UPDATED_AT, addresses)
    return {
        str(searcher.doc(address).get_first(ID)): int(moment or 0)
        for address, moment in zip(addresses, moments, strict=True)
    }


def live_columns(searcher: tantivy.Searcher, kinds: FieldKinds, assigned: Mapping[str, int]) -> dict[str, int]:
    """Return new dynamic columns for the fields of ``kinds`` and the ``assigned`` fields that documents still use."""
    doubtful = {name for name in assigned if not needs_dynamic_column(kinds.get(name, frozenset()))}
    live_fields: set[str] = set()
    if doubtful:
        for document in stored_documents(searcher):
            live_fields |= doubtful & document.fields.keys()
    return dynamic_columns_for(kinds, {name: dynamic_column for dynamic_column, name in enumerate(sorted(live_fields))})


def copy_documents(searcher: tantivy.Searcher, writer: tantivy.IndexWriter, dynamic_columns: Mapping[str, int]) -> int:
    """Add every stored document of an index to another index. Returns the number of documents."""
    copied = 0
    for document in stored_documents(searcher):
        writer.add_document(to_tantivy(document, dynamic_columns))
        copied += 1
    return copied
