"""Learning from clicks: once a day, compute for each query how far clicked documents move up."""

from __future__ import annotations

import heapq
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError
from app.models import ClickLessons, SearchClick, Site
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.runtime import Runtime
from app.services.access.credentials import SiteRecord, credential_change, site_record
from app.services.analytics.visitors import network_of
from app.services.search.search import Searcher
from app.services.search.site_queries import for_site
from app.services.search_rules import NO_RULES
from app.services.search_settings import learns_from_clicks
from app.storage.database import ROW_LOCK
from backends.errors import BackendError
from backends.query import SearchQuery

MAX_GAIN = 3.0
"""Maximum number of positions that a document moves up."""
MIN_VISITORS = 5
"""Minimum number of visitors who must have clicked a result of a query in the last :data:`VISITOR_DAYS` days."""
VISITOR_DAYS = 30
HALF_LIFE_DAYS = 30
"""Days after which a click has half its weight."""

_STEEPNESS = 0.7
_TOTAL_SHARE = sum(position**-_STEEPNESS for position in range(1, 11))
_SMOOTHING = 5.0
"""Number added to both the counted and the expected clicks, so that few clicks change little."""
_RATIO_PER_POSITION = 1.25
"""Ratio of quality by which a document must exceed its neighbor to pass it."""


@dataclass(frozen=True, slots=True)
class VisitorClick:
    """All clicks of a visitor on one document in the results of one query, counted as one.

    Attributes:
        visitor: Number shared by all visitors of one network.
        position: First clicked position, from 1; ``None`` if not reported, which counts as 1.
        age_days: Days since the latest click.
    """

    document_id: str
    visitor: int
    position: int | None
    age_days: float


def click_share_at(position: int) -> float:
    """Return the share of clicks that a position gets if all results are equally good.

    The share falls more slowly with the position than in most result lists, so a document must be clearly better to
    move up.
    """
    share: float = position**-_STEEPNESS / _TOTAL_SHARE
    return share


def find_gains(clicks: Iterable[VisitorClick], positions: Mapping[str, int]) -> dict[str, float]:
    """Return the positions that documents move up for one query, from more than 0 to :data:`MAX_GAIN`, by ID.

    A document passes its neighbor if its gain is greater by at least 1. Gains are relative to the best document, so
    that documents that are nearly as good stay distinguishable.

    Clients report the position of a click, and could inflate its value, because a click on a late result counts more
    than a click on the first result. The position is therefore limited to the last position at which visitors can see
    the document, and clicks on documents that are not listed do not count.

    Args:
        clicks: All clicks of the query, one for each visitor and document.
        positions: The documents that may move, each with its position before gains are applied, from 1.
    """
    clicks = [click for click in clicks if click.document_id in positions]
    if len({click.visitor for click in clicks if click.age_days <= VISITOR_DAYS}) < MIN_VISITORS:
        return {}
    counted: dict[str, float] = defaultdict(float)
    expected: dict[str, float] = defaultdict(float)
    for click in clicks:
        weight = math.exp2(-click.age_days / HALF_LIFE_DAYS)
        counted[click.document_id] += weight
        last = positions[click.document_id] + int(MAX_GAIN)
        expected[click.document_id] += weight * click_share_at(min(click.position or 1, last))
    total = sum(counted.values())
    better: dict[str, float] = {}
    for document_id, number in counted.items():
        usual = total * expected[document_id] / number
        better[document_id] = math.log((number + _SMOOTHING) / (usual + _SMOOTHING), _RATIO_PER_POSITION)
    min_gain = max(0.0, max(better.values()) - MAX_GAIN)
    gains = {document_id: round(gain - min_gain, 2) for document_id, gain in better.items()}
    return {document_id: gain for document_id, gain in gains.items() if gain > 0}


