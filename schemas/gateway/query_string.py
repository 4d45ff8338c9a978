"""Gateway requests in a query string."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
from marshmallow import Schema

from schemas.fields import Flag, Text, WholeNumber
from schemas.gateway.searches import FilterField, Names

_WHOLE = re.compile(r"-?[0-9]{1,20}", re.ASCII)


def read_query_string(schema: type[Schema], arguments: Mapping[str, str]) -> dict[str, Any]:
    """Convert a query string's parameters to JSON values; the schema rejects values that cannot be converted.

    Lists are names separated by commas; a filter may also be a JSON array.
    """
    known_names = schema._declared_fields
    return {name: _typed(known_names.get(name), text) for name, text in arguments.items()}


def _typed(field: Any, text: str) -> Any:
    if isinstance(field, WholeNumber):
        return int(text) if _WHOLE.fullmatch(text) else text
    if isinstance(field, Flag):
        return {"true": True, "false": False}.get(text, text)
    if isinstance(field, Names):
        return [part.strip() for part in text.split(",")] if text else []
    if isinstance(field, FilterField) and text.lstrip().startswith("["):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def query_parameters(schema: type[Schema]) -> list[dict[str, Any]]:
    """Return the query string's parameters for the OpenAPI document."""
    parameters = []
    for name, field in schema._declared_fields.items():
        shape: dict[str, Any] = {"type": "string"}
        note = field.metadata.get("description", "")
        if isinstance(field, WholeNumber):
            shape = {"type": "integer", "minimum": field.low, "maximum": field.high}
        elif isinstance(field, Flag):
            shape = {"type": "boolean", **{key: field.metadata[key] for key in ("enum",) if key in field.metadata}}
        elif isinstance(field, Names):
            note = f"{note} Separate names with commas.".strip()
        elif isinstance(field, FilterField):
            note = "An expression, or a JSON array of them."
        elif isinstance(field, Text):
            shape |= {key: field.metadata[key] for key in ("maxLength", "enum") if key in field.metadata}
        parameters.append({"in": "query", "name": name, "schema": shape, **({"description": note} if note else {})})
    return parameters
