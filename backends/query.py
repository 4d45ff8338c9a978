"""A search as an engine receives it: the query, the site's settings, and the effects of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from backends.filters import And, Filter, Not, OneOf, fields_of
from backends.standard_fields import STANDARD_FIELDS
from backends.text import normal_form

MAX_PINS: Final = 50
"""Maximum number of documents pinned to the top of one search."""


MAX_USED_BOOSTS: Final = 50
"""Maximum number of boosts applied to the hits of one search."""


MAX_USED_SYNONYMS: Final = 50
"""Maximum number of synonyms that a search tries for one word."""


MATCH_ALL = "*"
"""The query text that matches every document: newest date first, then undated documents by last change."""


class FieldKind(StrEnum):
    """Kind of value in a custom field of a document. One field may have different kinds in different documents."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    STRING_LIST = "string_list"
    NUMBER_LIST = "number_list"


FieldKinds = Mapping[str, frozenset[FieldKind]]
"""The custom (non-standard) fields of an index and the kinds of value seen in each. The mapping only grows."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """Sort order by one field. Documents without the field come last in either direction."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """Options for ``Hit.formatted``.

    Attributes:
        pre_tag, post_tag: Inserted before and after every match.
        escape: Whether the document's own text is HTML-escaped (the tags are not).
        fields: Fields in which matches are marked; ``("*",)`` for all.
        crop_fields: Field to length in words. These fields are cropped around the first good match; others are not.
        crop_marker: Inserted where text was cut off.
        only_fields: Fields that ``Hit.formatted`` contains if the document has them; ``None`` for all.
        sentences: Whether cropping keeps whole sentences or lines if they are short enough.
    """

    pre_tag: str = "<em>"
    post_tag: str = "</em>"
    escape: bool = True
    fields: tuple[str, ...] = ("*",)
    crop_fields: Mapping[str, int] = field(default_factory=lambda: {"content": 30})
    crop_marker: str = "…"
    only_fields: Set[str] | None = None
    sentences: bool = False

    def formatted_fields(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a document that ``Hit.formatted`` contains."""
        if self.only_fields is None:
            return document
        return {name: value for name, value in document.items() if name in self.only_fields}


@dataclass(frozen=True, slots=True)
class Preferred:
    """Rule that chooses the hit that represents a group of hits with the same value of :attr:`SearchQuery.distinct`.

    Attributes:
        field: The field whose value decides.
        value: The required value, ignoring case; ``latest`` selects the highest version in the group, in the
            order of :func:`backends.distinct.version_key`.
    """

    field: str
    value: str


MAX_RANK: Final = 5
"""Limit on the total rank of a document in either direction, after all its ranks are added up."""


RANK_STEP: Final = 1.25
"""Factor applied to the score for each rank."""


RECENCY_BONUS: Final = 0.5
"""Bonus for a document dated today where a site prefers newer documents, as a share of its score."""


def rank_factor(rank: float) -> float:
    """Return the factor for the score of a document with this total rank: 1 for rank 0, 1.25 for rank 1."""
    return float(RANK_STEP ** bounded_rank(rank))


def bounded_rank(rank: float) -> float:
    """Return a rank clamped to the range -:data:`MAX_RANK` to :data:`MAX_RANK`."""
    return max(-MAX_RANK, min(MAX_RANK, rank))


@dataclass(frozen=True, slots=True)
class Boost:
    """A rank given to the documents that match a filter, or to those that match a path pattern.

    Attributes:
        rank: -5 to 5.
        filter: Condition on the documents; ``None`` if ``path`` selects them.
        path: Pattern that the path and query of their URL must match, in which ``*`` matches any text; unused if there
            is a filter.
        custom_fields: Custom fields that the filter names.
    """

    rank: int
    filter: Filter | None = None
    path: str = ""
    custom_fields: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        filter_fields = fields_of(self.filter).keys() if self.filter is not None else frozenset[str]()
        object.__setattr__(self, "custom_fields", frozenset(filter_fields).difference(STANDARD_FIELDS))


@dataclass(frozen=True, slots=True)
class Recency:
    """Preference for newer documents.

    Attributes:
        field: Field with the document's date: ``date``, or a custom field with ISO 8601 dates or Unix seconds.
        half_life_days: Age at which half of the bonus remains.
    """

    field: str
    half_life_days: int

    def factor(self, age_days: float) -> float:
        """Return the factor for the score of a document of this age: 1.5 today, 1.25 after one half-life."""
        return float(1 + RECENCY_BONUS * 0.5 ** (max(0.0, age_days) / self.half_life_days))


