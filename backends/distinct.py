"""Distinct searches, which show one hit per value of a field: which field, and which hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from backends.base import Preferred, SearchQuery
from backends.errors import BackendRejected
from backends.field_rules import SCALAR_KINDS, is_known
from backends.standard_fields import COUNTED_FIELDS, STANDARD_FIELDS, UNCOUNTED_FIELDS
from backends.values import fold_value, value_text
from backends.versions import VersionKey, version_key

LATEST: Final = "latest"
"""The value of :class:`~backends.base.Preferred` that selects the highest version."""

EXACTLY_COUNTED: Final = 1000
"""Number of groups up to which every engine counts them exactly."""

T = TypeVar("T")
_PREFERRED: Final[VersionKey] = (1, (), ())


def distinct_field(query: SearchQuery) -> str:
    """The field by whose value hits are grouped; ``""`` for none.

    A field of the settings is ignored if no document has it yet, or if hits cannot be grouped by it.

    Raises:
        BackendRejected: The query itself names a field that is unknown or has no single values.
    """
    name = query.settings.distinct if query.distinct is None else query.distinct
    try:
        if name:
            _check(name, query)
    except BackendRejected:
        if query.distinct is not None:
            raise
        return ""
    return name


def preference(query: SearchQuery) -> Preferred | None:
    """The preferred hit of each group, if hits can have one: the field must be usable as a facet."""
    preferred = query.settings.preferred
    if preferred is None or not is_known(preferred.field, query.kinds) or preferred.field in UNCOUNTED_FIELDS:
        return None
    return preferred


def distinct_value(value: Any) -> str | None:
    """A document's value of the distinct field as text; ``None`` if it has no single value."""
    return None if value is None or isinstance(value, list | tuple) else value_text(value)


def choose(preferred: Preferred, hits: Iterable[tuple[str, Sequence[str], T]]) -> Mapping[str, T]:
    """The preferred hit for each value; the first one of equally preferred hits.

    Args:
        hits: Value of the distinct field, texts in the preferred field, and the hit's handle; best first.

    Returns:
        Value to hit, only for values that have a preferred hit.
    """
    chosen: dict[str, tuple[VersionKey, T]] = {}
    for value, texts, hit in hits:
        rank = _rank(preferred, texts)
        if rank is not None and (value not in chosen or rank > chosen[value][0]):
            chosen[value] = (rank, hit)
    return {value: hit for value, (_, hit) in chosen.items()}


def texts_of(value: Any) -> list[str]:
    """The texts in a document's field, one for each member of a list."""
    if value is None:
        return []
    return [value_text(each) for each in (value if isinstance(value, list | tuple) else (value,))]


def _rank(preferred: Preferred, texts: Sequence[str]) -> VersionKey | None:
    if preferred.value == LATEST:
        return max(map(version_key, texts), default=None)
    preferred_text = fold_value(preferred.value)
    return _PREFERRED if any(fold_value(text) == preferred_text for text in texts) else None


def _check(name: str, query: SearchQuery) -> None:
    if name in STANDARD_FIELDS:
        usable = name in COUNTED_FIELDS and name != "id"
    elif is_known(name, query.kinds):
        usable = bool(query.kinds[name] & SCALAR_KINDS)
    else:
        raise BackendRejected("distinct", f"No document has a field {name!r}.")
    if not usable:
        raise BackendRejected("distinct", f"Results cannot be distinct by {name!r}: it holds no single shared values.")
