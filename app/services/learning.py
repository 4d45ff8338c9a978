"""Learning from clicks: which documents move up for which queries."""

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
from typing import Any, Protocol

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.errors import ApiError
from app.models import ClickLessons, SearchClick, Site
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.access.credentials import SiteRecord, credential_change, site_record
from app.services.analytics.visitors import NETWORK_BITS
from app.services.search.search import Searcher, for_site
from app.services.search_rules import NO_RULES
from app.services.search_settings import learns_from_clicks
from app.storage.database import ROW_LOCK, Database
from backends.base import Hit
from backends.errors import BackendError
from backends.query import SearchQuery

MAX_GAIN = 3.0
"""Most places by which a document moves up."""
LEAST_VISITORS = 5
"""Visitors who must have clicked a result of the query in :data:`VISITOR_DAYS` days."""
VISITOR_DAYS = 30
HALF_LIFE_DAYS = 30
"""Days after which a click counts half."""

_STEEPNESS = 0.7
_USUAL_PLACES = sum(place**-_STEEPNESS for place in range(1, 11))
_SMOOTHING = 5.0
"""Clicks, added to those counted and to those expected."""
_RATIO_OF_A_PLACE = 1.25
"""How many times as good a document must be to pass its neighbour."""


@dataclass(frozen=True, slots=True)
class VisitorClick:
    """A visitor's clicks on one document among the results of one query, which count as one.

    Attributes:
        visitor: A number for all visitors of one network.
        position: The first place at which it was clicked, from 1, as it was told; ``None``: not told, taken as 1.
        age_days: Days since the last of them.
    """

    document_id: str
    visitor: int
    position: int | None
    age_days: float


def place_share(position: int) -> float:
    """The part of the clicks that a place gets if all that is listed is equally good.

    It falls more slowly than most lists of results have it: so a better page must be clearly better.
    """
    share: float = position**-_STEEPNESS / _USUAL_PLACES
    return share


def find_gains(clicks: Iterable[VisitorClick], places: Mapping[str, int]) -> dict[str, float]:
    """Places that documents move up for one query, from more than 0 to :data:`MAX_GAIN`, by id.

    A document passes its neighbour if its gain is greater by 1 or more. Those that are not much worse than the best
    are told apart, whatever the others are.

    Whoever reports a click can make up its position, and so what it is worth: a click on the last of many results says
    more than one on the first. So it counts at most as one at the last place where visitors see the document, and
    clicks on what they do not see count for nothing.

    Args:
        clicks: All of the query, each visitor and document once.
        places: The documents that may move, with their places without any gains, from 1.
    """
    clicks = [click for click in clicks if click.document_id in places]
    if len({click.visitor for click in clicks if click.age_days <= VISITOR_DAYS}) < LEAST_VISITORS:
        return {}
    counted: dict[str, float] = defaultdict(float)
    expected: dict[str, float] = defaultdict(float)
    for click in clicks:
        weight = math.exp2(-click.age_days / HALF_LIFE_DAYS)
        counted[click.document_id] += weight
        last = places[click.document_id] + int(MAX_GAIN)
        expected[click.document_id] += weight * place_share(min(click.position or 1, last))
    total = sum(counted.values())
    better: dict[str, float] = {}
    for document_id, number in counted.items():
        usual = total * expected[document_id] / number
        better[document_id] = math.log((number + _SMOOTHING) / (usual + _SMOOTHING), _RATIO_OF_A_PLACE)
    least = max(0.0, max(better.values()) - MAX_GAIN)
    gains = {document_id: round(each - least, 2) for document_id, each in better.items()}
    return {document_id: gain for document_id, gain in gains.items() if gain > 0}


MEMORY_DAYS = 4 * HALF_LIFE_DAYS
"""Days after which a click, which counts a sixteenth then, is left out."""
MAX_QUERIES = 500
"""Most queries for which a site learns: those that most visitors clicked."""
MAX_DOCUMENTS = 20
"""Most documents of a query that move."""
MAX_PLACE = 100
"""The last place of a document that may move."""
MAX_CHARACTERS = 100_000
"""Longest ids and queries of a site's lessons, added up; every process that searches the site has them in memory."""

_NETWORK = SearchClick.visitor.bitwise_rshift(NETWORK_BITS)
"""The same for all visitors of one network: see :meth:`VisitorKeys.address_visitor`."""

log = logging.getLogger(__name__)


class LearningParts(Protocol):
    """The parts of a process that learning needs."""

    @property
    def database(self) -> Database: ...

    @property
    def counters(self) -> CounterStore: ...

    @property
    def searcher(self) -> Searcher: ...


