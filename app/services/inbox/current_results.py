"""Results that a site gives for a query at this moment, which nobody is charged for and no analytics show."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from app.services.access.credentials import SiteRecord
from app.services.search.search import Searcher, for_site
from backends.base import Hit, Matched, SearchQuery


@dataclass(frozen=True, slots=True)
class CurrentHit:
    """A document that a query finds."""

    id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class CurrentResult:
    """The result of a query now.

    Attributes:
        total: Number of documents.
        matched: Which of its words they have.
        hits: The first of them.
    """

    total: int
    matched: Matched
    hits: tuple[CurrentHit, ...]


def search_now(searcher: Searcher, site: SiteRecord, text: str, *, limit: int = 1) -> CurrentResult:
    """Search a site as its visitors do, with its settings.

    Args:
        text: The query.
        limit: Most hits that are given, up to 101.

    Raises:
        ApiError: 400 for a query that the engine refuses.
        BackendUnavailable: The engine cannot answer now.
    """
    query = for_site(SearchQuery(text, limit=limit), site)
    timed = searcher.run(site, query, _encode, searcher.new_room())
    return CurrentResult(
        timed.result.total, timed.result.matched, tuple(CurrentHit(*orjson.loads(hit)) for hit in timed.hits)
    )


def _encode(hit: Hit) -> bytes:
    return orjson.dumps([hit.id, str(hit.document["title"]), str(hit.document["url"])])
