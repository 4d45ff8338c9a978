"""The values that pass between the steps of a crawl: fetch, read, decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

from backends.sections import Section

PRODUCT_TOKEN = "SiteSearchBot"
"""Our name in robots.txt."""
RANK = "rank"
"""The further field with a page's own rank, a number."""
MAX_PAGE_BYTES = 10 * 1_048_576
"""Bytes of an unpacked body that are read; longer ones are no pages."""


def user_agent(about: str) -> str:
    """The header ``User-Agent`` of the crawler.

    Args:
        about: The address of whoever runs it; empty if it is not known.
    """
    name = f"{PRODUCT_TOKEN}/{version('site-search-service')}"
    return f"{name} (+{about})" if about else name


class Reason(StrEnum):
    """Reasons why an address was not indexed. Other HTTP statuses are ``http_<status>``, see :func:`http_reason`."""

    ROBOTS = "robots"
    NOINDEX = "noindex"
    CANONICAL = "canonical"
    DUPLICATE = "duplicate"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    TIMEOUT = "timeout"
    REDIRECT_LOOP = "redirect_loop"
    PRIVATE_ADDRESS = "private_address"
    OTHER_HOST = "other_host"
    EXCLUDED = "excluded"
    TRAP = "trap"
    QUOTA = "quota"
    EMPTY = "empty"
    CERTIFICATE = "certificate"
    UNREACHABLE = "unreachable"
    SOFT_404 = "soft_404"
    CANCELLED = "cancelled"
    BAD_SOURCE = "bad_source"


def http_reason(status: int) -> str:
    """The reason of an answer with an HTTP status that is no success."""
    return f"http_{status}"


class NotIndexed(Exception):
    """An address that gives no document.

    Attributes:
        reason: A :class:`Reason` or ``http_<status>``.
        message: One sentence for the site's owner.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(f"{reason}: {message}")
        self.reason = str(reason)
        self.message = message


class TryLater(NotIndexed):
    """An address whose server asks to wait (429, 503). What still asks after some tries is not indexed.

    Attributes:
        seconds: How long its host is to be left alone; at most 600.
    """

    def __init__(self, reason: str, message: str, seconds: float):
        super().__init__(reason, message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators: what a server said of the version of a body that is known, to ask whether it changed.

    Attributes:
        etag, last_modified: The headers ``ETag`` and ``Last-Modified``; empty if there were none.
    """

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer to a request, after redirects.

    Attributes:
        url: The address that answered, normalized.
        status: 200, or 304 where a condition was sent and nothing changed.
        headers: With names in lower case, without cookies. ``content-type`` says what a page is also where its
            server did not.
        body: Unpacked; empty with 304.
        redirects: The addresses that led here, first to last, without ``url``.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...] = ()


class Fetch(Protocol):
    """Fetches an address with all checks and manners; see :meth:`app.crawl.fetch.fetching.Fetcher.fetch`."""

    def __call__(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        """Fetch an address.

        Raises:
            NotIndexed: It cannot be had.
        """


T_co = TypeVar("T_co", covariant=True)


class ReadListing(Protocol[T_co]):
    """Reads what was fetched and lists pages: a sitemap, a feed, or an answer of an API."""

    def __call__(self, fetched: Fetched, /) -> T_co:
        """Read it.

        Raises:
            NotIndexed: It is none (``bad_source``), or takes too much time (``timeout``) or memory (``too_large``).
        """


@dataclass(frozen=True, slots=True)
class Page:
    """A page as read, before it becomes a document.

    Attributes:
        id: The id that the page names itself with ``site-search:id``, if any.
        canonical: The canonical address that the page names, absolute and normalized, if any.
        links: The addresses that may be followed, absolute and normalized, each once, in the page's order.
        noindex: Whether the page asks not to be indexed.
        left_out: Why the page gives no document, if it gives none. Its links count all the same.
        title: As the page has it; the suffix that a site's pages share is taken off later.
        content: The main text, blocks apart by blank lines.
        excerpt, author, date, lang: As the page says, or ``None``.
        fields: Further fields: what the page names itself, what rules give it, and what it brings without being asked.
        kind: What kind of file it was: ``pdf``, ``docx``, ``epub``, …; ``None`` for a web page and for plain text.
        sections: Headings with an address of their own; the pages of a PDF, the slides of a presentation. In order.
    """

    title: str
    content: str
    id: str | None = None
    canonical: str | None = None
    links: tuple[str, ...] = ()
    noindex: bool = False
    left_out: Reason | None = None
    excerpt: str | None = None
    author: str | None = None
    date: str | None = None
    lang: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Selectors:
    """CSS selectors of a source: where a page's content and title are, and what to leave out of it."""

    content: str | None = None
    title: str | None = None
    remove: str | None = None


@dataclass(frozen=True, slots=True)
class FieldRules:
    """The place where the further fields of a source's pages are.

    Attributes:
        rules: As :class:`app.models.Source` has them in ``fields``.
        start: The source's own address.
    """

    rules: tuple[Mapping[str, Any], ...] = ()
    start: str | None = None
