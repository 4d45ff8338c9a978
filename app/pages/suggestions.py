"""Suggestions that an owner hides."""

from __future__ import annotations

from flask import Response

from app.operations import suggestions as operations
from app.pages.analytics.lists import find_kind
from app.pages.forms import read_form
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.web.callers import current_caller
from schemas.suggestions import HideSuggestionSchema


def hide_suggestion(site_id: int) -> Response:
    """Hide a query from suggestions, and return to the page that listed it."""
    form = read_form(HideSuggestionSchema())
    operations.hide_suggestion(runtime(), current_caller(), site_id, form["q"])
    back: dict[str, str | int] = {"site_id": site_id, "period": form["period"], "notice": "suggestion-hidden"}
    if form["list"] == "":
        return see_other("/api/analytics/query", q=form["q"], **back)
    kind = find_kind(form["list"])
    return see_other("/api/analytics", list=None if kind is None else kind.name, **back)
