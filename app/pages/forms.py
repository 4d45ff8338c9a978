"""Reading forms through the schemas that validate JSON, and showing them again with what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from flask import g, request
from marshmallow import Schema, ValidationError, fields

from app.errors import ApiError, ErrorCode
from app.web.parsing import invalid, read_form_body
from schemas.fields import Flag, Instant, ItemList, WholeNumber
from schemas.forms import choices_of, describe_form

Form = Mapping[str, str]

REFILLED = frozenset({400, 401, 403, 429})
"""Statuses that show the form again; what else fails is an error page."""


def read_form(schema: Schema, leave_out_empty: Collection[str] = (), **given: Any) -> dict[str, Any]:
    """The values of the request's form, validated.

    Args:
        leave_out_empty: Fields that count as absent when they are left empty.
        given: Values that are not the form's to say.

    Raises:
        ApiError: 400 with the problems of each field.
    """
    sent = {name: value for name, value in _sent_values(schema).items() if value or name not in leave_out_empty}
    values = {**sent, **given}
    try:
        loaded: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        raise invalid(error) from error
    return loaded


def _sent_values(schema: Schema) -> dict[str, Any]:
    values: dict[str, Any] = {}
    form = read_form_body(request)
    for name, field in schema.fields.items():
        sent = form.getlist(name)
        if sent and isinstance(field, ItemList):
            values[name] = _sent_list(field, name, form)
        elif sent:
            # The last one counts: a checkbox stands behind a hidden field that says what unchecked means.
            values[name] = _typed(field, sent[-1])
    return values


def _sent_list(field: ItemList, name: str, form: Form) -> list[str] | None:
    """The ticked boxes or the lines of a list; ``None``, which is no list, for all boxes or no line."""
    choices = choices_of(field)
    items = _ticked(name, choices, form) if choices else _lines(form[name])
    is_whole = len(items) == len(choices)  # Without choices: no line.
    return None if field.allow_none and is_whole else items


def _ticked(name: str, choices: Iterable[str], form: Form) -> list[str]:
    return [choice for choice in choices if f"{name}.{choice}" in form]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _typed(field: fields.Field[Any], text: str) -> Any:
    if isinstance(field, Flag):
        return {"true": True, "on": True, "false": False}.get(text, text)
    if isinstance(field, WholeNumber):
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text
    if isinstance(field, Instant) and not text.strip():
        return None
    return text.replace("\r\n", "\n")


def refill_on_error(show: Callable[[ApiError], str], statuses: Collection[int] = REFILLED) -> None:
    """From here on, an error of this request with one of ``statuses`` is answered by ``show``."""
    g.refill = (show, statuses)


def find_refill(error: ApiError) -> Callable[[ApiError], str] | None:
    """The way in which the request wants this error shown."""
    show, statuses = g.get("refill", (None, ()))
    return show if error.status in statuses else None


def shown_fields(
    schema: Schema, values: dict[str, Any], error: ApiError | None = None, *, leave_out: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """The fields of a form for a page: those of its JSON, with what was sent if it failed, and the problems of each."""
    problems = field_problems(error)
    described = describe_form(schema, values, leave_out=leave_out)
    for entry in described:
        name = entry["name"]
        if error is not None and entry["type"] != "password" and name in request.form:
            entry["value"] = request.form.getlist(name)[-1]
            if entry["type"] == "checkboxes":
                entry["value"] = _ticked(name, entry["options"], request.form)
            if entry["type"] == "list":
                entry["value"] = _lines(entry["value"])
        if entry["type"] == "datetime-local" and entry["value"]:
            entry["value"] = str(entry["value"])[:16]
        problem = problems.get(name)
        entry["problems"] = [f"{entry['label']} {problem}."] if problem else []
        if entry["type"] == "list":
            wrong = ((at, problems.get(f"{name}[{at}]")) for at in range(len(entry["value"] or ())))
            entry["problems"] += [f"“{entry['value'][at]}” {problem}." for at, problem in wrong if problem]
    return described


def field_problems(error: ApiError | None) -> dict[str, str]:
    """Field to what is wrong with it, as a predicate."""
    if error is None:
        return {}
    if error.code is ErrorCode.PASSWORD_INCORRECT:
        return {"password": "is incorrect", "current_password": "is incorrect"}
    return {detail.field: detail.message.removeprefix(detail.field).strip() for detail in reversed(error.details)}


def banner_of(error: ApiError | None, shown: list[dict[str, Any]]) -> str | None:
    """The message above the form: the error, unless it stands beside a field."""
    if error is None or any(entry["problems"] for entry in shown):
        return None
    return error.message
