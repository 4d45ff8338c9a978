"""Reading all documents of an index, and rebuilding the index from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import tantivy

from backends.base import Document, FieldKinds
from backends.embedded.index.documents import dynamic_columns_for, from_tantivy, needs_dynamic_column, to_tantivy
from backends.embedded.index.schema import ID, UPDATED_AT

_PAGE = 1000


def stored_documents(searcher: tantivy.Searcher, query: tantivy.Query | None = None) -> Iterator[Document]:
    """Yield the stored documents that match a query, or all documents."""
    selection = tantivy.Query.all_query() if query is None else query
    if searcher.num_docs == 0:
        return
    addresses = [address for _, address in searcher.search(selection, limit=searcher.num_docs, count=False).hits]
    for start in range(0, len(addresses), _PAGE):
        yield from documents_at(searcher, addresses[start : start + _PAGE])


def documents_at(searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress]) -> Iterator[Document]:
    """Yield the stored documents at some addresses."""
    for address, changed_at in zip(addresses, searcher.fast_field_values(UPDATED_AT, list(addresses)), strict=True):
        yield from_tantivy(searcher.doc(address), int(changed_at or 0))


def stored_ids(searcher: tantivy.Searcher) -> Iterator[str]:
    """Yield the id of every document."""
    if searcher.num_docs:
        for _, address in searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False).hits:
            yield str(searcher.doc(address).get_first(ID))


def changes_by_id(searcher: tantivy.Searcher) -> dict[str, int]:
    """Each document's id and the time of its last change."""
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
    """Reassign dynamic columns: to fields of ``kinds``, and to ``taken`` fields that a stored document still has."""
    doubtful = {name for name in assigned if not needs_dynamic_column(kinds.get(name, frozenset()))}
    live_fields: set[str] = set()
    if doubtful:
        for document in stored_documents(searcher):
            live_fields |= doubtful & document.fields.keys()
    return dynamic_columns_for(kinds, {name: dynamic_column for dynamic_column, name in enumerate(sorted(live_fields))})


def copy_documents(searcher: tantivy.Searcher, writer: tantivy.IndexWriter, dynamic_columns: Mapping[str, int]) -> int:
    """Add every stored document to another index. Returns their number."""
    copied = 0
    for document in stored_documents(searcher):
        writer.add_document(to_tantivy(document, dynamic_columns))
        copied += 1
    return copied
