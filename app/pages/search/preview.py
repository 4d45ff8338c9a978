"""The page for trying a site's search as visitors would, without using the quota or affecting analytics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Response, request
from marshmallow import ValidationError

from app.errors import ApiError, ErrorCode
from app.models import Site
from app.operations.searches import SearchOutcome
from app.pages.forms import REFILLED, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import wants_page
from app.pages.search.hits import show_hits
from app.pages.search.tuning import change_tuning, explain_refusal, read_tuning
from app.plans import limit_or_unlimited
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.search.encoding import encode_results, make_query, parse_fields
from app.services.search.search import Visitor
from app.services.search_settings import read_gains
from app.services.sites import get_site, site_inactive
from app.web.callers import current_caller, current_visitor
from app.web.charges import count_preview, search_site, used_today
from app.web.parsing import check_query_string, invalid
from app.web.responses import json_answer
from schemas.search import SearchQuerySchema

SHOWN_VALUES = 8
MAX_CHOSEN = 10
HIDDEN = frozenset({"date", "id"})
"""Fields that are useless as facets because almost every document has a different value."""


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value of a facet.

    Attributes:
        address: URL that selects the value, or clears it if it is selected.
    """

    text: str
    count: int | None
    chosen: bool
    address: str


def chosen_facets() -> list[tuple[str, str]]:
    """Return the selected fields and values in the URL, given as ``f=field:value``."""
    pairs = [text.partition(":") for text in request.args.getlist("f")[:MAX_CHOSEN]]
    return list(dict.fromkeys((field, value) for field, colon, value in pairs if field and colon))


def filter_of(chosen: Sequence[tuple[str, str]]) -> str:
    """Return the filter for the selected values: for each field, one of its selected values must match."""
    fields: dict[str, list[str]] = {}
    for field, value in chosen:
        fields.setdefault(field, []).append(_quoted(value))
    return " AND ".join(f"{_quoted(field)} IN [{', '.join(values)}]" for field, values in fields.items())


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def groups_of(
    facets: Mapping[str, Mapping[str, int]], chosen: Sequence[tuple[str, str]]
) -> list[tuple[str, list[FacetValue]]]:
    """Return the facets for filtering results, with the most frequent values of each field."""
    groups = []
    for field, counts in facets.items():
        values = [(value, count) for value, count in counts.items() if count]
        picked = [value for name, value in chosen if name == field]
        tells_apart = len(values) > 1 and any(count > 1 for _, count in values)
        if field in HIDDEN or not (tells_apart or picked):
            continue
        offered = list(dict.fromkeys([*picked, *(value for value, _ in values[:SHOWN_VALUES])]))
        groups.append((field, [FacetValue(v, counts.get(v), v in picked, _toggled(chosen, field, v)) for v in offered]))
    return groups


def _toggled(chosen: Sequence[tuple[str, str]], field: str, value: str) -> str:
    rest = [pair for pair in chosen if pair != (field, value)]
    if len(rest) == len(chosen):
        rest.append((field, value))
    return search_address(rest)


def search_address(chosen: Sequence[tuple[str, str]], page: int = 1) -> str:
    """Return the URL of the same search with these facets and this page."""
    query = [("q", request.args.get("q", "")), *(("f", f"{field}:{value}") for field, value in chosen)]
    return "?" + urlencode([*query, ("page", str(page))] if page > 1 else query)


PER_PAGE = 10
LAST_PAGE = 1000


def charges_search() -> bool:
    """Whether the search is charged: with a key, but not with a session."""
    return has_query() and current_caller().kind != "session"


def has_query() -> bool:
    """Whether the request has a query."""
    return bool(request.args.get("q", "").strip())


def show_search_preview(site_id: int) -> str | Response:
    """Show the search page of a site, with results."""
    caller = current_caller()
    with runtime().database.read() as session:
        site = get_site(session, caller.account.id, site_id)
    if not wants_page():
        return _as_json(site)
    refill_on_error(lambda error: _page(site, problem=error), {*REFILLED, 503} - {401})
    return _page(site, results=_search(site, _parameters() | {"fields": "", "explain": True}) if has_query() else None)


def tune_search(site_id: int) -> Response:
    """Pin or hide a page for the query in the URL, or undo that, and show the same search again."""
    if not wants_page():
        raise ApiError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send the form of the page, with a session.")
    check_query_string(request)
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    refill_on_error(lambda error: _refused_page(site, error), (400,))
    return change_tuning(site_id, f"/sites/{site_id}/try{search_address(chosen_facets(), _page_number())}")


def _refused_page(site: Site, refusal: ApiError) -> str:
    try:
        results = _search(site, _parameters() | {"fields": "", "explain": True}) if has_query() else None
    except ApiError as error:
        return _page(site, problem=error, refusal=refusal)
    return _page(site, results=results, refusal=refusal)


def _page_number() -> int:
    text = request.args.get("page", "")
    return min(LAST_PAGE, int(text)) if text.isascii() and text.isdigit() and len(text) < 5 else 1


def _search(site: Site, parameters: dict[str, Any]) -> SearchOutcome:
    if not site.active:
        raise site_inactive()
    shown_fields = parse_fields(parameters["fields"])
    query = make_query(parameters)
    visitor: Visitor | None = None
    if current_caller().kind == "session":
        count_preview()
    else:
        visitor = current_visitor(site.id, parameters["session_id"])
    with runtime().database.read() as session:
        record = site_record(site, read_gains(session, site))
    return search_site(record, query, visitor, shown_fields)


def _parameters() -> dict[str, Any]:
    check_query_string(request)
    values = {"limit": str(PER_PAGE), "facets": "*", "highlight": "true", **request.args.to_dict()}
    if chosen_facets() and "filters" not in request.args:
        values["filters"] = filter_of(chosen_facets())
    try:
        parameters: dict[str, Any] = SearchQuerySchema().load(values)
    except ValidationError as error:
        raise invalid(error) from error
    return parameters


def _page(
    site: Site,
    *,
    results: SearchOutcome | None = None,
    problem: ApiError | None = None,
    refusal: ApiError | None = None,
) -> str:
    values: dict[str, Any] = {
        "site": site,
        "q": request.args.get("q", ""),
        "problem": problem,
        "chosen": chosen_facets(),
        "banner": None if refusal is None else explain_refusal(refusal),
    }
    if results is not None:
        with runtime().database.read() as session:
            values["tuning"] = read_tuning(session, site, request.args["q"])
        result, query = results.timed.result, results.query
        values.update(
            total=result.total,
            matched=result.matched.value,
            corrected_query=result.corrected_query,
            took_ms=results.timed.took_ms,
            answer=results.timed.answer,
            hits=show_hits(results.timed.hits, site.url),
            facets=groups_of(result.facets, chosen_facets()),
            page=query.offset // query.limit + 1,
            page_address=lambda number: search_address(chosen_facets(), number),
            here_again=search_address(chosen_facets(), query.offset // query.limit + 1),
            pages=min(LAST_PAGE, -(-result.total // query.limit)),
        )
    return render("search_preview.html", **values)


def _as_json(site: Site) -> Response:
    results = _search(site, _parameters())
    limit = current_caller().account.limits.searches_per_day
    return json_answer(
        {
            "results": encode_results(results.query, request.args["q"], results.timed, results.query_id, results.links),
            "remaining_quota": {
                "daily_limit": limit_or_unlimited(limit),
                "used_today": used_today(),
                "unlimited": limit is None,
            },
        }
    )
