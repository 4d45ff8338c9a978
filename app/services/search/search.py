"""Running a search.

``encoding.py`` makes the query and encodes the hits, ``hits.py`` processes them on their way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
from app.services.search.hits import AnswerFinder, LearnedOrder, MixedOrder
from backends.base import Hit, Matched, SearchBackend, SearchResult, TakeHit
from backends.distinct import distinct_field
from backends.errors import BackendRejected, BackendUnavailable, IndexNotFound, ReplyTooLarge
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


EncodeHit = Callable[[Hit], bytes]
T = TypeVar("T")


class AnswerRoom:
    """The size limit for documents in one response, including formatted copies, checked while hits are encoded.

    Args:
        max_bytes: Maximum number of bytes of JSON.
    """

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._available = max_bytes

    @property
    def available(self) -> int:
        """Number of bytes that are still available."""
        return self._available

    def check(self, size: int) -> None:
        """Reject a document of at least ``size`` bytes before it is encoded, if it does not fit.

        Raises:
            ApiError: 400 ``answer_too_large``.
        """
        if size > self._available:
            raise self.too_small()

    def fits(self, size: int) -> bool:
        """Whether ``size`` bytes are available."""
        return size <= self._available

    def too_small(self) -> ApiError:
        """Return the 400 for documents that exceed the limit."""
        return ApiError(
            ErrorCode.ANSWER_TOO_LARGE,
            f"The response would contain more than {self._max_bytes} bytes of documents: "
            "request fewer hits, or select the fields you need.",
        )

    def take(self, size: int) -> None:
        """Use ``size`` bytes.

        Raises:
            ApiError: 400 ``answer_too_large``.
        """
        self.check(size)
        self._available -= size


@dataclass(frozen=True, slots=True)
class TimedResult:
    """The result of a search, with its duration.

    Attributes:
        result: The result without hits.
        hits: The JSON of each hit.
        took_ms: Duration of the search in milliseconds.
        searched_at: Timezone-aware time of the search.
        answer: The passage that answers the query, as JSON; ``None`` if none was found or requested.
    """

    result: SearchResult
    hits: Sequence[bytes]
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
        max_answer_bytes: int,
        mixed_order: MixedOrder | None = None,
    ):
        """``mixed_order`` orders the hits of sentences; ``None`` without an embedder."""
        self._engines = engines
        self._indexer = indexer
        self._events = events
        self._max_answer_bytes = max_answer_bytes
        self._mixed_order = mixed_order

    def new_room(self) -> AnswerRoom:
        """Return the size limit for one response, which may contain the hits of several searches."""
        return AnswerRoom(self._max_answer_bytes)

    def run(
        self,
        site: SiteRecord,
        query: SearchQuery,
        encode: EncodeHit,
        room: AnswerRoom,
        *,
        record_for: Visitor | None = None,
        is_whole: bool = False,
    ) -> TimedResult:
        """Search one site, and record the search for analytics. The caller has charged the search.

        Args:
            encode: Returns the JSON of a hit.
            room: The limit of the response.
            record_for: The visitor, or ``None`` to keep the search out of analytics. A search without words is never
                recorded.
            is_whole: Whether the JSON of a hit contains the whole document.

        Raises:
            ApiError: 400 for an invalid query, or for hits that exceed the limit.
            BackendUnavailable: The engine is unavailable.
        """
        timed = self._search(site, replace(query, max_bytes=room.available) if is_whole else query, encode, room)
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

    def _search(self, site: SiteRecord, query: SearchQuery, encode: EncodeHit, room: AnswerRoom) -> TimedResult:
        started = time.perf_counter()
        hits: list[bytes] = []

        def take(hit: Hit) -> None:
            encoded = encode(hit)
            room.take(len(encoded))
            hits.append(encoded)

        finder = AnswerFinder(take) if query.answers else None
        show = take if finder is None else finder.take

        def search(engine: SearchBackend, index: str) -> SearchResult:
            if not query.learned:
                return self._find(engine, index, site, query, show)
            order = LearnedOrder(query, show)
            result = self._find(engine, index, site, order.query, order.take)
            order.finish()
            return result

        try:
            result = self.ask(site, search, partial(_find_nothing, query))
        except BackendRejected as error:
            raise rejected(error) from error
        except ReplyTooLarge as error:
            raise room.too_small() from error
        answer = None if finder is None else finder.answer
        return TimedResult(result, hits, round((time.perf_counter() - started) * 1000), now(), answer)

    def _find(
        self, engine: SearchBackend, index: str, site: SiteRecord, query: SearchQuery, take: TakeHit
    ) -> SearchResult:
        if self._mixed_order is not None and self._mixed_order.is_for(query):
            return self._mixed_order.search(engine, index, site.id, query, take)
        return engine.search(index, query, take)

    def ask(self, site: SiteRecord, question: Callable[[SearchBackend, str], T], nothing: Callable[[], T]) -> T:
        """Call a function with the engine and the index of a site.

        Args:
            question: Receives the engine and the name of the index; may be called twice.
            nothing: Returns the result for a site without documents, whose index does not exist yet.

        Raises:
            BackendUnavailable: The engine is unavailable, or the index is being rebuilt.
        """
        try:
            try:
                return question(self._engines.get_engine(site.engine), site.engine_index)
            except IndexNotFound:
                # The index was lost, or has been replaced since the caller's record of the site was read.
                restored = self._indexer.restore(site.id)
                if restored is None:
                    raise
                return question(self._engines.get_engine(restored.engine), restored.engine_index)
        except NothingToFind:
            return nothing()
        except IndexNotFound as error:
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
    code = _REJECTED.get(error.part, ErrorCode.VALIDATION_FAILED)
    return ApiError(code, message, details=[Detail(error.part, code.value, message, extra)])


def find_ids(searcher: Searcher, site: SiteRecord, query: SearchQuery) -> list[str]:
    """Return the IDs of a query's results, best first, ignoring the site's pins, hidden documents, and distinct field.

    Raises:
        ApiError: 400 for a query that the engine rejects.
        BackendUnavailable: The engine is unavailable.
    """
    ids: list[str] = []

    def note(hit: Hit) -> bytes:
        ids.append(hit.id)
        return b""

    settings = replace(site.settings, pinned={}, hidden={}, distinct="")
    plain_query = replace(query, kinds=site.kinds, settings=settings)
    # Without a visitor, so that the search is kept out of analytics.
    searcher.run(site, plain_query, note, searcher.new_room())
    return ids


def find_ids_at(searcher: Searcher, site: SiteRecord, urls: tuple[str, ...], limit: int) -> list[str]:
    """Return the IDs of the documents whose ``url`` is exactly one of ``urls``.

    Raises:
        BackendUnavailable: The engine is unavailable.
    """
    return find_ids(searcher, site, SearchQuery(MATCH_ALL, limit=limit, filter=OneOf("url", urls)))
