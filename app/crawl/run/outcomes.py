"""URLs of a run: before they are read, after a decision about them, and as earlier runs stored them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.crawl.fetch.values import Reason
from schemas.validation.documents import ValidDocument

MAX_LINK_BYTES = 262_144
"""Maximum size of a page's stored links, in bytes before compression."""

_PERMANENT_REASONS = {
    "http_404",
    "http_410",
    *(
        Reason.ROBOTS, Reason.NOINDEX, Reason.CANONICAL, Reason.DUPLICATE, Reason.TOO_LARGE, Reason.NOT_TEXT,
        Reason.OTHER_HOST, Reason.EXCLUDED, Reason.TRAP, Reason.QUOTA, Reason.EMPTY, Reason.SOFT_404,
        Reason.NO_NEW_TEXT, Reason.MAX_REQUESTS, Reason.ENDLESS,
    ),
}  # fmt: skip
"""Reasons that describe the page itself, so that its old document is removed."""


@dataclass(frozen=True, slots=True)
class QueuedPage:
    """A page that waits to be read.

    Attributes:
        url: Normalized URL, including the fragment if it is a route; see :func:`app.crawl.fetch.addresses.route_of`.
        depth: Number of links from the start page.
        deferred: The reason why the page was deferred until all others are read: ``duplicate`` if it is likely to have
            the same text as another, ``canonical`` if it declares another as canonical. If so, this page is skipped.
    """

    url: str
    depth: int
    deferred: str | None = None


@dataclass(frozen=True, slots=True)
class DiscoveredUrl:
    """A URL that a run discovered.

    Attributes:
        depth: Number of links from the start page.
        found_on: URL of the page, sitemap, or feed that contains the URL.
        modified: Unix seconds of the page's last change, according to a sitemap. Pages with this value are read before
            all others, most recently changed first.
    """

    url: str
    depth: int
    found_on: str | None = None
    modified: int | None = None


@dataclass(frozen=True, slots=True)
class PageRecord:
    """The state of a page that earlier runs stored.

    Attributes:
        document_id: ID of the page's document; ``None`` if it was not indexed.
        document_exists: Whether the site still has that document, even if the source no longer owns it.
        reason: The reason why the page was not indexed; ``wrong_canonical`` if it was, despite its canonical URL.
        path_section: The document's section as derived from the URL's path, ``""`` without a section; ``None`` if the
            page itself declares a section.
        links: URLs that the page links to. A canonical URL that is another page's comes first.
    """

    document_id: str | None
    document_exists: bool
    reason: str | None
    etag: str
    last_modified: str
    digest: bytes | None
    text_digest: bytes | None
    title: str | None
    document_title: str | None
    path_section: str | None
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A decision about a URL.

    Attributes:
        status: ``indexed``, ``unchanged``, ``skipped`` or ``failed``; ``waiting`` defers the page.
        reason: The reason why the page was not indexed, or was deferred; or a remark on an indexed page.
        document: The document to write.
        confirmed_id: ID of a document to keep unchanged.
        obsolete_id: ID of the page's former document, which is removed.
        text_digest: Digest of the text of an indexed page.
        page: Values to store, see :class:`~app.models.SourcePage`; ``None`` leaves the stored values unchanged.
        forget: Whether to delete the stored values.
        discovered: URLs that the page links or redirects to.
    """

    url: str
    status: str
    reason: str | None = None
    document: ValidDocument | None = None
    confirmed_id: str | None = None
    obsolete_id: str | None = None
    text_digest: bytes | None = None
    page: Mapping[str, Any] | None = None
    forget: bool = False
    discovered: Sequence[DiscoveredUrl] = ()


_TEMPORARY_REASONS = (
    *(Reason.TIMEOUT, Reason.UNREACHABLE, Reason.BAD_ENCODING, Reason.SOFT_ERROR),
    *(Reason.BROWSER_FAILED, Reason.INTERNAL_ERROR),
)


def is_failure(reason: str) -> bool:
    """Whether the reason may apply to this run only, so that the page's document from an earlier run is kept."""
    return reason not in _PERMANENT_REASONS


def is_temporary_reason(reason: str) -> bool:
    """Whether a page may be readable again soon: its server, or the crawler, was busy or broken."""
    return reason == "http_429" or reason.startswith("http_5") or reason in _TEMPORARY_REASONS


def pack_links(links: Sequence[str]) -> bytes | None:
    """Compress a page's links for storage, omitting links beyond :data:`MAX_LINK_BYTES`."""
    text = "\n".join(links)
    if len(text) > MAX_LINK_BYTES:
        text = text[: text.rfind("\n", 0, MAX_LINK_BYTES)]
    return zlib.compress(text.encode(), 6) if text else None


def unpack_links(packed: bytes | None) -> tuple[str, ...]:
    """Decompress links that :func:`pack_links` packed."""
    return tuple(zlib.decompress(packed).decode().split("\n")) if packed else ()
