"""The contract between the service and a search engine. Read this first.

A backend holds indexes. An index is a derived view of one site's documents: the service keeps
the documents themselves in SQL and can rebuild any index from there. Index names come from the
service and match ``[a-z0-9_]{1,64}``; a caller's text never becomes an index name.

Every method may raise :class:`~backends.errors.BackendUnavailable` within the time budget of
the backend's URL. No method lets another exception of the engine, its client or the transport
through, and none leaves an engine's own words or credentials in a message.

Backends are used by several threads at once. They open files, sockets and threads only at
first use in a process, so that an object made before ``fork`` works in every child.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Self

import orjson

from backends.filters import And, Filter, Not, OneOf, fields_of
from backends.sections import Passage, Section, SectionHit, split_sections
from backends.standard_fields import STANDARD_FIELDS
from backends.text import normal_form

MAX_PINS: Final = 50
"""Most documents that come first in one search."""

MAX_USED_BOOSTS: Final = 50
"""Most boosts that rank the hits of one search."""

MAX_USED_SYNONYMS: Final = 50
"""Most synonyms of one word that a search looks for."""

MATCH_ALL = "*"
"""The query text that matches every document, by date, newest first, then those without, by last change."""


class Matched(StrEnum):
    """The words of a query that the best documents have, in any form in which the engine finds a word.

    A query without words (:data:`MATCH_ALL`) is ``ALL``. A pinned document counts as one that has every word.
    """

    ALL = "all"
    """A document has every word."""

    SOME = "some"
    """No document has every word, even if words are replaced; so it is where nothing is found."""

    CORRECTED = "corrected"
    """A document has every word, after words that no document has were replaced by similar ones."""


class FieldKind(StrEnum):
    """Kind of value in a further field of a document. One field may hold several kinds in several documents."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    STRING_LIST = "string_list"
    NUMBER_LIST = "number_list"


FieldKinds = Mapping[str, frozenset[FieldKind]]
"""The further fields of an index (not the standard ones) and the kinds seen in each; it only grows."""


@dataclass(frozen=True, slots=True)
class Document:
    """One valid document.

    Attributes:
        id: Identifier as sent, 1 to 512 characters, any characters but NUL.
        fields: The document as sent, ``id`` included, without fields that were ``null``, and without its sections.
        changed_at: When it was last written, in microseconds since the Unix epoch; grows with every write of a site.
        sections: Places in its content, in order.
    """

    id: str
    fields: Mapping[str, Any]
    changed_at: int
    sections: tuple[Section, ...] = ()

    @classmethod
    def of(cls, id: str, stored: Mapping[str, Any], changed_at: int) -> Self:
        """A document as the service stores it."""
        fields, sections = split_sections(stored)
        return cls(id, fields, changed_at, sections)


@dataclass(frozen=True, slots=True)
class SortKey:
    """Order by one field; documents without it come last in either direction."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """Form of ``Hit.formatted``.

    Attributes:
        pre_tag, post_tag: Put around every match.
        escape: Whether the document's own text is HTML-escaped (the tags are not).
        fields: Fields in which matches are marked; ``("*",)`` for all.
        crop_fields: Field to length in words; such a field is cut around its first good match. Others stay whole.
        crop_marker: Put where text was cut away.
        shown: The fields that ``Hit.formatted`` has, as far as the document has them; ``None`` for all.
        sentences: Whether a field that is cut is cut to whole sentences or lines where they are short enough.
    """

    pre_tag: str = "<em>"
    post_tag: str = "</em>"
    escape: bool = True
    fields: tuple[str, ...] = ("*",)
    crop_fields: Mapping[str, int] = field(default_factory=lambda: {"content": 30})
    crop_marker: str = "…"
    shown: Set[str] | None = None
    sentences: bool = False

    def chosen(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a document that are shown."""
        if self.shown is None:
            return document
        return {name: value for name, value in document.items() if name in self.shown}


@dataclass(frozen=True, slots=True)
class Preferred:
    """Choice of the hit that is shown of those with one value of :attr:`SearchQuery.distinct`.

    Attributes:
        field: The field that decides.
        value: What it must hold, without regard to case; ``latest`` for the highest version among these hits, in the
            order of :func:`backends.versions.version_key`.
    """

    field: str
    value: str


MAX_RANK: Final = 5
"""How far documents move up or down at most, whatever is added up."""

