"""Learning from clicks, switched and taken back on the page of analytics."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.operations import search_settings as settings_operations
from app.pages.forms import read_form
from app.pages.redirects import see_other
from app.runtime import runtime
from app.web.request_checks import current_caller
from schemas.remedies import LearningSchema


def switch_learning(site_id: int) -> Response:
    """Let results follow clicks, or no longer."""
    wanted: bool = read_form(LearningSchema())["learn"]

    def change(settings: dict[str, Any]) -> None:
        settings["learn_from_clicks"] = wanted

    settings_operations.edit_together(runtime(), current_caller(), site_id, change)
    return see_other("/api/analytics", site_id=site_id, notice="learning-on" if wanted else "learning-off")


def forget_clicks(site_id: int) -> Response:
    """Take back what was learned."""
    settings_operations.forget_clicks(runtime(), current_caller(), site_id)
    return see_other("/api/analytics", site_id=site_id, notice="clicks-forgotten")
