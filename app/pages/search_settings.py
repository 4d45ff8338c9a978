"""A site's search settings as a form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request
from marshmallow import Schema, ValidationError

from app.errors import ApiError
from app.operations import search_settings as settings_operations
from app.operations.search_settings import SettingsPreview, unknown_ids
from app.pages.forms import REFILLED, banner_of, refill_on_error
from app.pages.layout import render
from app.pages.redirects import see_other
from app.pages.settings_lines import ARROW, explain, lines_of, read_settings, write_settings
from app.runtime import runtime
from app.services.search.preview import PreviewedDocument, QueryPreview
from app.services.search_settings import shown_settings
from app.services.sites import get_site
from app.web.parsing import invalid, read_form_body
from app.web.request_checks import current_caller
from backends.languages import LANGUAGES
from schemas.search_settings import (
    MAX_PREVIEWED_QUERIES,
    WEIGHTED_FIELDS,
    SearchSettingsSchema,
    SettingsPreviewSchema,
)

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
    (
        "suggestions_hidden",
        "textarea",
        "Hidden suggestions",
        "Texts that the search box never suggests, one per line; * stands for any text: *casino*.",
    ),
    (
        "distinct",
        "text",
        "One result of each",
        "A field, such as page: of the pages with one value of it, only the best is found. Default: every page.",
    ),
    (
        "preferred_field",
        "text",
        "Field that decides which",
        "A field, such as version. Default: the page that fits the query best.",
    ),
    (
        "preferred_value",
        "text",
        "Its preferred value",
        "Such as 2.1; latest for the highest version.",
    ),
    *((f"weight_{name}", "text", f"Weight of the {name}", "From 0 to 10. Default: 1.") for name in WEIGHTED_FIELDS),
    (
        "queries",
        "textarea",
        "Queries to preview",
        f"One per line, at most {MAX_PREVIEWED_QUERIES}. Default: the most frequent of the last seven days. Not saved.",
    ),
)


def show_search_settings(site_id: int) -> str:
    """The form, filled in."""
    return _form(site_id)


def update_search_settings(site_id: int) -> Response:
    """Save the settings."""
    refill_on_error(lambda error: _form(site_id, error))
    settings: dict[str, Any] = _load(SearchSettingsSchema(), _settings(site_id, _sent()))
    _, unknown = settings_operations.update_settings(runtime(), current_caller(), site_id, settings)
    page = f"/sites/{site_id}/search-settings" if unknown else f"/sites/{site_id}"
    return see_other(page, notice="search-settings-updated")


def preview_search_settings(site_id: int) -> str:
    """The form as it was sent, with what its settings would change."""
    refill_on_error(lambda error: _form(site_id, error), {*REFILLED, 503})
    sent = _sent()
    queries = [line.text.strip() for line in lines_of(sent.get("queries", ""))]
    body = {"settings": _settings(site_id, sent), **({"queries": queries} if queries else {})}
    wanted: dict[str, Any] = _load(SettingsPreviewSchema(), body)
    preview = settings_operations.preview(
        runtime(), current_caller(), site_id, wanted["settings"], wanted.get("queries")
    )
    return _form(site_id, preview=preview)


def _settings(site_id: int, sent: dict[str, str]) -> dict[str, Any]:
    """The settings that the form sent, and those that it does not have, as they are."""
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    return {**shown_settings(site.search_settings), **read_settings(sent)}


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document among those that a query finds.

    Attributes:
        note: What becomes of it, or where it was; empty if it stays where it is.
    """

    title: str
    note: str


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """A query of a preview."""

    query: str
    before: Sequence[ShownDocument]
    after: Sequence[ShownDocument]
    is_exact: bool


def _show(preview: QueryPreview) -> ShownQuery:
    places = {document.id: place for place, document in enumerate(preview.before, 1)}
    kept = {document.id for document in preview.after}
    return ShownQuery(
        preview.query,
        [_shown(document, "" if document.id in kept else "no longer here") for document in preview.before],
        [_shown(document, _moved(places.get(document.id), place)) for place, document in enumerate(preview.after, 1)],
        preview.is_exact,
    )


def _moved(before: int | None, after: int) -> str:
    return "new here" if before is None else "" if before == after else f"was {before}"


def _shown(document: PreviewedDocument, note: str) -> ShownDocument:
    return ShownDocument(document.title or document.id, note)


def _form(site_id: int, error: ApiError | None = None, preview: SettingsPreview | None = None) -> str:
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
        stored = shown_settings(site.search_settings)
        unknown = unknown_ids(session, site, stored) if preview is None else preview.unknown_ids
    sent = None if error is None and preview is None else _sent()
    values = write_settings(stored) if sent is None else sent
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
        unknown=unknown if error is None else [],
        previewed=None if preview is None else len(preview.queries),
        changed=[] if preview is None else [_show(each) for each in preview.queries if each.changed],
        unchanged=[] if preview is None else [_show(each) for each in preview.queries if not each.changed],
    )


def _load(schema: Schema, values: dict[str, Any]) -> Any:
    try:
        return schema.load(values)
    except ValidationError as error:
        raise invalid(error) from error


def _sent() -> dict[str, str]:
    """The form's texts, their lines ended as Unix ends them."""
    return {name: text.replace("\r\n", "\n") for name, text in read_form_body(request).items()}
