"""Running one search."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import orjson

from app.clock import now
from app.errors import ApiError, Detail, ErrorCode
from app.services.access.credentials import SiteRecord
from app.services.analytics.events import EventRecorder, SearchEvent
from app.services.engines import Engines
from app.services.indexing.indexer import Indexer, NothingToFind
from app.services.search.answer_room import AnswerRoom
from app.services.search.answers import AnswerFinder, asks
from app.services.search.learned_order import LearnedOrder
from app.services.search.mixed_order import MixedOrder
from backends.base import Hit, Matched, SearchBackend, SearchResult, TakeHit
from backends.distinct import distinct_field
from backends.errors import BackendRejected, BackendUnavailable, IndexNotFound, ReplyTooLarge
from backends.field_rules import check_filter, check_sort, facet_fields
from backends.query import MATCH_ALL, Highlight, SearchQuery, SortKey
from backends.sections import SECTIONS

MAX_SORT_KEYS = 3
_SORT_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]{0,63})\s*(?::\s*(asc|desc)\s*)?", re.ASCII | re.IGNORECASE)
_REJECTED = {
    "filters": ErrorCode.INVALID_FILTER,
    "sort": ErrorCode.INVALID_SORT,
    "facets": ErrorCode.INVALID_FACET,
    "distinct": ErrorCode.INVALID_FACET,
    "q": ErrorCode.VALIDATION_FAILED,
}


EncodeHit = Callable[[Hit], bytes]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimedResult:
    """The result of a search, and how long the service took for it.

    Attributes:
        result: All but the hits.
        hits: Each as JSON, as it is answered.
        took_ms: Milliseconds.
        searched_at: When, aware.
        answer: The passage that answers the query, as JSON; ``None`` if there is none, or none was asked for.
    """

    result: SearchResult
    hits: Sequence[bytes]
    took_ms: int
    searched_at: datetime
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor who searches, as analytics know them.

    Attributes:
        session_id: Their session, in which keystrokes merge; ``None`` or empty: none.
        number: What stands for them (:mod:`app.services.analytics.visitors`); ``None``: they are not told apart.
        channel: How they search, of ``CHANNELS``.
        page: Path of the page from which they search; ``None``: not told.
    """

    session_id: str | None
    number: int | None
    channel: str
    page: str | None = None


class Searcher:
    """Runs searches on whichever engine holds a site's index."""

    def __init__(
        self,
        engines: Engines,
        indexer: Indexer,
        events: EventRecorder,
        max_answer_bytes: int,
        mixed_order: MixedOrder | None = None,
    ):
        """``mixed_order`` orders the hits of sentences; ``None`` where there is no embedder."""
        self._engines = engines
        self._indexer = indexer
        self._events = events
        self._max_answer_bytes = max_answer_bytes
        self._mixed_order = mixed_order

    def new_room(self) -> AnswerRoom:
        """The room of one answer, which may take the hits of several searches."""
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
        """Search one site, and record the search for analytics. Its charge was reserved before.

        Args:
            encode: Makes the JSON of a hit.
            room: What the hits must fit into.
            is_whole: Whether that JSON has the whole document.
            record_for: Who searched; ``None`` if it is not to be recorded, as a search without words never is.

        Raises:
            ApiError: 400 for what the query got wrong, or for hits that do not fit.
            BackendUnavailable: The engine cannot answer now.
        """
        timed = self._search(site, replace(query, max_bytes=room.left) if is_whole else query, encode, room)
        if record_for is not None:
            self.record(site, query, timed, record_for)
        return timed

    def record(self, site: SiteRecord, query: SearchQuery, timed: TimedResult, visitor: Visitor) -> None:
        """Record a search for analytics, unless it is one without words."""
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
        """Ask the engine that holds a site's index.

        Args:
            question: Gets the engine and the name of the index; may be asked twice.
            nothing: Gives the answer while a site has no documents, and no index yet.

        Raises:
            BackendUnavailable: The engine cannot answer now, or the index is being rebuilt.
        """
        try:
            try:
                return question(self._engines.get_engine(site.engine), site.engine_index)
            except IndexNotFound:
                # It was lost, or replaced since the caller's record of the site was read.
                restored = self._indexer.restore(site.id)
                if restored is None:
                    raise
                return question(self._engines.get_engine(restored.engine), restored.engine_index)
        except NothingToFind:
            return nothing()
        except IndexNotFound as error:
            raise BackendUnavailable("The site's index is being rebuilt.") from error


def _find_nothing(query: SearchQuery) -> SearchResult:
    """The result of an empty index.

    Raises:
        BackendRejected: The filter, sort, facets or distinct cannot be run. The engine's own syntax of filters is not
            looked at.
    """
    if query.condition is not None:
        check_filter(query.condition, query.kinds)
    check_sort(query.sort, query.kinds)
    distinct_field(query)
    facets = {name: dict[str, int]() for name in facet_fields(query.facets, query.kinds)}
    return SearchResult((), 0, facets, matched=Matched.ALL if query.text == MATCH_ALL else Matched.SOME)


def rejected(error: BackendRejected) -> ApiError:
    """The 400 for a query that the engine cannot run."""
    extra = None if error.position is None else {"position": error.position}
    code = _REJECTED.get(error.part, ErrorCode.VALIDATION_FAILED)
    return ApiError(code, str(error), details=[Detail(error.part, code.value, str(error), extra)])


