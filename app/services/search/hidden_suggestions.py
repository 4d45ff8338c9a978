"""Texts that a site never suggests."""

from __future__ import annotations

import re
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
        wild = [_expression(pattern) for pattern in patterns if WILDCARD in pattern]
        self._wild = re.compile("|".join(wild), re.DOTALL) if wild else None

    def __bool__(self) -> bool:
        return bool(self._exact) or self._wild is not None

    def __contains__(self, text: str) -> bool:
        """Tell whether a text must not be suggested."""
        if not self:
            return False
        text = normal_form(text)
        return text in self._exact or (self._wild is not None and self._wild.fullmatch(text) is not None)


@lru_cache(maxsize=256)
def hidden_suggestions(patterns: tuple[str, ...]) -> HiddenSuggestions:
    """The texts that a site's patterns describe."""
    return HiddenSuggestions(patterns)


def _expression(pattern: str) -> str:
    """A pattern as a regular expression that never goes back to a part it has found, so that it takes no longer."""
    first, *middle, last = map(re.escape, pattern.split(WILDCARD))
    return first + "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"
