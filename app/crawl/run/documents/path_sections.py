"""The ``section`` of pages that name none: the first segment of their paths, where enough pages share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from app.crawl.read.bounds import cut_line

MIN_PAGES = 3
"""Pages of a source that share a segment for it to be a section."""
MAX_SEGMENTS = 100_000
"""Different segments that are counted; a source with more has pages whose paths say nothing."""
MAX_CHARACTERS = 255
"""Characters of a segment; longer ones are no names."""


class PathSections:
    """The first segments of a source's pages, with the number of pages in each.

    Args:
        urls: The pages that are documents.
    """

    def __init__(self, urls: Iterable[str] = ()):
        self._pages: Counter[str] = Counter()
        for url in urls:
            self.add(url)

    def add(self, url: str) -> None:
        """Count a page."""
        segment = _segment(url)
        if segment in self._pages or len(self._pages) < MAX_SEGMENTS:
            self._pages[segment] += 1

    def section(self, url: str) -> str:
        """The section that a page has by its address; empty if too few share it."""
        segment = _segment(url)
        return segment if self._pages[segment] >= MIN_PAGES else ""


def _segment(url: str) -> str:
    segment = cut_line(unquote(urlsplit(url).path.lstrip("/").partition("/")[0]))
    return segment if len(segment) <= MAX_CHARACTERS else ""
