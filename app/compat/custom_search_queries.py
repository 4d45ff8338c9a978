"""Converts Custom Search requests to queries, and searches with conditions that engines don't support.

Such conditions are "below a path of the site" and "contains any of several words". Hits are checked in windows, without
their texts. One page of matching hits is then searched by ID for display.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from flask import request

from app.errors import field_error
from app.operations.searches import SearchOutcome
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_query_id
from app.services.search.encoding import MAX_SORT_KEYS, encode_hits
from app.services.search.search import Visitor, find_ids
from app.services.search.site_queries import for_site
from app.web.admission import current_admission
from app.web.charges import require_search
from backends.filters import NO_DOCUMENT, And, Between, Comparison, Filter, Not, OneOf, all_of
from backends.query import NO_EFFECTS, Boost, Highlight, SearchQuery, SortKey
from schemas.compat import MAX_GOOGLE_RESULTS
from schemas.search import MAX_QUERY_BYTES

_SORT = re.compile(r"(?P<field>[A-Za-z][A-Za-z0-9_-]{0,63})(?::(?P<order>[ad]))?(?::[shw])?", re.ASCII)
_RANGE = re.compile(r"(?P<field>[A-Za-z][A-Za-z0-9_-]{0,63}):r:(?P<low>[\w.-]*):(?P<high>[\w.-]*)", re.ASCII)
_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})", re.ASCII)
_DAYS = {"d": 1, "w": 7}
_MONTHS = {"m": 1, "y": 12}
_HTML = frozenset({"htm", "html"})
FILE_TYPES = ("pdf", "docx", "pptx", "xlsx", "odt", "odp", "ods", "epub")
"""Values of ``type`` that the crawler sets for files other than web pages."""


def make_search_query(parameters: Mapping[str, Any], site: SiteRecord, today: date) -> SearchQuery:
    """Create a query from checked parameters.

    Raises:
        ApiError: 400 for an empty or too long query, results beyond the last page, or an invalid sort or host.
    """
    if parameters["start"] + parameters["num"] - 1 > MAX_GOOGLE_RESULTS:
        raise field_error("start", "out_of_range", f"and num exceed the {MAX_GOOGLE_RESULTS} available results")
    sort, ranges = _read_sort(parameters["sort"])
    conditions = [
        *ranges,
        *_since(parameters["dateRestrict"], today),
        *_type_condition(parameters["fileType"], site),
        *_host_condition(parameters["siteSearch"], parameters["siteSearchFilter"] == "e", site),
        *_in_language(parameters["lr"], site),
    ]
    return SearchQuery(
        text=_text(parameters),
        limit=parameters["num"],
        offset=parameters["start"] - 1,
        portable_filter=all_of(conditions),
        sort=sort,
        highlight=Highlight(
            pre_tag="<b>", post_tag="</b>", only_fields=frozenset({"title", "content"}), sentences=True
        ),
        # Responses include a snippet, but not the whole text.
        returned_fields=frozenset({"id", "title", "url", "author", "date", *site.kinds}),
    )


def _text(parameters: Mapping[str, Any]) -> str:
    parts = [parameters["q"], parameters["hq"]]
    if parameters["exactTerms"]:
        parts.append(_quoted(parameters["exactTerms"]))
    text = " ".join(filter(None, parts)) or parameters["orTerms"]
    if not text:
        raise field_error("q", "required", "is required")
    if parameters["excludeTerms"]:
        text += f" -{_quoted(parameters['excludeTerms'])}"
    if len(f"{text} {without(any_of(parameters))}".encode()) > MAX_QUERY_BYTES:
        raise field_error("q", "too_long", f"and the other terms must have at most {MAX_QUERY_BYTES} bytes together")
    return text


def any_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of ``orTerms``: besides matching the query, a document must contain at least one of them."""
    has_text = any(parameters[name] for name in ("q", "hq", "exactTerms"))
    return tuple(dict.fromkeys(parameters["orTerms"].split())) if has_text else ()


def without(words: Sequence[str]) -> str:
    """Return a query that matches documents without these words."""
    return " ".join(f"-{_quoted(word)}" for word in words)


