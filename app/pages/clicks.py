"""The ranking learned from clicks: turning it on or off, and resetting it."""

from __future__ import annotations

from flask import Response

from app.operations import change
from app.operations.search_settings import update_some_settings
from app.pages.actions import Action
from app.pages.forms import read_form
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services import search_settings
from app.web.callers import current_caller
from schemas.clicks import LearningSchema


def switch_learning(site_id: int) -> Response:
    """Turn learning from clicks on or off."""
    learn: bool = read_form(LearningSchema())["learn"]
    update_some_settings(runtime(), current_caller(), site_id, {"learn_from_clicks": learn}, "")
    return see_other("/api/analytics", site_id=site_id, notice="learning-on" if learn else "learning-off")


forget_clicks = Action(
    change, "/api/analytics?site_id={site_id}", "clicks-forgotten", step=search_settings.forget_clicks
)
