"""Meilisearch as a search engine.

Tested with 1.50. It falls short of :mod:`backends.base` as follows: it ignores weights of fields (their order counts:
title, excerpt, content), Meilisearch itself detects the language, words match in other forms only through prefixes and
typing errors, and facet values that differ only in case are counted as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, TypeVar

import orjson

from backends.base import Document, SearchResult, TakeHit, TitleMatch, distinct_titles, hand_over
from backends.distinct import distinct_field
from backends.errors import BackendUnavailable
from backends.meilisearch.keys import MeilisearchKeys
from backends.meilisearch.order import (
    MAX_READ,
    DistinctHits,
    EngineHit,
    Order,
    Page,
    PageRequest,
    Run,
    columns,
    first_of_each,
    in_order,
    in_order_of,
)
from backends.meilisearch.query import CompiledQuery, attribute, compile_query, with_ids
from backends.meilisearch.reply import (
    check_result,
    filter_rejection,
    make_facets,
    make_hit,
    merged_result,
    searched_document,
)
from backends.meilisearch.schema import FOLDED_FIELDS, PRIMARY_KEY, engine_document, index_settings, widened
from backends.meilisearch.transport import MeilisearchTransport, RefusedByMeilisearch, Task
from backends.query import FieldKinds, SearchQuery, Synonyms, synonyms_split
from backends.servers.backend import ServerBackend, engine_ids, has_beginnings, title_query
from backends.servers.documents import batches, checked_index_name, time_shares
from backends.servers.matched_words import AskedWords, SoughtWord, WordSearch
from backends.servers.ranks import WINDOW, HighestVersions, Ranks, explaining
from backends.servers.replies import count_in, hits_of, readable, text_in, translated
from backends.servers.server_url import ServerUrl
from backends.servers.tokenizer import split_words
from backends.support import check_support, declare, everywhere, not_needed

T = TypeVar("T")
MIN_HITS_WITH_ALL_WORDS = 20
"""Number of hits below which documents with fewer words of a query also match."""

_PAGE_SIZE = 1000
_EXPLAINED_MEMBERS = ("_rankingScore", "_rankingScoreDetails")


class MeilisearchBackend(ServerBackend):
    """One Meilisearch server."""

    name = "meilisearch"
    default_port = 7700
    support = declare(
        text=everywhere("``q``, without stop words"),
        limit=everywhere("``hitsPerPage``, or the page cut from hits that are ordered here"),
        offset=everywhere("``page``, or the page cut from hits that are ordered here"),
        filters=everywhere("Meilisearch's own syntax, which includes the portable grammar"),
        filter=everywhere("compiled to ``filter``, also for pinned hits"),
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
        explain=everywhere("``showRankingScoreDetails`` of the hits, also of those read by id"),
        answers=everywhere("passages are found in the hits of the page"),
        max_bytes=not_needed("the caller stops taking hits at its own limit, and Meilisearch reads documents fast"),
        is_preview=everywhere("the synonyms of the index are not replaced"),
    )

    def __init__(self, url: ServerUrl):
        if len(url.nodes) != 1:
            raise ValueError("Meilisearch is a single server: its URL must contain one host.")
        super().__init__(url)
        self._transport = MeilisearchTransport(url)
        self._pool = self._transport.pool
        self._keys = MeilisearchKeys(self._transport)
        self._filterable: dict[str, frozenset[str]] = {}
        self._folded: dict[str, bool] = {}
        self._highest = HighestVersions()

    # --- indexes

    def create_index(self, index: str) -> None:
        name = checked_index_name(index)
        with translated(index), readable():
            task = self._transport.change(name, "POST", "/indexes", {"uid": name, "primaryKey": PRIMARY_KEY})
            try:
                self._transport.wait([task])
            except RefusedByMeilisearch as error:
                if error.code != "index_already_exists":
                    raise
            # Another process, or an interrupted call, may have created the index without its settings.
            if "_key" not in self._settings(name)["filterableAttributes"]:
                # A second later than the adapter's timeout: see ``index_settings``.
                settings = index_settings(round(self._transport.url.timeout_seconds * 1000) + 1000)
                self._transport.wait([self._transport.change(name, "PATCH", f"/indexes/{name}/settings", settings)])
                self._settings(name)

    def delete_index(self, index: str) -> None:
        name = checked_index_name(index)
        self._filterable.pop(name, None)
        self._folded.pop(name, None)
        self._forget_synonyms(name)
        self._highest.forget(name)
        with translated(index):
            try:
                self._transport.wait([self._transport.change(name, "DELETE", f"/indexes/{name}")])
            except RefusedByMeilisearch as error:
                if error.code != "index_not_found":
                    raise

    def list_indexes(self) -> list[str]:
        indexes: list[tuple[str, str | None]] = []
        with translated(), readable():
            while True:
                params = {"limit": str(_PAGE_SIZE), "offset": str(len(indexes))}
                page = self._transport.ask("GET", "/indexes", params=params)
                indexes += [(text_in(each["uid"]), each["primaryKey"]) for each in page["results"]]
                # An index may be deleted while the pages are read, so that the total is never reached.
                if len(indexes) >= count_in(page["total"]) or not page["results"]:
                    # An index that this service did not create is none of its business.
                    return [name for name, key in indexes if key == PRIMARY_KEY]

    # --- documents

    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        name = checked_index_name(index)
        with translated(index):
            # Otherwise, retries after a timeout would pile up behind the change that is still running.
            self._transport.await_earlier(name)
            # Reading the settings fails for a missing index, which adding documents would create.
            with readable():
                changes = widened(self._settings(name), kinds)
            if changes:
                self._transport.wait([self._transport.change(name, "PATCH", f"/indexes/{name}/settings", changes)])
            tasks: list[Task] = []
            shares = 0
            for batch in batches(orjson.dumps(engine_document(each)) for each in documents):
                body = [orjson.Fragment(each) for each in batch]
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
                self._settings(name)

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
                ids, total = [text_in(each["id"]) for each in page["results"]], count_in(page["total"])
            yield from ids
            offset += _PAGE_SIZE
            if offset >= total or not ids:
                return

    # --- searching

    def search(self, index: str, query: SearchQuery, take: TakeHit | None = None) -> SearchResult:
        check_support(query, self.support)
        name = checked_index_name(index)
        with self._pool.operation(), translated(index):
            self._follow_synonyms(name, query)
            return self._compiled(name, query, lambda compiled: self._search(name, query, compiled, take))

    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        name = checked_index_name(index)
        query = title_query(text, 2 * limit, within)
        with self._pool.operation(), translated(index):
            if query is None:
                with readable():
                    self._filterable_of(name, SearchQuery(""))
                return ()
            return self._compiled(name, query, lambda compiled: self._find_titles(query, compiled, limit))

    def _compiled(self, name: str, query: SearchQuery, run: Callable[[CompiledQuery], T]) -> T:
        """Run a query compiled with the cached settings of the index, and again with current ones if they differ."""
        with readable():
            filterable = self._filterable_of(name, query)
        try:
            return run(compile_query(name, query, filterable, folded=self._folded[name]))
        except RefusedByMeilisearch as error:
            # The index was rebuilt or restored since its settings were read.
            if not error.code.startswith("invalid_search_"):
                raise
            with readable():
                self._settings(name)
            # The settings were current, so the query itself is invalid.
            if self._filterable[name] == filterable:
                raise
        return run(compile_query(name, query, self._filterable[name], folded=self._folded[name]))

    def _find_titles(self, query: SearchQuery, compiled: CompiledQuery, limit: int) -> tuple[TitleMatch, ...]:
        search = {**compiled.query(page=1, hits=query.limit), "attributesToRetrieve": ["title", "url"]}
        (result,) = self._run([search], query)
        words = query.text.split()
        with readable():
            # Meilisearch forgives typing errors in all fields or in none.
            matches = [TitleMatch(text_in(hit["title"]), text_in(hit["url"])) for hit in result["hits"]]
            return distinct_titles((each for each in matches if has_beginnings(each.title, words)), limit)

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

    def _settings(self, name: str) -> dict[str, Any]:
        settings: dict[str, Any] = self._transport.ask("GET", f"/indexes/{name}/settings")
        self._folded[name] = FOLDED_FIELDS["title"] in settings["searchableAttributes"]
        self._filterable[name] = frozenset(each for each in settings["filterableAttributes"] if isinstance(each, str))
        return settings

    def _filterable_of(self, name: str, query: SearchQuery) -> Set[str]:
        filterable = self._filterable.get(name)
        uses_fields = query.facets or query.filter is not None or query.sort or distinct_field(query)
        needed = set(query.kinds) if uses_fields else set()
        if filterable is not None and needed <= filterable:
            return filterable
        self._settings(name)
        return self._filterable[name]

    def _put_synonyms(self, name: str, synonyms: Synonyms, *, is_first: bool, seconds: float | None = None) -> None:
        """Add the change to Meilisearch's queue, behind other changes; nothing waits for it."""
        by_phrase: dict[str, set[str]] = {}
        for searched, others in synonyms_split(synonyms, split_words):
            phrases = set(map(" ".join, others))
            for phrase in map(" ".join, searched):
                by_phrase.setdefault(phrase, set()).update(phrases - {phrase})
        needed = {phrase: sorted(others) for phrase, others in by_phrase.items() if others}
        path = f"/indexes/{name}/settings/synonyms"
        # The current synonyms mean nothing while an earlier change of ours may be in the queue.
        if not is_first or self._transport.ask("GET", path, seconds=seconds) != needed:
            self._transport.change(name, "PUT", path, needed, seconds=seconds)

    def _search(self, name: str, query: SearchQuery, compiled: CompiledQuery, take: TakeHit | None) -> SearchResult:
        pins = self._pinned_hits(query, compiled)
        others = [with_ids([hit["id"] for hit in pins], without=True)] if pins else []
        distinct_hits = DistinctHits(query, compiled) if compiled.distinct else None
        if distinct_hits is not None:
            with readable():
                pins, exclusions = distinct_hits.first_of(pins)
            others += exclusions
        ranks = Ranks(query, self._highest.of(name, query, partial(self._values_of, name, query)))
        request = PageRequest(query, compiled, ranks, max(0, query.offset - len(pins)), tuple(others))
        page = self._page(request, self._run)
        if compiled.endings and page.total < (1 if query.sort else MIN_HITS_WITH_ALL_WORDS):
            page = self._page(request, partial(self._run_loosely, compiled))
        pinned_hits = pins[query.offset : query.offset + query.limit]
        hits = page.hits[: query.limit - len(pinned_hits)]
        total = page.total + len(pins)
        with readable():
            facets, stats = make_facets(page.counted, compiled, query.facet_values) if query.facets else ({}, {})
            best = searched_document(page.hits[0]) if page.hits else None
            words = WordSearch(query, compiled.parts)
            ask = partial(self._ask, query, compiled, words)
            matched, corrected = words.matched(total, pinned=bool(pins), best=best, ask=ask)
            if distinct_hits is not None:
                hits = distinct_hits.prefer(hits, lambda request: self._run([request], query)[0]["hits"])
        make = explaining(partial(make_hit, query=query, compiled=compiled), query, ranks, _EXPLAINED_MEMBERS)
        built_hits = hand_over(hits_of([*pinned_hits, *hits], make), take)
        return SearchResult(built_hits, total, facets, stats, matched=matched, corrected_query=corrected)

    def _page(self, request: PageRequest, run: Run) -> Page:
        """Return the hits of a page."""
        query, compiled, offset = request.query, request.compiled, request.offset
        limit, rest = query.limit, 0
        order = self._order(request, run) if request.is_ordered_here else None
        if order is not None:
            ids = order.ids[offset:][:limit]
            queries = [compiled.by_ids(ids)]
        else:
            # Only pages have exact totals in Meilisearch, so an offset between two pages needs both.
            page, rest = divmod(offset, limit) if limit else (0, 0)
            queries = [compiled.page(page=page + 1, hits=max(1, limit), extra_filters=request.others)]
            if rest:
                queries.append(compiled.page(page=page + 2, hits=limit, extra_filters=request.others))
        if query.facets and any(name is not None for name in compiled.facets.values()):
            queries.append(compiled.query(page=1, hits=0, facets=True))
        results = run(queries, query)
        with readable():
            if order is not None:
                return Page(in_order_of(ids, results[0]["hits"]), order.total, results[-1])
            hits = [hit for result in results[: 1 + bool(rest)] for hit in result["hits"]]
            return Page(hits[rest : rest + limit], results[0]["totalHits"], results[-1])

    def _order(self, request: PageRequest, run: Run) -> Order:
        """Return the order of the hits, if Meilisearch does not know it or which hits represent their groups."""
        compiled = request.compiled
        names = [*columns(request.ranks), *([compiled.distinct] if compiled.distinct else [])]
        counting = [compiled.page(page=1, hits=1, extra_filters=request.others)] if compiled.distinct else []
        for limit in (WINDOW, MAX_READ):
            values = {
                **compiled.values_query(names, hits=limit, extra_filters=request.others),
                "showRankingScore": True,
            }
            results = run([values, *counting], request.query)
            with readable():
                hits = in_order(results[0]["hits"], request.ranks, compiled)
                groups = first_of_each(hits, compiled.distinct) if compiled.distinct else hits
                ids = [text_in(hit["id"]) for hit in groups]
                total = max(len(groups), results[-1]["totalHits"])
                is_all = len(hits) >= results[0]["totalHits"]
            if is_all or len(groups) >= request.offset + request.query.limit:
                break
        return Order(ids, len(groups) if is_all else total)

    def _values_of(self, name: str, query: SearchQuery, field: str) -> list[str]:
        """Return the most frequent values of a field."""
        search = {"indexUid": name, "q": "", "page": 1, "hitsPerPage": 0, "facets": [attribute(field)]}
        (result,) = self._run([search], query)
        with readable():
            return [str(value) for value in result["facetDistribution"].get(attribute(field), {})]

    def _ask(
        self, query: SearchQuery, compiled: CompiledQuery, words: WordSearch, sought: Sequence[SoughtWord]
    ) -> AskedWords:
        results = self._run([compiled.whole_query(), *map(compiled.word_query, sought)], query)
        best, *others = [searched_document(result["hits"][0]) if result["hits"] else None for result in results]
        # A prefix is looked up with typing errors allowed; documents without errors come first.
        pairs = zip(sought, others, strict=True)
        exists_as_typed = [other is not None and (not each.is_open or words.has(each, other)) for each, other in pairs]
        return AskedWords(best, exists_as_typed)

    def _pinned_hits(self, query: SearchQuery, compiled: CompiledQuery) -> list[EngineHit]:
        """Return the pinned documents that exist and pass the filter, in the order of the settings."""
        pins = query.pinned
        if not pins:
            return []
        search = {**compiled.query(page=1, hits=len(pins), extra_filters=[with_ids(pins)]), "q": ""}
        (result,) = self._run([search], query)
        with readable():
            by_id = {hit["id"]: hit for hit in result["hits"]}
        return [by_id[pin] for pin in pins if pin in by_id]

    def _run(self, queries: Sequence[Mapping[str, Any]], query: SearchQuery) -> list[dict[str, Any]]:
        reply = self._multi_search({"queries": queries}, query)
        with readable():
            results: list[dict[str, Any]] = reply["results"]
            if len(results) != len(queries):
                raise ValueError(f"{len(results)} results for {len(queries)} queries")
            for each, result in zip(queries, results, strict=True):
                check_result(result, each, result["indexUid"])
        return results

    def _run_loosely(
        self, compiled: CompiledQuery, queries: Sequence[Mapping[str, Any]], query: SearchQuery
    ) -> list[dict[str, Any]]:
        """Run queries that also match documents with any of the words; see :meth:`.CompiledQuery.loosely`."""
        results = []
        for each in queries:
            if not each["q"]:
                results += self._run([each], query)
                continue
            reply = self._multi_search(compiled.loosely(each), query)
            with readable():
                results.append(merged_result(reply, each))
        return results

    def _multi_search(self, body: Mapping[str, Any], query: SearchQuery) -> Any:
        try:
            return self._transport.ask("POST", "/multi-search", body)
        except RefusedByMeilisearch as error:
            rejection = filter_rejection(error, query)
            if rejection is not None:
                raise rejection from error
            raise
