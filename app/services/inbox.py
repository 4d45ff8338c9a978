"""The inbox: queries and questions that disappoint visitors, their current results, and settings that improve them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from app.clock import now, start_of
from app.errors import field_error
from app.models import IgnoredQuery, QueryDay, Site, SiteDay
from app.models.events import QUERY_KINDS, SUGGESTED_FROM
from app.services.access.credentials import SiteRecord
from app.services.analytics.report_parts import RecentResults
from app.services.analytics.reports import NO_CLICKS
from app.services.asks.open_questions import OpenQuestion, list_open_questions
from app.services.search.search import Searcher
from app.services.search.site_queries import for_site
from app.services.sites import get_site
from app.wording import number
from backends.base import Matched
from backends.query import SearchQuery
from backends.text import normal_form


@dataclass(frozen=True, slots=True)
class CurrentHit:
    """A document in the current results of a query."""

    id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class CurrentResult:
    """Current results of a query.

    Attributes:
        total: Number of documents.
        matched: How these documents match the query's words.
        hits: The first of these documents.
    """

    total: int
    matched: Matched
    hits: tuple[CurrentHit, ...]


def search_now(searcher: Searcher, site: SiteRecord, text: str, *, limit: int = 1) -> CurrentResult:
    """Search a site as its visitors do, with its settings.

    Args:
        text: The query.
        limit: Maximum number of hits, up to 101.

    Raises:
        ApiError: 400 for a query that the engine rejects.
        BackendUnavailable: The engine is unavailable.
    """
    query = for_site(SearchQuery(text, limit=limit, returned_fields=frozenset({"title", "url"})), site)
    result = searcher.run(site, query).result
    hits = tuple(CurrentHit(hit.id, str(hit.document["title"]), str(hit.document["url"])) for hit in result.hits)
    return CurrentResult(result.total, result.matched, hits)


PERIOD_DAYS = 30
MAX_CANDIDATES = 100
"""Maximum number of queries that are checked, each with a search. Queries that disappointed the most visitors come
first.
"""
MIN_VISITORS_WITHOUT_CLICK = 5
"""Minimum number of visitors who searched for a query without clicking before missing clicks are significant."""
MAX_FREQUENT = 1_000
MAX_VISITED = 20_000
"""Maximum number of queries with the most visitors that are considered as candidates.

