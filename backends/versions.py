"""The order of version numbers as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable

VersionKey = tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]

_NUMBERED = re.compile(r"v?(\d{1,18}(?:\.\d{1,18})*)(.*)", re.ASCII | re.DOTALL)
_PART = re.compile(r"\d{1,18}|[a-z]+", re.ASCII)
_MAX_VERSION_CHARS = 200
_PRERELEASES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
"""Words that mark a pre-release, in their order."""
_END = (0, -1)


def version_key(text: str) -> VersionKey:
    """Sort key for a version: a higher version has a greater key.

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
    """The texts with the highest version: several if it is written in several ways, none for no texts."""
    keys = {text: version_key(text) for text in texts}
    highest = max(keys.values(), default=None)
    return tuple(text for text, key in keys.items() if key == highest)
