"""Reading pages and listings in a separate process, because a hostile file may hang, crash, or exhaust it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from app.bounded_process import MAX_CPU_SECONDS, MAX_SECONDS, Bound, BoundedProcess, BoundExceeded
from app.crawl.fetch.feeds import read_feed
from app.crawl.fetch.sitemaps import Sitemap, read_sitemap
from app.crawl.fetch.values import Fetched, FieldRules, NotIndexed, Page, Reason, Selectors
from app.crawl.fetch.wordpress import Post, read_posts
from app.crawl.read.pages import read_page

T = TypeVar("T")

logger = logging.getLogger(__name__)


class PageReader:
    """Reads one file at a time in a separate process. A context manager; close it after use.

    Each method also raises :class:`NotIndexed` for a file that takes too much time (``timeout``) or memory
    (``too_large``).

    Args:
        cpu_seconds: Limit of CPU seconds for one file.
        seconds: Limit of elapsed seconds for one file.
    """

    def __init__(self, cpu_seconds: int = MAX_CPU_SECONDS, seconds: float = MAX_SECONDS):
        self._process = BoundedProcess(cpu_seconds, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def read(self, fetched: Fetched, selectors: Selectors | None = None, rules: FieldRules | None = None) -> Page:
        """Read a page as :func:`.pages.read_page` does.

        Raises:
            NotIndexed: The body is not text (``not_text``).
            ValueError: A selector is not valid CSS.
        """
        return self._read(Reason.NOT_TEXT, read_page, fetched, selectors, rules)

    def read_feed(self, fetched: Fetched) -> tuple[str, ...]:
        """Read a feed as :func:`app.crawl.fetch.feeds.read_feed` does."""
        return self._read(Reason.BAD_SOURCE, read_feed, fetched)

    def read_sitemap(self, fetched: Fetched) -> Sitemap:
        """Read a sitemap as :func:`app.crawl.fetch.sitemaps.read_sitemap` does."""
        return self._read(Reason.BAD_SOURCE, read_sitemap, fetched)

    def read_posts(self, fetched: Fetched) -> tuple[Post, ...]:
        """Read a response of WordPress as :func:`app.crawl.fetch.wordpress.read_posts` does."""
        return self._read(Reason.BAD_SOURCE, read_posts, fetched)

    def _read(self, broken: Reason, read: Callable[..., T], fetched: Fetched, *arguments: Any) -> T:
        fetched = replace(fetched, headers=dict(fetched.headers))
        try:
            result: T | _Refusal | ValueError = self._process.call(_attempt, read, fetched, *arguments)
        except BoundExceeded as error:
            logger.warning("%s %s.", fetched.url, error)
            reason = {Bound.TIME: Reason.TIMEOUT, Bound.MEMORY: Reason.TOO_LARGE}.get(error.bound, broken)
            raise NotIndexed(reason, f"The file {error}.") from error
        if isinstance(result, ValueError):
            raise result
        if isinstance(result, _Refusal):
            raise NotIndexed(*result)
        return result


class _Refusal(tuple[str, str]):
    """The reason and the message of a file that cannot be read."""


def _attempt(read: Callable[..., T], *arguments: Any) -> T | _Refusal | ValueError:
    try:
        return read(*arguments)
    except NotIndexed as refusal:
        return _Refusal((refusal.reason, refusal.message))
    except ValueError as error:
        return ValueError(str(error))
