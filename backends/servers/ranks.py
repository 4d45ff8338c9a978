"""Ranks and recency that a site wishes for, told from the documents of hits: servers know no such factors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from backends.base import MATCH_ALL, Boost, Hit, SearchQuery, bounded_rank, rank_factor
from backends.distinct import LATEST, distinct_field, preference
from backends.field_rules import rank_field, usable_boosts, usable_recency
from backends.filters import OneOf, fields_of
from backends.matching import compile_matching
from backends.values import parse_instant
from backends.versions import highest_versions

WINDOW = 1000
"""Hits that are ordered by rank; those behind them stay where they are."""

PREFERRED_OVER = "_preferredOver"
"""Member of a hit, beside what a server gives: the id of the better hit at whose place it stands."""

_FRESH_SECONDS = 60.0
_DAY = 86400.0
MakeHit = Callable[[Mapping[str, Any]], Hit]
Values = Mapping[str, Any]
"""The fields of a document, as far as they are in :attr:`Ranks.fields`."""


class HighestVersions:
    """The highest versions that fields of indexes hold, asked for once a minute."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}

    def of(self, index: str, query: SearchQuery, ask: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
        """The values that a query's settings prefer as the highest version; none where they prefer something else.

        Args:
            ask: Gives the values of a field.
        """
        preferred = preference(query)
        if preferred is None or preferred.value != LATEST or not _is_ranked(query) or not distinct_field(query):
            return ()
        key, now = (index, preferred.field), time.monotonic()
        known = self._known.get(key)
        if known is None or now - known[0] > _FRESH_SECONDS:
            known = self._known[key] = (now, highest_versions(ask(preferred.field)))
        return known[1]

    def forget(self, index: str) -> None:
        """Ask again about an index."""
        for key in [key for key in self._known if key[0] == index]:
            del self._known[key]


class Ranks:
    """The ranks and recency of one search.

    Attributes:
        fields: The fields of documents that decide.
        are_neutral: Whether the site wishes for none, or the search has an order of its own.
    """

    def __init__(self, query: SearchQuery, highest: Sequence[str] = ()):
        """``highest`` is what :class:`HighestVersions` gives."""
        boosts = [*usable_boosts(query), *_preferred(query, highest)] if _is_ranked(query) else []
        self._boosts = [(boost.rank, _test(boost, query)) for boost in boosts if boost.rank]
        self._own = rank_field(query) if _is_ranked(query) else ""
        self._recency = usable_recency(query) if _is_ranked(query) else None
        names = [name for boost in boosts for name in (fields_of(boost.filter) if boost.filter else ("url",))]
        names += [self._own, "" if self._recency is None else self._recency.field]
        self.fields = tuple(dict.fromkeys(filter(None, names)))
        self.are_neutral = not self._boosts and not self._own and self._recency is None

    def rank(self, document: Values) -> float:
        """The ranks of a document, added."""
        own = _number_in(document.get(self._own)) if self._own else None
        return sum(rank for rank, holds in self._boosts if holds(document)) + bounded_rank(own or 0.0)

    def factor(self, document: Values) -> float:
        """Factor for the score of a document."""
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


def explaining(make: MakeHit, query: SearchQuery, ranks: Ranks, told: Sequence[str], limits: str = "") -> MakeHit:
    """A maker of hits, with an explanation if a query asks for one.

    Args:
        told: Members of what the server gives that tell why a hit stands where it does.
        limits: What the engine cannot do of ranks.
    """
    if not query.explain:
        return make

    def make_explained(found: Mapping[str, Any]) -> Hit:
        hit = make(found)
        explanation: dict[str, Any] = {
            "pinned": hit.id in query.pinned,
            "engine": {name: found[name] for name in told if name in found},
            "rank": bounded_rank(ranks.rank(hit.document)),
        }
        if PREFERRED_OVER in found:
            explanation["preferred_over"] = found[PREFERRED_OVER]
        return replace(hit, explanation=explanation | ({"limits": limits} if limits else {}))

    return make_explained


def _is_ranked(query: SearchQuery) -> bool:
    return query.text != MATCH_ALL and not query.sort and query.limit > 0


def _test(boost: Boost, query: SearchQuery) -> Callable[[Values], bool]:
    if boost.filter is not None:
        return compile_matching(boost.filter, query.kinds)
    pattern = re.compile(".*".join(map(re.escape, re.split(r"\*+", boost.path))), re.IGNORECASE | re.DOTALL)
    return lambda document: pattern.fullmatch(_place(str(document.get("url", "")))) is not None


def _place(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _preferred(query: SearchQuery, highest: Sequence[str]) -> list[Boost]:
    preferred = preference(query)
    if preferred is None or not distinct_field(query):
        return []
    values = tuple(highest) if preferred.value == LATEST else (preferred.value,)
    return [Boost(1, OneOf(preferred.field, values))] if values else []


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _number_in(value: Any) -> float | None:
    """The one number that a field holds."""
    numbers = [each for each in _members(value) if isinstance(each, int | float) and not isinstance(each, bool)]
    return float(numbers[0]) if len(numbers) == 1 else None


NO_RANKS = Ranks(SearchQuery(""))
