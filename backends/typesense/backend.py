"""Typesense as a search engine, one node or a cluster.

Tested with 0.24.1. It falls short of :mod:`backends.base` as follows: it ignores the language of a site (Typesense
splits and folds words in one way for all languages), words match in other forms only through prefixes and typing
errors, and only the settings define stop words. Filters in its own syntax compare with the precision of its types
(``float``: 24 bits). Portable filters compare exactly, but a range over lists of numbers cannot be negated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import orjson
from typesense.collections import Collections
from typesense.documents import Documents

from backends.base import Document, SearchResult, TitleMatch
from backends.errors import BackendUnavailable
from backends.query import FieldKinds, SearchQuery
from backends.servers.backend import ServerBackend, engine_ids, title_query
from backends.servers.documents import batches, checked_index_name, encode_id
from backends.servers.http import Budget, Response
from backends.servers.locks import NamedLocks
from backends.servers.related import EVERY_WORD
from backends.servers.responses import count_in, readable, text_in, translated
from backends.servers.server_url import ServerUrl
from backends.servers.synonyms import Entries
from backends.servers.waiting import sleep
from backends.support import check_support, declare, everywhere, not_needed
from backends.typesense.keys import TypesenseKeys
from backends.typesense.order import LIMITS
from backends.typesense.query import (
    needs_types,
)
from backends.typesense.results import (
    RejectedByTypesense,
    is_stale_schema,
)
from backends.typesense.schema import collection_schema, engine_document, field_types, schema_changes
from backends.typesense.search import Searches
from backends.typesense.synonyms import put_synonyms
from backends.typesense.transport import TypesenseTransport

T = TypeVar("T")
_DELETE_IDS = 50
_READY_SECONDS = 2.0
_POLL_SECONDS = 0.05


class TypesenseBackend(ServerBackend):
    """One Typesense node or cluster."""

    name = "typesense"
    rank_limits = LIMITS
    default_port = 8108
    support = declare(
        text=everywhere("``q``, in words folded and without stop words"),
        limit=everywhere("``per_page``, or the page cut from hits that are ordered here"),
        offset=everywhere("``page``, or the page cut from hits that are ordered here"),
        native_filter=everywhere("Typesense's own syntax; filters on which it hangs are rejected"),
        portable_filter=everywhere("compiled to ``filter_by``; rejects the negation of a range over lists of numbers"),
        sort=everywhere("``sort_by``, at most three fields; pins, boosts, and recency have no effect then"),
        facets=everywhere("``facet_by`` in the first search of a page"),
        facet_values=everywhere("asks again with more values where ties are open"),
        highlight=everywhere("matched words from Typesense, located here"),
        kinds=everywhere("checks the fields of filters, sort, and facets"),
        settings=everywhere("except what docs/engines.md lists: the language, and the size of weights"),
        fields=everywhere("``query_by``"),
        all_words=everywhere("``drop_tokens_threshold`` of 0, and no search for the words that exist"),
        sections=everywhere("titles in ``query_by``; chosen for the hits of the page"),
        distinct=everywhere("hits are read and grouped in their final order (order.py)"),
        effects=everywhere("pins and hidden documents in the request; boosts in order.py"),
        explain=everywhere("``text_match`` of the hits, also of those read by ID"),
        answers=everywhere("passages are found in the hits of the page"),
        returned_fields=everywhere("selected when the hits of the page are built"),
        scored=everywhere("from text_match"),
        word_counts=not_needed("scores do not depend on how many documents contain a word"),
        max_bytes=everywhere("sizes.py, from sizes in memory, if they are known; no further hits are built beyond it"),
        is_preview=everywhere("the synonyms of the index are not replaced"),
    )

    def __init__(self, url: ServerUrl, locks: NamedLocks | None = None):
        super().__init__(url, locks)
        self._transport = TypesenseTransport(url)
        self._pool = self._transport.pool
        self._keys = TypesenseKeys(self._transport, url.key)
        self._types: dict[str, dict[str, str]] = {}
        self._searches = Searches(self._transport)

    # --- indexes

    def create_index(self, index: str) -> None:
        name = checked_index_name(index)
        with translated(index), readable():
            try:
                collection = cast(Any, Collections(self._transport).create(cast(Any, collection_schema(name))))
                _expect(collection["name"] == name)
            except RejectedByTypesense as error:
                # The collection already exists.
                if error.status != 409:
                    raise
            self._transport.cluster.await_everywhere(lambda ask: ask(f"/collections/{name}").status == 200)

    def delete_index(self, index: str) -> None:
        name = checked_index_name(index)
        # Before the deletion: afterwards, another process may create the collection anew with other fields.
        self._types.pop(index, None)
        self._searches.forget(index)
        self._forget_synonyms(index)
        with translated(index), readable():
            try:
                _expect(self._transport.delete(_path(name), dict)["name"] == name)
            except RejectedByTypesense as error:
                if not error.is_missing_index:
                    raise
            self._transport.cluster.await_everywhere(lambda ask: ask(f"/collections/{name}").status == 404)

    def list_indexes(self) -> list[str]:
        with translated(), readable():
            collections = Collections(self._transport).retrieve()
            # Other programs may have collections on the same server.
            return [text_in(collection["name"]) for collection in collections if "_doc" in field_types(collection)]

    # --- documents

    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        name = checked_index_name(index)
        with translated(index):
            types = self._widen(name, kinds, documents)
            for batch in batches(_ascii_json(engine_document(document, kinds, types)) for document in documents):
                _import(self._transport, name, batch)
            if documents:
                # Writes are replicated in order, so a node that shows the last document has all earlier ones.
                last = documents[-1]
                path, changed_at = f"/collections/{name}/documents/{encode_id(last.id)}", last.changed_at
                self._transport.cluster.await_everywhere(lambda ask: _has_change(ask(path), changed_at))

    def delete(self, index: str, ids: Sequence[str]) -> None:
        name = checked_index_name(index)
        keys = engine_ids(ids)
        with translated(index), readable():
            # Without IDs nothing is deleted, but a missing collection must still raise an error.
            if not keys:
                self._transport.get(_path(name), dict)
            for start in range(0, len(keys), _DELETE_IDS):
                condition = f"id:=[{','.join(keys[start : start + _DELETE_IDS])}]"
                response = cast(Any, Documents(self._transport, name).delete({"filter_by": condition}))
                _expect(isinstance(response["num_deleted"], int))
                path = f"/collections/{name}/documents/search?q=*&per_page=0&filter_by={condition}"
                self._transport.cluster.await_everywhere(lambda ask, path=path: _finds_nothing(ask(path)))  # type: ignore[misc]

    def count(self, index: str) -> int:
        with translated(index), readable():
            return count_in(self._transport.get(_path(checked_index_name(index)), dict)["num_documents"])

    def document_ids(self, index: str) -> Iterator[str]:
        path = f"/collections/{checked_index_name(index)}/documents/export"
        with translated(index), readable():
            empty = True
            for line in self._transport.lines(path, {"include_fields": "_id"}):
                empty = False
                yield text_in(orjson.loads(line)["_id"])
            # An export of a collection that is not ready could also be empty.
            if empty:
                _expect(self.count(index) == 0)

    # --- searching

    def search(self, index: str, query: SearchQuery) -> SearchResult:
        check_support(query, self.support)
        name = checked_index_name(index)
        with self._pool.operation(), translated(index):
            self._follow_synonyms(name, query)
            return self._with_types(name, query, lambda types: self._searches.search(name, query, types))

    def _with_types(self, name: str, query: SearchQuery, ask: Callable[[Mapping[str, str]], T]) -> T:
        """Call ``ask`` with the collection's cached fields, and again with the current ones if those were outdated."""
        types = self._types.get(name, {})
        if not types or (needs_types(query) and not _covers(types, query)):
            types = self._read_types(name)
        try:
            return ask(types)
        except RejectedByTypesense as error:
            # The collection was rebuilt since its fields were read; with its current fields, the query may run.
            if not (is_stale_schema(error) and needs_types(query)):
                raise
            if (current_types := self._read_types(name)) == types:
                raise
        return ask(current_types)

    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        name = checked_index_name(index)
        query = title_query(text, limit, within)
        with self._pool.operation(), translated(index):
            if query is None:
                self._with_types(name, SearchQuery(""), len)
                return ()
            return self._with_types(name, query, lambda types: self._searches.find_titles(name, query, types))

    def _count_documents(self, name: str, words: Sequence[str]) -> Sequence[int]:
        query = SearchQuery(" ".join(words), fields=("title", "content"), settings=EVERY_WORD)
        return self._with_types(name, query, lambda types: self._searches.count_documents(name, query, types, words))

    def check(self) -> None:
        budget = Budget(min(self._transport.url.timeout_seconds, _READY_SECONDS))
        target: dict[str, int] = {}
        reason = "The search engine does not respond."
        while True:
            for node in self._transport.url.nodes:
                state = self._transport.cluster.status_of(node, budget, budget.remaining())
                if state is None or not self._transport.cluster.is_healthy(node, budget):
                    continue
                with readable():
                    committed, queued = int(state["committed_index"]), int(state["queued_writes"])
                # After a start, Typesense replays its log and reports "healthy" while documents are still missing.
                if committed - queued >= target.setdefault(node, committed):
                    return
                reason = "The search engine is still loading its documents."
            if budget.remaining() <= _POLL_SECONDS or not target:
                raise BackendUnavailable(reason)
            sleep(_POLL_SECONDS)

    def index_bytes(self) -> int | None:
        # Typesense keeps its indexes in memory and reports only the total size.
        with translated(), readable():
            return count_in(self._transport.get("/metrics.json", dict)["typesense_memory_active_bytes"])

    def free_share(self) -> float | None:
        with translated(), readable():
            return _free_share(self._transport.get("/metrics.json", dict))

    def version(self) -> str:
        with translated(), readable():
            return text_in(self._transport.get("/debug", dict)["version"])

    def _put_synonyms(self, name: str, entries: Entries, *, is_first: bool, seconds: float | None = None) -> None:
        put_synonyms(self._transport, name, entries, seconds)

    def _read_types(self, name: str) -> dict[str, str]:
        with readable():
            types = self._types[name] = field_types(self._transport.get(_path(name), dict))
        return types

    def _widen(self, name: str, kinds: FieldKinds, documents: Sequence[Document]) -> dict[str, str]:
        """Add the fields that these documents need, and return all fields; other processes may add fields, too."""
        types = self._read_types(name)
        changes = schema_changes(types, kinds, documents)
        if changes:
            self._transport.patch(_path(name), dict, {"fields": changes})
            types = self._read_types(name)
            if schema_changes(types, kinds, documents):
                raise BackendUnavailable("The search engine did not accept the documents' new fields.")
        return types


