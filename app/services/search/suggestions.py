"""Suggestions while somebody types: what others searched, then titles of documents."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Literal

from sqlalchemy import exists, func, or_, select

from app.clock import now
from app.errors import ApiError
from app.models import QueryDay, Site
from app.models.base import to_microseconds
from app.models.events import ALL_WORDS, DAY_MICROSECONDS, RUN_CODES, SUGGESTED_FROM
from app.services.access.credentials import SiteRecord
from app.services.search.hidden_suggestions import hidden_suggestions
from app.services.search.search import Searcher, for_site, rejected
from app.storage.database import Database
from backends.base import Matched, TitleMatch
from backends.errors import BackendRejected, ReplyTooLarge
from backends.query import SearchQuery
from backends.text import normal_form

PERIOD_DAYS = 30
"""UTC days, today included, in which visitors must have searched a query that is suggested."""

MAX_QUERIES = 1_000
"""Queries of a site that are suggested: those of the most visitors."""

MAX_QUERY_LENGTH = 100
"""Characters of a query that is suggested."""

MAX_TITLES = 20
"""Titles that are looked for where some may be hidden."""

MAX_TITLE_LENGTH = 200
"""Characters of a suggested title; of a longer one the rest is cut off."""

MAX_CHECKS = 20
"""Queries that were only logged, and that one request searches for before they are suggested; others wait."""

LIFETIME = timedelta(seconds=60)
"""How long a process goes by the queries it has read."""

CACHE_BYTES = 8 * 2**20
"""Memory of a process for queries, of however many sites; the least recently used go first."""

_CACHE_ENTRY_BYTES = 500


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A line to choose.

    Attributes:
        text: A query in normal form, or a title.
        kind: Which of them.
        url: The address of the document with the title, as sent.
    """

    text: str
    kind: Literal["query", "title"]
    url: str | None = None


class FrequentQueries:
    """The queries of one site that may be suggested, the most frequent first, as one text that is scanned.

    Args:
        queries: In normal form, so that they have single spaces and no other white space.
        unchecked: Those of which it is not known what the service finds for them.
    """

    def __init__(self, queries: Iterable[str], unchecked: Iterable[str] = ()):
        self._lines = "".join(["\n", *(f" {query}\n" for query in queries)])
        self._checked: dict[str, bool | None] = dict.fromkeys(unchecked)

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return sys.getsizeof(self._lines) + sys.getsizeof(self._checked) + sum(map(sys.getsizeof, self._checked))

    def continuing(self, start: str) -> Iterator[str]:
        """The queries that begin with a text, then those of which a later word does.

        Args:
            start: In normal form; empty for all.
        """
        lines = self._lines
        wanted = f" {start}"
        later: list[int] = []
        at = lines.find(wanted)
        while at >= 0:
            end = lines.index("\n", at)
            if lines[at - 1] == "\n":
                yield lines[at + 1 : end]
            else:
                later.append(at)
            at = lines.find(wanted, end)
        for at in later:
            yield lines[lines.rindex("\n", 0, at) + 2 : lines.index("\n", at)]

    def is_found(self, query: str, find: Callable[[str], bool | None]) -> bool:
        """Tell whether the service finds what it should for a query; it is asked once.

        Args:
            find: Asks it; gives ``None`` if it is not to be asked now.
        """
        found = self._checked.get(query, True)
        if found is None:
            found = self._checked[query] = find(query)
        return bool(found)


