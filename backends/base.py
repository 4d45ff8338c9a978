"""The contract between the service and a search engine. Read this first.

A backend contains indexes. An index is a derived view of one site's documents: the service keeps
the documents themselves in SQL and can rebuild any index from there. Index names come from the
service and match ``[a-z0-9_]{1,64}``; text from a caller never becomes an index name.

Every method may raise :class:`~backends.errors.BackendUnavailable` within the time budget of
the backend's URL. No method lets any other exception of the engine, its client, or the transport
escape, and no message contains the engine's own message or credentials.

Several threads use a backend concurrently. A backend opens files and sockets and starts threads only at
first use in a process, so that an object created before ``fork`` works in every child.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any, Final, Self

import orjson

from backends.filters import OneOf
from backends.query import FieldKinds, SearchQuery, SearchSettings, WordCounts
from backends.sections import Passage, Section, SectionHit, split_sections
from backends.support import EngineSupport


class Matched(StrEnum):
    """Match level of a search: how many query words the best documents contain, in any form that the engine matches.

    A query without words (:data:`MATCH_ALL`) is ``ALL``. A pinned document counts as containing every word.
    """

    ALL = "all"
    """At least one document contains every word."""

    SOME = "some"
    """No document contains every word, even with corrections. Also the value when there are no hits."""

    CORRECTED = "corrected"
    """A document contains every word after spelling correction, which replaces words that no document contains."""


@dataclass(frozen=True, slots=True)
class Document:
    """A validated document.

    Attributes:
        id: Identifier as the caller sent it: 1 to 512 characters, any character except NUL.
        fields: The document as sent, including ``id``, without ``null`` fields and without its sections.
        changed_at: Time of the last write, in microseconds since the Unix epoch; increases with every write of a site.
        sections: Sections of its content, in order.
    """

    id: str
    fields: Mapping[str, Any]
    changed_at: int
    sections: tuple[Section, ...] = ()

    @classmethod
    def of(cls, id: str, stored: Mapping[str, Any], changed_at: int) -> Self:
        """Build a document from the fields that the service stores."""
        fields, sections = split_sections(stored)
        return cls(id, fields, changed_at, sections)


VARIANT_KINDS: Final = ("exact", "stem", "prefix", "typo", "synonym", "joined", "split", "compound")
"""Ways in which a word of a query can match a word of a document."""


class Level(IntEnum):
    """Class of a hit. A hit of a higher level comes before any hit of a lower one."""

    PARTS = 0
    """The document only contains a part of a word, or a quoted phrase, as no document of its index contains a word."""
    WORDS = 1
    """The document contains words of the query."""
    FIRST = 2
    """The query is the document's URL, or quotes a name that the document contains."""
    PINNED = 3


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """How well a hit matches a query, comparable with the hits of other indexes for the same query.

    Attributes:
        level: Class of the hit.
        share: The score divided by the weight of all words of the query: 0 or more, rarely above 10. A document with
            every word of the query gets the same addition in every index.
    """

    level: Level
    share: float


@dataclass(frozen=True)
class Hit:
    """A document found by a search.

    Attributes:
        id: The document's identifier as sent.
        json: The document as a JSON object (UTF-8): the query's ``returned_fields``, or all fields, plus ``""`` for
            missing fields that every hit must have. Bytes, so that a response can include them without decoding.
        formatted: Fields with matches marked, if requested.
        sections: Sections that match the query, best first; ``None`` if not requested.
        explanation: Reasons for its position, as JSON, if requested; the members depend on the engine.
        find_passage: Returns the passage that best matches the query, if the query has ``answers``.
        score: Its score, if the query is ``scored``. Scores never increase from a hit to the next, even where ranks or
            grouping put a hit before a better match.
    """

    id: str
    json: bytes
    formatted: Mapping[str, Any] | None = None
    sections: Sequence[SectionHit] | None = None
    explanation: Mapping[str, Any] | None = None
    find_passage: Callable[[], Passage | None] | None = None
    score: Score | None = None

    @cached_property
    def document(self) -> dict[str, Any]:
        """``json``, decoded."""
        decoded: dict[str, Any] = orjson.loads(self.json)
        return decoded


def with_scores(hits: Iterable[Hit], scores: Iterable[Score]) -> tuple[Hit, ...]:
    """Return hits with scores that never increase: a hit after a worse one gets the worse one's score."""
    lowest = Score(Level.PINNED, 0.0)
    scored = []
    for hit, score in zip(hits, scores, strict=True):
        lowest = score if score.level == Level.PINNED else min(lowest, score)
        scored.append(replace(hit, score=lowest))
    return tuple(scored)


def select_fields(document: Mapping[str, Any], query: SearchQuery) -> dict[str, Any]:
    """Return the fields of a document that hits of a query contain."""
    returned = document if query.returned_fields is None else query.returned_fields
    return {name: value for name, value in document.items() if name in returned}


