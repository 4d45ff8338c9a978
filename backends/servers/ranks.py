"""Ranks and recency, computed from the documents of hits because search servers do not support them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from backends.base import Hit
from backends.distinct import LATEST, distinct_field, highest_versions, preference
from backends.field_rules import rank_field, usable_boosts, usable_recency
from backends.filters import OneOf, fields_of
from backends.globs import compile_glob
from backends.matching import compile_matching
from backends.query import MATCH_ALL, Boost, SearchQuery, bounded_rank, rank_factor
from backends.values import fold_value, parse_instant

WINDOW = 1000
"""Number of hits that are reordered by rank; later hits stay in place."""

PREFERRED_OVER = "_preferredOver"
"""Member added to a server's hit: the id of the better hit that it replaces."""

_CACHE_SECONDS = 60.0
_DAY = 86400.0
MakeHit = Callable[[Mapping[str, Any]], Hit]
Values = Mapping[str, Any]
"""The :attr:`Ranks.fields` of a document, as far as it has them."""


class HighestVersions:
    """The highest versions in fields of indexes, updated at most once a minute."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}

    def of(self, index: str, query: SearchQuery, ask: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
        """Return the values that a query's settings prefer as the highest version; empty for any other preference.

        Args:
            ask: Returns the values of a field.
        """
        preferred = preference(query)
        if preferred is None or preferred.value != LATEST or not _is_ranked(query) or not distinct_field(query):
            return ()
        key, now = (index, preferred.field), time.monotonic()
        cached = self._versions.get(key)
        if cached is None or now - cached[0] > _CACHE_SECONDS:
            cached = self._versions[key] = (now, highest_versions(ask(preferred.field)))
        return cached[1]

    def forget(self, index: str) -> None:
        """Discard the cached versions of an index."""
        for key in [key for key in self._versions if key[0] == index]:
            del self._versions[key]


class Ranks:
    """The ranks and recency of one search.

    Attributes:
        fields: The document fields that they depend on.
        are_neutral: Whether they change nothing: the site sets neither, or the search is sorted.
    """

    def __init__(self, query: SearchQuery, highest: Sequence[str] = ()):
        """``highest`` is the result of :meth:`HighestVersions.of`."""
        boosts = [*usable_boosts(query), *_preferred(query, highest)] if _is_ranked(query) else []
        self._boosts = [
            (boost.rank, compile_matching(boost.filter, query.kinds)) for boost in boosts if boost.filter is not None
        ]
        self._paths = [(boost.rank, compile_glob(fold_value(boost.path))) for boost in boosts if boost.filter is None]
        self._rank_field = rank_field(query) if _is_ranked(query) else ""
        self._recency = usable_recency(query) if _is_ranked(query) else None
        names = [name for boost in boosts for name in (fields_of(boost.filter) if boost.filter else ("url",))]
        names += [self._rank_field, "" if self._recency is None else self._recency.field]
        self.fields = tuple(dict.fromkeys(filter(None, names)))
        self.are_neutral = not boosts and not self._rank_field and self._recency is None

    def rank(self, document: Values) -> float:
        """Return the total rank of a document, which may exceed :data:`backends.query.MAX_RANK`."""
        document_rank = _number_in(document.get(self._rank_field)) if self._rank_field else None
        ranks = sum(rank for rank, holds in self._boosts if holds(document))
        if self._paths:
            path = _path_of(document)
            ranks += sum(rank for rank, glob in self._paths if glob.matches(path))
        return ranks + bounded_rank(document_rank or 0.0)

    def factor(self, document: Values) -> float:
        """Return the factor for the score of a document, from its rank and its age."""
        return rank_factor(self.rank(document)) * self._by_age(document)

    def _by_age(self, document: Values) -> float:
        if self._recency is None:
            return 1.0
        value = document.get(self._recency.field)
        seconds = _number_in(value)
        if seconds is None:
            instants = [parse_instant(text) for text in _members(value) if isinstance(text, str)]
            seconds = None if not instants or instants[0] is None else instants[0] / 1_000_000
        return 1.0 if seconds is None else self._recency.factor((time.time() - seconds) / _DAY)


def with_explanations(
    make: MakeHit, query: SearchQuery, ranks: Ranks, explained_members: Sequence[str], limits: str = ""
) -> MakeHit:
    """Return a hit builder that adds explanations to the hits of ``make``, or ``make`` if the query requests none.

    Args:
        explained_members: Members of the server's hit that explain its position.
        limits: The engine's limits regarding ranks.
    """
    if not query.explain:
        return make

    def make_explained(engine_hit: Mapping[str, Any]) -> Hit:
        hit = make(engine_hit)
        explanation: dict[str, Any] = {
            "pinned": hit.id in query.pinned,
            "engine": {name: engine_hit[name] for name in explained_members if name in engine_hit},
            "rank": bounded_rank(ranks.rank(hit.document)),
        }
        if PREFERRED_OVER in engine_hit:
            explanation["preferred_over"] = engine_hit[PREFERRED_OVER]
        return replace(hit, explanation=explanation | ({"limits": limits} if limits else {}))

    return make_explained


def _is_ranked(query: SearchQuery) -> bool:
    return query.text != MATCH_ALL and not query.sort and query.limit > 0


def _path_of(document: Values) -> str:
    """``{"url": "https://example.com/Docs?a=1"}`` -> ``"/docs?a=1"``."""
    parts = urlsplit(str(document.get("url", "")))
    return fold_value((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def _preferred(query: SearchQuery, highest: Sequence[str]) -> list[Boost]:
    preferred = preference(query)
    if preferred is None or not distinct_field(query):
        return []
    values = tuple(highest) if preferred.value == LATEST else (preferred.value,)
    return [Boost(1, OneOf(preferred.field, values))] if values else []


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _number_in(value: Any) -> float | None:
    """``5`` or ``[5]`` -> 5.0; ``[5, 6]`` or ``"5"`` -> ``None``."""
    numbers = [number for number in _members(value) if isinstance(number, int | float) and not isinstance(number, bool)]
    return float(numbers[0]) if len(numbers) == 1 else None


NO_RANKS = Ranks(SearchQuery(""))
