"""A site's search settings as a form: lists are lines of text."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from marshmallow import ValidationError

from app import actions
from app.errors import ApiError
from app.guard import current_caller
from app.pages.forms import refill_on_error
from app.pages.layout import render
from app.pages.redirects import see_other
from app.parsing import invalid, read_form_body
from app.runtime import runtime
from app.services.search_settings import change_settings, shown_settings
from app.services.sites import get_site
from schemas.search_settings import LANGUAGES, WEIGHTED_FIELDS, SearchSettingsSchema

ARROW = "=>"
"""Between a pinned query and its documents' ids."""

_FIELDS = (
    ("synonyms", "textarea", "Synonyms", "One group a line, its words separated by commas: car, automobile."),
    (
        "stop_words",
        "textarea",
        "Stop words",
        "Words that need not match, separated by commas. Empty: those of the language.",
    ),
    (
        "pinned",
        "textarea",
        "Pinned results",
        f"One query a line, then {ARROW} and the ids that come first: opening hours {ARROW} 12, 7.",
    ),
    *((f"weight_{name}", "text", f"Weight of the {name}", "From 0 to 10; 1 when empty.") for name in WEIGHTED_FIELDS),
)


def show_search_settings(site_id: int) -> str:
    """The form, filled in."""
    return _form(site_id)


def update_search_settings(site_id: int) -> Response:
    """Save the settings."""
    refill_on_error(lambda error: _form(site_id, error))
    try:
        settings = SearchSettingsSchema().load(_read(read_form_body(request)))
    except ValidationError as error:
        raise invalid(error) from error
    with actions.changing(current_caller()) as session:
        change_settings(session, current_caller().account.id, site_id, settings)
    return see_other(f"/sites/{site_id}", notice="search-settings-updated")


def _form(site_id: int, error: ApiError | None = None) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    values = _written(shown_settings(site.search_settings)) if error is None else request.form
    problems = _problems(error)
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": kind,
            "label": label,
            "help": help,
            "required": False,
            "max_length": None,
            "value": values.get(name, ""),
            "problem": problems.get(name),
        }
        for name, kind, label, help in _FIELDS
    ]
    banner = error.message if error is not None and not problems else None
    return render(
        "search_settings.html",
        site=site,
        fields=fields,
        language=values.get("language", ""),
        languages=LANGUAGES,
        banner=banner,
    )


def _written(settings: dict[str, Any]) -> dict[str, str]:
    """Settings as the form's texts."""
    return {
        "language": settings["language"] or "",
        "synonyms": "\n".join(", ".join(group) for group in settings["synonyms"]),
        "stop_words": ", ".join(settings["stop_words"] or ()),
        "pinned": "\n".join(f"{entry['query']} {ARROW} {', '.join(entry['ids'])}" for entry in settings["pinned"]),
        **{f"weight_{name}": f"{weight:g}" for name, weight in settings["weights"].items()},
    }


def _read(form: Any) -> dict[str, Any]:
    """The form's texts as settings, to be validated."""
    settings: dict[str, Any] = {
        "language": form.get("language", "").strip() or None,
        "synonyms": [_words(line) for line in form.get("synonyms", "").splitlines() if line.strip()],
        "stop_words": _words(form.get("stop_words", "").replace("\n", ",")) or None,
        "pinned": [],
        "weights": {},
    }
    for line in form.get("pinned", "").splitlines():
        if line.strip():
            query, _, ids = line.partition(ARROW)
            settings["pinned"].append({"query": query, "ids": _words(ids)})
    for name in WEIGHTED_FIELDS:
        text = form.get(f"weight_{name}", "").strip()
        if text:
            settings["weights"][name] = _number(text)
    return settings


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _problems(error: ApiError | None) -> dict[str, str]:
    """Field of the form to what is wrong with it; lists are named with the line."""
    problems: dict[str, str] = {}
    for detail in error.details if error is not None else ():
        name, _, rest = detail.field.partition("[")
        name = f"weight_{name.removeprefix('weights.')}" if name.startswith("weights.") else name
        labels = {field: label for field, _, label, _ in _FIELDS}
        place = rest.partition("]")[0]
        where = f"{labels.get(name, name)}, line {int(place) + 1}" if place.isdigit() else labels.get(name, name)
        predicate = detail.message.partition(" ")[2]
        problems.setdefault(name, f"{where}: {predicate}.")
    return problems