def _quoted(terms: str) -> str:
    return f'"{terms.replace(chr(34), " ").strip()}"'


def _read_sort(text: str) -> tuple[tuple[SortKey, ...], list[Filter]]:
    """Return the order and the ranges in ``sort``."""
    keys: dict[str, SortKey] = {}
    ranges: list[Filter] = []
    for part in filter(None, text.split(",")):
        if (match := _RANGE.fullmatch(part)) is not None:
            ranges += _range(match["field"], _bound(match["low"]), _bound(match["high"]))
        elif (match := _SORT.fullmatch(part)) is not None:
            keys.setdefault(match["field"], SortKey(match["field"], match["order"] != "a"))
        else:
            raise field_error("sort", "invalid", "must be like date, date:a, or date:r:20240101:20240630")
    if len(keys) > MAX_SORT_KEYS:
        raise field_error("sort", "too_many", f"accepts at most {MAX_SORT_KEYS} fields")
    return tuple(keys.values()), ranges


def _bound(text: str) -> str:
    day = _DAY.fullmatch(text)
    return text if day is None else "-".join(day.groups())


def _range(field: str, low: str, high: str) -> list[Filter]:
    if low and high:
        return [Between(field, low, high)]
    return [Comparison(field, ">=", low)] if low else [Comparison(field, "<=", high)] if high else []


def _since(restriction: tuple[str, int] | None, today: date) -> list[Filter]:
    if restriction is None:
        return []
    unit, number = restriction
    try:
        first = (
            today - timedelta(_DAYS[unit] * number) if unit in _DAYS else _months_before(today, _MONTHS[unit] * number)
        )
    except (OverflowError, ValueError) as error:
        raise field_error("dateRestrict", "out_of_range", "begins before the first year") from error
    return [Comparison("date", ">=", first.isoformat())]


