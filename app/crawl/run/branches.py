"""Detection of branches that never end: their pages link to more and more pages, but bring no new text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from app.crawl.fetch.addresses import parse_url
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, QueuedPage, is_temporary_reason

MAX_BARREN_REQUESTS = 200
"""Number of consecutive requests in a branch without new text, and without new links out of it, that end the branch."""

MIN_DEPTH = 2
"""Minimum number of links from the start page to pages that may be skipped. Pages in sitemaps have a depth of one."""

_MAX_LEVELS = 10
_MAX_COUNTED = 20_000


class Branches:
    """The branches of one run: folders (``/calendar/``), and the pages that differ only in parameters (``/list?``).

    Args:
        ended: URLs of the branches that an earlier process of the run has ended.
    """

    def __init__(self, ended: Iterable[str] = ()):
        self._ended = set(ended)
        self._barren: Counter[str] = Counter()

    def skips(self, queued: QueuedPage) -> bool:
        """Whether a page is in a branch that has ended."""
        return bool(self._ended) and queued.depth >= MIN_DEPTH and self._has_ended(queued.url)

    def add(self, queued: QueuedPage, outcome: Outcome, *, has_text: bool) -> str | None:
        """Count a requested page.

        Args:
            has_text: Whether the page, or the page that it redirects to, is a document with text of its own.

        Returns:
            The URL of a branch that ends with this page, or ``None``.
        """
        branches = list(_branches_of(queued.url))
        if has_text:
            for branch in branches:
                self._barren.pop(branch, None)
        elif queued.depth >= MIN_DEPTH and not (outcome.reason and is_temporary_reason(outcome.reason)):
            links = self._new_links(outcome.discovered, queued)
            for branch in branches:
                if any(not link.startswith(branch) for link in links):
                    self._barren.pop(branch, None)
                elif self._count(branch) >= MAX_BARREN_REQUESTS:
                    self._ended.add(branch)
                    return branch
        return None

    def _new_links(self, discovered: Sequence[DiscoveredUrl], queued: QueuedPage) -> list[str]:
        # The target of a redirect has the depth of the page.
        return [found.url for found in discovered if found.depth > queued.depth and not self._has_ended(found.url)]

    def _has_ended(self, url: str) -> bool:
        return not self._ended.isdisjoint(_branches_of(url))

    def _count(self, branch: str) -> int:
        if branch not in self._barren and len(self._barren) >= _MAX_COUNTED:
            self._barren.clear()
        self._barren[branch] += 1
        return self._barren[branch]


def _branches_of(url: str) -> Iterator[str]:
    """``"https://a.b/c/d/e?f" -> "https://a.b/c/", "https://a.b/c/d/", "https://a.b/c/d/e?"``"""
    parsed = parse_url(url)
    folders = parsed.pathname.split("/")[1:-1][:_MAX_LEVELS]
    branch = f"{parsed.origin}/"
    for folder in folders:
        branch += f"{folder}/"
        yield branch
    if parsed.search:
        yield f"{parsed.origin}{parsed.pathname}?"
