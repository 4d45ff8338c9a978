"""The inbox: queries with which visitors missed something in the last 30 days, and still would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import field_error
from app.models import IgnoredQuery, QueryWindow, ScopeDay, Site
from app.models.events import SUGGESTED, no_clicks
from app.services.access.credentials import SiteRecord
from app.services.inbox.current_results import CurrentResult, search_now
from app.services.search.search import Searcher
from app.services.sites import get_site
from app.wording import number
from backends.base import Matched
from backends.text import normal_form

PERIOD_DAYS = 30
MAX_CANDIDATES = 100
"""Most queries that are looked at, which is one search each; those that most visitors missed something with."""
MIN_VISITORS_WITHOUT_CLICK = 5
"""A query without clicks tells nothing before so many visitors made it."""
MOST_FREQUENT = 1_000
MOST_VISITED = 20_000
"""Candidates of each kind are the queries with the most visitors among so many that were searched most, and those of
so many that most visitors searched: what one visitor makes up keeps out nothing that several missed."""
MAX_IGNORED = 1_000
"""Most queries that a site can ignore."""
_EPOCH = date(1970, 1, 1)


class InboxKind(StrEnum):
    """The kind of disappointment."""

    NO_RESULTS = "no_results"
    PARTIAL = "partial"
    NO_CLICKS = "no_clicks"


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A query to do something about.

    Attributes:
        query: In normal form.
        searches: How often it was searched.
        visitors: How many missed something with it.
        finds_now: Documents that it finds now.
    """

    query: str
    kind: InboxKind
    searches: int
    visitors: int
    finds_now: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that may belong into the inbox, if it finds no more than it did.

    Attributes:
        visitors: How many missed something, of each kind that it was searched with.
    """

    query: str
    searches: int
    visitors: Mapping[InboxKind, int]

    def judge(self, result: CurrentResult, pinned: Sequence[str] = ()) -> InboxItem | None:
        """The kind of item that a query is, given what it finds now; ``None`` if it is none any more.

        Args:
            pinned: Ids that the site pins for it. A query that shows one of them has been seen to.
        """
        if result.total == 0:
            kind = InboxKind.NO_RESULTS
        elif InboxKind.PARTIAL in self.visitors and result.matched is Matched.SOME:
            kind = InboxKind.PARTIAL
        elif InboxKind.NO_CLICKS in self.visitors and not (result.hits and result.hits[0].id in pinned):
            kind = InboxKind.NO_CLICKS
        else:
            return None
        # Documents may have gone since: it then finds nothing, though its visitors found something.
        visitors = self.visitors.get(kind, max(self.visitors.values()))
        return InboxItem(self.query, kind, self.searches, visitors, result.total)


def list_inbox(
    searcher: Searcher, site: SiteRecord, candidates: Sequence[Candidate], *, limit: int, offset: int
) -> tuple[Sequence[InboxItem], int]:
    """One page of the inbox, by how many visitors missed something, and how many items there are.

    Args:
        candidates: What :func:`list_candidates` gives.

    Raises:
        BackendUnavailable: The engine cannot say what the queries find now.
    """
    items = sorted(
        judge_candidates(searcher, site, candidates), key=lambda item: (-item.visitors, -item.searches, item.query)
    )
    return items[offset : offset + limit], len(items)


def judge_candidates(searcher: Searcher, site: SiteRecord, candidates: Sequence[Candidate]) -> Iterator[InboxItem]:
    """The items among the candidates, in their order; each is looked at when it is asked for.

    Raises:
        BackendError: The engine cannot say what a query finds now.
    """
    for candidate in candidates:
        result = search_now(searcher, site, candidate.query)
        item = candidate.judge(result, site.settings.pinned.get(candidate.query, ()))
        if item is not None:
            yield item


def list_candidates(session: Session, site: Site, today: date, *, ignored: bool = False) -> list[Candidate]:
    """The queries of a site that may belong into its inbox, at most :data:`MAX_CANDIDATES`.

    Args:
        today: The last day of the period.
        ignored: Whether those that are ignored are wanted, instead of the others.
    """
    kinds = [
        (InboxKind.NO_RESULTS, "zero_results_30", "zero_results_30 > 0", "missed_visitors_30"),
        (InboxKind.PARTIAL, "partial_results_30", "partial_results_30 > 0", "found_visitors_30"),
    ]
    if reports_clicks(session, site.id, today):
        # Visitors who found some of the words only are no witnesses: what they saw is a reason of its own.
        witnesses = "found_visitors_30 - partial_results_30"
        unclicked = f"{no_clicks('_30')} AND {witnesses} >= {MIN_VISITORS_WITHOUT_CLICK}"
        kinds.append((InboxKind.NO_CLICKS, "searches_30", unclicked, witnesses))
    found: dict[str, Candidate] = {}
    for kind, count, condition, visitors in kinds:
        for row in session.execute(
            text(
                _RANKING.format(count=count, condition=condition, visitors=visitors, ignored="" if ignored else "NOT")
            ),
            {"site_id": site.id, "frequent": MOST_FREQUENT, "visited": MOST_VISITED, "limit": MAX_CANDIDATES},
        ):
            known = found.get(row.query)
            others = known.visitors if known else {}
            found[row.query] = Candidate(row.query, row.searches, {**others, kind: min(row.visitors, row.counted)})
    ranked = sorted(found.values(), key=lambda one: (-max(one.visitors.values()), -one.searches, one.query))
    return ranked[:MAX_CANDIDATES]


_RANKING = f"""
    WITH frequent AS (
        SELECT * FROM query_windows WHERE scope = :site_id AND {{condition}}
        ORDER BY {{count}} DESC, query LIMIT :frequent
    ), visited AS (
        SELECT * FROM query_windows WHERE scope = :site_id AND {SUGGESTED}
        ORDER BY visitors_30 DESC, query LIMIT :visited
    ), missed AS (
        SELECT query, searches_30 AS searches, {{count}} AS counted, {{visitors}} AS visitors FROM frequent
        UNION
        SELECT query, searches_30, {{count}}, {{visitors}} FROM visited WHERE {{condition}}
    )
    SELECT query, searches, counted, visitors FROM missed
    WHERE {{ignored}} EXISTS (
        SELECT 1 FROM ignored_queries WHERE site_id = :site_id AND ignored_queries.query = missed.query
    )
    ORDER BY visitors DESC, counted DESC, query LIMIT :limit
