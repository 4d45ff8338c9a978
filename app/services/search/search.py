"""Running a search.

``encoding.py`` makes the query, an engine finds the hits, ``mixed_order.py`` and ``learned_order.py`` order them,
``answers.py`` finds the answer, and ``encoding.py`` encodes the response within ``budget.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from app.clock import now
from app.errors import ApiError, Detail, ErrorCode
from app.services.access.credentials import SiteRecord
from app.services.analytics.events import EventRecorder, SearchEvent
from app.services.engines import Engines
from app.services.indexing.indexer import Indexer, NothingToFind
from app.services.search.answers import find_answer
from app.services.search.budget import ResponseBudget
from app.services.search.learned_order import learned_page, widen_page
from app.services.search.mixed_order import MixedOrder
from backends.base import Matched, SearchBackend, SearchResult
from backends.distinct import distinct_field
from backends.errors import BackendRejected, BackendUnavailable, IndexNotFound, ResponseTooLarge
from backends.field_rules import check_filter, check_sort, facet_fields
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery

_REJECTED = {
    "filters": ErrorCode.INVALID_FILTER,
    "sort": ErrorCode.INVALID_SORT,
    "facets": ErrorCode.INVALID_FACET,
    "distinct": ErrorCode.INVALID_FACET,
    "q": ErrorCode.VALIDATION_FAILED,
}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimedResult:
    """The result of a search, with its duration.

    Attributes:
        took_ms: Duration of the search in milliseconds.
        searched_at: Timezone-aware time of the search.
        answer: The passage that answers the query, as JSON; ``None`` if none was found or requested.
    """

    result: SearchResult
    took_ms: int
    searched_at: datetime
    answer: Mapping[str, Any] | None = None


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
        """``mixed_order`` orders the hits of sentences; ``None`` without an embedder."""
        self._engines = engines
        self._indexer = indexer
        self._events = events
        self._max_response_bytes = max_response_bytes
        self._mixed_order = mixed_order

    def new_budget(self) -> ResponseBudget:
        """Return the size limit for one response, which may contain the hits of several searches."""
        return ResponseBudget(self._max_response_bytes)

    def run(self, site: SiteRecord, query: SearchQuery, *, record_for: Visitor | None = None) -> TimedResult:
        """Search one site, and record the search for analytics. The caller has charged the search.

        Args:
            query: The query, from :func:`app.services.search.encoding.for_site`.
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
        """Record a search for analytics, unless it has no words."""
        if query.typed != MATCH_ALL:
            self._events.record_if_possible(
                SearchEvent(
                    site_id=site.id,
                    query=query.typed,
                    results_count=timed.result.total,
                    session_id=visitor.session_id,
                    occurred_at=timed.searched_at,
                    response_ms=timed.took_ms,
                    matched=timed.result.matched.value,
                    visitor=visitor.number,
                    channel=visitor.channel,
                    page=visitor.page,
                    mixed=timed.result.mixed,
                )
            )

    def _search(self, site: SiteRecord, query: SearchQuery) -> TimedResult:
        started = time.perf_counter()
        try:
            result = self._result(site, query)
        except BackendRejected as error:
            raise rejected(error) from error
        except ResponseTooLarge as error:
            raise self.new_budget().exceeded() from error
        answer = find_answer(result.hits) if query.answers else None
        return TimedResult(result, round((time.perf_counter() - started) * 1000), now(), answer)

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