RANK_STEP: Final = 1.25
"""Factor of the score for each rank."""

RECENCY_BONUS: Final = 0.5
"""What a document of today gains where a site prefers newer ones, as a share of its score."""


def rank_factor(rank: float) -> float:
    """Factor for the score of a document whose ranks add up to this."""
    return float(RANK_STEP ** bounded_rank(rank))


def bounded_rank(rank: float) -> float:
    """A rank, or what ranks add up to, as far as it counts."""
    return max(-MAX_RANK, min(MAX_RANK, rank))


@dataclass(frozen=True, slots=True)
class Boost:
    """Documents that are ranked otherwise.

    Attributes:
        rank: -5 to 5.
        filter: Which they are, or
        path: the pattern of their path and query, in which ``*`` stands for anything.
        further_fields: The fields that the filter names beside the standard ones.
    """

    rank: int
    filter: Filter | None = None
    path: str = ""
    further_fields: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = fields_of(self.filter).keys() if self.filter is not None else frozenset[str]()
        object.__setattr__(self, "further_fields", frozenset(named).difference(STANDARD_FIELDS))


@dataclass(frozen=True, slots=True)
class Recency:
    """Preference for newer documents.

    Attributes:
        field: Where their date is: ``date``, or a further field with ISO 8601 dates or Unix seconds.
        half_life_days: Age at which half of the bonus is left.
    """

    field: str
    half_life_days: int

    def factor(self, age_days: float) -> float:
        """Factor for the score of a document of this age."""
        return float(1 + RECENCY_BONUS * 0.5 ** (max(0.0, age_days) / self.half_life_days))


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """A site's own wishes, applied at query time.

    Attributes:
        language: ISO 639-1 code of the site's documents; ``None`` to recognise it per document.
        synonyms: Groups of words or phrases that mean the same.
        stop_words: Words that need not match; ``None`` for the language's own list.
        pinned: Normal form of a query to the ids that come first for it, in order.
        hidden: Normal form of a query to the ids that it never finds.
        weights: Field (``title``, ``excerpt``, ``content``) to its factor, 1.0 when not named.
        distinct: Field of whose values one hit each is shown where the query does not say; ``""`` for none, as is a
            field that no document has.
        learned: Normal form of a query to the places, from 0 to 3, that documents may move up for it by their clicks,
            by id. The service does it, on every engine.
        preferred: Which hit that is; ``None`` for the best. Without effect where nothing is distinct.
        boosts: Documents that are ranked otherwise in every search.
        rank_field: Field with the documents' own ranks, -5 to 5; ``""`` for none.
        recency: How newer documents are preferred; ``None`` for as much as the engine does by itself.
        answers: Whether a question gets the passage that answers it. The service chooses it.
        semantic: Whether the hits of sentences are ordered by meaning, too. The service does it, on every engine.
    """

    language: str | None = None
    synonyms: tuple[tuple[str, ...], ...] = ()
    stop_words: frozenset[str] | None = None
    pinned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    distinct: str = ""
    preferred: Preferred | None = None
    learned: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    boosts: tuple[Boost, ...] = ()
    rank_field: str = ""
    recency: Recency | None = None
    answers: bool = False
    semantic: bool = False


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of a site's rules on a search.

    Attributes:
        rules: Ids of the rules that hold, in order.
        typed: What was typed, if something else is searched for; the settings' ``pinned`` and ``hidden`` are for that.
        pinned, hidden: Ids that come first, and that are not found, beside those of the settings.
        boosts: Documents that are ranked otherwise.
        redirect: Where a search box goes; ``""`` for nowhere.
        notice: What stands above the results: ``text``, and perhaps ``url``.
    """

    rules: tuple[str, ...] = ()
    typed: str | None = None
    pinned: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    boosts: tuple[Boost, ...] = ()
    redirect: str = ""
    notice: Mapping[str, str] | None = None


NO_EFFECTS: Final = Effects()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search, checked.

    Attributes:
        text: What the person typed, at most 512 bytes; :data:`MATCH_ALL` for every document.
        limit: Hits wanted, 0 to 107.
        offset: Hits passed over, 0 to 2147483647.
        filters: Expression in the engine's own syntax, ``""`` for none.
        filter: Parsed expression of the portable grammar, ANDed with ``filters``.
        sort: At most three keys; ties are broken by relevance.
        facets: Fields to count values of; ``("*",)`` for every field that can be one.
        facet_values: Most values counted of each facet, 100 to 10,000. Beyond 100 an engine may give fewer: of ``id``
            no more than 100, of others at least 1,000 if there are so many.
        highlight: How to make ``Hit.formatted``; ``None`` leaves it out.
        kinds: The index's further fields. A field that is neither standard nor here is unknown.
        settings: The site's search settings.
        fields: The text fields searched; ``()`` for title, excerpt and content.
        all_words: Whether documents must have every word (else all words first, then fewer).
        sections: How many sections a hit has at most, 0 to 5.
        distinct: Field of whose values one hit each is shown; ``""`` for none, ``None`` for what the settings say. It
            is a further field that holds single values, ``author`` or ``date``; what lists do in it is the engine's own
            affair. Of the hits with one value the first is shown: a pinned one, else the settings' preferred one, at
            the place of the best, else the best. Hits without a value are shown each. ``limit`` and ``offset`` count
            shown hits, and an engine may end with those of the best 10,000 hits. Facets count documents.
        effects: What the site's rules do, beside what they put into ``text`` and ``filter``.
        explain: Whether hits tell why they stand where they do.
        answers: Whether hits can be asked for the passage that shows the query best.
        most_bytes: Bytes of the page's documents beyond which an engine that knows of them raises
            :class:`~backends.errors.ReplyTooLarge` before it reads them; ``None`` where not all of them is shown.
        is_preview: Whether its settings are not saved, so that the index keeps the synonyms that it has.
    """

    text: str
    limit: int = 20
    offset: int = 0
    filters: str = ""
    filter: Filter | None = None
    sort: tuple[SortKey, ...] = ()
    facets: tuple[str, ...] = ()
    facet_values: int = 100
    highlight: Highlight | None = None
    kinds: FieldKinds = field(default_factory=dict)
    settings: SearchSettings = field(default_factory=SearchSettings)
    fields: tuple[str, ...] = ()
    all_words: bool = False
    sections: int = 0
    distinct: str | None = None
    effects: Effects = NO_EFFECTS
    explain: bool = False
    answers: bool = False
    most_bytes: int | None = None
    is_preview: bool = False

    @property
    def typed(self) -> str:
        """The text that the person typed, also where a rule searches for something else."""
        return self.text if self.effects.typed is None else self.effects.typed

    @property
    def shows_matches(self) -> bool:
        """Tell whether hits show where the query's words are."""
        return self.highlight is not None or self.needs_sections

    @property
    def needs_sections(self) -> bool:
        """Tell whether the sections of hits are looked at."""
        return self.sections > 0 or self.answers

    @property
    def pinned(self) -> tuple[str, ...]:
        """The ids that come first, each once, at most 50; none where the query asks for an order of its own."""
        if self.sort or not (self.settings.pinned or self.effects.pinned):
            return ()
        hidden = frozenset(self.hidden)
        pinned = dict.fromkeys((*self._named(self.settings.pinned), *self.effects.pinned))
        return tuple([id for id in pinned if id not in hidden][:MAX_PINS])

    @property
    def learned(self) -> Mapping[str, float]:
        """The places that documents may move up, by id; none where somebody has decided on an order."""
        if not self.settings.learned or not self.limit or self.sort or self.pinned:
            return {}
        return self.settings.learned.get(normal_form(self.typed), {})

    @property
    def condition(self) -> Filter | None:
        """The condition of every document found beside ``filters``: ``filter``, and that it is not hidden."""
        hidden = self.hidden
        if not hidden:
            return self.filter
        shown = Not(OneOf("id", hidden))
        return shown if self.filter is None else And((self.filter, shown))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The ids that are not found, whatever is pinned, filtered or sorted; each once."""
        if not (self.settings.hidden or self.effects.hidden):
            return ()
        return tuple(dict.fromkeys((*self._named(self.settings.hidden), *self.effects.hidden)))

    def _named(self, ids: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        return ids.get(normal_form(self.typed), ()) if ids else ()


VARIANT_KINDS: Final = ("exact", "stem", "prefix", "typo", "synonym", "joined", "split")
"""Ways in which a word of a query may be found in a document."""


@dataclass(frozen=True)
class Hit:
    """A found document.

    Attributes:
        id: The document's identifier as sent.
        json: The document as a JSON object (UTF-8): all its fields, and ``""`` for the missing ones
            of those that every hit has. Bytes, so that an answer need not decode and encode them.
        formatted: The same fields with matches marked, if asked for.
        sections: Those that show the query, the best first; ``None`` if none were asked for.
        explanation: Why it stands where it does, as JSON, if asked for: members that the engine has.
        find_passage: Gives the passage that shows the query best, if the query has ``answers``.
    """

    id: str
    json: bytes
    formatted: Mapping[str, Any] | None = None
    sections: Sequence[SectionHit] | None = None
    explanation: Mapping[str, Any] | None = None
    find_passage: Callable[[], Passage | None] | None = None

    @cached_property
    def document(self) -> dict[str, Any]:
        """``json``, decoded."""
        decoded: dict[str, Any] = orjson.loads(self.json)
        return decoded


TakeHit = Callable[[Hit], None]


def hand_over(hits: Iterable[Hit], take: TakeHit | None) -> tuple[Hit, ...]:
    """Give the hits to ``take``, one by one as they are made, or all to the caller if there is none."""
    if take is None:
        return tuple(hits)
    for hit in hits:
        take(hit)
    return ()


@dataclass(frozen=True, slots=True)
class FacetStats:
    """Smallest and largest value of a number or date field (dates: Unix seconds) among all matches."""

    min: float
    max: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        hits: One page of hits, best first.
        total: Number of all matches, exact as far as the engine can count. With ``distinct`` of those shown, exact up
            to 1,000, beyond that an estimate.
        facets: Field to value (as text) to number of matches, at most the query's ``facet_values`` each,
            members in order of count, then value.
        facet_stats: Smallest and largest values of facets that are numbers or dates.
        relaxation: Name of the engine's way to demand less that answered; ``""`` where it tells none.
        matched: Which words of the query were found; the same on every page, and in every order.
        corrected_query: The query's text with the words that replaced others, spelt as documents have them, in the
            case that was typed; ``None`` unless ``matched`` is ``CORRECTED``.
        mixed: Whether the service ordered the hits by meaning, too.
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
    """A document found by its title: title and address as sent."""

    title: str
    url: str


def distinct_titles(found: Iterable[TitleMatch], limit: int) -> tuple[TitleMatch, ...]:
    """The first ``limit`` of some matches, those with a title that came before left out."""
    kept: dict[str, TitleMatch] = {}
    for match in found:
        kept.setdefault(match.title, match)
        if len(kept) == limit:
            break
    return tuple(kept.values())


@dataclass(frozen=True, slots=True)
class Credential:
    """A key of the engine's own, good for searching one index.

    Attributes:
        token: What a client sends to the engine; a secret.
        reference: What :meth:`SearchBackend.revoke_credential` needs to end it; not a secret.
    """

    token: str
    reference: str


class SearchBackend(ABC):
    """One search engine. Built from a URL by :func:`backends.registry.create_backend`."""

    name: str
    """The engine: ``memory``, ``tantivy``, ``typesense`` or ``meilisearch``."""

    identity: str
    """What the service knows the engine by: its kind, and the ``name`` that its URL may give it.

    It says nothing of the place: an engine that moves to another folder or host keeps it.
    """

    persistent: bool = True
    """Tell whether indexes outlive the process and are seen by others."""

    issues_credentials: bool = False
    """Tell whether clients can be given keys to speak to the engine directly."""

    rank_limits: str = ""
    """What the engine cannot do of ranks and recency, as a sentence for people; ``""`` for nothing."""

    keeps_synonyms: bool = False
    """Whether synonyms are the index's: see :meth:`send_synonyms`. The other engines take them from each query."""

    @abstractmethod
    def create_index(self, index: str) -> None:
        """Make an empty index; does nothing if it is there."""

    @abstractmethod
    def delete_index(self, index: str) -> None:
        """Remove an index and its documents; does nothing if it is not there."""

    @abstractmethod
    def list_indexes(self) -> list[str]:
        """Names of all indexes, in no order."""

    def outdated_indexes(self) -> list[str]:
        """Names of indexes that the service should build anew, in no order.

        An earlier release made them, or they cannot be read any more. The former are searched and written to until
        then; they only lack what came with this release.
        """
        return []

    @abstractmethod
    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        """Add documents, replacing whole documents with the same id.

        When it returns, all are durable and found by the next search from any process (visible on
        every node that answers searches). When it raises, any part may have been applied; repeating
        the call is harmless. Ids within one call are distinct. ``kinds`` covers every further field of
        these documents, and of those already there. Calls for one index never overlap (the service
        holds a lock), calls for different indexes do.

        Raises:
            IndexNotFound: There is no such index.
            BackendUnavailable: It was not, or perhaps not, done.
        """

    @abstractmethod
    def delete(self, index: str, ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are passed over. Visibility and overlap as for :meth:`upsert`.

        Raises:
            IndexNotFound: There is no such index.
        """

    @abstractmethod
    def search(self, index: str, query: SearchQuery, take: TakeHit | None = None) -> SearchResult:
        """Run one search.

        Args:
            take: Is given each hit as soon as it is made, in their order, so that nobody need hold them all;
                :attr:`SearchResult.hits` is then empty. All else is done by then. What ``take`` raises ends the search.

        Raises:
            BackendRejected: ``filters``, ``sort``, ``facets`` or ``distinct`` cannot be run.
            ReplyTooLarge: The hits are larger than the query's ``most_bytes``, or than anybody reads.
            IndexNotFound: There is no such index.
        """

    def send_synonyms(self, index: str, groups: tuple[tuple[str, ...], ...]) -> None:  # noqa: B027 - see keeps_synonyms
        """Give the index the synonyms of :attr:`SearchSettings.synonyms`, on engines that keep them there.

        A server may apply them after this returns; until then, searches use the synonyms that the index has. A search
        that is no preview and whose synonyms differ from those last sent sends them, too, but does not wait for them,
        nor fail because of them.

        Raises:
            IndexNotFound: There is no such index.
            BackendUnavailable: They were not, or perhaps not, sent.
        """

    @abstractmethod
    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        """Documents whose title has every word of ``text``, the last one as the beginning of a word; best first.

        It is for suggestions, many times as cheap as a search: nothing is counted or marked, and no setting of the site
        is used. Case and accents do not count, typing errors are not forgiven, and signs only separate words.

        Args:
            text: At most 512 bytes; without a letter or digit it finds nothing.
            limit: 1 to 20; of documents with the same title one is given, so that there may be fewer.
            within: A search whose ``filters`` and ``filter`` the documents fulfil, with the index's ``kinds``;
                nothing else of it matters. ``None``: any documents.

        Raises:
            IndexNotFound: There is no such index.
            BackendRejected: The filters cannot be run.
        """

    @abstractmethod
    def count(self, index: str) -> int:
        """Number of documents in the index.

        Raises:
            IndexNotFound: There is no such index.
        """

    @abstractmethod
    def document_ids(self, index: str) -> Iterator[str]:
        """Every document's id, each once, in no order.

        Raises:
            IndexNotFound: There is no such index.
        """

    @abstractmethod
    def check(self) -> None:
        """Return if the engine is there and accepts our credentials.

        Raises:
            BackendUnavailable: It is not, or not yet.
        """

    @abstractmethod
    def version(self) -> str:
        """The version of the engine, such as ``29.0``.

        Raises:
            BackendUnavailable: The engine cannot tell.
        """

    @abstractmethod
    def index_bytes(self) -> int | None:
        """Bytes that the indexes take: on disk, or in memory where an engine keeps them there.

        A server counts everything it keeps, other services' indexes included. ``None``: the engine cannot tell.

        Raises:
            BackendUnavailable: The engine does not answer.
        """

    def issue_credential(self, index: str, holder: str, expires_at: datetime) -> Credential:
        """Make a key that can search ``index`` and nothing else until ``expires_at``.

        Args:
            holder: Stable name of whom it is for; keys of one holder are ended together.

        Raises:
            NotImplementedError: The engine has none (:attr:`issues_credentials` is false).
        """
        raise NotImplementedError(f"{self.name} issues no credentials")

    def revoke_credential(self, reference: str) -> None:
        """End every key with this reference, at once; does nothing if it is ended already."""
        raise NotImplementedError(f"{self.name} issues no credentials")

    def run_maintenance(self) -> None:  # noqa: B027 - most engines do that themselves
        """Begin, in the background, what makes later searches faster. The service calls it every few seconds."""

    @abstractmethod
    def close(self) -> None:
        """Give back files, sockets and threads. The backend can be used again afterwards."""
