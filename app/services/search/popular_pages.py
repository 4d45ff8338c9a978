"""Popular pages: the pages that the most visitors clicked in search results."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import func, select

from app.clock import now
from app.models import SearchClick
from app.models.base import from_microseconds, to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.access.credentials import SiteRecord
from app.services.analytics.visitors import KEY_DAYS, network_of
from app.services.search.related_pages import PAGE_FIELDS
from app.services.search.search import Searcher
from app.services.search.site_queries import for_site
from app.storage.database import Database, is_unavailable
from backends.base import Hit
from backends.errors import BackendUnavailable
from backends.filters import OneOf, all_of
from backends.query import MATCH_ALL, SearchQuery

MIN_VISITORS = 3
"""Minimum number of visitors who clicked a page before it is listed to others."""

MAX_CANDIDATES = 50
"""Number of clicked documents that are looked up: some of them may be deleted, or not match the filters."""

MAX_CLICKS = 50_000
"""Maximum number of clicks that are read for each key period; the latest ones."""

LINK_DAYS = 30
"""Number of days whose clicks count for the links of searches without results."""

LIFETIME = timedelta(minutes=5)
"""Lifetime of a process's cached document IDs."""

MAX_ENTRIES = 1_000
"""Maximum number of cached lists. The least recently used ones are evicted first."""

log = logging.getLogger(__name__)


class PopularPages:
    """Finds the pages of sites that the most visitors clicked."""

    def __init__(self, database: Database, searcher: Searcher):
        self._database = database
        self._searcher = searcher
        self._entries: OrderedDict[tuple[int, int], tuple[datetime, tuple[str, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def links(self, site: SiteRecord, search: SearchQuery) -> Sequence[Mapping[str, str]]:
        """Return links for a search without results: the site's own, then as many popular pages as the site offers.

        While the database or the engine is unavailable, only the site's own links are returned, because the search
        itself has succeeded.

        Args:
            search: The search, whose filters the pages must match.
        """
        if not site.no_results_popular:
            return site.no_results_links
        within = SearchQuery(MATCH_ALL, native_filter=search.native_filter, portable_filter=search.portable_filter)
        try:
            pages = self._find(site, LINK_DAYS, site.no_results_popular, within)
        except Exception as error:
            if not (isinstance(error, BackendUnavailable) or is_unavailable(error)):
                raise
            log.warning("a search without results has no popular pages: %s", error)
            pages = ()
        documents = [hit.document for hit in pages]
        popular = ({"text": document["title"] or document["url"], "url": document["url"]} for document in documents)
        return (*site.no_results_links, *popular)

    def find(self, site: SiteRecord, days: int, limit: int, filters: str) -> Sequence[Hit]:
        """Return the existing pages that at least :data:`MIN_VISITORS` visitors clicked, most visitors first.

        Rules of the site that apply to every search may hide pages.

        Args:
            days: Number of UTC days, including today, whose clicks count: 1 to 90.
            limit: 1 to 10.
            filters: Expression in the engine's syntax that the pages must match; ``""`` for none.

        Raises:
            ApiError: 400 for the filters, or if the pages are too large.
            BackendUnavailable: The engine is unavailable.
            SQLAlchemyError: The clicks are not cached, and the database is unavailable.
        """
        return self._find(site, days, limit, SearchQuery(MATCH_ALL, native_filter=filters))

    def _find(self, site: SiteRecord, days: int, limit: int, within: SearchQuery) -> Sequence[Hit]:
        ids = self._clicked_ids(site.id, days)
        # An id that no document has, so that filters are checked even if no page was clicked.
        conditions = [OneOf("id", ids or ("",)), *([] if within.portable_filter is None else [within.portable_filter])]
        query = replace(within, limit=MAX_CANDIDATES, portable_filter=all_of(conditions), returned_fields=PAGE_FIELDS)
        query = for_site(query, site, self._searcher.new_budget().available)
        # Without a visitor, so that the search is kept out of analytics.
        hits = {hit.id: hit for hit in self._searcher.run(site, query).result.hits}
        return [hits[id] for id in ids if id in hits][:limit]

    def _clicked_ids(self, site_id: int, days: int) -> tuple[str, ...]:
        moment, key = now(), (site_id, days)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] <= moment < entry[0] + LIFETIME:
                self._entries.move_to_end(key)
                return entry[1]
        ids = self._read(site_id, days)
        with self._lock:
            self._entries[key] = moment, ids
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)
        return ids

    def _read(self, site_id: int, days: int) -> tuple[str, ...]:
        """Return the IDs of documents with enough visitors in a key period, most visitors first.

        A visitor has another ID in each key period, so the visitors of several periods may be the same people.
        """
        today = to_microseconds(now()) // DAY_MICROSECONDS
        visitors: Counter[str] = Counter()
        with self._database.read() as session:
            for first, end in _key_periods(today - days + 1, today + 1):
                clicks = (
                    select(SearchClick.document_id, network_of(SearchClick.visitor).label("network"))
                    .where(
                        SearchClick.site_id == site_id,
                        SearchClick.occurred_at >= from_microseconds(first * DAY_MICROSECONDS),
                        SearchClick.occurred_at < from_microseconds(end * DAY_MICROSECONDS),
                    )
                    .order_by(SearchClick.occurred_at.desc())
                    .limit(MAX_CLICKS)
                    .subquery()
                )
                # Clicks without a visitor have no network, and are not counted.
                count = func.count(clicks.c.network.distinct())
                id = clicks.c.document_id
                listed = select(id, count).group_by(id).having(count >= MIN_VISITORS)
                visitors.update({row[0]: row[1] for row in session.execute(listed)})
        ordered = sorted(visitors, key=lambda id: (-visitors[id], id))
        return tuple(ordered[:MAX_CANDIDATES])


def _key_periods(first: int, end: int) -> Iterator[tuple[int, int]]:
    """Split the days from ``first`` up to, but not including, ``end`` at the days on which visitor IDs change."""
    while first < end:
        following = (first // KEY_DAYS + 1) * KEY_DAYS
        yield first, min(following, end)
        first = following
