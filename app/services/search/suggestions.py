"""Suggestions while somebody types: what others searched, then titles of documents."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from sqlalchemy import desc, exists, func, select, text

from app.clock import now
from app.models import QueryWindow, Site
from app.models.events import SUGGESTED
from app.services.access.credentials import SiteRecord
from app.services.search.search import Searcher
from app.storage.database import Database
from backends.base import TitleMatch
from backends.errors import ReplyTooLarge
from backends.text import normal_form

MAX_QUERIES = 1_000
"""Queries of a site that are suggested: those of the most visitors."""

MAX_QUERY_LENGTH = 100
"""Characters of a query that is suggested."""

MAX_TITLE_LENGTH = 200
"""Characters of a suggested title; of a longer one the rest is cut off."""

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
    """

    def __init__(self, queries: Iterable[str]):
        self._lines = "".join(["\n", *(f" {query}\n" for query in queries)])

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return sys.getsizeof(self._lines)

    def continuing(self, start: str, limit: int) -> list[str]:
        """The first queries that begin with a text, then those of which a later word does.

        Args:
            start: In normal form; empty for all.
        """
        lines = self._lines
        wanted = f" {start}"
        beginning: list[str] = []
        later: list[str] = []
        at = lines.find(wanted)
        while at >= 0 and len(beginning) < limit:
            end = lines.index("\n", at)
            if lines[at - 1] == "\n":
                beginning.append(lines[at + 1 : end])
            elif len(later) < limit:
                later.append(lines[lines.rindex("\n", 0, at) + 2 : end])
            at = lines.find(wanted, end)
        return [*beginning, *later][:limit]


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
        queries = FrequentQueries(self._read(site_id))
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

    def _read(self, site_id: int) -> list[str]:
        """The queries that enough visitors made with results; none of a site that has no documents any more."""
        wanted = (
            select(QueryWindow.query)
            .where(
                QueryWindow.scope == site_id,
                text(SUGGESTED),
                func.length(QueryWindow.query) <= MAX_QUERY_LENGTH,
                exists().where(Site.id == site_id, Site.document_count > 0),
            )
            .order_by(desc(QueryWindow.found_visitors_30), QueryWindow.query)
            .limit(MAX_QUERIES)
        )
        with self._database.read() as session:
            return list(session.scalars(wanted))


class Suggester:
    """Completes what somebody types."""

    def __init__(self, database: Database, searcher: Searcher):
        self.frequent_queries = FrequentQueryCache(database)
        self._searcher = searcher

    def suggest(self, site: SiteRecord, typed: str, limit: int) -> list[Suggestion]:
        """At most ``limit`` suggestions: queries that continue what was typed, those of the most visitors first; then
        titles that have its words, the last one as the beginning of a word. Of nothing typed, the most frequent
        queries.

        Args:
            typed: At most 512 bytes.
            limit: 1 to 20.

        Raises:
            ApiError: 400 where the documents are too large for what the engine may answer.
            BackendUnavailable: The engine cannot answer now.
            SQLAlchemyError: The queries have to be read, and the database cannot.
        """
        start = normal_form(typed)
        found = [Suggestion(query, "query") for query in self.frequent_queries.get(site.id).continuing(start, limit)]
        room = limit - len(found)
        if start and room:
            try:
                titles = self._searcher.ask(site, lambda engine, index: engine.find_titles(index, start, room))
            except ReplyTooLarge as error:
                raise self._searcher.new_room().too_small() from error
            found += sorted(map(_suggested, titles), key=partial(_begins_later, start))
        return found


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
