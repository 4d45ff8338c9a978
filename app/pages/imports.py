"""The form that imports a file, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import orjson
from flask import current_app, request
from marshmallow import ValidationError

from app.errors import ApiError, field_error
from app.operations import imports
from app.operations import sources as source_operations
from app.pages.forms import banner_of, field_problems, read_form, refill_on_error
from app.pages.layout import render
from app.runtime import runtime
from app.web.callers import current_caller, load_site
from app.web.parsing import invalid, read_form_body
from schemas.imports import FORM_FORMATS, ImportFormSchema
from schemas.sources import CONFIG_FORMATS

_IMPORT_FIELDS = (
    (
        "file",
        "file",
        "File",
        "At most {limit} MB. Split larger files, or ask the operator of this service to import them.",
    ),
    ("format", "select", "Format", "A WordPress export (Tools › Export) imports the published posts and pages."),
    (
        "url",
        "url",
        "URL",
        "Only for a file that becomes one page: where visitors find it, such as /files/prices.pdf.",
    ),
    (
        "map",
        "textarea",
        "Column mapping",
        "One per line, starting with the field: title = Headline. Every page needs id, title, content, and url. "
        "To skip the column Notes, enter = Notes.",
    ),
)


def show_import(site_id: int, error: ApiError | None = None) -> str:
    """Show the form."""
    values: Mapping[str, str] = {} if error is None else request.form
    problems = field_problems(error)
    limit = current_app.config["BODY_LIMITS"]["imports.import_file"] // 1_000_000
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": kind,
            "label": label,
            "help": help.format(limit=limit),
            "required": name in ("file", "format"),
            "max_length": None,
            "value": values.get(name, ""),
            "options": ("", *FORM_FORMATS) if kind == "select" else (),
            "problems": [f"{label} {problems[name]}."] if name in problems else [],
        }
        for name, kind, label, help in _IMPORT_FIELDS
    ]
    return render(
        "import.html",
        site=load_site(site_id),
        fields=fields,
        choices={"": "Choose a format", **FORM_FORMATS},
        banner=banner_of(error, fields),
    )


def import_file(site_id: int) -> str:
    """Import the file, and report the imported pages and the skipped records with reasons."""
    refill_on_error(lambda error: show_import(site_id, error), _IMPORT_REFILLED)
    if not read_form_body(request).get("format"):
        raise field_error("format", "required", "is required")
    form = read_form(ImportFormSchema())
    file = request.files.get("file")
    if file is None or not file.filename:
        raise field_error("file", "required", "is required")
    if form["format"] in CONFIG_FORMATS:
        return _import_config(site_id, file.stream.read(), file.filename)
    content = imports.SentFile(file.stream, form["format"], form["map"], form["url"], file.content_type or "")
    outcome = imports.import_file(runtime(), current_caller(), site_id, content)
    groups = groupby(outcome.problems, key=lambda problem: (problem.line, problem.record))
    lines = [(line, record, [problem.message for problem in problems]) for (line, record), problems in groups]
    return render("import_done.html", site=load_site(site_id), file=file.filename, outcome=outcome, lines=lines)


def _import_config(site_id: int, body: bytes, file_name: str) -> str:
    try:
        sources, ignored = source_operations.import_config(runtime(), current_caller(), site_id, orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise field_error("file", "invalid", "is not valid JSON") from error
    except ValidationError as error:
        raise invalid(error) from error
    return render("import_config_done.html", site=load_site(site_id), file=file_name, sources=sources, ignored=ignored)


_IMPORT_REFILLED = frozenset({400, 403, 503})
