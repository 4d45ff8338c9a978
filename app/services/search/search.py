"""Running a search.

``encoding.py`` makes the query, an engine finds the hits, ``mixed_order.py`` and ``learned_order.py`` order them,
``answers.py`` finds the answer, and ``encoding.py`` encodes the response within ``budget.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from app.clock import now
from app.errors import ApiError, Detail, ErrorCode, field_error
from app.services.access.credentials import SearchedSite, SiteRecord
from app.services.analytics.events import EventRecorder, SearchEvent
from app.services.engines import Engines
from app.services.indexing.indexer import Indexer, NothingToFind
from app.services.search.answers import find_answer
from app.services.search.budget import ResponseBudget
from app.services.search.fanout import Fanout
from app.services.search.learned_order import learned_page, widen_page
from app.services.search.merging import (
    MAX_MERGED,
    SITE,
    Ranked,
    choose_page,
    condition_for,
    merge_effects,
    merge_results,
    portable_condition,
    scores_query,
    with_site,
)
from app.services.search.mixed_order import MixedOrder
from app.services.search.site_queries import for_site
from backends.base import Hit, Matched, SearchBackend, SearchResult
from backends.distinct import distinct_field
from backends.errors import BackendError, BackendRejected, BackendUnavailable, IndexNotFound, ResponseTooLarge
from backends.field_rules import check_filter, check_sort, facet_fields
from backends.filters import OneOf
from backends.query import MATCH_ALL, NO_EFFECTS, Effects, SearchQuery, WordCounts

_REJECTED = {
    "filters": ErrorCode.INVALID_FILTER,
    "sort": ErrorCode.INVALID_SORT,
    "facets": ErrorCode.INVALID_FACET,
    "distinct": ErrorCode.INVALID_FACET,
    "q": ErrorCode.VALIDATION_FAILED,
}


RANKED_AT_ONCE = 250
"""Maximum number of hits that an engine ranks in one request; Typesense's limit."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimedResult:
    """The result of a search, with its duration.

    Attributes:
        took_ms: Duration of the search in milliseconds.
        searched_at: Timezone-aware time of the search.
        answer: The passage that answers the query, as JSON; ``None`` if none was found or requested.
        by_site: Results of a collection's sites, without hits, by ID of the site; ``None`` for a search of one site.
        unavailable: IDs of the sites of a collection whose engine did not respond.
        effects: Effects of the rules of a collection's sites.
    """

    result: SearchResult
    took_ms: int
    searched_at: datetime
    answer: Mapping[str, Any] | None = None
    by_site: Mapping[int, SearchResult] | None = None
    unavailable: tuple[int, ...] = ()
    effects: Effects = NO_EFFECTS


@dataclass(frozen=True, slots=True)
class Visitor:
    """The visitor who searches, as analytics record them.

    Attributes:
        session_id: The visitor's session, in which keystrokes are merged; ``None`` or empty without a session.
        number: Hashed visitor ID (:mod:`app.services.analytics.visitors`); ``None`` if visitors are not counted.
        channel: One of ``CHANNELS``.
        page: Path of the page with the search box; ``None`` if it is unknown.
    """

    session_id: str | None
    number: int | None
    channel: str
    page: str | None = None


