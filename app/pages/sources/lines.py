"""Sources as the texts of a form in which people write them, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.errors import Detail, field_error
from app.wording import counted
from schemas.sources import MAX_GLOBS, MAX_HEADERS, SELECTORS

Form = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line that says something; ``number`` counts from 1, blank ones included."""

    number: int
    text: str


def lines_of(text: str) -> list[Line]:
    """The lines of a field that are not blank."""
    return [Line(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]


_GLOBS = ("include", "exclude")
_NUMBERS = ("max_pages", "max_depth")


def write_source(source: Any) -> dict[str, str]:
    """A source as the form's texts; its request headers stay secret."""
    return {
        "url": source.url,
        "schedule": source.schedule,
        **{name: "\n".join(getattr(source, name)) for name in _GLOBS},
        **{f"selector_{name}": source.selectors.get(name, "") for name in SELECTORS},
        **{name: "" if getattr(source, name) is None else str(getattr(source, name)) for name in _NUMBERS},
        "headers": "",
    }


def read_source(form: Form) -> dict[str, Any]:
    """The form's texts as the fields of a source, to be validated.

    Raises:
        ApiError: 400 for a header that is there twice.
    """
    fields: dict[str, Any] = {
        "url": form.get("url", ""),
        "schedule": form.get("schedule", "none"),
        **{name: [line.text.strip() for line in lines_of(form.get(name, ""))] for name in _GLOBS},
        "selectors": read_selectors(form),
        **{name: _number(form.get(name, "")) for name in _NUMBERS},
    }
    headers = read_headers(form)
    if headers or form.get("forget_headers") == "true":
        fields["headers"] = headers
    return fields


def read_selectors(form: Form) -> dict[str, str]:
    """The form's CSS selectors."""
    return {name: text for name in SELECTORS if (text := form.get(f"selector_{name}", "").strip())}


def read_headers(form: Form) -> dict[str, str]:
    """The form's request headers, one a line.

    Raises:
        ApiError: 400 for a header that is there twice.
    """
    headers: dict[str, str] = {}
    for line in lines_of(form.get("headers", "")):
        name, _, value = line.text.partition(":")
        if name.strip().lower() in {known.lower() for known in headers}:
            raise field_error("headers", "invalid", f"must not have {name.strip()[:64]} twice")
        headers[name.strip()] = value.strip()
    return headers


def explain(details: Sequence[Detail], form: Form) -> dict[str, list[str]]:
    """Field of the form to what is wrong with it, in plain words."""
    found: dict[str, dict[str, None]] = {}
    for detail in details:
        name, sentence = _explain(detail, form)
        found.setdefault(name, {})[sentence] = None
    return {name: list(sentences) for name, sentences in found.items()}


def _explain(detail: Detail, form: Form) -> tuple[str, str]:
    name, _, rest = detail.field.partition("[")
    predicate = detail.message.removeprefix(detail.field.rsplit(".", 1)[-1]).strip()
    if name in _GLOBS:
        lines = lines_of(form.get(name, ""))
        if not rest:
            return name, f"There are {counted(len(lines), 'line')}; at most {MAX_GLOBS} are allowed."
        return name, f"Line {lines[int(rest.partition(']')[0])].number} {predicate}."
    if name.startswith("selectors."):
        return f"selector_{name.removeprefix('selectors.')}", f"This selector {predicate}."
    if name == "headers":
        if detail.code == "too_long":
            lines = lines_of(form.get(name, ""))
            return name, f"There are {counted(len(lines), 'header')}; at most {MAX_HEADERS} are allowed."
        return name, f"The headers {predicate}."
    if name.startswith("headers."):
        return "headers", _explain_header(name.removeprefix("headers."), predicate, form)
    if name in _NUMBERS:
        return name, "This must be a whole number, or empty for no limit."
    if name == "url":
        return name, f"The address {predicate}."
    return name, f"{detail.message}."


def _explain_header(header: str, predicate: str, form: Form) -> str:
    for line in lines_of(form.get("headers", "")):
        name, colon, value = line.text.partition(":")
        if name.strip()[:80] == header:
            if not colon:
                return f"Line {line.number} has no colon between name and value, as in “Cookie: staging=yes”."
            if not value.strip():
                return f"Line {line.number} has no value after the colon."
            return f"Line {line.number}: the header {header} {predicate}."
    return f"The header {header} {predicate}."


def _number(text: str) -> int | str | None:
    text = text.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text
