"""Meilisearch as a search engine.

Tested with 1.50. It falls short of :mod:`backends.base` as follows: it ignores weights of fields (their order counts:
title, excerpt, content), Meilisearch itself detects the language, words match in other forms only through prefixes and
typing errors, and facet values that differ only in case are counted as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import orjson

from backends.base import Document, SearchResult, TitleMatch
from backends.errors import BackendUnavailable
from backends.meilisearch.keys import MeilisearchKeys
from backends.meilisearch.query import CompiledQuery, compile_query
from backends.meilisearch.schema import PRIMARY_KEY, Settings, engine_document, engine_synonyms, index_settings, widened
from backends.meilisearch.search import Searches
from backends.meilisearch.transport import MeilisearchTransport, RejectedByMeilisearch, Task
from backends.query import FieldKinds, SearchQuery
from backends.servers.backend import ServerBackend, engine_ids, title_query
from backends.servers.documents import batches, checked_index_name, time_shares
from backends.servers.locks import NamedLocks
from backends.servers.related import EVERY_WORD
from backends.servers.responses import count_in, readable, text_in, translated
from backends.servers.server_url import ServerUrl
from backends.servers.synonyms import Entries
from backends.support import check_support, declare, everywhere, not_needed

T = TypeVar("T")
_PAGE_SIZE = 1000


class MeilisearchBackend(ServerBackend):
    """One Meilisearch server."""

    name = "meilisearch"
    default_port = 7700
    support = declare(
        text=everywhere("``q``, without stop words"),
        limit=everywhere("``hitsPerPage``, or the page cut from hits that are ordered here"),
        offset=everywhere("``page``, or the page cut from hits that are ordered here"),
        native_filter=everywhere("Meilisearch's own syntax, which includes the portable grammar"),
        portable_filter=everywhere("compiled to ``filter``, also for pinned hits"),
        sort=everywhere("``sort``, the first ranking rule; pins, boosts, and recency have no effect then"),
        facets=everywhere("``facets`` of a query of their own"),
        facet_values=everywhere("limit of the values returned, of the thousand that Meilisearch counts"),
        highlight=everywhere("matched words are found in the returned texts"),
        kinds=everywhere("checks the fields of filters, sort, and facets"),
        settings=everywhere("except what docs/engines.md lists: the language, and the weights"),
        fields=everywhere("``attributesToSearchOn``"),
        all_words=everywhere("``matchingStrategy`` of ``all``, and no federated search"),
        sections=everywhere("titles are searched; chosen for the hits of the page"),
        distinct=everywhere("``distinct``, or grouped in their final order (order.py) with ranks or lists"),
        effects=everywhere("hidden documents in ``filter``; pinned ones fetched first; boosts in order.py"),
        explain=everywhere("``showRankingScoreDetails`` of the hits, also of those read by ID"),
        answers=everywhere("passages are found in the hits of the page"),
        returned_fields=everywhere("selected when the hits of the page are built"),
        scored=everywhere("from _rankingScore"),
        word_counts=not_needed("scores do not depend on how many documents contain a word"),
        max_bytes=everywhere("no further hits are built beyond it"),
        is_preview=everywhere("the synonyms of the index are not replaced"),
    )

    def __init__(self, url: ServerUrl, locks: NamedLocks | None = None):
        if len(url.nodes) != 1:
            raise ValueError("Meilisearch is a single server: its URL must contain one host.")
        super().__init__(url, locks)
        self._transport = MeilisearchTransport(url)
        self._pool = self._transport.pool
        self._keys = MeilisearchKeys(self._transport)
        self._settings = Settings(self._transport)
        self._searches = Searches(self._transport)

    # --- indexes

    def create_index(self, index: str) -> None:
        name = checked_index_name(index)
        with translated(index), readable():
            task = self._transport.change(name, "POST", "/indexes", {"uid": name, "primaryKey": PRIMARY_KEY})
            try:
                self._transport.wait([task])
            except RejectedByMeilisearch as error:
                if error.code != "index_already_exists":
                    raise
            # Another process, or an interrupted call, may have created the index without its settings.
            if "_key" not in self._settings.read(name)["filterableAttributes"]:
                # A second later than the adapter's timeout: see ``index_settings``.
                settings = index_settings(round(self._transport.url.timeout_seconds * 1000) + 1000)
                self._transport.wait([self._transport.change(name, "PATCH", f"/indexes/{name}/settings", settings)])
                self._settings.read(name)

    def delete_index(self, index: str) -> None:
        name = checked_index_name(index)
        self._settings.forget(name)
        self._forget_synonyms(name)
        self._searches.forget(name)
        with translated(index):
            try:
                self._transport.wait([self._transport.change(name, "DELETE", f"/indexes/{name}")])
            except RejectedByMeilisearch as error:
                if error.code != "index_not_found":
                    raise

    def list_indexes(self) -> list[str]:
        indexes: list[tuple[str, str | None]] = []
        with translated(), readable():
            while True:
                params = {"limit": str(_PAGE_SIZE), "offset": str(len(indexes))}
                page = self._transport.ask("GET", "/indexes", params=params)
                indexes += [(text_in(listed["uid"]), listed["primaryKey"]) for listed in page["results"]]
                # An index may be deleted while the pages are read, so that the total is never reached.
                if len(indexes) >= count_in(page["total"]) or not page["results"]:
                    # Other programs may have indexes on the same server.
                    return [name for name, key in indexes if key == PRIMARY_KEY]

    # --- documents

    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        name = checked_index_name(index)
        with translated(index):
            # Otherwise, retries after a timeout would pile up behind the change that is still running.
            self._transport.await_earlier(name)
            # Reading the settings fails for a missing index, which adding documents would create.
            with readable():
                changes = widened(self._settings.read(name), kinds)
            if changes:
                self._transport.wait([self._transport.change(name, "PATCH", f"/indexes/{name}/settings", changes)])
            tasks: list[Task] = []
            shares = 0
            for batch in batches(orjson.dumps(engine_document(document)) for document in documents):
                body = [orjson.Fragment(encoded) for encoded in batch]
                path, params = f"/indexes/{name}/documents", {"primaryKey": PRIMARY_KEY}
                tasks.append(self._transport.change(name, "POST", path, body, params=params))
                shares += time_shares(sum(map(len, batch)))
            self._transport.wait(tasks, shares)

    def delete(self, index: str, ids: Sequence[str]) -> None:
        name = checked_index_name(index)
        keys = engine_ids(ids)
        with translated(index), readable():
            if keys:
                task = self._transport.change(name, "POST", f"/indexes/{name}/documents/delete-batch", keys)
                self._transport.wait([task])
            else:
                # Without IDs nothing is deleted, but a missing index must still raise an error.
                self._settings.read(name)

    def count(self, index: str) -> int:
        with translated(index), readable():
            stats = self._transport.ask("GET", f"/indexes/{checked_index_name(index)}/stats")
            return count_in(stats["numberOfDocuments"])

    def document_ids(self, index: str) -> Iterator[str]:
        path = f"/indexes/{checked_index_name(index)}/documents/fetch"
        offset = 0
        while True:
            with translated(index), readable():
                page = self._transport.ask("POST", path, {"fields": ["id"], "limit": _PAGE_SIZE, "offset": offset})
                ids, total = [text_in(document["id"]) for document in page["results"]], count_in(page["total"])
            yield from ids
            offset += _PAGE_SIZE
            if offset >= total or not ids:
                return

    # --- searching

    def search(self, index: str, query: SearchQuery) -> SearchResult:
        check_support(query, self.support)
        name = checked_index_name(index)
        with self._pool.operation(), translated(index):
            self._follow_synonyms(name, query)
            return self._compiled(name, query, lambda compiled: self._searches.search(name, query, compiled))

    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        name = checked_index_name(index)
        # Twice as many, because repeated titles, and matches with typing errors, are dropped.
        query = title_query(text, 2 * limit, within)
        with self._pool.operation(), translated(index):
            if query is None:
                with readable():
                    self._settings.filterable_of(name, SearchQuery(""))
                return ()
            return self._compiled(name, query, lambda compiled: self._searches.find_titles(query, compiled, limit))

    def _count_documents(self, name: str, words: Sequence[str]) -> Sequence[int]:
        query = SearchQuery(" ".join(words), fields=("title", "content"), settings=EVERY_WORD)
        return self._compiled(name, query, lambda compiled: self._searches.count_documents(query, compiled, words))

    def _compiled(self, name: str, query: SearchQuery, run: Callable[[CompiledQuery], T]) -> T:
        """Call ``run`` with the compiled query, and again if it was compiled for outdated settings of the index."""
        with readable():
            filterable = self._settings.filterable_of(name, query)
        try:
            return run(compile_query(name, query, filterable, folded=self._settings.folded[name]))
        except RejectedByMeilisearch as error:
            # The index was rebuilt or restored since its settings were read.
            if not error.code.startswith("invalid_search_"):
                raise
            with readable():
                self._settings.read(name)
            # The settings were current, so the query itself is invalid.
            if self._settings.filterable[name] == filterable:
                raise
        return run(compile_query(name, query, self._settings.filterable[name], folded=self._settings.folded[name]))

    # --- readiness

    def check(self) -> None:
        with translated(), readable():
            health = self._transport.ask("GET", "/health")
            # Without a master key, every route is open to everyone except this one, which then fails.
            keys = self._transport.ask("GET", "/keys", params={"limit": "1"})
            if health["status"] != "available" or not isinstance(keys["results"], list):
                raise BackendUnavailable("The search engine is not available.")

    def index_bytes(self) -> int | None:
        with translated(), readable():
            return count_in(self._transport.ask("GET", "/stats")["databaseSize"])

    def version(self) -> str:
        with translated(), readable():
            return text_in(self._transport.ask("GET", "/version")["pkgVersion"])

    # --- parts

    def _put_synonyms(self, name: str, entries: Entries, *, is_first: bool, seconds: float | None = None) -> None:
        """Queue the synonyms in Meilisearch, unless the index already has them. Does not wait until they apply."""
        needed = engine_synonyms(entries)
        path = f"/indexes/{name}/settings/synonyms"
        # While an earlier change may be in the queue, the current synonyms are about to be replaced.
        if not is_first or self._transport.ask("GET", path, seconds=seconds) != needed:
            self._transport.change(name, "PUT", path, needed, seconds=seconds)