Candidates of each kind are the queries with the most visitors among the :data:`MAX_FREQUENT` most searched queries and
the :data:`MAX_VISITED` queries with the most visitors. Queries made up by a single visitor therefore cannot displace
queries of several visitors.
"""
MAX_IGNORED = 1_000
"""Maximum number of queries that a site can ignore."""
_EPOCH = date(1970, 1, 1)


class InboxKind(StrEnum):
    """Reason why a query's results disappoint visitors; ``UNANSWERED`` for a question that the pages don't answer."""

    NO_RESULTS = "no_results"
    PARTIAL = "partial"
    NO_CLICKS = "no_clicks"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A query that needs attention.

    Attributes:
        query: The query, in normal form.
        searches: Number of searches; of questions, if the kind is ``UNANSWERED``.
        visitors: Number of disappointed visitors.
        finds_now: Number of documents in its current results.
    """

    query: str
    kind: InboxKind
    searches: int
    visitors: int
    finds_now: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that belongs in the inbox unless its current results are better.

    Attributes:
        visitors: Number of disappointed visitors, by kind.
        questions: Number of times that *Ask* had no answer to it.
    """

    query: str
    searches: int
    visitors: Mapping[InboxKind, int]
    questions: int = 0

    def judge(self, result: CurrentResult, pinned: Sequence[str] = ()) -> InboxItem | None:
        """Return the inbox item for a query with these current results; ``None`` if it no longer belongs in the inbox.

        Args:
            pinned: IDs that the site pins for the query. If a pinned document comes first, the owner has already
                handled the query.
        """
        is_pinned = bool(result.hits) and result.hits[0].id in pinned
        if result.total == 0 and self.searches:
            kind = InboxKind.NO_RESULTS
        elif InboxKind.PARTIAL in self.visitors and result.matched is Matched.SOME:
            kind = InboxKind.PARTIAL
        elif InboxKind.NO_CLICKS in self.visitors and not is_pinned:
            kind = InboxKind.NO_CLICKS
        elif InboxKind.UNANSWERED in self.visitors and not is_pinned:
            kind = InboxKind.UNANSWERED
        else:
            return None
        # If documents were deleted since, the query may have no results now although its visitors had some.
        visitors = self.visitors.get(kind, max(self.visitors.values()))
        searches = self.questions if kind is InboxKind.UNANSWERED else self.searches
        return InboxItem(self.query, kind, searches, visitors, result.total)


def list_inbox(
    searcher: Searcher, site: SiteRecord, candidates: Sequence[Candidate], *, limit: int, offset: int
) -> tuple[Sequence[InboxItem], int]:
    """Return one page of the inbox, by the number of disappointed visitors, and the number of items.

    Args:
        candidates: Result of :func:`list_candidates`.

    Raises:
        BackendUnavailable: The engine cannot run the queries now.
    """
    # All candidates must be judged first, because the page depends on the order of the remaining items.
    items = sorted(
        judge_candidates(searcher, site, candidates), key=lambda item: (-item.visitors, -item.searches, item.query)
    )
    return items[offset : offset + limit], len(items)


def judge_candidates(searcher: Searcher, site: SiteRecord, candidates: Sequence[Candidate]) -> Iterator[InboxItem]:
    """Yield the inbox items among the candidates, in order. Each candidate is searched for lazily.

    Raises:
        BackendError: The engine cannot run a query now.
    """
    for candidate in candidates:
        result = search_now(searcher, site, candidate.query)
        item = candidate.judge(result, site.settings.pinned.get(candidate.query, ()))
        if item is not None:
            yield item


def list_candidates(
    session: Session, site: Site, today: date, *, ignored: bool = False, recent: RecentResults | None = None
) -> list[Candidate]:
    """Return the queries of a site that may belong in its inbox, at most :data:`MAX_CANDIDATES`.

    Args:
        today: Last day of the period.
        ignored: Whether to list ignored queries instead of the others.
        recent: As in ``get_analytics``.
    """
    kinds = [
        (InboxKind.NO_RESULTS, "zero_results", "zero_results > 0", "missed_visitors"),
        (InboxKind.PARTIAL, "partial_results", "partial_results > 0", "found_visitors"),
    ]
    if reports_clicks(session, site.id, today):
        # Visitors with partial results are excluded, because partial results are another reason for not clicking.
        witnesses = "found_visitors - partial_results"
        unclicked = f"{NO_CLICKS} AND {witnesses} >= {MIN_VISITORS_WITHOUT_CLICK}"
        kinds.append((InboxKind.NO_CLICKS, "searches", unclicked, witnesses))
    ignored_queries = frozenset(session.scalars(select(IgnoredQuery.query).where(IgnoredQuery.site_id == site.id)))
    first = (today - _EPOCH).days - PERIOD_DAYS + 1

    def compute() -> list[Candidate]:
        candidates = _read_candidates(session, site.id, first, kinds, ignored=ignored)
        for query, question in _read_questions(session, site, today).items():
            if (query in ignored_queries) == ignored:
                candidates[query] = _with_question(candidates.get(query, Candidate(query, 0, {})), question)
        ranked = sorted(
            candidates.values(), key=lambda one: (-max(one.visitors.values()), -one.searches - one.questions, one.query)
        )
        return ranked[:MAX_CANDIDATES]

    if recent is None:
        return compute()
    searches = session.scalar(
        select(func.sum(SiteDay.searches)).where(SiteDay.site_id == site.id, SiteDay.day >= first)
    )
    key = "inbox", site.id, first, len(kinds), ignored, ignored_queries, site.search_settings.get("ask")
    return recent.get(key, compute, lambda _: int(searches or 0))


def _read_candidates(
    session: Session, site_id: int, first: int, kinds: Sequence[tuple[InboxKind, str, str, str]], *, ignored: bool
) -> dict[str, Candidate]:
    lists = (
        f"""
        SELECT query, searches, counted, visitors, {kind} AS kind FROM (
            SELECT query, searches, {count} AS counted, {visitors} AS visitors FROM (
                SELECT * FROM (
                    SELECT * FROM counts WHERE {condition} ORDER BY {count} DESC, query LIMIT :frequent
                ) AS frequent
                UNION
                SELECT * FROM (
                    SELECT * FROM counts WHERE visitors >= :suggested ORDER BY visitors DESC, query LIMIT :visited
                ) AS visited WHERE {condition}
            ) AS missed
            WHERE {"" if ignored else "NOT"} EXISTS (
                SELECT 1 FROM ignored_queries WHERE site_id = :site_id AND ignored_queries.query = missed.query
            )
            ORDER BY visitors DESC, counted DESC, query LIMIT :limit
        ) AS kind_{kind}
        """  # noqa: S608 - made of constants
        for kind, (_, count, condition, visitors) in enumerate(kinds)
    )
    sums = ", ".join(f"CAST(sum({kind}) AS bigint) AS {kind}" for kind in QUERY_KINDS)
    rows = session.execute(
        text(
            f"""
            WITH counts AS MATERIALIZED (
                SELECT query, {sums} FROM query_days WHERE site_id = :site_id AND day >= :first GROUP BY query
            )
            {" UNION ALL ".join(lists)}
            """  # noqa: S608 - made of constants
        ),
        {
            "site_id": site_id,
            "first": first,
            "frequent": MAX_FREQUENT,
            "visited": MAX_VISITED,
            "suggested": SUGGESTED_FROM,
            "limit": MAX_CANDIDATES,
        },
    )
    candidates: dict[str, Candidate] = {}
    for query, searches, counted, visitors, kind in rows:
        visitors_by_kind = candidates[query].visitors if query in candidates else {}
        candidates[query] = Candidate(query, searches, {**visitors_by_kind, kinds[kind][0]: min(visitors, counted)})
    return candidates


def _with_question(candidate: Candidate, question: OpenQuestion) -> Candidate:
    visitors = {**candidate.visitors, InboxKind.UNANSWERED: len(question.visitors)}
    return replace(candidate, visitors=visitors, questions=question.count)


def _read_questions(session: Session, site: Site, today: date) -> Mapping[str, OpenQuestion]:
    """Return the questions without an answer by normal form; none while *Ask* is off."""
    if not site.search_settings.get("ask"):
        return {}
    return list_open_questions(session, site.id, start_of(today - timedelta(days=PERIOD_DAYS - 1)))


def reports_clicks(session: Session, site_id: int, today: date) -> bool:
    """Whether the site reports clicks. If it does not, a query without clicks means nothing."""
    first = (today - _EPOCH).days - PERIOD_DAYS + 1
    return bool(
        session.scalar(select(func.sum(SiteDay.clicks)).where(SiteDay.site_id == site_id, SiteDay.day >= first))
    )


def ignore_query(session: Session, account_id: int, site_id: int, query: str, *, ignored: bool) -> str:
    """Ignore a query in a site's inbox, or stop ignoring it.

    Returns:
        The query in normal form.

    Raises:
        ApiError: 404; 400 if the site ignores too many queries.
    """
    site = get_site(session, account_id, site_id, lock=True)
    query = normal_form(query)
    if not ignored:
        session.execute(delete(IgnoredQuery).where(IgnoredQuery.site_id == site.id, IgnoredQuery.query == query))
        return query
    if is_ignored(session, site.id, query):
        return query
    if count_ignored(session, site.id) >= MAX_IGNORED:
        raise field_error("ignored", "too_many", f"can be true for at most {number(MAX_IGNORED)} queries of a site")
    session.add(IgnoredQuery(site_id=site.id, query=query, ignored_at=now()))
    session.flush()
    return query


def is_ignored(session: Session, site_id: int, query: str) -> bool:
    """Whether the inbox ignores a query, given in normal form."""
    return session.get(IgnoredQuery, (site_id, query)) is not None


def count_ignored(session: Session, site_id: int) -> int:
    """Return the number of queries that a site ignores."""
    return session.scalar(select(func.count()).select_from(IgnoredQuery).where(IgnoredQuery.site_id == site_id)) or 0


def is_from_visitors(session: Session, site: Site, query: str, today: date) -> bool:
    """Whether a query, in normal form, was searched for in the last :data:`PERIOD_DAYS` days or has no answer."""
    last = (today - _EPOCH).days
    # The day precedes the query in the table's key, so each day takes one lookup.
    days = range(last - PERIOD_DAYS + 1, last + 1)
    searched = select(QueryDay.query).where(
        QueryDay.site_id == site.id, QueryDay.day.in_(days), QueryDay.query == query
    )
    return session.scalar(searched.limit(1)) is not None or query in _read_questions(session, site, today)


def has_searches(session: Session, site_id: int) -> bool:
    """Whether analytics contain any search on a site."""
    return session.scalar(select(QueryDay.query).where(QueryDay.site_id == site_id).limit(1)) is not None


Settings = Mapping[str, Any]
"""Complete search settings, as responses show them."""


def add_synonyms(settings: Settings, word: str, synonyms: Sequence[str]) -> dict[str, Any]:
    """Return settings in which a word also matches the synonyms. They join an existing group with the word."""
    entries = [list(entry) if isinstance(entry, list) else entry for entry in settings["synonyms"]]
    group = next((entry for entry in entries if isinstance(entry, list) and _has(entry, word)), None)
    if group is None:
        group = [word]
        entries.append(group)
    for synonym in synonyms:
        if not _has(group, synonym):
            group.append(synonym)
    return {**settings, "synonyms": entries}


def _has(group: Sequence[str], word: str) -> bool:
    return normal_form(word) in map(normal_form, group)


def pin_document(settings: Settings, query: str, document_id: str) -> dict[str, Any]:
    """Return settings in which a document comes first for a query, before other pinned documents, and is not hidden."""
    query = normal_form(query)
    pinned, hidden = _ids_of(settings["pinned"], query), _ids_of(settings["hidden"], query)
    return {
        **settings,
        "pinned": _with_ids(settings["pinned"], query, [document_id, *(id for id in pinned if id != document_id)]),
        "hidden": _with_ids(settings["hidden"], query, [id for id in hidden if id != document_id]),
    }


Entries = Sequence[Mapping[str, Any]]
"""Queries with document IDs. If a query occurs several times, the last entry applies."""


def _ids_of(entries: Entries, query: str) -> list[str]:
    return next((list(entry["ids"]) for entry in reversed(entries) if entry["query"] == query), [])


def _with_ids(entries: Entries, query: str, ids: Sequence[str]) -> list[Mapping[str, Any]]:
    others = [entry for entry in entries if entry["query"] != query]
    indexes = [index for index, entry in enumerate(entries) if entry["query"] == query]
    if ids:
        others.insert(indexes[0] if indexes else len(others), {"query": query, "ids": list(ids)})
    return others
