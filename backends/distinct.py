"""Distinct searches, which show one hit per value of a field: choosing the field and the hits, comparing versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from backends.errors import BackendRejected
from backends.field_rules import SCALAR_KINDS, is_known
from backends.query import Preferred, SearchQuery
from backends.standard_fields import COUNTED_FIELDS, STANDARD_FIELDS, UNCOUNTED_FIELDS
from backends.values import fold_value, value_text

VersionKey = tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]

_NUMBERED = re.compile(r"v?(\d{1,18}(?:\.\d{1,18})*)(.*)", re.ASCII | re.DOTALL)
_PART = re.compile(r"\d{1,18}|[a-z]+", re.ASCII)
_MAX_VERSION_CHARS = 200
_PRERELEASES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
"""Sort position of each word that marks a pre-release."""
_END = (0, -1)


def version_key(text: str) -> VersionKey:
    """Return the sort key of a version; a higher version has a greater key.

    Numbers between dots are compared as numbers: 1.10 follows 1.9, and 1.0 equals 1. A leading ``v`` is ignored.
    Pre-releases (``dev``, ``a``, ``b``, ``rc``, ``pre``) are below their release, other suffixes above it. Text that
    does not begin with a number, such as ``stable``, is below every number, and all such texts are equal.
    """
    match = _NUMBERED.fullmatch(text.strip().lower()[:_MAX_VERSION_CHARS])
    if match is None:
        return (0, (), ())
    release = [int(number) for number in match[1].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    added = [(0, int(part)) if part.isdigit() else (_PRERELEASES.get(part, 1), 0) for part in _PART.findall(match[2])]
    return (1, tuple(release), (*added, _END))


def highest_versions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return all spellings of the highest version among the texts (``2.0`` and ``v2``); empty if there are no texts."""
    keys = {text: version_key(text) for text in texts}
    highest = max(keys.values(), default=None)
    return tuple(text for text, key in keys.items() if key == highest)


LATEST: Final = "latest"
"""The value of :class:`~backends.query.Preferred` that selects the highest version."""

EXACTLY_COUNTED: Final = 1000
"""Number of groups up to which every engine counts them exactly."""

T = TypeVar("T")
_PREFERRED: Final[VersionKey] = (1, (), ())


def distinct_field(query: SearchQuery) -> str:
    """Return the field by whose value hits are grouped; ``""`` for none.

    A field of the settings is ignored if no document has it yet, or if hits cannot be grouped by it.

    Raises:
        BackendRejected: The query itself groups by a field that is unknown or has no single values.
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
    """Return the rule that chooses each group's hit; ``None`` if there is none or its field cannot be a facet."""
    preferred = query.settings.preferred
    if preferred is None or not is_known(preferred.field, query.kinds) or preferred.field in UNCOUNTED_FIELDS:
        return None
    return preferred


def distinct_value(value: Any) -> str | None:
    """Convert a document's value of the distinct field to text; ``None`` if the field has no single value."""
    return None if value is None or isinstance(value, list | tuple) else value_text(value)


def choose_preferred(preferred: Preferred, hits: Iterable[tuple[str, Sequence[str], T]]) -> Mapping[str, T]:
    """Choose the preferred hit for each value; the first of equally preferred hits.

    Args:
        hits: For each hit, best first: its value of the distinct field, its texts in the preferred field, its handle.

    Returns:
        The chosen hit's handle by value, without the values that have no preferred hit.
    """
    chosen: dict[str, tuple[VersionKey, T]] = {}
    for value, texts, hit in hits:
        rank = _rank(preferred, texts)
        if rank is not None and (value not in chosen or rank > chosen[value][0]):
            chosen[value] = (rank, hit)
    return {value: hit for value, (_, hit) in chosen.items()}


def texts_of(value: Any) -> list[str]:
    """Return the values in a document's field as texts, one for each member of a list."""
    if value is None:
        return []
    return [value_text(item) for item in (value if isinstance(value, list | tuple) else (value,))]


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
        raise BackendRejected(
            "distinct", f"Results cannot be grouped by {name!r}: documents do not share single values of this field."
        )