class Searcher:
    """Runs searches on the engine of each site's index."""

    def __init__(
        self,
        engines: Engines,
        indexer: Indexer,
        events: EventRecorder,
        max_response_bytes: int,
        mixed_order: MixedOrder | None = None,
    ):
        """``mixed_order`` also ranks by meaning if the query is a sentence; ``None`` without an embedder."""
        self._engines = engines
        self._indexer = indexer
        self._events = events
        self._max_response_bytes = max_response_bytes
        self._mixed_order = mixed_order
        self._fanout = Fanout()

    def close(self) -> None:
        """End the threads of searches over several sites."""
        self._fanout.close()

    def new_budget(self) -> ResponseBudget:
        """Return the size limit for one response, which may contain the hits of several searches."""
        return ResponseBudget(self._max_response_bytes)

    def run(self, site: SiteRecord, query: SearchQuery, *, record_for: Visitor | None = None) -> TimedResult:
        """Search one site, and record the search for analytics. The caller has charged the search.

        Args:
            query: The query, from :func:`app.services.search.site_queries.for_site`.
            record_for: The visitor, or ``None`` to keep the search out of analytics. A search without words is never
                recorded.

        Raises:
            ApiError: 400 for an invalid query, or for hits that exceed the query's ``max_bytes``.
            BackendUnavailable: The engine is unavailable.
        """
        timed = self._search(site, query)
        if record_for is not None:
            self.record(site, query, timed, record_for)
        return timed

    def record(self, site: SiteRecord, query: SearchQuery, timed: TimedResult, visitor: Visitor) -> None:
        """Record a search for analytics, unless it has no words: once, and for each site that a collection searched."""
        if query.typed == MATCH_ALL:
            return
        for site_id, result in {site.id: timed.result, **(timed.by_site or {})}.items():
            self._events.record_if_possible(
                SearchEvent(
                    site_id=site_id,
                    query=query.typed,
                    results_count=result.total,
                    session_id=visitor.session_id,
                    occurred_at=timed.searched_at,
                    response_ms=timed.took_ms,
                    matched=result.matched.value,
                    visitor=visitor.number,
                    channel=visitor.channel,
                    page=visitor.page,
                    mixed=result.mixed,
                )
            )

    def _search(self, site: SiteRecord, query: SearchQuery) -> TimedResult:
        started = time.perf_counter()
        merged: TimedResult | None = None
        try:
            if site.searched_sites is None:
                result = self._result(site, query)
            else:
                merged = self._search_sites(site.searched_sites, query)
                result = merged.result
        except BackendRejected as error:
            raise rejected(error) from error
        except ResponseTooLarge as error:
            raise self.new_budget().exceeded() from error
        answer = find_answer(result.hits) if query.answers else None
        took_ms = round((time.perf_counter() - started) * 1000)
        if merged is None:
            return TimedResult(result, took_ms, now(), answer)
        return replace(merged, took_ms=took_ms, searched_at=now(), answer=answer)

    def _search_sites(self, sites: Sequence[SearchedSite], query: SearchQuery) -> TimedResult:
        """Search the sites of a collection, and merge their results.

        Raises:
            ApiError: 400 for a page beyond :data:`MAX_MERGED`.
            BackendRejected: A site's engine rejects the query.
            BackendUnavailable: No engine is available.
        """
        if query.offset + query.limit > MAX_MERGED:
            raise _beyond_merged()
        searched, queries = self._queries_of(sites, query)
        scoring = [scores_query(each) for each in queries]
        firsts = self._ask_sites(searched, scoring, self._result_without_documents)
        ranked = [
            Ranked(site, each, result)
            for site, each, result in zip(searched, queries, firsts, strict=True)
            if isinstance(result, SearchResult)
        ]
        unavailable = [site for site, result in zip(searched, firsts, strict=True) if isinstance(result, BackendError)]
        if unavailable and not ranked:
            raise BackendUnavailable("No search engine of the collection's sites is available.")
        page = choose_page(ranked, query.offset, query.limit)
        hits, failed = self._read_page(ranked, page)
        effects = merge_effects([site.query.effects for site in ranked])
        return TimedResult(
            merge_results(ranked, hits, query),
            0,
            now(),
            by_site={site.site.record.id: replace(site.result, hits=()) for site in ranked},
            unavailable=tuple(site.record.id for site in (*unavailable, *failed)),
            effects=effects,
        )

    def _queries_of(
        self, sites: Sequence[SearchedSite], query: SearchQuery
    ) -> tuple[list[SearchedSite], list[SearchQuery]]:
        """Return the sites that can have hits, each with its query."""
        condition = portable_condition(query)
        facets = tuple(name for name in query.facets if name != SITE)
        plain = replace(query, native_filter="", portable_filter=None, facets=facets)
        searched, queries = [], []
        for site in sites:
            narrowed = condition_for(condition, site)
            if not isinstance(narrowed, bool):
                own = for_site(replace(plain, portable_filter=narrowed), site.record)
                # A field that only other sites have is empty here.
                queries.append(replace(own, kinds=query.kinds))
                searched.append(site)
        if len(searched) > 1 and query.text != MATCH_ALL and not query.sort:
            counts = (self._count_words(site.record, each) for site, each in zip(searched, queries, strict=True))
            total = sum(counts, WordCounts())
            queries = [replace(each, word_counts=total) for each in queries] if total.documents else queries
        return searched, queries

    def ask_each(self, sites: Sequence[SearchedSite], questions: Sequence[Callable[[], T]]) -> list[T | BackendError]:
        """Call a function for each site: at the same time for sites on servers.

        Returns:
            What each function returns, or the error of an engine that is unavailable or too slow.
        """
        return self._fanout.run([self._server_of(site.record.engine) for site in sites], questions)

    def _server_of(self, identity: str) -> str | None:
        is_remote = self._engines.knows(identity) and self._engines.get_engine(identity).is_remote
        return identity if is_remote else None

    def _ask_sites(
        self,
        sites: Sequence[SearchedSite],
        queries: Sequence[SearchQuery],
        question: Callable[[SiteRecord, SearchQuery], T],
    ) -> list[T | BackendError]:
        pairs = zip(sites, queries, strict=True)
        return self.ask_each(sites, [partial(question, site.record, query) for site, query in pairs])

    def _read_page(
        self, ranked: Sequence[Ranked], page: Sequence[tuple[int, int]]
    ) -> tuple[list[Hit], list[SearchedSite]]:
        """Return the hits of a page, and the sites whose engine has not responded since it ranked them."""
        positions: dict[int, list[int]] = {}
        for number, position in page:
            positions.setdefault(number, []).append(position)
        read = list(positions)
        queries = [
            replace(
                ranked[number].query,
                offset=min(positions[number]),
                limit=max(positions[number]) - min(positions[number]) + 1,
                facets=(),
            )
            for number in read
        ]
        results = self._ask_sites([ranked[number].site for number in read], queries, self._result)
        hits: dict[tuple[int, int], Hit] = {}
        failed = []
        for number, query, result in zip(read, queries, results, strict=True):
            site = ranked[number].site
            if isinstance(result, BackendError):
                failed.append(site)
            else:
                hits |= {
                    (number, position): with_site(hit, site) for position, hit in enumerate(result.hits, query.offset)
                }
        # Documents may have been deleted since their scores were read.
        return [hits[place] for place in page if place in hits], failed

    def _count_words(self, site: SiteRecord, query: SearchQuery) -> WordCounts:
        # In this thread, since only engines in this process count words. Ranking reports the ones that are unavailable.
        try:
            return self.ask(site, lambda engine, index: engine.count_words(index, query))
        except (NothingToFind, BackendUnavailable):
            return WordCounts()

    def _result_without_documents(self, site: SiteRecord, query: SearchQuery) -> SearchResult:
        """Return the scores of hits. Their order by meaning and by clicks has no effect on the positions of a page."""

        def search(engine: SearchBackend, index: str) -> SearchResult:
            first = engine.search(index, replace(query, limit=min(query.limit, RANKED_AT_ONCE)))
            hits = list(first.hits)
            while len(hits) % RANKED_AT_ONCE == 0 and 0 < len(hits) < min(query.limit, first.total):
                limit = min(RANKED_AT_ONCE, query.limit - len(hits))
                later = engine.search(index, replace(query, offset=len(hits), limit=limit, facets=()))
                if not later.hits:
                    break
                hits += later.hits
            return replace(first, hits=tuple(hits))

        try:
            return self.ask(site, search)
        except NothingToFind:
            return _find_nothing(query)

    def _result(self, site: SiteRecord, query: SearchQuery) -> SearchResult:
        try:
            return self.ask(site, partial(self._find, site.id, query))
        except NothingToFind:
            return _find_nothing(query)

    def _find(self, site_id: int, query: SearchQuery, engine: SearchBackend, index: str) -> SearchResult:
        widened = widen_page(query) if query.learned else query
        if self._mixed_order is not None and self._mixed_order.is_for(widened):
            result = self._mixed_order.search(engine, index, site_id, widened)
        else:
            result = engine.search(index, widened)
        return result if widened is query else replace(result, hits=learned_page(query, result.hits))

    def ask(self, site: SiteRecord, question: Callable[[SearchBackend, str], T]) -> T:
        """Call a function with the engine and the index of a site, and again if the index was replaced meanwhile.

        Raises:
            NothingToFind: The site has no documents, so its index does not exist yet.
            BackendUnavailable: The engine is unavailable, or the index is being rebuilt.
        """
        try:
            return question(self._engines.get_engine(site.engine), site.engine_index)
        except IndexNotFound as error:
            # The index was lost, or has been replaced since the caller's record of the site was read.
            restored = self._indexer.restore(site.id)
            if restored is None:
                raise BackendUnavailable("The site's index is being rebuilt.") from error
            try:
                return question(self._engines.get_engine(restored.engine), restored.engine_index)
            except IndexNotFound:
                raise BackendUnavailable("The site's index is being rebuilt.") from error


