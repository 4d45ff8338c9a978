"""Related pages: the words that say what a page is about, chosen like Lucene's MoreLikeThis, by frequency and rarity.

Every engine chooses words with :func:`page_words` and :func:`weigh`, and returns the pages that have at least
:data:`MIN_SHARE` of their total weight, and score at least as large a share of what the page itself scores for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from backends.analysis.languages import detect_language, stems_of_terms, stop_words
from backends.analysis.normalization import terms_of
from backends.distinct import choose_preferred, distinct_field, distinct_value, preference, texts_of
from backends.filters import Filter, Not, OneOf, Or, Presence, all_of
from backends.query import NO_EFFECTS, SearchQuery, SearchSettings
from backends.values import fold_value

MAX_COUNTED_WORDS: Final = 40
"""Maximum number of a page's words whose rarity is looked up."""

MAX_WORDS: Final = 15
"""Maximum number of a page's words that related pages are found by."""

MIN_SHARE: Final = 0.2
"""Minimum share of a page's words, by weight, that a related page has, and of the score of the page itself."""

TITLE_BOOST: Final = 3.0
"""Factor of a word's score in a title."""

RANK_POWER: Final = 0.5
"""Power of the factor of a page's ranks: for readers of a page, they count less than for visitors who search."""

MAX_RANKED: Final = 2
"""Number of related pages that ranks order, as a multiple of the number of requested pages."""

MAX_CONTENT_CHARS: Final = 10_000
"""Maximum number of characters of a document's content whose words are compared."""

VARIANT_FIELDS: Final = ("version", "lang")
"""Custom fields that distinguish versions and translations of a page. A related page has the same values, or none."""

_MAX_EXCERPT_CHARS = 2_000
_MAX_TERMS = 150
"""Number of the most frequent terms of a page among which forms of one word are recognized."""
_TITLE_OCCURRENCES = 5
"""Number of occurrences in the text that a word in the title counts as."""
_HALF_WEIGHT = 6
"""Number of occurrences at which a word of a long text has about half of its possible weight; 1 in a short text."""
_INCIDENTAL = 0.8
"""Number of occurrences that don't count in a long text: a word that occurs once is rarely what the page is about."""
_LONG_TEXT = 300
"""Number of words from which a text is long."""
_RARITY_POWER = 1.5


PageWord = tuple[float, tuple[str, ...]]
"""A word of a page: its weight, and its forms on the page (``invoice`` and ``invoices``) as terms of the index.

The weight is how much the page uses the word, from 0 to 1; after :func:`weigh`, it also depends on the word's rarity.
"""


def page_words(document: Mapping[str, Any], settings: SearchSettings) -> list[PageWord]:
    """Return the most used words of a document, without stop words and numbers, at most :data:`MAX_COUNTED_WORDS`."""
    title, excerpt = str(document.get("title", "")), str(document.get("excerpt", ""))[:_MAX_EXCERPT_CHARS]
    content = str(document.get("content", ""))[:MAX_CONTENT_CHARS]
    language = settings.language or detect_language(f"{title} {excerpt[:200]} {content[:600]}")
    skipped = stop_words(language) if settings.stop_words is None else settings.stop_words
    counts = Counter(terms_of(f"{excerpt}\n{content}"))
    length = min(1.0, counts.total() / _LONG_TEXT)
    for term in set(terms_of(title)):
        counts[term] += _TITLE_OCCURRENCES
    # Only terms below ":" can be numbers; ``isdigit`` for each of hundreds of terms would take a while.
    terms = [
        term
        for term, _ in counts.most_common(_MAX_TERMS)
        if term[1:] and term not in skipped and (term > ":" or not term.isdigit())
    ]
    occurrences: dict[str, int] = {}
    forms: dict[str, tuple[str, ...]] = {}
    for term, stem in zip(terms, stems_of_terms(language, terms), strict=True):
        if stem in forms:
            forms[stem] += (term,)
            occurrences[stem] += counts[term]
        else:
            forms[stem], occurrences[stem] = (term,), counts[term]
    most = sorted(occurrences, key=occurrences.__getitem__, reverse=True)[:MAX_COUNTED_WORDS]
    incidental, half = _INCIDENTAL * length, 1 + (_HALF_WEIGHT - 1) * length
    return [((occurrences[stem] - incidental) / (occurrences[stem] + half), forms[stem]) for stem in most]


def weigh(words: Sequence[PageWord], rarities: Sequence[float]) -> list[PageWord]:
    """Return the weightiest words, at most :data:`MAX_WORDS`, in descending order.

    Args:
        rarities: Inverse document frequency of each word.
    """
    pairs = zip(words, rarities, strict=True)
    weighed = [(weight * rarity**_RARITY_POWER, forms) for (weight, forms), rarity in pairs]
    return sorted(weighed, reverse=True)[:MAX_WORDS]


def narrowed(query: SearchQuery, document: Mapping[str, Any]) -> SearchQuery:
    """Return a query whose condition excludes the page itself and its other versions.

    Other versions are documents with the same title or the same value of the ``distinct`` field, or with another value
    of one of :data:`VARIANT_FIELDS`. Visitors could not tell a page of the same title from the page that they read.
    """
    conditions: list[Filter] = [] if query.condition is None else [query.condition]
    conditions.append(Not(OneOf("id", (document["id"],))))
    title = str(document.get("title", "")).strip()
    if title:
        conditions.append(Not(OneOf("title", (title,))))
    name = distinct_field(query)
    group = distinct_value(document.get(name)) if name else None
    if group is not None:
        conditions.append(Not(OneOf(name, (group,))))
    for variant in VARIANT_FIELDS:
        value = distinct_value(document.get(variant)) if variant in query.kinds else None
        if value is not None:
            conditions.append(Or((OneOf(variant, (value,)), Not(Presence(variant, "exists")))))
    return replace(query, portable_filter=all_of(conditions), effects=NO_EFFECTS)


def page_with_first_value(documents: Iterable[Mapping[str, Any]], page: OneOf) -> Mapping[str, Any] | None:
    """Return the document that has the earliest of the values; ``None`` if there are no documents."""
    order = {fold_value(value): position for position, value in reversed(list(enumerate(page.values)))}
    return min(documents, key=lambda document: order[fold_value(document[page.field])], default=None)


T = TypeVar("T")


def different_pages(query: SearchQuery, hits: Iterable[tuple[T, Mapping[str, Any]]]) -> list[T]:
    """Return the first hits with different titles and different values of the ``distinct`` field.

    Args:
        hits: Each hit's handle and document, best first; read only as far as necessary.
    """
    distinct, preferred = distinct_field(query), preference(query)
    titles: set[str] = set()
    listed: list[tuple[str | None, T]] = []
    rivals: list[tuple[str, Sequence[str], T]] = []
    groups: set[str] = set()
    for hit, document in hits:
        group = distinct_value(document.get(distinct)) if distinct else None
        if group is not None and preferred is not None:
            rivals.append((group, texts_of(document.get(preferred.field)), hit))
        title = fold_value(str(document.get("title", "")))
        if len(listed) < query.limit and title not in titles and group not in groups:
            titles.add(title)
            listed.append((group, hit))
            if group is not None:
                groups.add(group)
        if len(listed) == query.limit and not rivals:
            break
    chosen = {} if preferred is None else choose_preferred(preferred, rivals)
    return [hit if group is None else chosen.get(group, hit) for group, hit in listed]