def make_query(parameters: dict[str, Any]) -> SearchQuery:
    """The checked parameters of a request as a query, before it is known for which site.

    Raises:
        ApiError: 400 for ``sort`` or ``facets``.
    """
    limit = parameters["limit"]
    offset = parameters["offset"]
    if parameters["page"] > 1:
        offset = (parameters["page"] - 1) * limit
        if offset > 2147483647:
            raise ApiError(
                ErrorCode.VALIDATION_FAILED,
                "page is out of range",
                details=[Detail("page", "out_of_range", "page is out of range")],
            )
    return SearchQuery(
        text=parameters["q"].strip(),
        limit=limit,
        offset=offset,
        filters=parameters["filters"].strip(),
        sort=parse_sort(parameters["sort"]),
        facets=parse_names(parameters["facets"]),
        highlight=(
            Highlight(only_fields=parse_shown(parameters["fields"]), sentences=True)
            if parameters["highlight"]
            else None
        ),
        sections=parameters["sections"],
        distinct=parameters["distinct"],
        explain=parameters["explain"],
        answers=True,
    )


def for_site(query: SearchQuery, site: SiteRecord) -> SearchQuery:
    """``query`` with what the site knows of its fields and how it wants to be searched: its settings and rules."""
    answers = query.answers and site.settings.answers
    wanted = site.rules.apply(replace(query, kinds=site.kinds, settings=site.settings, answers=answers), now)
    return replace(wanted, answers=False) if answers and not asks(wanted) else wanted


def parse_sort(text: str) -> tuple[SortKey, ...]:
    """``date:desc,title`` as sort keys.

    Raises:
        ApiError: 400 ``invalid_sort``.
    """
    if not text.strip():
        return ()
    keys: list[SortKey] = []
    for part in text.split(","):
        match = _SORT_KEY.fullmatch(part)
        if match is None:
            raise rejected(
                BackendRejected("sort", f"sort must be like date:desc,title:asc; {part.strip()[:80]!r} is not.")
            )
        keys.append(SortKey(match[1], (match[2] or "asc").lower() == "desc"))
    if len(keys) > MAX_SORT_KEYS:
        raise rejected(BackendRejected("sort", f"sort accepts at most {MAX_SORT_KEYS} fields."))
    if len({key.field for key in keys}) < len(keys):
        raise rejected(BackendRejected("sort", "sort names a field twice."))
    return tuple(keys)


def parse_names(text: str) -> tuple[str, ...]:
    """``author,category`` as names, each once.

    Raises:
        ApiError: 400 ``invalid_facet``.
    """
    if not text.strip():
        return ()
    names = [part.strip() for part in text.split(",")]
    if "" in names:
        raise rejected(BackendRejected("facets", "facets must be field names separated by commas, or *."))
    return tuple(dict.fromkeys(names))


def parse_shown(text: str) -> frozenset[str] | None:
    """``title,url`` as the fields of a hit, always with ``id``; ``None``, which is all, if none is named."""
    names = {part.strip() for part in text.split(",")} - {""} if text else set()
    return frozenset({*names, "id"}) if names else None


def encode_hit(hit: Hit, shown: Set[str] | None = None) -> bytes:
    """A hit as JSON, with ``_formatted`` and ``_explain``; its document is decoded only if not all of it is shown."""
    document = hit.json
    if hit.sections is not None and SECTIONS in hit.document:
        shown = (shown or hit.document.keys()) - {SECTIONS}
    if shown is not None:
        document = orjson.dumps({name: value for name, value in hit.document.items() if name in shown})
    parts: list[bytes | memoryview] = [memoryview(document)[:-1]]
    if hit.sections is not None:
        parts += (b',"sections":', orjson.dumps([section.as_json() for section in hit.sections]))
    if hit.formatted is not None:
        parts += (b',"_formatted":', orjson.dumps(hit.formatted))
    if hit.explanation is not None:
        parts += (b',"_explain":', orjson.dumps(hit.explanation))
    return b"".join((*parts, b"}")) if len(parts) > 1 else document


def encode_effects(query: SearchQuery, timed: TimedResult, links: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Statements of a site's settings beside the hits of a search: rules that hold, an answer, and links for nothing.

    Args:
        links: The site's links for searches that find nothing.
    """
    effects = query.effects
    said = {
        "rules": effects.rules,
        "redirect": effects.redirect,
        "notice": effects.notice,
        "answer": timed.answer,
        "no_results_links": () if timed.result.total else links,
    }
    return {name: value for name, value in said.items() if value}


def encode_results(
    query: SearchQuery, sent_text: str, timed: TimedResult, query_id: str, links: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The ``results`` member of an answer, for orjson; ``links`` as for :func:`encode_effects`."""
    result = timed.result
    results: dict[str, Any] = {
        "hits": [orjson.Fragment(hit) for hit in timed.hits],
        "estimatedTotalHits": result.total,
        "processingTimeMs": timed.took_ms,
        "query": sent_text,
        "query_id": query_id,
        "matched": result.matched.value,
        "corrected_query": result.corrected_query,
        "limit": query.limit,
        "offset": query.offset,
    }
    results |= encode_effects(query, timed, links)
    if query.facets:
        results["facetDistribution"] = result.facets
        results["facetStats"] = {name: {"min": s.min, "max": s.max} for name, s in result.facet_stats.items()}
    return results
