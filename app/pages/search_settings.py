"""A site's search settings as a form."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from marshmallow import ValidationError

from app.errors import ApiError
from app.pages.forms import banner_of, refill_on_error
from app.pages.layout import render
from app.pages.redirects import see_other
from app.pages.settings_lines import ARROW, explain, read_settings, write_settings
from app.runtime import runtime
from app.services.search_settings import change_settings, shown_settings
from app.services.sites import get_site
from app.web import actions
from app.web.parsing import invalid, read_form_body
from app.web.request_checks import current_caller
from backends.languages import LANGUAGES
from schemas.search_settings import WEIGHTED_FIELDS, SearchSettingsSchema

_LANGUAGES = {code: each.name for code, each in sorted(LANGUAGES.items(), key=lambda item: item[1].name)}
_FIELDS = (
    ("language", "select", "Language", ""),
    ("synonyms", "textarea", "Synonyms", "One group per line, words separated by commas: car, automobile."),
    (
        "stop_words",
        "textarea",
        "Stop words",
        "Words that need not match, separated by commas. Default: the language’s own.",
    ),
    (
        "pinned",
        "textarea",
        "Pinned results",
        f"One query per line, then {ARROW} and the ids to show first: opening hours {ARROW} 12, 7.",
    ),
    (
        "hidden",
        "textarea",
        "Hidden results",
        f"One query per line, then {ARROW} and the ids that it must not find: jobs {ARROW} 31.",
    ),
    *((f"weight_{name}", "text", f"Weight of the {name}", "From 0 to 10. Default: 1.") for name in WEIGHTED_FIELDS),
)


def show_search_settings(site_id: int) -> str:
    """The form, filled in."""
    return _form(site_id)


def update_search_settings(site_id: int) -> Response:
    """Save the settings."""
    refill_on_error(lambda error: _form(site_id, error))
    try:
        settings = SearchSettingsSchema().load(read_settings(_sent()))
    except ValidationError as error:
        raise invalid(error) from error
    with actions.changing(current_caller()) as session:
        change_settings(session, current_caller().account.id, site_id, settings)
    return see_other(f"/sites/{site_id}", notice="search-settings-updated")


def _form(site_id: int, error: ApiError | None = None) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    sent = None if error is None else _sent()
    values = write_settings(shown_settings(site.search_settings)) if sent is None else sent
    problems = explain(error.details, sent) if error is not None and sent is not None else {}
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": kind,
            "label": label,
            "help": help,
            "required": False,
            "max_length": None,
            "value": values.get(name, ""),
            "options": ("", *_LANGUAGES) if kind == "select" else (),
            "problems": problems.get(name, []),
        }
        for name, kind, label, help in _FIELDS
    ]
    return render(
        "search_settings.html",
        site=site,
        fields=fields,
        labels={"": "Detect automatically for each page", **_LANGUAGES},
        banner=banner_of(error, fields),
    )


def _sent() -> dict[str, str]:
    """The form's texts, their lines ended as Unix ends them."""
    return {name: text.replace("\r\n", "\n") for name, text in read_form_body(request).items()}