class FrequentQueryCache:
    """Queries of sites as they were read at most :data:`LIFETIME` ago, in at most :data:`CACHE_BYTES`."""

    def __init__(self, database: Database, max_bytes: int = CACHE_BYTES):
        self._database = database
        self._max_bytes = max_bytes
        self._entries: OrderedDict[int, tuple[datetime, FrequentQueries]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self._bytes

    def get(self, site_id: int) -> FrequentQueries:
        """The queries of a site."""
        moment = now()
        with self._lock:
            entry = self._entries.get(site_id)
            if entry is not None and entry[0] <= moment < entry[0] + LIFETIME:
                self._entries.move_to_end(site_id)
                return entry[1]
        queries = FrequentQueries(*self._read(site_id))
        with self._lock:
            self._drop(site_id)
            self._entries[site_id] = moment, queries
            self._bytes += queries.size + _CACHE_ENTRY_BYTES
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                self._drop(next(iter(self._entries)))
        return queries

    def _drop(self, site_id: int) -> None:
        entry = self._entries.pop(site_id, None)
        if entry is not None:
            self._bytes -= entry[1].size + _CACHE_ENTRY_BYTES

    def _read(self, site_id: int) -> tuple[list[str], list[str]]:
        """The queries that enough visitors made and whose last search found documents with every word, and those of
        them that were only logged; none of a site that has no documents any more.
        """
        first = to_microseconds(now()) // DAY_MICROSECONDS - PERIOD_DAYS + 1
        visitors, last_run = func.sum(QueryDay.visitors), func.max(QueryDay.last_run)
        suggested = (
            select(QueryDay.query, last_run.label("last_run"))
            .where(
                QueryDay.site_id == site_id,
                QueryDay.day >= first,
                func.length(QueryDay.query) <= MAX_QUERY_LENGTH,
                exists().where(Site.id == site_id, Site.document_count > 0),
            )
            .group_by(QueryDay.query)
            .having(visitors >= SUGGESTED_FROM, or_(last_run % 8 == RUN_CODES[ALL_WORDS], last_run.is_(None)))
            .order_by(visitors.desc(), QueryDay.query)
            .limit(MAX_QUERIES)
        )
        with self._database.read() as session:
            rows = session.execute(suggested).all()
        return [row.query for row in rows], [row.query for row in rows if row.last_run is None]


class Suggester:
    """Completes what somebody types."""

    def __init__(self, database: Database, searcher: Searcher):
        self.frequent_queries = FrequentQueryCache(database)
        self._searcher = searcher

    def suggest(self, site: SiteRecord, typed: str, limit: int, within: SearchQuery | None = None) -> list[Suggestion]:
        """At most ``limit`` suggestions: queries that continue what was typed, those of the most visitors first; then
        titles that have its words, the last one as the beginning of a word. Of nothing typed, the most frequent
        queries. What the site hides is not among them.

        Args:
            typed: At most 512 bytes.
            limit: 1 to 20.
            within: A search whose filters the documents with the titles must match; ``None`` for all documents.

        Raises:
            ApiError: 400 for the filters, or where the documents are too large for what the engine may answer.
            BackendUnavailable: The engine cannot answer now.
            SQLAlchemyError: The queries have to be read, and the database cannot.
        """
        start = normal_form(typed)
        hidden = hidden_suggestions(site.suggestions_hidden)
        queries = self.frequent_queries.get(site.id)
        checks = iter(range(MAX_CHECKS))

        def find(query: str) -> bool | None:
            return None if next(checks, None) is None else self._finds_all_words(site, query)

        shown = (query for query in queries.continuing(start) if query not in hidden and queries.is_found(query, find))
        found = [Suggestion(query, "query") for query in islice(shown, limit)]
        room = limit - len(found)
        if start and room:
            titles = self._find_titles(site, start, MAX_TITLES if hidden else room, within)
            shown_titles = [_suggested(title) for title in titles if title.title not in hidden][:room]
            found += sorted(shown_titles, key=partial(_begins_later, start))
        return found

    def _find_titles(
        self, site: SiteRecord, start: str, limit: int, within: SearchQuery | None
    ) -> Sequence[TitleMatch]:
        narrowed = None if within is None else replace(within, kinds=site.kinds)
        try:
            return self._searcher.ask(
                site,
                lambda engine, index: engine.find_titles(index, start, limit, within=narrowed),
                tuple[TitleMatch, ...],
            )
        except BackendRejected as error:
            raise rejected(error) from error
        except ReplyTooLarge as error:
            raise self._searcher.new_room().too_small() from error

    def _finds_all_words(self, site: SiteRecord, query: str) -> bool:
        """Tell whether documents have every word of a query that was only logged."""
        try:
            found = self._searcher.run(
                site, for_site(SearchQuery(query, limit=1), site), lambda hit: b"", self._searcher.new_room()
            ).result
        except ApiError:
            return False  # The engine refuses to search for it.
        return found.total > 0 and found.matched is Matched.ALL


def encode_suggestions(found: Iterable[Suggestion]) -> dict[str, Any]:
    """The answer, for orjson."""
    return {
        "suggestions": [
            {"text": each.text, "kind": each.kind, **({} if each.url is None else {"url": each.url})} for each in found
        ]
    }


def _suggested(match: TitleMatch) -> Suggestion:
    title = " ".join(match.title.split())
    cut = title if len(title) <= MAX_TITLE_LENGTH else title[: MAX_TITLE_LENGTH - 1] + "…"
    return Suggestion(cut, "title", match.url)


def _begins_later(start: str, suggestion: Suggestion) -> bool:
    return not normal_form(suggestion.text).startswith(start)
