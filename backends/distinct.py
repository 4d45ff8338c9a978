"""Searches that show one hit of each value of a field: of which field, and which hit."""

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
"""The value of :class:`~backends.base.Preferred` that stands for the highest version."""

EXACTLY_COUNTED: Final = 1000
"""Shown hits up to which every engine counts them exactly."""

T = TypeVar("T")
_PREFERRED: Final[VersionKey] = (1, (), ())


def distinct_field(query: SearchQuery) -> str:
    """The field of whose values one hit each is shown; ``""`` for none.

    A field of the settings that no document has yet, or that cannot be used, is none.

    Raises:
        BackendRejected: The query itself names a field that is unknown, or holds no single values.
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
    """The preference among the hits of one value, if documents can have it: in a field that can be a facet."""
    preferred = query.settings.preferred
    if preferred is None or not is_known(preferred.field, query.kinds) or preferred.field in UNCOUNTED_FIELDS:
        return None
    return preferred


def distinct_value(value: Any) -> str | None:
    """The text that stands for a document's value of the field; ``None`` where it has no single one."""
    return None if value is None or isinstance(value, list | tuple) else value_text(value)


def choose(preferred: Preferred, hits: Iterable[tuple[str, Sequence[str], T]]) -> Mapping[str, T]:
    """For each value, the hit that comes first by preference; of equals the first.

    Args:
        hits: Value of the distinct field, texts in the preferred field, and what stands for the hit; best first.

    Returns:
        Value to hit, only of those that are preferred at all.
    """
    chosen: dict[str, tuple[VersionKey, T]] = {}
    for value, texts, hit in hits:
        rank = _rank(preferred, texts)
        if rank is not None and (value not in chosen or rank > chosen[value][0]):
            chosen[value] = (rank, hit)
    return {value: hit for value, (_, hit) in chosen.items()}


def texts_of(value: Any) -> list[str]:
    """The texts in a document's field, one of each member of a list."""
    if value is None:
        return []
    return [value_text(each) for each in (value if isinstance(value, list | tuple) else (value,))]


def _rank(preferred: Preferred, texts: Sequence[str]) -> VersionKey | None:
    if preferred.value == LATEST:
        return max(map(version_key, texts), default=None)
    wanted = fold_value(preferred.value)
    return _PREFERRED if any(fold_value(text) == wanted for text in texts) else None


def _check(name: str, query: SearchQuery) -> None:
    if name in STANDARD_FIELDS:
        usable = name in COUNTED_FIELDS and name != "id"
    elif is_known(name, query.kinds):
        usable = bool(query.kinds[name] & SCALAR_KINDS)
    else:
        raise BackendRejected("distinct", f"No document has a field {name!r}.")
    if not usable:
        raise BackendRejected("distinct", f"Results cannot be distinct by {name!r}: it holds no single shared values.")
