"""Related pages: finding a page by its ID or URL, and the pages on the same topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from urllib.parse import SplitResult, urljoin, urlsplit

from app.errors import ApiError, ErrorCode
from app.services.access.credentials import SiteRecord
from app.services.indexing.indexer import NothingToFind
from app.services.search.merging import condition_for, portable_condition, with_site
from app.services.search.search import Searcher, rejected
from app.services.search.site_queries import for_site
from backends.base import Hit
from backends.errors import BackendRejected, ResponseTooLarge
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery

PAGE_FIELDS = frozenset({"id", "title", "url", "excerpt"})
"""Fields of a listed page."""


def find_related_pages(searcher: Searcher, site: SiteRecord, page: OneOf, limit: int, filters: str) -> Sequence[Hit]:
    """Return the pages on the same topic as a page, best first.

    Rules of the site that apply to every search may hide pages.

    Args:
        page: The page's ``id``, or its possible ``url`` values, from :func:`possible_urls`.
        limit: 1 to 10.
        filters: Expression in the engine's syntax that the pages must match; ``""`` for none.

    Raises:
        ApiError: 404 if the site has no such page; 400 for the filters, or if the pages are too large.
        BackendUnavailable: The engine is unavailable.
    """
    query = SearchQuery(MATCH_ALL, limit=limit, native_filter=filters, returned_fields=PAGE_FIELDS)
    try:
        hits = _find_related(searcher, site, page, query)
    except BackendRejected as error:
        raise rejected(error) from error
    except ResponseTooLarge as error:
        raise searcher.new_budget().exceeded() from error
    if hits is None:
        raise ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "The site has no page with this ID or URL.")
    return hits


def _find_related(searcher: Searcher, site: SiteRecord, page: OneOf, query: SearchQuery) -> Sequence[Hit] | None:
    """Return the related pages; ``None`` if neither the site nor any site of the collection has the page."""
    if site.searched_sites is not None:
        condition = portable_condition(query)
        for searched in site.searched_sites:
            narrowed = condition_for(condition, searched)
            if not isinstance(narrowed, bool):
                of_site = replace(query, native_filter="", portable_filter=narrowed)
                hits = _find_related(searcher, searched.record, page, of_site)
                if hits is not None:
                    return [with_site(hit, searched) for hit in hits]
        return None
    query = for_site(query, site, searcher.new_budget().available)
    try:
        return searcher.ask(site, lambda engine, index: engine.find_related(index, page, query))
    except NothingToFind:
        return None


def possible_urls(site: SiteRecord, url: str) -> OneOf:
    """Return the values of ``url`` that a page at a URL may have, the most exact ones first.

    A page may be indexed without the query of its URL, with or without a final slash, with the other scheme, or, on the
    site's own host, with its path alone.
    """
    if site.searched_sites is not None:
        spellings = (possible_urls(searched.record, url).values for searched in site.searched_sites)
        return OneOf("url", tuple(dict.fromkeys(chain.from_iterable(spellings))))
    try:
        parts = urlsplit(urljoin(site.url, url))
    except ValueError:  # Such as http://[
        return OneOf("url", (url,))
    is_own = parts.netloc in (urlsplit(site.url).netloc, site.domain)
    urls = dict.fromkeys(
        address
        for location in dict.fromkeys((parts._replace(fragment=""), parts._replace(fragment="", query="")))
        for variant in _with_and_without_slash(location)
        for address in _spellings(variant, is_own=is_own)
    )
    return OneOf("url", tuple(urls))


def _with_and_without_slash(parts: SplitResult) -> Iterator[SplitResult]:
    yield parts
    if parts.path.strip("/"):
        yield parts._replace(path=parts.path.rstrip("/") if parts.path.endswith("/") else f"{parts.path}/")


def _spellings(parts: SplitResult, *, is_own: bool) -> Iterator[str]:
    yield parts.geturl()
    other_scheme = {"https": "http", "http": "https"}.get(parts.scheme)
    if other_scheme is not None:
        yield parts._replace(scheme=other_scheme).geturl()
    if is_own:
        yield parts._replace(scheme="", netloc="", path=parts.path or "/").geturl()
