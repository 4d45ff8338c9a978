"""Values that are passed between the steps of a crawl: fetching, reading, and deciding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

from backends.sections import Section

_VERSION = version("site-search-service")
PRODUCT_TOKEN = "SiteSearchBot"
"""The crawler's name in robots.txt."""
RANK = "rank"
"""Name of the custom field that contains a page's rank, a number."""
MAX_PAGE_BYTES = 10 * 1_048_576
"""Maximum bytes of an unpacked body. Pages with longer bodies are skipped."""


def user_agent(about: str) -> str:
    """Return the crawler's ``User-Agent`` header.

    Args:
        about: URL of the operator; empty if it is not configured.
    """
    name = f"{PRODUCT_TOKEN}/{_VERSION}"
    return f"{name} (+{about})" if about else name


class Reason(StrEnum):
    """Reasons why a URL was not indexed. HTTP errors are ``http_<status>`` instead, see :func:`http_reason`."""

    ROBOTS = "robots"
    NOINDEX = "noindex"
    CANONICAL = "canonical"
    WRONG_CANONICAL = "wrong_canonical"
    """A remark: the page is indexed, although it declares another canonical URL."""
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
    ENDLESS = "endless"
    """A remark that names the beginning of a branch that the run has ended."""
    NO_NEW_TEXT = "no_new_text"
    MAX_REQUESTS = "max_requests"
    EMPTY = "empty"
    CERTIFICATE = "certificate"
    UNREACHABLE = "unreachable"
    BAD_ENCODING = "bad_encoding"
    SOFT_404 = "soft_404"
    SOFT_ERROR = "soft_error"
    CANCELED = "cancelled"
    BAD_SOURCE = "bad_source"
    NOT_RENDERED = "not_rendered"
    BROWSER_FAILED = "browser_failed"
    NEEDS_BROWSER = "needs_browser"
    """Only in previews, which show pages as sent: runs render the page in a browser."""
    INTERNAL_ERROR = "internal_error"


def http_reason(status: int) -> str:
    """Return the reason for a response with an HTTP error status."""
    return f"http_{status}"


class NotIndexed(Exception):
    """A URL that does not become a document.

    Attributes:
        reason: A :class:`Reason` or ``http_<status>``.
        message: One sentence for the site's owner.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(f"{reason}: {message}")
        self.reason = str(reason)
        self.message = message


class TryLater(NotIndexed):
    """A URL whose server asks the crawler to wait (429, 503). After several such responses, the URL is skipped.

    Attributes:
        seconds: Seconds to wait before the next request to the host; at most 600.
    """

    def __init__(self, reason: str, message: str, seconds: float):
        super().__init__(reason, message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators of an earlier response, sent in a conditional request to ask whether the body has changed.

    Attributes:
        etag, last_modified: The headers ``ETag`` and ``Last-Modified``; empty if missing.
    """

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response, after redirects.

    Attributes:
        url: The URL of the response, normalized.
        status: 200, or 304 if a conditional request found no change.
        headers: Response headers with lowercase names, without cookies. The ``content-type`` of
            a page is the detected one if its server did not send any.
        body: The unpacked body; empty for status 304.
        redirects: The URLs that redirected here, in order, without ``url``.
        rendered: Whether a browser rendered the body.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...] = ()
    rendered: bool = False


class Fetch(Protocol):
    """Fetches a URL politely and with all checks; see :meth:`app.crawl.fetch.fetching.Fetcher.fetch`."""

    def __call__(
        self, url: str, *, any_type: bool = False, max_bytes: int = MAX_PAGE_BYTES, truncate: bool = False
    ) -> Fetched:
        """Fetch a URL.

        Raises:
            NotIndexed: The URL cannot be fetched.
        """


T_co = TypeVar("T_co", covariant=True)


class ReadListing(Protocol[T_co]):
    """Reads a fetched list of pages: a sitemap, a feed, or a response of an API."""

    def __call__(self, fetched: Fetched, /) -> T_co:
        """Read the list.

        Raises:
            NotIndexed: The file is not such a list (``bad_source``), or takes too much time (``timeout``) or memory
                (``too_large``).
        """


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was read, before it becomes a document.

    Attributes:
        id: The ID that the page declares with ``site-search:id``, if any.
        canonical: The canonical URL that the page declares, normalized, if any.
        links: The distinct URLs that may be followed, normalized, in the page's order.
        noindex: Whether the page asks not to be indexed.
        expires: Whether the page asks not to be indexed from a later time on, so that it must be read again.
        skip_reason: The reason why the page does not become a document. Its links are followed anyway.
        title: The title, including the prefix and suffix that the site's titles share, which are removed later.
        headings: Alternative titles in case other pages have the same title, best first.
        content: The main text, with blank lines between blocks.
        excerpt, author, date, lang: From the page's metadata, or ``None``.
        fields: Custom fields: declared by the page, set by rules, and detected.
        kind: The kind of file: ``pdf``, ``docx``, ``epub``, …; ``None`` for a web page and for plain text.
        has_scripts: Whether it is a web page with scripts.
        sections: Headings with a URL of their own, pages of a PDF, or slides of a presentation, in order.
    """

    title: str
    content: str
    id: str | None = None
    canonical: str | None = None
    links: tuple[str, ...] = ()
    noindex: bool = False
    expires: bool = False
    skip_reason: Reason | None = None
    excerpt: str | None = None
    author: str | None = None
    date: str | None = None
    lang: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    has_scripts: bool = False
    sections: tuple[Section, ...] = ()
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selectors:
    """CSS selectors of a source, for a page's content and title and for elements to remove."""

    content: str | None = None
    title: str | None = None
    remove: str | None = None


@dataclass(frozen=True, slots=True)
class FieldRules:
    """The rules for custom fields of a source's pages.

    Attributes:
        rules: The ``fields`` of :class:`app.models.Source`.
        start: The source's URL.
    """

    rules: tuple[Mapping[str, Any], ...] = ()
    start: str | None = None
