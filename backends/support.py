"""Declarations of how each engine honors each attribute of a search, so that none can ignore a new one silently.

Every engine has a table with one entry per attribute of :class:`~backends.query.SearchQuery`. :func:`declare` raises
while the engine is being imported if the table and the dataclass differ. A search that uses an attribute where the
engine cannot honor it is rejected by :func:`check_support`, which every engine calls first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final, Literal

from backends.errors import BackendRejected
from backends.query import SearchQuery

Situation = Literal["always", "sort", "pins", "boosts", "rank_field", "recency", "distinct"]
"""Searches in which an attribute may not work, because engines choose or order their hits in other ways."""

_SITUATIONS: Final[Mapping[Situation, Callable[[SearchQuery], bool]]] = {
    "always": lambda query: True,
    "sort": lambda query: bool(query.sort),
    "pins": lambda query: bool(query.pinned),
    "boosts": lambda query: bool(query.settings.boosts or query.effects.boosts),
    "rank_field": lambda query: bool(query.settings.rank_field),
    "recency": lambda query: query.settings.recency is not None,
    "distinct": lambda query: bool(query.settings.distinct if query.distinct is None else query.distinct),
}

_PARAMETERS: Final[Mapping[str, str]] = {"text": "q", "native_filter": "filters", "portable_filter": "filters"}
"""Names of API parameters that differ from the attributes of :class:`~backends.query.SearchQuery`."""


@dataclass(frozen=True, slots=True)
class Support:
    """An engine's support of one attribute. Use one of the functions below to create it.

    Attributes:
        how: How the engine honors it, for developers.
        limits: Situations in which the engine cannot honor it, each with the error message for the caller, which
            ``docs/engines.md`` must contain.
    """

    how: str
    limits: Mapping[Situation, str] = field(default_factory=dict)


def everywhere(how: str) -> Support:
    """Return support in every :data:`Situation`."""
    return Support(how)


def except_with(how: str, **limits: str) -> Support:
    """Return support that excludes a :data:`Situation`: the combination is rejected with a message."""
    if not limits or not limits.keys() <= _SITUATIONS.keys():
        raise TypeError(f"limits must name one of {', '.join(_SITUATIONS)}")
    return Support(how, {situation: limits[situation] for situation in _SITUATIONS if situation in limits})


def nowhere(message: str) -> Support:
    """Return missing support: every search that uses the feature is rejected with this message."""
    return Support("rejected", {"always": message})


def not_needed(why: str) -> Support:
    """Return support of an attribute that an engine can ignore without a difference that a caller could see."""
    return Support(f"not needed: {why}")


class EngineSupport(dict[str, Support]):
    """The table of one engine: attribute to its support; created by :func:`declare`.

    Attributes:
        limited: The limits to check for each search; empty for an engine that honors everything.
    """

    def __init__(self, table: Mapping[str, Support]):
        super().__init__(table)
        attributes = {attribute.name: attribute for attribute in fields(SearchQuery)}
        if table.keys() != attributes.keys():
            different = ", ".join(sorted(table.keys() ^ attributes.keys()))
            raise TypeError(f"An engine must declare its support of each attribute of SearchQuery; see: {different}")
        self.limited = [
            (attributes[name], situation, message)
            for name, support in table.items()
            for situation, message in support.limits.items()
        ]


def declare(**table: Support) -> EngineSupport:
    """Return the table of an engine.

    Raises:
        TypeError: It lacks an attribute of :class:`~backends.query.SearchQuery`, or has one too many.
    """
    return EngineSupport(table)


def check_support(query: SearchQuery, support: EngineSupport) -> None:
    """Raise :class:`BackendRejected` if the query uses an attribute where the engine cannot honor it."""
    for attribute, situation, message in support.limited:
        if _is_used(query, attribute) and _SITUATIONS[situation](query):
            raise BackendRejected(_PARAMETERS.get(attribute.name, attribute.name), message)


def _is_used(query: SearchQuery, attribute: Field[Any]) -> bool:
    value = getattr(query, attribute.name)
    if attribute.default is not MISSING:
        return bool(value != attribute.default)
    return attribute.default_factory is MISSING or bool(value != attribute.default_factory())
