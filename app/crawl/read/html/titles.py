"""Titles without what all pages of a site say in theirs, such as `` | Acme`` or `` — Python 3.13 documentation``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

SEPARATOR = re.compile(r"\s+[-–—−|·•:»«/›‹~]+\s+|[|»«›‹]|(?<=\w):\s+|\s+(?=\()")
MIN_TITLES = 3
MIN_SHARE = 0.5
"""Share of a site's titles that must have a suffix for it to be the site's own."""


def shared_suffix(titles: Iterable[str]) -> str:
    """The end that most titles of a site share, with the separator before it; empty if there is none.

    Of several ends the most frequent is meant, and the longest of those that are as frequent. Fewer than three
    different titles share nothing.
    """
    different = set(titles)
    counts = Counter(suffix for title in different for suffix in set(_suffixes(title)))
    enough = max(MIN_TITLES, MIN_SHARE * len(different))
    frequent = [(count, len(suffix), suffix) for suffix, count in counts.items() if count >= enough]
    return max(frequent)[2] if frequent else ""


def own_title(title: str, suffix: str) -> str:
    """A page's title without the suffix of its site. A title that is nothing else stays."""
    own = title.removesuffix(suffix).strip()
    return own or title


def _suffixes(title: str) -> Iterator[str]:
    return (title[match.start() :] for match in SEPARATOR.finditer(title) if match.start() > 0)
