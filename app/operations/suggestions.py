"""Suggestions that an owner hides."""

from __future__ import annotations

from typing import Any

from app.errors import field_error
from app.operations.search_settings import edit_together
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.wording import counted
from schemas.search_settings import MAX_HIDDEN_SUGGESTIONS


def hide_suggestion(runtime: Runtime, caller: Caller, site_id: int, text: str) -> None:
    """Stop suggesting a text.

    Args:
        text: The normalized text.

    Raises:
        ApiError: 404; 400 if the settings are full.
    """

    def edit(settings: dict[str, Any]) -> None:
        hidden = settings["suggestions_hidden"]
        if text not in hidden:
            hidden.append(text)
        if len(hidden) > MAX_HIDDEN_SUGGESTIONS:
            limit = counted(MAX_HIDDEN_SUGGESTIONS, "text")
            raise field_error("suggestions_hidden", "too_long", f"can have at most {limit}")

    edit_together(runtime, caller, site_id, edit)
