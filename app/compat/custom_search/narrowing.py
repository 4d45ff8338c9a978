"""Conditions of Custom Search that no engine can be asked for: a path of the site, and one of several words.

The hits are looked through in windows, without their texts. Of those that meet the conditions, one page is then
searched for by id, to be shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from flask import request

from app.compat.custom_search.queries import any_of, read_place, without
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_query_id
from app.services.search.parameters import for_site
from app.services.search.responses import encode_hit
from app.services.search.search import Visitor, find_ids
from app.web.request_checks import require_search
from app.web.searches import Found
from backends.base import Hit
from backends.filters import And, OneOf
from backends.query import NO_EFFECTS, Boost, SearchQuery

WINDOW = 100
WINDOWS = 5
"""Windows of hits that are looked through."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Conditions on hits beside those of their query.

    Attributes:
        is_at: Whether the hit with this URL is wanted.
        boosts: Bring hits at the wanted path into the first windows.
        words: Of which a hit must have one; none: it need not.
    """

    is_at: Callable[[str], bool]
    boosts: tuple[Boost, ...]
    words: tuple[str, ...]


def read_narrowing(parameters: Mapping[str, Any], site: SiteRecord) -> Narrowing | None:
    """The conditions of a request; ``None`` if it has none of this kind."""
    host, path = read_place(parameters["siteSearch"])
    words = any_of(parameters)
    if not path:
        return Narrowing(lambda _: True, (), words) if words else None
    left_out = parameters["siteSearchFilter"] == "e"

    def is_at(url: str) -> bool:
        parts = urlsplit(urljoin(site.url, url))
        own = (parts.hostname or "").removeprefix("www.")
        is_there = own == host or own.endswith(f".{host}")
        return (is_there and unquote(parts.path).startswith(path)) is not left_out

    return Narrowing(is_at, (Boost(-5 if left_out else 5, path=f"{path}*"),), words)


def search_narrowed(
    site: SiteRecord, wanted: SearchQuery, narrowing: Narrowing, visitor: Visitor | None, shown: frozenset[str]
) -> Found:
    """As :func:`app.web.searches.search_site`, of the hits that meet further conditions.

    The total is exact if all hits were looked through, and else an estimate.
    """
    started = time.perf_counter()
    require_search()
    current_runtime = runtime()
    searcher = current_runtime.searcher
    boosted = replace(site, settings=replace(site.settings, boosts=(*site.settings.boosts, *narrowing.boosts)))
    query = for_site(wanted, boosted)
    kept: list[str] = []
    seen = 0
    for number in range(WINDOWS):
        window: dict[str, str] = {}

        def note(hit: Hit, window: dict[str, str] = window) -> bytes:
            window[hit.id] = hit.document["url"]
            return b""

        part = replace(query, limit=WINDOW, offset=number * WINDOW, highlight=None)
        timed = searcher.run(site, part, note, searcher.new_room())
        lacking = _lacking(site, narrowing.words, window)
        kept += [id for id, url in window.items() if id not in lacking and narrowing.is_at(url)]
        seen += len(window)
        if len(window) < WINDOW or len(kept) >= query.offset + query.limit:
            break
    total = len(kept) if seen >= timed.result.total else round(timed.result.total * len(kept) / seen)
    page = kept[query.offset : query.offset + query.limit]
    result = replace(
        timed,
        result=replace(timed.result, total=max(total, len(kept))),
        hits=_show(site, query, page, shown),
        took_ms=round((time.perf_counter() - started) * 1000),
    )
    if visitor is not None and request.method != "HEAD":
        searcher.record(site, query, result, visitor)
    query_id = make_query_id(current_runtime.settings.secret_key, site.id, query.typed, result.searched_at)
    return Found(query, result, query_id, site.no_results_links)


def _lacking(site: SiteRecord, words: tuple[str, ...], window: Mapping[str, str]) -> set[str]:
    """The hits of a window that have none of the words."""
    if not words or not window:
        return set()
    of_window = SearchQuery(without(words), limit=len(window), filter=OneOf("id", tuple(window)))
    return set(find_ids(runtime().searcher, site, of_window))


def _show(site: SiteRecord, query: SearchQuery, ids: list[str], shown: frozenset[str]) -> list[bytes]:
    """Hits of the query by id, in their order."""
    if not ids:
        return []
    hits: dict[str, bytes] = {}
    encode = partial(encode_hit, fields=shown)

    def note(hit: Hit) -> bytes:
        hits[hit.id] = encode(hit)
        return hits[hit.id]

    conditions = (OneOf("id", tuple(ids)), *(() if query.filter is None else (query.filter,)))
    settings = replace(query.settings, pinned={}, hidden={}, distinct="")
    by_id = replace(
        query, limit=len(ids), offset=0, sort=(), filter=And(conditions), settings=settings, effects=NO_EFFECTS
    )
    searcher = runtime().searcher
    searcher.run(site, by_id, note, searcher.new_room())
    return [hits[id] for id in ids if id in hits]
