"""Suggestions while a visitor types: other visitors' queries, followed by titles of documents."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import islice, zip_longest
from typing import Any, Literal

from sqlalchemy import exists, func, or_, select

from app.clock import now
from app.errors import ApiError
from app.models import QueryDay, Site
from app.models.base import to_microseconds
from app.models.events import ALL_WORDS, DAY_MICROSECONDS, RUN_CODES, SUGGESTED_FROM
from app.services.access.credentials import SearchedSite, SiteRecord
from app.services.indexing.indexer import NothingToFind
from app.services.search.merging import condition_for, portable_condition
from app.services.search.search import Searcher, rejected
from app.services.search.site_queries import for_site
from app.storage.database import Database
from backends.base import Matched, TitleMatch, distinct_titles
from backends.errors import BackendError, BackendRejected, BackendUnavailable, ResponseTooLarge
from backends.globs import Glob, literals_of
from backends.query import SearchQuery
from backends.text import normal_form


class HiddenSuggestions:
    """The texts that a site never suggests.

    Args:
        patterns: Globs in normal form.
    """

    def __init__(self, patterns: Sequence[str]):
        self._exact = frozenset(pattern for pattern in patterns if "*" not in pattern)
        # Hardly any text contains the longest literal of a pattern, and that is the fastest check.
        self._wild = [(max(literals_of(pattern), key=len), Glob(pattern)) for pattern in patterns if "*" in pattern]

    def __bool__(self) -> bool:
        return bool(self._exact or self._wild)

    def __contains__(self, text: str) -> bool:
        """Whether a text must not be suggested."""
        if not self:
            return False
        text = normal_form(text)
        return text in self._exact or any(longest in text and glob.matches(text) for longest, glob in self._wild)


@lru_cache(maxsize=256)
def hidden_suggestions(patterns: tuple[str, ...]) -> HiddenSuggestions:
    """Return the texts that a site's patterns hide from suggestions, cached by pattern list."""
    return HiddenSuggestions(patterns)


PERIOD_DAYS = 30
"""Number of UTC days, including today, whose queries may be suggested."""

MAX_QUERIES = 1_000
"""Maximum number of a site's queries that may be suggested: the queries of the most visitors."""

MAX_QUERY_LENGTH = 100
"""Maximum length of a suggested query, in characters."""

MAX_TITLES = 20
"""Number of titles to search for if the site hides some titles."""

MAX_TITLE_LENGTH = 200
"""Maximum length of a suggested title, in characters; longer titles are truncated."""

MAX_CHECKS = 20
"""Maximum number of logged queries that a request checks with a search. Later requests check the others."""

LIFETIME = timedelta(seconds=60)
"""Lifetime of a process's cached queries."""

CACHE_BYTES = 8 * 2**20
"""Maximum size of a process's query cache, in bytes. The least recently used sites are evicted first."""