MEMORY_DAYS = 4 * HALF_LIFE_DAYS
"""Days after which a click is ignored; its weight would be one sixteenth by then."""
MAX_QUERIES = 500
"""Maximum number of queries that a site learns for. Queries with clicks by the most visitors come first."""
MAX_DOCUMENTS = 20
"""Maximum number of documents that move up for one query."""
MAX_POSITION = 100
"""Lowest position from which a document can move up."""
MAX_CHARACTERS = 100_000
"""Maximum total length of a site's queries and IDs with gains, which every searching process keeps in memory."""

_NETWORK = network_of(SearchClick.visitor)

log = logging.getLogger(__name__)


def learn_due(runtime: Runtime, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Learn for the sites that have not learned today. Sites whose engine is unavailable are left for the next call.

    Returns:
        Number of sites.
    """
    with runtime.database.read() as session:
        due = sites_that_learn(session, to_microseconds(now()) // DAY_MICROSECONDS)
    learned = 0
    for site_id in due:
        if is_stopping():
            break
        try:
            learned += learn(runtime, site_id) is not None
        except BackendError as error:
            log.warning("learning from clicks is postponed for site %s: %s", site_id, error)
    return learned


def sites_that_learn(session: Session, due_on: int | None = None) -> Sequence[int]:
    """Return the IDs of active sites that learn from clicks.

    If ``due_on`` is given, sites that have already learned on that UTC day are excluded."""
    learning_sites = select(Site.id).where(Site.active, Site.search_settings["learn_from_clicks"].as_boolean())
    if due_on is not None:
        learning_sites = learning_sites.outerjoin(ClickLessons, ClickLessons.site_id == Site.id).where(
            or_(ClickLessons.learned_day.is_(None), ClickLessons.learned_day < due_on)
        )
    return session.scalars(learning_sites.order_by(Site.id)).all()


def learn(runtime: Runtime, site_id: int) -> int | None:
    """Learn from a site's clicks now.

    Returns:
        Number of queries whose results change order; ``None`` if the site does not learn from clicks.

    Raises:
        BackendError: The engine cannot list the documents that contain all words of a query.
    """
    with runtime.database.read() as session:
        site = session.get(Site, site_id)
        if site is None or not site.active or not learns_from_clicks(site.search_settings):
            return None
        lessons = session.get(ClickLessons, site_id)
        since = None if lessons is None else lessons.clicks_since
        before = {} if lessons is None else lessons.gains
        queries = _clicked_queries(session, site_id, since)
    gains = _learn_queries(runtime, site, queries, since)
    # Unchanged gains need no credential change, which would make every process reload this account's keys.
    if gains == before:
        with runtime.database.write() as session:
            _store(session, site_id, since, gains)
    else:
        with credential_change(runtime.database, runtime.counters, site.account_id) as session:
            _store(session, site_id, since, gains)
    return len(gains)


def learn_for(runtime: Runtime, site: Site, queries: Sequence[str]) -> dict[str, Mapping[str, float]]:
    """Return gains for a few queries of a site that does not learn yet, without storing them.

    Args:
        queries: In normal form.

    Raises:
        BackendError: As in :func:`learn`.
    """
    with runtime.database.read() as session:
        lessons = session.get(ClickLessons, site.id)
    return _learn_queries(runtime, site, queries, None if lessons is None else lessons.clicks_since)


def _store(session: Session, site_id: int, since: datetime | None, gains: Mapping[str, Any]) -> None:
    """Store the gains, unless clicks were forgotten or the site was deleted meanwhile."""
    if session.get(Site, site_id, with_for_update=ROW_LOCK) is None:
        return
    lessons = session.get(ClickLessons, site_id) or ClickLessons(site_id=site_id, clicks_since=None)
    if lessons.clicks_since == since:
        lessons.learned_day = to_microseconds(now()) // DAY_MICROSECONDS
        lessons.gains = dict(gains)
        session.add(lessons)


def _clicked_queries(session: Session, site_id: int, since: datetime | None) -> list[str]:
    """Return the queries with recent clicks by enough visitors, the queries with the most visitors first.

    Args:
        since: First moment whose clicks count.
    """
    first = max(filter(None, (since, now() - timedelta(days=VISITOR_DAYS))))
    visitors = func.count(_NETWORK.distinct())
    clicked = (
        select(SearchClick.query)
        .where(*_counting(site_id, first))
        .group_by(SearchClick.query)
        .having(visitors >= MIN_VISITORS)
        .order_by(visitors.desc(), SearchClick.query)
    )
    return list(session.scalars(clicked.limit(MAX_QUERIES)))


def _learn_queries(
    runtime: Runtime, site: Site, queries: Sequence[str], since: datetime | None
) -> dict[str, Mapping[str, float]]:
    """Return gains by query, up to :data:`MAX_CHARACTERS` in total.

    Args:
        since: First moment whose clicks count.
    """
    record = site_record(site)
    positions = {query: _find_positions(runtime.searcher, record, query) for query in queries}
    gains_by_query: dict[str, Mapping[str, float]] = {}
    with runtime.database.read() as session:
        for query, clicks in _clicks(session, site.id, queries, since):
            gains = find_gains(clicks, positions[query])
            gains_by_query[query] = dict(heapq.nlargest(MAX_DOCUMENTS, gains.items(), key=itemgetter(1)))
    stored_gains: dict[str, Mapping[str, float]] = {}
    budget = MAX_CHARACTERS
    for query in queries:
        moved = gains_by_query.get(query, {})
        budget -= len(query) + sum(map(len, moved))
        if budget < 0:
            break
        if moved:
            stored_gains[query] = moved
    return stored_gains


def _clicks(
    session: Session, site_id: int, queries: Sequence[str], since: datetime | None
) -> Iterator[tuple[str, Iterator[VisitorClick]]]:
    """Yield the clicks of the queries, merging clicks from one network on one document."""
    moment = now()
    first = max(filter(None, (since, moment - timedelta(days=MEMORY_DAYS))))
    clicks = (
        select(
            SearchClick.query,
            SearchClick.document_id,
            _NETWORK.label("network"),
            func.min(SearchClick.position).label("position"),
            func.max(SearchClick.occurred_at).label("clicked_at"),
        )
        .where(*_counting(site_id, first), SearchClick.query.in_(queries))
        .group_by(SearchClick.query, SearchClick.document_id, _NETWORK)
        .order_by(SearchClick.query)
    )

    def read(row: Any) -> VisitorClick:
        age = (moment - row.clicked_at) / timedelta(days=1)
        return VisitorClick(row.document_id, row.network, row.position, age)

    rows = session.execute(clicks.execution_options(yield_per=1000))
    for query, group in groupby(rows, key=itemgetter(0)):
        yield query, map(read, group)


def _counting(site_id: int, first: datetime) -> Sequence[ColumnElement[bool]]:
    """Return the conditions for a site's valid clicks since ``first``."""
    return (
        SearchClick.site_id == site_id,
        SearchClick.occurred_at >= first,
        SearchClick.occurred_at <= now(),
        SearchClick.visitor.is_not(None),
    )


def _find_positions(searcher: Searcher, record: SiteRecord, query: str) -> dict[str, int]:
    """Return the first documents that contain all words of a query, with their positions."""
    search = SearchQuery(query, limit=MAX_POSITION, all_words=True, returned_fields=frozenset({"id"}))
    # Otherwise, the gains of the last time would determine the positions that the new gains start from.
    unruled = replace(record, settings=replace(record.settings, pinned={}, learned={}), rules=NO_RULES)
    try:
        timed = searcher.run(record, for_site(search, unruled))
    except ApiError:
        return {}  # The engine rejects such a query, so it has no results.
    return {hit.id: position for position, hit in enumerate(timed.result.hits, 1)}
