"""A request of Custom Search as a search."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from app.errors import field_error
from app.services.access.credentials import SiteRecord
from app.services.search.parameters import MAX_SORT_KEYS
from backends.filters import NO_DOCUMENT, And, Between, Comparison, Filter, Not, OneOf
from backends.query import Highlight, SearchQuery, SortKey
from schemas.compat.custom_search import MAX_RESULTS
from schemas.search import MAX_QUERY_BYTES

_SORT = re.compile(r"(?P<field>[A-Za-z][A-Za-z0-9_-]{0,63})(?::(?P<order>[ad]))?(?::[shw])?", re.ASCII)
_RANGE = re.compile(r"(?P<field>[A-Za-z][A-Za-z0-9_-]{0,63}):r:(?P<low>[\w.-]*):(?P<high>[\w.-]*)", re.ASCII)
_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})", re.ASCII)
_DAYS = {"d": 1, "w": 7}
_MONTHS = {"m": 1, "y": 12}
_HTML = frozenset({"htm", "html"})
FILE_TYPES = ("pdf", "docx", "pptx", "xlsx", "odt", "odp", "ods", "epub")
"""What the crawler writes into ``type`` for files that are no web pages."""


def make_search_query(parameters: Mapping[str, Any], site: SiteRecord, today: date) -> SearchQuery:
    """The checked parameters of a request as a query.

    Raises:
        ApiError: 400 for nothing to search, too much of it, results beyond the last that can be had, or a sort or
            host that cannot be read.
    """
    if parameters["start"] + parameters["num"] - 1 > MAX_RESULTS:
        raise field_error("start", "out_of_range", f"and num reach beyond the {MAX_RESULTS} results that can be had")
    sort, ranges = _read_sort(parameters["sort"])
    conditions = [
        *ranges,
        *_since(parameters["dateRestrict"], today),
        *_of_type(parameters["fileType"], site),
        *_of_host(parameters["siteSearch"], parameters["siteSearchFilter"] == "e", site),
        *_in_language(parameters["lr"], site),
    ]
    return SearchQuery(
        text=_text(parameters),
        limit=parameters["num"],
        offset=parameters["start"] - 1,
        filter=And(tuple(conditions)) if len(conditions) > 1 else conditions[0] if conditions else None,
        sort=sort,
        highlight=Highlight(
            pre_tag="<b>", post_tag="</b>", only_fields=frozenset({"title", "content"}), sentences=True
        ),
    )


def _text(parameters: Mapping[str, Any]) -> str:
    wanted = [parameters["q"], parameters["hq"]]
    if parameters["exactTerms"]:
        wanted.append(_quoted(parameters["exactTerms"]))
    text = " ".join(filter(None, wanted)) or parameters["orTerms"]
    if not text:
        raise field_error("q", "required", "is required")
    if parameters["excludeTerms"]:
        text += f" -{_quoted(parameters['excludeTerms'])}"
    if len(f"{text} {without(any_of(parameters))}".encode()) > MAX_QUERY_BYTES:
        raise field_error("q", "too_long", f"and the other terms must have at most {MAX_QUERY_BYTES} bytes together")
    return text


def any_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of which a document must have one, beside what else is searched."""
    has_text = any(parameters[name] for name in ("q", "hq", "exactTerms"))
    return tuple(dict.fromkeys(parameters["orTerms"].split())) if has_text else ()


def without(words: Sequence[str]) -> str:
    """The query for documents that have none of some words."""
    return " ".join(f"-{_quoted(word)}" for word in words)


def _quoted(terms: str) -> str:
    return f'"{terms.replace(chr(34), " ").strip()}"'


def _read_sort(text: str) -> tuple[tuple[SortKey, ...], list[Filter]]:
    """The order that ``sort`` asks for, and the ranges that it restricts the results to."""
    keys: dict[str, SortKey] = {}
    ranges: list[Filter] = []
    for part in filter(None, text.split(",")):
        if (found := _RANGE.fullmatch(part)) is not None:
            ranges += _range(found["field"], _bound(found["low"]), _bound(found["high"]))
        elif (found := _SORT.fullmatch(part)) is not None:
            keys.setdefault(found["field"], SortKey(found["field"], found["order"] != "a"))
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


def _of_type(file_type: str, site: SiteRecord) -> list[Filter]:
    """The crawler writes the field ``type`` into documents made of files; pages have none, or what they say of it."""
    wanted = file_type.lower().removeprefix(".")
    if not wanted:
        return []
    if wanted in _HTML:
        return [Not(OneOf("type", FILE_TYPES))] if "type" in site.kinds else []
    return [Comparison("type", "=", wanted)] if "type" in site.kinds else [NO_DOCUMENT]


def read_place(address: str) -> tuple[str, str]:
    """The host of ``siteSearch``, without ``www.``, and the beginning of its path, if it has one; both may be empty.

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
        raise field_error("siteSearch", "invalid", "must be a host or the beginning of an address: example.com/docs")
    path = unquote(parts.path.rstrip("*"))
    return host, "" if path == "/" else path


def _of_host(address: str, left_out: bool, site: SiteRecord) -> list[Filter]:
    host, path = read_place(address)
    if not host or (path and left_out):
        return []
    if "domain" in site.kinds:
        there: Filter = OneOf("domain", (host, f"www.{host}"))
        return [Not(there) if left_out else there]
    own = site.domain.removeprefix("www.")
    is_own = own == host or own.endswith(f".{host}")
    return [] if is_own is not left_out else [NO_DOCUMENT]


def _in_language(languages: str, site: SiteRecord) -> list[Filter]:
    codes = [code.strip().removeprefix("lang_") for code in languages.split("|")]
    if not any(codes) or "lang" not in site.kinds:
        return []
    return [OneOf("lang", tuple(filter(None, codes)))]


def shown_fields(site: SiteRecord) -> frozenset[str]:
    """The fields of a hit that an answer tells: of its text, only the snippet."""
    return frozenset({"id", "title", "url", "author", "date", *site.kinds})