@dataclass(frozen=True, slots=True)
class OneWaySynonyms:
    """Words or phrases that a search for another one finds as well, but not the other way around.

    Attributes:
        word: The word or phrase in the query.
        others: Words or phrases that the search also finds.
    """

    word: str
    others: tuple[str, ...]


Synonyms = tuple[tuple[str, ...] | OneWaySynonyms, ...]
"""Groups of words or phrases with the same meaning, and one-way synonyms."""


def split_synonyms(
    synonyms: Synonyms, split: Callable[[str], Sequence[str]]
) -> Iterator[tuple[Mapping[tuple[str, ...], str], Mapping[tuple[str, ...], str]]]:
    """Yield for each entry the phrases in queries to which it applies, and the phrases that are then found.

    Both map the words of a phrase, as ``split`` returns them, to the phrase as written. For a group, they are equal:
    ``("sofa", "love seat")`` -> ``{("sofa",): "sofa", ("love", "seat"): "love seat"}`` twice.
    """

    def by_words(phrases: tuple[str, ...]) -> dict[tuple[str, ...], str]:
        return {words: phrase for phrase in phrases if (words := tuple(split(phrase)))}

    for entry in synonyms:
        if isinstance(entry, OneWaySynonyms):
            yield by_words((entry.word,)), by_words(entry.others)
        else:
            group = by_words(entry)
            yield group, group


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Search settings of a site, applied at query time.

    Attributes:
        language: ISO 639-1 code of the site's documents; ``None`` to detect the language of each document.
        synonyms: Groups of words or phrases with the same meaning, and one-way synonyms.
        stop_words: Words that need not match; ``None`` for the language's list.
        pinned: Maps the normal form of a query to the IDs of its pinned documents, in order.
        hidden: Maps the normal form of a query to the IDs of documents that it must not find.
        weights: Maps ``title``, ``excerpt``, and ``content`` to their factors; 1.0 for missing fields.
        distinct: Default for :attr:`SearchQuery.distinct`; ``""`` for none. A field that no document has is ignored.
        preferred: Chooses the hit of each distinct value; ``None`` for the best. No effect without ``distinct``.
        learned: Maps the normal form of a query to IDs and positions, 0 to 3, by which clicks move documents up.
            The service applies it, on every engine.
        boosts: Boosts applied to every search.
        rank_field: Field with each document's rank, -5 to 5; ``""`` for none.
        recency: Preference for newer documents; ``None`` for the engine's default.
        answers: Whether a question gets the passage that answers it. The service selects the passage.
        semantic: Whether hits are also ranked by meaning if the query is a sentence. The service does this.
    """

    language: str | None = None
    synonyms: Synonyms = ()
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
    """Effects of a site's search rules on one search.

    Attributes:
        rules: Ids of the rules that apply, in order.
        typed: The visitor's own text if a rule searches for other text; the settings' ``pinned`` and ``hidden`` are
            looked up by it.
        pinned, hidden: IDs to pin and to exclude, in addition to those of the settings.
        boosts: Additional boosts.
        redirect: URL that a search box opens instead of showing results; ``""`` for none.
        notice: Notice shown above the results: ``text``, and optionally ``url``.
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
class WordCounts:
    """The words of a query in one or more indexes.

    Attributes:
        documents: Number of documents.
        counts: Maps each word to the number of documents that contain it.
    """

    documents: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: WordCounts) -> WordCounts:
        counts = {word: self.counts.get(word, 0) + count for word, count in other.counts.items()}
        return WordCounts(self.documents + other.documents, {**self.counts, **counts})


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One validated search.

    :mod:`backends.support` declares how each engine honors each attribute.

    Attributes:
        text: The visitor's query, at most 512 bytes; :data:`MATCH_ALL` for every document.
        limit: Number of hits requested. Pages have at most 100; the service requests up to 205 to reorder hits.
        offset: Number of hits to skip, 0 to 2147483647.
        native_filter: Filter in the engine's own syntax; ``""`` for none.
        portable_filter: Parsed filter of the portable grammar, which every engine compiles; combined with
            ``native_filter`` by AND.
        sort: At most three keys; ties are broken by relevance.
        facets: Fields whose values are counted; ``("*",)`` for every field that can be a facet.
        facet_values: Maximum number of values counted per facet, 100 to 10,000. Beyond 100 an engine may return fewer:
            at most 100 for ``id``, and for other fields at least 1,000 if they exist.
        highlight: Options for ``Hit.formatted``; ``None`` leaves it out.
        kinds: The custom fields of the index. A field that is neither standard nor listed here is unknown.
        settings: The site's search settings.
        fields: The text fields to search; ``()`` for title, excerpt, and content.
        all_words: Whether documents must contain every word (otherwise all words first, then fewer).
        sections: Maximum number of sections per hit, 0 to 5.
        distinct: Field by whose value hits are grouped, one hit per value; ``""`` for none, ``None`` for the default of
            the settings. It must be ``author``, ``date``, or a custom field with single values; for list values the
            behavior depends on the engine. The hit shown for a value is its pinned hit, else the settings' preferred
            hit, at the place of the best hit, else the best hit. Hits without a value are not grouped. ``limit`` and
            ``offset`` count groups, and an engine may stop after the groups among the best 10,000 hits. Facets count
            documents.
        effects: Effects of the site's rules, apart from their changes to ``text`` and ``portable_filter``.
        explain: Whether hits explain their position.
        answers: Whether hits can return the passage that matches the query best.
        returned_fields: Fields that hits contain if the document has them; ``None`` for all. Without any field, an
            engine may skip reading the documents, and the hits have no ID.
        scored: Whether hits have a :class:`~backends.base.Score`, by which hits of several indexes can be merged.
        word_counts: The words of the query in all indexes that are searched together, which then weigh the same in each
            of them; ``None`` for the index's own.
        max_bytes: Maximum size of the page in bytes: the JSON of its documents, and their formatted fields. Beyond it,
            an engine raises :class:`~backends.errors.ResponseTooLarge`, and does so before it reads the documents if it
            knows their sizes in advance. ``None`` for no limit.
        is_preview: Whether the settings are unsaved, so that the index must keep the synonyms it has.
    """

    text: str
    limit: int = 20
    offset: int = 0
    native_filter: str = ""
    portable_filter: Filter | None = None
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
    returned_fields: Set[str] | None = None
    scored: bool = False
    word_counts: WordCounts | None = None
    max_bytes: int | None = None
    is_preview: bool = False

    @property
    def typed(self) -> str:
        """The text that the visitor typed, even if a rule searches for other text."""
        return self.text if self.effects.typed is None else self.effects.typed

    @property
    def shows_matches(self) -> bool:
        """Whether hits show where the words of the query match."""
        return self.highlight is not None or self.needs_sections

    @property
    def needs_sections(self) -> bool:
        """Whether the engine must read the sections of hits."""
        return self.sections > 0 or self.answers

    @property
    def pinned(self) -> tuple[str, ...]:
        """Ids pinned to the top, without duplicates, at most :data:`MAX_PINS`; none if the query sorts."""
        if self.sort or not (self.settings.pinned or self.effects.pinned):
            return ()
        hidden = frozenset(self.hidden)
        pinned = dict.fromkeys((*self._ids_for_query(self.settings.pinned), *self.effects.pinned))
        return tuple([id for id in pinned if id not in hidden][:MAX_PINS])

    @property
    def learned(self) -> Mapping[str, float]:
        """Number of positions that documents may rise, by ID; empty if the query sorts or pins documents."""
        if not self.settings.learned or not self.limit or self.sort or self.pinned:
            return {}
        return self.settings.learned.get(normal_form(self.typed), {})

    @property
    def condition(self) -> Filter | None:
        """The portable condition that every hit must meet: ``portable_filter``, and not being hidden."""
        hidden = self.hidden
        if not hidden:
            return self.portable_filter
        visible = Not(OneOf("id", hidden))
        return visible if self.portable_filter is None else And((self.portable_filter, visible))

    @property
    def hidden(self) -> tuple[str, ...]:
        """Ids that the settings and rules exclude from the results, without duplicates."""
        if not (self.settings.hidden or self.effects.hidden):
            return ()
        return tuple(dict.fromkeys((*self._ids_for_query(self.settings.hidden), *self.effects.hidden)))

    def _ids_for_query(self, ids: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        return ids.get(normal_form(self.typed), ()) if ids else ()
