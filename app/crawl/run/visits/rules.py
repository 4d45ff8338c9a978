"""Rules for the addresses that an owner wants: ``include`` and ``exclude``, globs on path and query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit


class Rules:
    """Says of an address whether it is wanted. In a glob, ``*`` stands for anything, also for several segments."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]):
        self._include = _compile(include)
        self._exclude = _compile(exclude)

    def allow(self, url: str) -> bool:
        """Tell whether an address may be read and indexed; what is both included and excluded may not."""
        parts = urlsplit(url)
        place = parts.path + (f"?{parts.query}" if parts.query else "")
        if any(_matches(glob, place) for glob in self._exclude):
            return False
        return not self._include or any(_matches(glob, place) for glob in self._include)


_Glob = tuple[str, ...]
"""What stands between the stars."""


def _compile(globs: Sequence[str]) -> list[_Glob]:
    return [tuple(re.split(r"\*+", glob)) for glob in globs]


def _matches(glob: _Glob, place: str) -> bool:
    """Tell whether the parts of a glob stand in ``place`` in order; in linear time, unlike a regular expression."""
    first, *others = glob
    if not others:
        return place == first
    *middle, last = others
    if not place.startswith(first):
        return False
    position = len(first)
    for part in middle:
        found = place.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(place) - len(last) >= position and place.endswith(last)
