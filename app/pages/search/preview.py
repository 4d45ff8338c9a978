"""Trying a site's search as its visitors would, without spending searches or showing in analytics."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from marshmallow import ValidationError

from app.errors import ApiError, ErrorCode
from app.models import Site
from app.pages.forms import REFILLED, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import wants_page
from app.pages.search.facets import chosen_facets, filter_of, groups_of, search_address
from app.pages.search.hits import show_hits
from app.pages.search.tuning import change_tuning, explain_refusal, read_tuning
from app.plans import shown
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.search.search import Visitor, encode_results, make_query, parse_shown
from app.services.search_settings import read_gains
from app.services.sites import get_site, site_inactive
from app.web.parsing import check_query_string, invalid
from app.web.request_checks import count_preview, current_caller, used_today
from app.web.responses import json_answer
from app.web.searches import Found, search_site
from app.web.visitors import current_visitor
from schemas.search import SearchQuerySchema

PER_PAGE = 10
LAST_PAGE = 1000


def charges_search() -> bool:
    """Tell whether the request is charged: a key's is, that of somebody who is logged in is not."""
    return has_query() and current_caller().kind != "session"


def has_query() -> bool:
    """Tell whether the request searches."""
    return bool(request.args.get("q", "").strip())


def show_search_preview(site_id: int) -> str | Response:
    """The search page of a site, with what was found."""
    caller = current_caller()
    with runtime().database.read() as session:
        site = get_site(session, caller.account.id, site_id)
    if not wants_page():
        return _as_json(site)
    refill_on_error(lambda error: _page(site, problem=error), {*REFILLED, 503} - {401})
    return _page(site, found=_search(site, _parameters() | {"fields": "", "explain": True}) if has_query() else None)


def tune_search(site_id: int) -> Response:
    """Pin or hide a page for the query of the address, or take that back; then the same search is shown."""
    if not wants_page():
        raise ApiError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send the form of the page, with a session.")
    check_query_string(request)
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    refill_on_error(lambda error: _refused_page(site, error), (400,))
    return change_tuning(site_id, f"/sites/{site_id}/try{search_address(chosen_facets(), _page_number())}")


def _refused_page(site: Site, refusal: ApiError) -> str:
    try:
        found = _search(site, _parameters() | {"fields": "", "explain": True}) if has_query() else None
    except ApiError as error:
        return _page(site, problem=error, refusal=refusal)
    return _page(site, found=found, refusal=refusal)


def _page_number() -> int:
    text = request.args.get("page", "")
    return min(LAST_PAGE, int(text)) if text.isascii() and text.isdigit() and len(text) < 5 else 1


def _search(site: Site, parameters: dict[str, Any]) -> Found:
    if not site.active:
        raise site_inactive()
    shown_fields = parse_shown(parameters["fields"])
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
    found: Found | None = None,
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
    if found is not None:
        with runtime().database.read() as session:
            values["tuning"] = read_tuning(session, site, request.args["q"])
        result, query = found.timed.result, found.query
        values.update(
            total=result.total,
            matched=result.matched.value,
            corrected_query=result.corrected_query,
            took_ms=found.timed.took_ms,
            answer=found.timed.answer,
            hits=show_hits(found.timed.hits, site.url),
            facets=groups_of(result.facets, chosen_facets()),
            page=query.offset // query.limit + 1,
            page_address=lambda number: search_address(chosen_facets(), number),
            here_again=search_address(chosen_facets(), query.offset // query.limit + 1),
            pages=min(LAST_PAGE, -(-result.total // query.limit)),
        )
    return render("search_preview.html", **values)


def _as_json(site: Site) -> Response:
    found = _search(site, _parameters())
    limit = current_caller().account.limits.searches_per_day
    return json_answer(
        {
            "results": encode_results(found.query, request.args["q"], found.timed, found.query_id, found.links),
            "remaining_quota": {
                "daily_limit": shown(limit),
                "used_today": used_today(),
                "unlimited": limit is None,
            },
        }
    )