def _free_share(metrics: Mapping[str, str]) -> float:
    def used(part: str) -> float:
        bytes_used, bytes_total = (count_in(metrics[f"system_{part}_{name}_bytes"]) for name in ("used", "total"))
        return bytes_used / max(1, bytes_total)

    return 1 - max(used("memory"), used("disk"))


def _import(transport: TypesenseTransport, name: str, documents: Sequence[bytes]) -> None:
    response: str = Documents(transport, name).import_(b"\n".join(documents), {"action": "upsert"})
    with readable():
        lines = [orjson.loads(line) for line in response.split("\n") if line.strip()]
        failed = [line for line in lines if line["success"] is not True]
    # Typesense answers 200 even if it rejects some of the documents.
    if failed or len(lines) != len(documents):
        missing = max(len(failed), len(documents) - len(lines))
        cause = RejectedByTypesense(400, str([line.get("error") for line in failed[:3]]))
        message = f"The search engine did not accept {missing} of {len(documents)} documents."
        raise BackendUnavailable(message) from cause


def _ascii_json(document: Mapping[str, Any]) -> bytes:
    """Encode a document as JSON in ASCII.

    0.24.1 passes bodies above 196,605 bytes on in pieces, and silently drops a character that is cut by the end of a
    piece.
    """
    encoded = orjson.dumps(document)
    return encoded if encoded.isascii() else json.dumps(document, separators=(",", ":")).encode()


def _path(name: str) -> str:
    # The package's own Collection class logs a deprecation warning each time it is created.
    return f"{Collections.resource_path}/{name}"


def _covers(types: Mapping[str, str], query: SearchQuery) -> bool:
    return all(f"_v_{field}" in types for field in query.kinds)


def _has_change(response: Response, changed_at: int) -> bool:
    return response.status == 200 and _member(response, "_changed_at") == changed_at


def _finds_nothing(response: Response) -> bool:
    return response.status == 404 or (response.status == 200 and _member(response, "found") == 0)


def _member(response: Response, name: str) -> Any:
    value = response.json()
    return value.get(name) if isinstance(value, dict) else None


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError("unexpected response")
