"""Queries that the search box never suggests, from the pages that list them."""

from __future__ import annotations

from flask import Response

from app.models import Site
from app.operations import search_settings as settings_operations
from app.pages.analytics.lists import find_kind
from app.pages.forms import read_form
from app.pages.redirects import see_other
from app.runtime import runtime
from app.services.search.hidden_suggestions import HiddenSuggestions, hidden_suggestions
from app.web.request_checks import current_caller
from schemas.remedies import HideSuggestionSchema


def hide_suggestion(site_id: int) -> Response:
    """Never suggest a query again, and go back to where it was listed."""
    sent = read_form(HideSuggestionSchema())
    settings_operations.hide_suggestion(runtime(), current_caller(), site_id, sent["q"])
    back: dict[str, str | int] = {"site_id": site_id, "period": sent["period"], "notice": "suggestion-hidden"}
    if sent["list"] == "":
        return see_other("/api/analytics/query", q=sent["q"], **back)
    kind = find_kind(sent["list"])
    return see_other("/api/analytics", list=None if kind is None else kind.name, **back)


def hidden_of(site: Site | None) -> HiddenSuggestions:
    """The texts that a site never suggests; none of all sites together."""
    return hidden_suggestions(() if site is None else tuple(site.search_settings.get("suggestions_hidden", ())))