def _beyond_merged() -> ApiError:
    return field_error("offset", "out_of_range", f"must not lead beyond hit {MAX_MERGED} of a collection")


def _find_nothing(query: SearchQuery) -> SearchResult:
    """Return the result of a search in an empty index.

    Raises:
        BackendRejected: The filter, sort, facets, or distinct is not valid. The engine's own filter syntax is not
            checked.
    """
    if query.condition is not None:
        check_filter(query.condition, query.kinds)
    check_sort(query.sort, query.kinds)
    distinct_field(query)
    facets = {name: dict[str, int]() for name in facet_fields(query.facets, query.kinds)}
    return SearchResult((), 0, facets, matched=Matched.ALL if query.text == MATCH_ALL else Matched.SOME)


def rejected(error: BackendRejected) -> ApiError:
    """Return the 400 for a query that the engine cannot run."""
    message, extra = str(error), None
    if error.position is not None:
        message, extra = f"{message} (At character {error.position}.)", {"position": error.position}
    code = _REJECTED.get(error.parameter, ErrorCode.VALIDATION_FAILED)
    return ApiError(code, message, details=[Detail(error.parameter, code.value, message, extra)])


def find_ids(searcher: Searcher, site: SiteRecord, query: SearchQuery) -> list[str]:
    """Return the IDs of a query's results, best first, ignoring the site's pins, hidden documents, and distinct field.

    Raises:
        ApiError: 400 for a query that the engine rejects.
        BackendUnavailable: The engine is unavailable.
    """
    settings = replace(site.settings, pinned={}, hidden={}, distinct="")
    plain_query = replace(query, kinds=site.kinds, settings=settings, returned_fields=frozenset({"id"}))
    # Without a visitor, so that the search is kept out of analytics.
    return [hit.id for hit in searcher.run(site, plain_query).result.hits]


def find_ids_at(searcher: Searcher, site: SiteRecord, urls: tuple[str, ...], limit: int) -> list[str]:
    """Return the IDs of the documents whose ``url`` is exactly one of ``urls``.

    Raises:
        BackendUnavailable: The engine is unavailable.
    """
    return find_ids(searcher, site, SearchQuery(MATCH_ALL, limit=limit, portable_filter=OneOf("url", urls)))
