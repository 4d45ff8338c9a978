"""The order of versions, as people number them."""

from __future__ import annotations

import re
from collections.abc import Iterable

VersionKey = tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]

_NUMBERED = re.compile(r"v?(\d{1,18}(?:\.\d{1,18})*)(.*)", re.ASCII | re.DOTALL)
_PART = re.compile(r"\d{1,18}|[a-z]+", re.ASCII)
_LONGEST = 200
_BEFORE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
"""Words that mark what comes before a release, in their order."""
_END = (0, -1)


def version_key(text: str) -> VersionKey:
    """Key that orders versions: the higher version has the greater one.

    Numbers between dots are compared as numbers, 1.10 after 1.9 and 1.0 as 1. A leading ``v`` does not count.
    Pre-releases (``dev``, ``a``, ``b``, ``rc``, ``pre``) are below their release, other additions above it. What
    begins with no number, such as ``stable``, is below every number; such words are equal.
    """
    match = _NUMBERED.fullmatch(text.strip().lower()[:_LONGEST])
    if match is None:
        return (0, (), ())
    release = [int(number) for number in match[1].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    added = [(0, int(part)) if part.isdigit() else (_BEFORE.get(part, 1), 0) for part in _PART.findall(match[2])]
    return (1, tuple(release), (*added, _END))


def highest_versions(texts: Iterable[str]) -> tuple[str, ...]:
    """Those of some versions than which none is higher: one, if it is written in one way; none of none."""
    keys = {text: version_key(text) for text in texts}
    highest = max(keys.values(), default=None)
    return tuple(text for text, key in keys.items() if key == highest)
