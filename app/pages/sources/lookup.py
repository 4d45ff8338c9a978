"""The page that tells why an address is not found: what is known of it, and what to do about it."""

from __future__ import annotations

from flask import request
from marshmallow import ValidationError

from app.crawl.run.lookup import PageLookup
from app.errors import ApiError, ErrorCode
from app.operations import sources as source_operations
from app.pages.forms import field_problems, refill_on_error
from app.pages.layout import render
from app.pages.sources.reports import explain_reason
from app.runtime import runtime
from app.services.sites import get_site
from app.web.parsing import check_query_string, invalid
from app.web.request_checks import current_caller
from schemas.sources import PageLookupQuerySchema


def look_up_page(site_id: int) -> str:
    """Tell what is known of the address that was asked for."""
    check_query_string(request)
    refill_on_error(lambda error: _page(site_id, error=error), (400, 503))
    try:
        url = PageLookupQuerySchema().load(_completed())["url"]
    except ValidationError as error:
        raise invalid(error) from error
    return _page(site_id, source_operations.look_up_page(runtime(), current_caller(), site_id, url))


def _completed() -> dict[str, str]:
    """The address that was asked for; people leave the scheme out."""
    url = request.args.get("url", "").strip()
    return {"url": url if not url or "://" in url else f"https://{url}"}


def _page(site_id: int, found: PageLookup | None = None, error: ApiError | None = None) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    problem = None
    if error is not None:
        problem = error.message
        if error.code is ErrorCode.VALIDATION_FAILED and (predicate := field_problems(error).get("url")):
            problem = f"The address {predicate}."
    return render(
        "lookup.html",
        site=site,
        asked=request.args.get("url", ""),
        found=found,
        explanation=None if found is None or found.reason is None else explain_reason(found.reason),
        problem=problem,
    )