@dataclass(frozen=True, slots=True)
class FacetStats:
    """Smallest and largest value of a number or date field among all matches, with dates in Unix seconds."""

    min: float
    max: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        hits: One page of hits, best first.
        total: Number of all matches, as exact as the engine can count. With ``distinct``, the number of groups: exact
            up to 1,000, an estimate beyond that.
        facets: Number of matches for each value (as text) of each field: at most the query's ``facet_values`` values
            per field, ordered by count, then value.
        facet_stats: Minimum and maximum of number and date facets.
        relaxation: Name of the engine's relaxation that produced the hits; ``""`` if the engine reports none.
        matched: Match level of the search; the same on every page and in every sort order.
        corrected_query: The query with its spelling corrected, in the documents' spelling and the visitor's
            capitalization; ``None`` unless ``matched`` is ``CORRECTED``.
        mixed: Whether the service also ranked the hits by meaning.
    """

    hits: tuple[Hit, ...]
    total: int
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    facet_stats: Mapping[str, FacetStats] = field(default_factory=dict)
    relaxation: str = ""
    matched: Matched = Matched.ALL
    corrected_query: str | None = None
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """Title and URL of a document matched by its title."""

    title: str
    url: str


def distinct_titles(matches: Iterable[TitleMatch], limit: int) -> tuple[TitleMatch, ...]:
    """Return the first ``limit`` matches with distinct titles."""
    by_title: dict[str, TitleMatch] = {}
    for match in matches:
        by_title.setdefault(match.title, match)
        if len(by_title) == limit:
            break
    return tuple(by_title.values())


@dataclass(frozen=True, slots=True)
class Credential:
    """An engine key that can search a single index.

    Attributes:
        token: Secret that a client sends to the engine.
        reference: Identifier for :meth:`SearchBackend.revoke_credential`; not a secret.
    """

    token: str
    reference: str


class SearchBackend(ABC):
    """One search engine. Built from a URL by :func:`backends.registry.create_backend`."""

    name: str
    """Name of the engine: ``memory``, ``tantivy``, ``typesense``, or ``meilisearch``."""

    identity: str
    """Stable identity of the engine: its kind, and the optional ``name`` in its URL.

    It does not depend on the location: an engine that moves to another folder or host keeps it.
    """

    persistent: bool = True
    """Whether indexes outlive the process and other processes can see them."""

    is_remote: bool = False
    """Whether a search waits for another process, so that several searches can wait at the same time."""

    issues_credentials: bool = False
    """Whether clients can get keys to query the engine directly."""

    rank_limits: str = ""
    """Limits of the engine's support for ranks and recency, as a sentence for people; ``""`` if there are none."""

    support: EngineSupport
    """How the engine honors each attribute of a search; :meth:`search` checks it first."""

    keeps_synonyms: bool = False
    """Whether indexes store synonyms: see :meth:`send_synonyms`. Other engines take them from each query."""

    @abstractmethod
    def create_index(self, index: str) -> None:
        """Create an empty index; does nothing if it exists."""

    @abstractmethod
    def delete_index(self, index: str) -> None:
        """Delete an index and its documents; does nothing if it does not exist."""

    @abstractmethod
    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, in no particular order."""

    def outdated_indexes(self) -> list[str]:
        """Return the names of the indexes that the service should rebuild, in no particular order.

        These are unreadable indexes and indexes created by an earlier release. Until the rebuild, indexes of an earlier
        release can be searched and written to; they only lack this release's additions.
        """
        return []

    @abstractmethod
    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        """Add documents; each replaces the whole document with the same id, if one exists.

        When this method returns, all documents are durable, and the next search from any process finds them (on
        every node that serves searches). When it raises, any part of the write may have been applied; repeating
        the call is harmless. Ids within one call are distinct. ``kinds`` covers every custom field of
        these documents and of the documents already indexed. Calls for one index never overlap (the service
        holds a lock); calls for different indexes may.

        Raises:
            IndexNotFound: The index does not exist.
            BackendUnavailable: The write failed, or its outcome is unknown.
        """

    @abstractmethod
    def delete(self, index: str, ids: Sequence[str]) -> None:
        """Delete documents and ignore unknown IDs. Durability, visibility, and locking are as for :meth:`upsert`.

        Raises:
            IndexNotFound: The index does not exist.
        """

    @abstractmethod
    def search(self, index: str, query: SearchQuery) -> SearchResult:
        """Run one search.

        Raises:
            BackendRejected: The engine cannot run the filters, ``sort``, ``facets``, or ``distinct``, or it does not
                support another attribute of the query.
            ResponseTooLarge: The hits exceed the query's ``max_bytes`` or the engine's own limit.
            IndexNotFound: The index does not exist.
        """

    def count_words(self, index: str, query: SearchQuery) -> WordCounts:
        """Return how many documents contain each word of a query, for :attr:`SearchQuery.word_counts`.

        Engines whose scores do not depend on these numbers return none.

        Raises:
            IndexNotFound: The index does not exist.
        """
        return WordCounts()

    def send_synonyms(self, index: str, settings: SearchSettings) -> None:  # noqa: B027 - see keeps_synonyms
        """Send the synonyms of a site's settings to an engine whose indexes store synonyms.

        A server may apply them after this method returns; until then, searches use the index's previous synonyms. A
        search that is not a preview and whose synonyms differ from the last ones sent also sends its synonyms, but it
        neither waits for the server to apply them nor fails if it can't send them.

        Raises:
            IndexNotFound: The index does not exist.
            BackendUnavailable: The request failed, or its outcome is unknown.
        """

    @abstractmethod
    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        """Return the documents whose title contains every word of ``text``, the last word as a prefix; best first.

        This method is for suggestions and is far cheaper than a search: it neither counts matches nor marks them, and
        it uses no site settings. It ignores case and accents, does not correct typing errors, and treats punctuation
        and symbols only as word separators.

        Args:
            text: At most 512 bytes; without a letter or digit it matches nothing.
            limit: 1 to 20. Only one document per title is returned, so there may be fewer.
            within: A search whose ``native_filter`` and ``portable_filter`` the documents must match; of its other
                attributes, only ``kinds`` is used. ``None`` allows all documents.

        Raises:
            IndexNotFound: The index does not exist.
            BackendRejected: The engine cannot run the filters.
        """

    @abstractmethod
    def find_related(self, index: str, page: OneOf, query: SearchQuery) -> tuple[Hit, ...] | None:
        """Return the documents on the same topic as a page, judged by its weightiest words; best first.

        A document is returned only if it has at least a fifth (:data:`backends.related.MIN_SHARE`) of these words by
        weight, and scores at least a fifth of what the page itself scores for them. The page itself and its other
        versions are never returned, and only one document of each title and of each value of the ``distinct`` field.

        Args:
            page: Selects the page by ``id`` or ``url``; of several values, the first that a document has.
            query: A search without words (:data:`MATCH_ALL`), whose conditions the documents must meet; the page itself
                need not. ``limit`` is 1 to 10. Ranks order the documents; sort and pins have no effect.

        Returns:
            ``None`` if there is no such page.

        Raises:
            IndexNotFound: The index does not exist.
            BackendRejected: The engine cannot run the filters.
            ResponseTooLarge: The hits exceed the query's ``max_bytes`` or the engine's own limit.
        """

    @abstractmethod
    def count(self, index: str) -> int:
        """Return the number of documents in the index.

        Raises:
            IndexNotFound: The index does not exist.
        """

    @abstractmethod
    def document_ids(self, index: str) -> Iterator[str]:
        """Yield the id of every document, without duplicates, in no particular order.

        Raises:
            IndexNotFound: The index does not exist.
        """

    @abstractmethod
    def check(self) -> None:
        """Check that the engine is reachable and accepts the service's credentials.

        Raises:
            BackendUnavailable: The engine is not reachable, or not ready yet.
        """

    @abstractmethod
    def version(self) -> str:
        """Return the version of the engine, such as ``29.0``.

        Raises:
            BackendUnavailable: The engine does not report its version.
        """

    @abstractmethod
    def index_bytes(self) -> int | None:
        """Return the size of the indexes in bytes, on disk or, for in-memory engines, in memory.

        A server counts all its data, including the indexes of other services. ``None`` if the engine does not report
        the size.

        Raises:
            BackendUnavailable: The engine does not respond.
        """

    def free_share(self) -> float | None:
        """Return the free share of the engine's disk or memory, whichever is scarcer, from 0 to 1.

        ``None`` if the engine does not report it.

        Raises:
            BackendUnavailable: The engine does not respond.
        """
        return None

    def issue_credential(self, index: str, holder: str, expires_at: datetime) -> Credential:
        """Create a key that can search only ``index``, until ``expires_at``.

        Args:
            holder: Stable name of the key's holder; all keys of one holder are revoked together.

        Raises:
            NotImplementedError: The engine issues no keys (:attr:`issues_credentials` is false).
        """
        raise NotImplementedError(f"{self.name} issues no credentials")

    def revoke_credential(self, reference: str) -> None:
        """Revoke every key with this reference immediately; does nothing if no such key is valid."""
        raise NotImplementedError(f"{self.name} issues no credentials")

    def run_maintenance(self) -> None:  # noqa: B027 - most engines do that themselves
        """Start background work that speeds up later searches. The service calls this every few seconds."""

    @abstractmethod
    def close(self) -> None:
        """Release files, sockets, and threads. The backend remains usable and reopens them on its next use."""


_NAME = re.compile(r"[a-z0-9_-]{1,32}", re.ASCII)


def engine_identity(kind: str, name: str = "") -> str:
    """Return the identity of an engine: its kind, plus the name in its URL, which distinguishes engines of one kind.

    The identity contains neither folder nor host, so that an engine can move.

    Raises:
        ValueError: ``name`` is longer than 32 characters or contains characters other than lower-case letters, digits,
            ``_``, and ``-``.
    """
    if not name:
        return kind
    if not _NAME.fullmatch(name):
        raise ValueError("The name of a search engine may contain at most 32 lower-case letters, digits, _, and -.")
    return f"{kind}:{name}"
