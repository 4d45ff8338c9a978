"""Building the hits of a page: the stored document, highlights, sections, and passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import tantivy

from backends.base import Hit, select_fields
from backends.embedded.index.schema import ID, PARTED_WORDS, SOURCE, STORED_SECTIONS
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.results.highlighting import TermMatches
from backends.errors import ResponseTooLarge
from backends.highlighting import Highlighter, find_sections
from backends.passages import find_passage
from backends.query import SearchQuery
from backends.sections import unpack

MAX_BATCH_BYTES = 524_288
"""Size of the documents, in bytes, at which no further documents are processed together with them."""


def make_hits(
    snapshot: Snapshot,
    addresses: Sequence[tantivy.DocAddress],
    query: SearchQuery,
    matches: TermMatches | None,
    explain: Callable[[tantivy.DocAddress], dict[str, Any]] | None,
) -> tuple[Hit, ...]:
    """Return the hits of a page, with the highlights, sections, and passages that the query requests.

    Args:
        addresses: The documents of the page, in order.
        matches: Locates the query's words; ``None`` if hits do not show matches.
        explain: Returns the explanation of a hit; ``None`` if the query requests none.

    Raises:
        ResponseTooLarge: The hits exceed the query's ``max_bytes``.
    """
    if query.returned_fields is not None and not query.returned_fields and not query.shows_matches and explain is None:
        return (Hit("", b"{}"),) * len(addresses)
    hits: list[Hit] = []
    used = 0
    for entries, sources in _batches(snapshot.searcher.doc, addresses):
        batch, size = _hits_of(entries, sources, query, matches)
        used += size
        if query.max_bytes is not None and used > query.max_bytes:
            raise ResponseTooLarge
        hits += batch
    if explain is not None:
        hits = [replace(hit, explanation=explain(address)) for hit, address in zip(hits, addresses, strict=True)]
    return tuple(hits)


def _batches(
    read: Callable[[tantivy.DocAddress], tantivy.Document], addresses: Sequence[tantivy.DocAddress]
) -> Iterator[tuple[list[tantivy.Document], list[bytes]]]:
    entries: list[tantivy.Document] = []
    sources: list[bytes] = []
    size = 0
    for entry in map(read, addresses):
        source = bytes(entry.get_first(SOURCE) or b"{}")
        entries.append(entry)
        sources.append(source)
        size += len(source)
        if size >= MAX_BATCH_BYTES:
            yield entries, sources
            entries, sources, size = [], [], 0
    if entries:
        yield entries, sources


def _hits_of(
    entries: Sequence[tantivy.Document], sources: list[bytes], query: SearchQuery, matches: TermMatches | None
) -> tuple[list[Hit], int]:
    """Return some hits without explanations, and their size in bytes."""
    ids = [str(entry.get_first(ID)) for entry in entries]
    if matches is None and query.returned_fields is None:
        return list(map(Hit, ids, sources)), sum(map(len, sources))
    documents = list(map(orjson.loads, sources))
    if query.returned_fields is not None:
        sources = [orjson.dumps(select_fields(document, query)) for document in documents]
    size = sum(map(len, sources))
    if matches is None:
        return list(map(Hit, ids, sources)), size
    parted_words = [bytes(words) for entry in entries if (words := entry.get_first(PARTED_WORDS)) is not None]
    locator = matches.with_forms(b"\n".join(parted_words)) if parted_words else matches
    formatted: Sequence[dict[str, Any] | None] = [None] * len(ids)
    if query.highlight is not None:
        formatted = Highlighter(query.highlight, locator).format(documents)
        size += len(orjson.dumps(formatted))
    if not query.needs_sections:
        return list(map(Hit, ids, sources, formatted)), size
    stored = [entry.get_first(STORED_SECTIONS) for entry in entries]
    sections = [unpack(bytes(packed)) if packed else () for packed in stored]
    chosen: Sequence[Any] = [None] * len(ids)
    if query.sections:
        chosen = [find_sections(query, *parts, locator) for parts in zip(documents, sections, strict=True)]
    hits = map(Hit, ids, sources, formatted, chosen)
    if not query.answers:
        return list(hits), size
    passages = [partial(find_passage, *parts, locator) for parts in zip(documents, sections, strict=True)]
    return [replace(hit, find_passage=passage) for hit, passage in zip(hits, passages, strict=True)], size