_CACHE_ENTRY_BYTES = 500


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggestion.

    Attributes:
        text: A query in normal form, or a title.
        kind: Whether ``text`` is a query or a title.
        url: The ``url`` of the document with the title.
    """

    text: str
    kind: Literal["query", "title"]
    url: str | None = None


class FrequentQueries:
    """The queries of one site that may be suggested, most frequent first, as one text that is scanned.

    Args:
        queries: In normal form, so their only white space is single spaces.
        unchecked: The queries whose results are unknown.
    """

    def __init__(self, queries: Iterable[str], unchecked: Iterable[str] = ()):
        self._lines = "".join(["\n", *(f" {query}\n" for query in queries)])
        self._checked: dict[str, bool | None] = dict.fromkeys(unchecked)

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return sys.getsizeof(self._lines) + sys.getsizeof(self._checked) + sum(map(sys.getsizeof, self._checked))

    def continuing(self, start: str) -> Iterator[str]:
        """Yield the queries that begin with a text, then the queries in which a later word begins with it.

        Args:
            start: In normal form; empty for all.
        """
        lines = self._lines
        word_start = f" {start}"
        later: list[int] = []
        offset = lines.find(word_start)
        while offset >= 0:
            end = lines.index("\n", offset)
            if lines[offset - 1] == "\n":
                yield lines[offset + 1 : end]
            else:
                later.append(offset)
            offset = lines.find(word_start, end)
        for offset in later:
            yield lines[lines.rindex("\n", 0, offset) + 2 : lines.index("\n", offset)]

    def has_results(self, query: str, find: Callable[[str], bool | None]) -> bool:
        """Whether a search for a query has results with every word; the outcome is cached.

        Args:
            find: Runs the search. It returns ``None`` to leave the check to a later request.
        """
        has_results = self._checked.get(query, True)
        if has_results is None:
            has_results = self._checked[query] = find(query)
        return bool(has_results)


class FrequentQueryCache:
    """A cache of sites' queries for up to :data:`LIFETIME`, limited to :data:`CACHE_BYTES`."""

    def __init__(self, database: Database, max_bytes: int = CACHE_BYTES):
        self._database = database
        self._max_bytes = max_bytes
        self._entries: OrderedDict[int, tuple[datetime, FrequentQueries]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return self._bytes

    def get(self, site_id: int) -> FrequentQueries:
        """Return the queries of a site."""
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
        """Read the queries of enough visitors whose last search found documents with every word.

        Also returns which of these queries were only logged. A site without documents has no queries.
        """
        first = to_microseconds(now()) // DAY_MICROSECONDS - PERIOD_DAYS + 1
        visitors, last_run = func.sum(QueryDay.visitors), func.max(QueryDay.last_run)
        suggested = (
            select(QueryDay.query, last_run.label("last_run"))
            .where(
                QueryDay.site_id == site_id,
                QueryDay.day >= first,
                func.length(QueryDay.query) <= MAX_QUERY_LENGTH,
                exists().where(Site.id == site_id, or_(Site.document_count > 0, Site.searched_sites.is_not(None))),
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
    """Suggests queries and titles while a visitor types."""

    def __init__(self, database: Database, searcher: Searcher):
        self.frequent_queries = FrequentQueryCache(database)
        self._searcher = searcher

    def suggest(self, site: SiteRecord, typed: str, limit: int, within: SearchQuery | None = None) -> list[Suggestion]:
        """Return suggestions that the site does not hide.

        Queries that continue the typed text come first, sorted by number of visitors. Then come titles that contain its
        words, where the last word may be a prefix. For an empty text, these are the most frequent queries.

        Args:
            typed: At most 512 bytes.
            limit: 1 to 20.
            within: A search whose filters must match the documents whose titles are suggested; ``None`` for all
                documents.

        Raises:
            ApiError: 400 for the filters, or if the documents exceed the limit of the engine's response.
            BackendUnavailable: The engine is unavailable.
            SQLAlchemyError: The queries are not cached, and the database is unavailable.
        """
        start = normal_form(typed)
        hidden = hidden_suggestions(site.suggestions_hidden)
        queries = self.frequent_queries.get(site.id)
        checks = iter(range(MAX_CHECKS))

        def find(query: str) -> bool | None:
            return None if next(checks, None) is None else self._finds_all_words(site, query)

        visible = (
            query for query in queries.continuing(start) if query not in hidden and queries.has_results(query, find)
        )
        suggestions = [Suggestion(query, "query") for query in islice(visible, limit)]
        missing_count = limit - len(suggestions)
        if start and missing_count:
            titles = self._find_titles(site, start, MAX_TITLES if hidden else missing_count, within)
            visible_titles = [_suggested(title) for title in titles if title.title not in hidden][:missing_count]
            suggestions += sorted(visible_titles, key=partial(_begins_later, start))
        return suggestions

    def _find_titles(
        self, site: SiteRecord, start: str, limit: int, within: SearchQuery | None
    ) -> Sequence[TitleMatch]:
        if site.searched_sites is not None:
            return self._find_titles_of_sites(site.searched_sites, start, limit, within)
        narrowed = None if within is None else replace(within, kinds=site.kinds)
        try:
            return self._searcher.ask(
                site, lambda engine, index: engine.find_titles(index, start, limit, within=narrowed)
            )
        except NothingToFind:
            return ()
        except BackendRejected as error:
            raise rejected(error) from error
        except ResponseTooLarge as error:
            raise self._searcher.new_budget().exceeded() from error

    def _find_titles_of_sites(
        self, sites: Sequence[SearchedSite], start: str, limit: int, within: SearchQuery | None
    ) -> Sequence[TitleMatch]:
        """Return titles of several sites in turn: the best of each, then the second of each."""
        asked: list[SearchedSite] = []
        questions = []
        try:
            condition = None if within is None else portable_condition(within)
        except BackendRejected as error:
            raise rejected(error) from error
        for site in sites:
            narrowed = condition_for(condition, site)
            if not isinstance(narrowed, bool):
                asked.append(site)
                query = SearchQuery("", portable_filter=narrowed)
                questions.append(partial(self._find_titles, site.record, start, limit, query))
        found = self._searcher.ask_each(asked, questions)
        titles = [each for each in found if not isinstance(each, BackendError)]
        if found and not titles:
            raise BackendUnavailable("No search engine of the collection's sites is available.")
        in_turn = (title for turn in zip_longest(*titles) for title in turn if title is not None)
        return distinct_titles(in_turn, limit)

    def _finds_all_words(self, site: SiteRecord, query: str) -> bool:
        """Whether any document contains every word of a query."""
        try:
            result = self._searcher.run(site, for_site(SearchQuery(query, limit=1), site)).result
        except ApiError:
            return False  # The engine rejects the query.
        return result.total > 0 and result.matched is Matched.ALL


def encode_suggestions(suggestions: Iterable[Suggestion]) -> dict[str, Any]:
    """Return the response, for orjson."""
    return {
        "suggestions": [
            {
                "text": suggestion.text,
                "kind": suggestion.kind,
                **({} if suggestion.url is None else {"url": suggestion.url}),
            }
            for suggestion in suggestions
        ]
    }


def _suggested(match: TitleMatch) -> Suggestion:
    title = " ".join(match.title.split())
    cut = title if len(title) <= MAX_TITLE_LENGTH else title[: MAX_TITLE_LENGTH - 1] + "…"
    return Suggestion(cut, "title", match.url)


def _begins_later(start: str, suggestion: Suggestion) -> bool:
    return not normal_form(suggestion.text).startswith(start)
