"""Writing an index anew from what it stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import tantivy

from backends.base import Document, FieldKinds
from backends.embedded.index.documents import dynamic_columns_for, from_tantivy, needs_dynamic_column, to_tantivy
from backends.embedded.index.schema import ID, UPDATED_AT

_PAGE = 1000


def stored_documents(searcher: tantivy.Searcher, query: tantivy.Query | None = None) -> Iterator[Document]:
    """Every document that matches (all without a query), as it was indexed."""
    wanted = tantivy.Query.all_query() if query is None else query
    if searcher.num_docs == 0:
        return
    addresses = [address for _, address in searcher.search(wanted, limit=searcher.num_docs, count=False).hits]
    for start in range(0, len(addresses), _PAGE):
        yield from documents_at(searcher, addresses[start : start + _PAGE])


def documents_at(searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress]) -> Iterator[Document]:
    """The documents at some addresses, as they were indexed."""
    for address, changed_at in zip(addresses, searcher.fast_field_values(UPDATED_AT, list(addresses)), strict=True):
        yield from_tantivy(searcher.doc(address), int(changed_at or 0))


def stored_ids(searcher: tantivy.Searcher) -> Iterator[str]:
    """The id of every document."""
    if searcher.num_docs:
        for _, address in searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False).hits:
            yield str(searcher.doc(address).get_first(ID))


def changes_by_id(searcher: tantivy.Searcher) -> dict[str, int]:
    """Every document's id, and when it was changed."""
    if searcher.num_docs == 0:
        return {}
    hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False).hits
    addresses = [address for _, address in hits]
    moments = searcher.fast_field_values(UPDATED_AT, addresses)
    return {
        str(searcher.doc(address).get_first(ID)): int(moment or 0)
        for address, moment in zip(addresses, moments, strict=True)
    }


def live_slots(searcher: tantivy.Searcher, kinds: FieldKinds, taken: Mapping[str, int]) -> dict[str, int]:
    """Dynamic columns given out anew: to fields of ``kinds``, and of ``taken`` if a stored document has them."""
    doubtful = {name for name in taken if not needs_dynamic_column(kinds.get(name, frozenset()))}
    found: set[str] = set()
    if doubtful:
        for document in stored_documents(searcher):
            found |= doubtful & document.fields.keys()
    return dynamic_columns_for(kinds, {name: dynamic_column for dynamic_column, name in enumerate(sorted(found))})


def copy_documents(searcher: tantivy.Searcher, writer: tantivy.IndexWriter, dynamic_columns: Mapping[str, int]) -> int:
    """Add every stored document to another index; returns their number."""
    copied = 0
    for document in stored_documents(searcher):
        writer.add_document(to_tantivy(document, dynamic_columns))
        copied += 1
    return copied