"""  # noqa: S608 - made of constants


def reports_clicks(session: Session, site_id: int, today: date) -> bool:
    """Tell whether clicks are reported at all: without, that a query has none tells nothing."""
    first = (today - _EPOCH).days - PERIOD_DAYS + 1
    return bool(
        session.scalar(select(func.sum(ScopeDay.clicks)).where(ScopeDay.scope == site_id, ScopeDay.day >= first))
    )


def ignore_query(session: Session, account_id: int, site_id: int, query: str, *, ignored: bool) -> str:
    """Leave a query out of a site's inbox from now on, or no longer.

    Returns:
        The query in normal form.

    Raises:
        ApiError: 404; 400 if the site ignores too many.
    """
    site = get_site(session, account_id, site_id, lock=True)
    query = normal_form(query)
    if not ignored:
        session.execute(delete(IgnoredQuery).where(IgnoredQuery.site_id == site.id, IgnoredQuery.query == query))
        return query
    if is_ignored(session, site.id, query):
        return query
    if count_ignored(session, site.id) >= MAX_IGNORED:
        raise field_error(
            "ignored", "too_many", f"is true for {number(MAX_IGNORED)} queries of the site, which is the most"
        )
    session.add(IgnoredQuery(site_id=site.id, query=query, ignored_at=now()))
    session.flush()
    return query


def is_ignored(session: Session, site_id: int, query: str) -> bool:
    """Tell whether a query, in normal form, is left out of the inbox."""
    return session.get(IgnoredQuery, (site_id, query)) is not None


def count_ignored(session: Session, site_id: int) -> int:
    """The number of queries a site ignores."""
    return session.scalar(select(func.count()).select_from(IgnoredQuery).where(IgnoredQuery.site_id == site_id)) or 0


def was_searched(session: Session, site_id: int, query: str) -> bool:
    """Tell whether a query, in normal form, was searched on a site of late."""
    return session.get(QueryWindow, (site_id, query)) is not None


def has_searches(session: Session, site_id: int) -> bool:
    """Tell whether anything was searched on a site of late."""
    return session.scalar(select(QueryWindow.query).where(QueryWindow.scope == site_id).limit(1)) is not None
