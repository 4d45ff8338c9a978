"""Texts that a site never suggests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from backends.text import normal_form

WILDCARD = "*"
"""Stands for any text, also for none."""


class HiddenSuggestions:
    """The texts that patterns describe.

    Args:
        patterns: In normal form, each exact or with :data:`WILDCARD`.
    """

    def __init__(self, patterns: Sequence[str]):
        self._exact = frozenset(pattern for pattern in patterns if WILDCARD not in pattern)
        parts = [pattern.split(WILDCARD) for pattern in patterns if WILDCARD in pattern]
        # Nearly every text lacks the longest part of nearly every pattern, which is the quickest thing to find out.
        self._wild = [(max(each, key=len), each) for each in parts]

    def __bool__(self) -> bool:
        return bool(self._exact or self._wild)

    def __contains__(self, text: str) -> bool:
        """Whether a text must not be suggested."""
        if not self:
            return False
        text = normal_form(text)
        return text in self._exact or any(_fits(text, parts) for longest, parts in self._wild if longest in text)


@lru_cache(maxsize=256)
def hidden_suggestions(patterns: tuple[str, ...]) -> HiddenSuggestions:
    """The texts that a site's patterns describe."""
    return HiddenSuggestions(patterns)


def _fits(text: str, parts: Sequence[str]) -> bool:
    """Whether a text consists of some parts in order, with any text between them."""
    first, *middle, last = parts
    if sum(map(len, parts)) > len(text) or not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return at + len(last) <= len(text)
