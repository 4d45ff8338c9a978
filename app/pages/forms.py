"""Forms: reading them through the schemas that validate JSON, forms of rows, and showing problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import g, request
from marshmallow import Schema, fields
from werkzeug.datastructures import MultiDict

from app.errors import ApiError, Detail, ErrorCode
from app.web.parsing import load_values, read_form_body
from schemas.fields import Flag, Instant, ItemList, WholeNumber
from schemas.forms import choices_of, describe_form

Form = Mapping[str, str]

REFILLED = frozenset({400, 401, 403, 429})
"""Statuses of errors that show the form again. Other errors get an error page."""


def read_form(schema: Schema, leave_out_empty: Collection[str] = (), **overrides: Any) -> dict[str, Any]:
    """Read and validate the request's form.

    Args:
        leave_out_empty: Fields that are treated as absent if they are empty.
        overrides: Values that override the form's.

    Raises:
        ApiError: 400 with the problems of each field.
    """
    submitted = {
        name: value for name, value in _submitted_values(schema).items() if value or name not in leave_out_empty
    }
    values = {**submitted, **overrides}
    return load_values(schema, values)


def _submitted_values(schema: Schema) -> dict[str, Any]:
    values: dict[str, Any] = {}
    form = read_form_body(request)
    for name, field in schema.fields.items():
        texts = form.getlist(name)
        if texts and isinstance(field, ItemList):
            values[name] = _submitted_list(field, name, form)
        elif texts:
            # The last value counts: a hidden field before each checkbox sends the value for "unchecked".
            values[name] = _typed(field, texts[-1])
    return values


def _submitted_list(field: ItemList, name: str, form: Form) -> list[str] | None:
    """Return the checked boxes or the lines of a list; ``None`` (unrestricted) if all are checked or none is filled."""
    choices = choices_of(field)
    items = _ticked(name, choices, form) if choices else _lines(form[name])
    is_whole = len(items) == len(choices)  # A list without choices is "whole" if no line was entered.
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
    """Use ``show`` to render this request's errors from now on, if they have one of these statuses."""
    g.refill = (show, statuses)


def find_refill(error: ApiError) -> Callable[[ApiError], str] | None:
    """Return the function that renders this error for the request, or ``None``."""
    show, statuses = g.get("refill", (None, ()))
    return show if error.status in statuses else None


def shown_fields(
    schema: Schema, values: dict[str, Any], error: ApiError | None = None, *, leave_out: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Return a form's fields for templates. After an error, they have the submitted values and the problems."""
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
            wrong = ((index, problems.get(f"{name}[{index}]")) for index in range(len(entry["value"] or ())))
            entry["problems"] += [f"“{entry['value'][index]}” {problem}." for index, problem in wrong if problem]
    return described


def field_problems(error: ApiError | None) -> dict[str, str]:
    """Map each invalid field to a predicate, such as "is required"."""
    if error is None:
        return {}
    if error.code is ErrorCode.PASSWORD_INCORRECT:
        return {"password": "is incorrect", "current_password": "is incorrect"}
    return {detail.field: detail.message.removeprefix(detail.field).strip() for detail in reversed(error.details)}


def banner_of(error: ApiError | None, fields_shown: list[dict[str, Any]]) -> str | None:
    """Return the message above the form, unless the error is shown beside a field."""
    if error is None or any(entry["problems"] for entry in fields_shown):
        return None
    return error.message


MAX_DEPTH = 5
"""Maximum number of parts in a field's name."""


class FormTree:
    """Fields of a form with a common prefix. Names are paths, such as ``rules.3.when.query``; rows are numbered."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}
        self._children: dict[str, FormTree] = {}

    @classmethod
    def of(cls, form: MultiDict[str, str]) -> FormTree:
        """Return the tree of all fields of a form."""
        root = cls()
        for name in form:
            *path, leaf = name.split(".", MAX_DEPTH)
            node = root
            for part in path:
                node = node._children.setdefault(part, cls())
            node._values[leaf] = [text.replace("\r\n", "\n").strip() for text in form.getlist(name)]
        return root

    def text(self, name: str) -> str:
        """Return the text of the last field with this name; empty if the form has no such field."""
        return self._values.get(name, [""])[-1]

    def texts(self, name: str) -> list[str]:
        """Return the distinct texts of all fields with this name."""
        return list(dict.fromkeys(text for text in self._values.get(name, ()) if text))

    def child(self, name: str) -> FormTree:
        """Return the subtree below a name."""
        return self._children.get(name, FormTree())

    def rows(self, name: str) -> list[FormTree]:
        """Return the numbered rows below a name, in numeric order."""
        children = self.child(name)._children
        numbered = [key for key in children if key.isascii() and key.isdigit() and len(key) < 16]
        return [children[key] for key in sorted(numbered, key=int)]


def number_of(text: str) -> float | str:
    """Convert a text to a number, or return it unchanged if it is not a number, so that validation reports it."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


_NAMES = {
    "half_life_days": "half-life",
    "ids": "pages",
    "filters": "filter",
    "from": "from",
    "url": "URL",
}


_TOO_FEW = re.compile("must have ([1-9]\\d* to \\d+) items")


@dataclass(frozen=True, slots=True)
class Problems:
    """Problems of settings: maps a path, such as ``rules[3].when.query``, to sentences."""

    sentences: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, details: Sequence[Detail]) -> Problems:
        """Return the problems from an error's details, whether the settings are the body or its field ``settings``."""
        messages: dict[str, dict[str, None]] = {}
        for detail in details:
            messages.setdefault(detail.field.removeprefix("settings."), {})[detail.message] = None
        return cls({field: [_sentence(field, text) for text in texts] for field, texts in messages.items()})

    def sentences_below(self, path: str) -> list[str]:
        """Return the sentences about a path and everything below it."""
        return [
            sentence
            for field, sentences in self.sentences.items()
            if field == path or field.startswith((f"{path}.", f"{path}["))
            for sentence in sentences
        ]

    def sentences_of(self, path: str) -> list[str]:
        """Return the sentences about a field or a list as a whole, excluding sentences about its items."""
        return list(self.sentences.get(path, ()))


def _sentence(field: str, message: str) -> str:
    """Convert a message such as ``rules[3].when.query must …`` to a sentence with the label shown in the row."""
    last = field.rpartition(".")[2]
    name, _, rest = last.partition("[")
    predicate = message.removeprefix(last).removeprefix(name).strip()
    if rest and rest.rstrip("]").isdigit() and "." in field:
        subject = f"Item {int(rest.rstrip(']')) + 1} of {_NAMES.get(name, name)}"
    else:
        label = _NAMES.get(name, name.replace("_", " "))
        if limits := _TOO_FEW.fullmatch(predicate):
            return f"Add {limits[1]} {'words' if field.startswith('synonyms') else label}."
        subject = "This" if rest or "." not in field else label[:1].upper() + label[1:]
    return f"{subject} {predicate}."
