"""Errors of gateway searches, with Meilisearch's codes."""

from __future__ import annotations

import re

from marshmallow import ValidationError

from schemas.validation.problems import walk

_OWN_CODES = {
    ("indexUid", "required"): "missing_index_uid",
    ("indexUid", ""): "invalid_index_uid",
    ("facetName", "required"): "missing_facet_search_facet_name",
    ("facetName", ""): "invalid_facet_search_facet_name",
    ("facetQuery", ""): "invalid_facet_search_facet_query",
    ("queries", ""): "bad_request",
    ("", ""): "bad_request",
}
_PATH = re.compile(r"(?P<place>queries\[\d+\])?\.?(?P<field>[^.\[]*)(?P<rest>.*)", re.DOTALL)


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return Meilisearch's code and a message for the first problem."""
    path, problem = next(walk(error.messages))
    match = _PATH.fullmatch(path)
    place, field = ("", path) if match is None else (match["place"] or "", match["field"])
    within = f" inside `.{place}`" if place else ""
    if problem.code == "unknown":
        return "bad_request", f"Unknown field `{field[:100]}`{within}."
    code = _OWN_CODES.get((field, problem.code)) or _OWN_CODES.get((field, "")) or f"invalid_search_{_snake(field)}"
    if problem.code == "required":
        return code, f"Missing field `{field}`{within}."
    where = f" at `.{path}`" if path else ""
    return code, f"Invalid value{where}: it {problem}."


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