def _months_before(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _type_condition(file_type: str, site: SiteRecord) -> list[Filter]:
    """Return the condition for a file type. The crawler sets ``type`` for files; pages may have their own ``type``."""
    extension = file_type.lower().removeprefix(".")
    if not extension:
        return []
    if extension in _HTML:
        return [Not(OneOf("type", FILE_TYPES))] if "type" in site.kinds else []
    return [Comparison("type", "=", extension)] if "type" in site.kinds else [NO_DOCUMENT]


def read_host_and_path(address: str) -> tuple[str, str]:
    """Return the host of ``siteSearch`` without ``www.``, and the prefix of its path; both may be empty.

    Raises:
        ApiError: 400.
    """
    if not address:
        return "", ""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host = (parts.hostname or "").removeprefix("*.").removeprefix("www.")
    except ValueError:
        host = ""
    if not host:
        raise field_error("siteSearch", "invalid", "must be a host or the beginning of a URL, such as example.com/docs")
    path = unquote(parts.path.rstrip("*"))
    return host, "" if path == "/" else path


def _host_condition(address: str, is_excluded: bool, site: SiteRecord) -> list[Filter]:
    host, path = read_host_and_path(address)
    if not host or (path and is_excluded):
        return []
    if "domain" in site.kinds:
        there: Filter = OneOf("domain", (host, f"www.{host}"))
        return [Not(there) if is_excluded else there]
    site_host = site.domain.removeprefix("www.")
    is_own = site_host == host or site_host.endswith(f".{host}")
    return [] if is_own is not is_excluded else [NO_DOCUMENT]


def _in_language(languages: str, site: SiteRecord) -> list[Filter]:
    codes = [code.strip().removeprefix("lang_") for code in languages.split("|")]
    if not any(codes) or "lang" not in site.kinds:
        return []
    return [OneOf("lang", tuple(filter(None, codes)))]


WINDOW = 100
WINDOWS = 5
"""Maximum number of windows of hits to check."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Conditions on hits, in addition to the query's own conditions.

    Attributes:
        is_at: Whether the hit with this URL matches.
        boosts: Boosts that move hits with matching paths into the first windows.
        words: A hit must contain at least one of these words; empty for no condition.
    """

    matches_url: Callable[[str], bool]
    boosts: tuple[Boost, ...]
    words: tuple[str, ...]


def read_narrowing(parameters: Mapping[str, Any], site: SiteRecord) -> Narrowing | None:
    """Return the conditions of a request that engines don't support; ``None`` if it has no such condition."""
    host, path = read_host_and_path(parameters["siteSearch"])
    words = any_of(parameters)
    if not path:
        return Narrowing(lambda _: True, (), words) if words else None
    is_excluded = parameters["siteSearchFilter"] == "e"

    def matches_url(url: str) -> bool:
        parts = urlsplit(urljoin(site.url, url))
        hit_host = (parts.hostname or "").removeprefix("www.")
        is_there = hit_host == host or hit_host.endswith(f".{host}")
        return (is_there and unquote(parts.path).startswith(path)) is not is_excluded

    # A star in siteSearch is an ordinary character, so the glob ends before it.
    return Narrowing(matches_url, (Boost(-5 if is_excluded else 5, path=f"{path.partition('*')[0]}*"),), words)


def search_narrowed(
    site: SiteRecord, search_query: SearchQuery, narrowing: Narrowing, visitor: Visitor | None
) -> SearchOutcome:
    """Search like :func:`app.web.charges.run_charged_search`, with additional conditions.

    The total is exact if all hits were checked, otherwise an estimate.
    """
    started = time.perf_counter()
    require_search(current_admission())
    current_runtime = runtime()
    searcher = current_runtime.searcher
    boosted = replace(site, settings=replace(site.settings, boosts=(*site.settings.boosts, *narrowing.boosts)))
    query = for_site(search_query, boosted)
    matching_ids: list[str] = []
    checked = 0
    for number in range(WINDOWS):
        part = replace(query, limit=WINDOW, offset=number * WINDOW, highlight=None, returned_fields=frozenset({"url"}))
        timed = searcher.run(site, part)
        window = {hit.id: hit.document["url"] for hit in timed.result.hits}
        lacking = _lacking(site, narrowing.words, window)
        matching_ids += [id for id, url in window.items() if id not in lacking and narrowing.matches_url(url)]
        checked += len(window)
        if len(window) < WINDOW or len(matching_ids) >= query.offset + query.limit:
            break
    total = (
        len(matching_ids) if checked >= timed.result.total else round(timed.result.total * len(matching_ids) / checked)
    )
    page = matching_ids[query.offset : query.offset + query.limit]
    result = replace(
        timed,
        result=replace(timed.result, total=max(total, len(matching_ids))),
        took_ms=round((time.perf_counter() - started) * 1000),
    )
    if visitor is not None and request.method != "HEAD":
        searcher.record(site, query, result, visitor)
    query_id = make_query_id(current_runtime.settings.secret_key, site.id, query.typed, result.searched_at)
    return SearchOutcome(query, result, _show(site, query, page), query_id, site.no_results_links)


def _lacking(site: SiteRecord, words: tuple[str, ...], window: Mapping[str, str]) -> set[str]:
    """Return the hits of a window that don't contain any of the words."""
    if not words or not window:
        return set()
    of_window = SearchQuery(without(words), limit=len(window), portable_filter=OneOf("id", tuple(window)))
    return set(find_ids(runtime().searcher, site, of_window))


def _show(site: SiteRecord, query: SearchQuery, ids: list[str]) -> list[bytes]:
    """Return the query's hits for these IDs, in the same order."""
    if not ids:
        return []
    conditions = (OneOf("id", tuple(ids)), *(() if query.portable_filter is None else (query.portable_filter,)))
    settings = replace(query.settings, pinned={}, hidden={}, distinct="")
    by_id = replace(
        query, limit=len(ids), offset=0, sort=(), portable_filter=And(conditions), settings=settings, effects=NO_EFFECTS
    )
    searcher = runtime().searcher
    result = searcher.run(site, by_id).result
    hits = dict(zip([hit.id for hit in result.hits], encode_hits(result.hits, searcher.new_budget()), strict=True))
    return [hits[id] for id in ids if id in hits]