def learn_due(parts: LearningParts, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Learn for the sites that have not learned today; one whose engine is away is left for the next time.

    Returns:
        For how many sites.
    """
    with parts.database.read() as session:
        due = sites_that_learn(session, to_microseconds(now()) // DAY_MICROSECONDS)
    learned = 0
    for site_id in due:
        if is_stopping():
            break
        try:
            learned += learn(parts, site_id) is not None
        except BackendError as error:
            log.warning("learning from clicks is postponed for site %s: %s", site_id, error)
    return learned


def sites_that_learn(session: Session, due_on: int | None = None) -> Sequence[int]:
    """The active sites that learn from clicks; of these, with ``due_on``, those that have not yet on that UTC day."""
    learning_sites = select(Site.id).where(Site.active, Site.search_settings["learn_from_clicks"].as_boolean())
    if due_on is not None:
        learning_sites = learning_sites.outerjoin(ClickLessons, ClickLessons.site_id == Site.id).where(
            or_(ClickLessons.learned_day.is_(None), ClickLessons.learned_day < due_on)
        )
    return session.scalars(learning_sites.order_by(Site.id)).all()


def learn(parts: LearningParts, site_id: int) -> int | None:
    """Learn from a site's clicks now.

    Returns:
        Queries whose results have another order by it; ``None`` if the site does not learn from clicks.

    Raises:
        BackendError: The engine cannot tell which documents have all words of a query.
    """
    with parts.database.read() as session:
        site = session.get(Site, site_id)
        if site is None or not site.active or not learns_from_clicks(site.search_settings):
            return None
        lessons = session.get(ClickLessons, site_id)
        since = None if lessons is None else lessons.clicks_since
        before = {} if lessons is None else lessons.gains
        queries = _clicked_queries(session, site_id, since)
    gains = _learn_queries(parts, site, queries, since)
    if gains == before:
        with parts.database.write() as session:
            _store(session, site_id, since, gains)
    else:
        with credential_change(parts.database, parts.counters, site.account_id) as session:
            _store(session, site_id, since, gains)
    return len(gains)


def learn_for(parts: LearningParts, site: Site, queries: Sequence[str]) -> dict[str, Mapping[str, float]]:
    """Gains of a few queries of a site that does not learn yet; nothing is stored.

    Args:
        queries: In normal form.

    Raises:
        BackendError: As :func:`learn`.
    """
    with parts.database.read() as session:
        lessons = session.get(ClickLessons, site.id)
    return _learn_queries(parts, site, queries, None if lessons is None else lessons.clicks_since)


def _store(session: Session, site_id: int, since: datetime | None, gains: Mapping[str, Any]) -> None:
    """Keep what was learned, unless clicks were forgotten, or the site was deleted, meanwhile."""
    if session.get(Site, site_id, with_for_update=ROW_LOCK) is None:
        return
    lessons = session.get(ClickLessons, site_id) or ClickLessons(site_id=site_id, clicks_since=None)
    if lessons.clicks_since == since:
        lessons.learned_day = to_microseconds(now()) // DAY_MICROSECONDS
        lessons.gains = dict(gains)
        session.add(lessons)


def _clicked_queries(session: Session, site_id: int, since: datetime | None) -> list[str]:
    """The queries that enough visitors clicked lately, those of the most visitors first.

    Args:
        since: When the clicks begin that count.
    """
    first = max(filter(None, (since, now() - timedelta(days=VISITOR_DAYS))))
    visitors = func.count(_NETWORK.distinct())
    clicked = (
        select(SearchClick.query)
        .where(*_counting(site_id, first))
        .group_by(SearchClick.query)
        .having(visitors >= LEAST_VISITORS)
        .order_by(visitors.desc(), SearchClick.query)
    )
    return list(session.scalars(clicked.limit(MAX_QUERIES)))


def _learn_queries(
    parts: LearningParts, site: Site, queries: Sequence[str], since: datetime | None
) -> dict[str, Mapping[str, float]]:
    """The gains of documents by query, as far as there is room for them.

    Args:
        since: When the clicks begin that count.
    """
    record = site_record(site)
    places = {query: _places(parts.searcher, record, query) for query in queries}
    gains_by_query: dict[str, Mapping[str, float]] = {}
    with parts.database.read() as session:
        for query, clicks in _clicks(session, site.id, queries, since):
            gains = find_gains(clicks, places[query])
            gains_by_query[query] = dict(heapq.nlargest(MAX_DOCUMENTS, gains.items(), key=itemgetter(1)))
    stored_gains: dict[str, Mapping[str, float]] = {}
    room = MAX_CHARACTERS
    for query in queries:
        moved = gains_by_query.get(query, {})
        room -= len(query) + sum(map(len, moved))
        if room < 0:
            break
        if moved:
            stored_gains[query] = moved
    return stored_gains


def _clicks(
    session: Session, site_id: int, queries: Sequence[str], since: datetime | None
) -> Iterator[tuple[str, Iterator[VisitorClick]]]:
    """The clicks of some queries, those of one network on one document as one."""
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
    """The clicks of a site that count, from a moment on."""
    return (
        SearchClick.site_id == site_id,
        SearchClick.occurred_at >= first,
        SearchClick.occurred_at <= now(),
        SearchClick.visitor.is_not(None),
    )


def _places(searcher: Searcher, record: SiteRecord, query: str) -> dict[str, int]:
    """The first documents that have all words of a query, with their places."""
    search = SearchQuery(query, limit=MAX_PLACE, all_words=True)
    unruled = replace(record, settings=replace(record.settings, pinned={}, learned={}), rules=NO_RULES)
    try:
        timed = searcher.run(record, for_site(search, unruled), _encode_id, searcher.new_room())
    except ApiError:
        return {}  # The engine refuses such a query, so nobody finds anything with it.
    return {hit.decode(): place for place, hit in enumerate(timed.hits, 1)}


def _encode_id(hit: Hit) -> bytes:
    return hit.id.encode()
