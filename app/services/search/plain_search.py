"""Finding documents as they are, whatever the site's settings pin, hide, or fold."""

from __future__ import annotations

from dataclasses import replace

from app.services.access.credentials import SiteRecord
from app.services.search.search import Searcher
from backends.base import Hit
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery


def find_ids(searcher: Searcher, site: SiteRecord, wanted: SearchQuery) -> list[str]:
    """Ids of the documents that a query finds, the best first.

    Raises:
        ApiError: 400 for a query that the engine refuses.
        BackendUnavailable: The engine cannot answer now.
    """
    ids: list[str] = []

    def note(hit: Hit) -> bytes:
        ids.append(hit.id)
        return b""

    settings = replace(site.settings, pinned={}, hidden={}, distinct="")
    query = replace(wanted, kinds=site.kinds, settings=settings)
    searcher.run(site, query, note, searcher.new_room())
    return ids


def find_ids_at(searcher: Searcher, site: SiteRecord, addresses: tuple[str, ...], limit: int) -> list[str]:
    """Ids of the documents whose ``url`` is one of these, word for word.

    Raises:
        BackendUnavailable: The engine cannot answer now.
    """
    return find_ids(searcher, site, SearchQuery(MATCH_ALL, limit=limit, filter=OneOf("url", addresses)))
