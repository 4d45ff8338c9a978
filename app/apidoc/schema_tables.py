"""JSON Schemas of the OpenAPI document as tables and as example values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
_REF = "#/components/schemas/"
_MAX_DEPTH = 4

EXAMPLES = {
    "api_key": "svc_srch_…",
    "content": "We open at nine.",
    "count": 1,
    "current_password": "correct horse battery",
    "date": "2024-05-01",
    "email": "ann@example.com",
    "expires_at": "2030-01-01T00:00:00Z",
    "id": "opening-hours",
    "idempotency-key": "4f1f7b0e",
    "index": "site_1",
    "key_id": "key_a2b3c4d5e6",
    "name": "Harbour museum",
    "operation": "search",
    "password": "correct horse battery",
    "q": "harbour",
    "query": "harbour",
    "facetName": "author",
    "indexUid": "site_1",
    "results_count": 3,
    "run_id": "run_3f6c2e9d1b7a4c5e8f90",
    "site_id": 1,
    "source_id": "src_5b1e0c7f2a9d4e36",
    "sync_id": "sync_3f6c2e9d1b7a",
    "title": "Opening hours",
    "uid": "site_1",
    "url": "https://www.example.com/hours",
}
"""Example values by field name."""


@dataclass(frozen=True, slots=True)
class Row:
    """One field in a table.

    Attributes:
        type: Description of the type.
        link: Name of the schema that describes the field.
        default: The default as JSON, or ``None``.
    """

    name: str
    type: str
    link: str | None
    required: bool
    default: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Table:
    """A schema as a table of its fields."""

    name: str
    description: str
    rows: Sequence[Row]


def read_table(name: str, schema: Schema) -> Table:
    """Convert a schema to a table."""
    return Table(name, schema.get("description", ""), read_rows(schema, {}))


def read_rows(schema: Schema, schemas: Schema, within: str = "", depth: int = 0) -> list[Row]:
    """Return the fields of an object or of a list's items. Nested fields (``documents[].id``) follow their parent.

    Args:
        schema: Schema of the object, or a reference to it.
        schemas: Schemas by name, to resolve references; if empty, nested fields are omitted.
        within: Prefix of the field names.
        depth: Nesting depth of this object.
    """
    fields = _object(schema, schemas)
    required = fields.get("required", ())
    rows = []
    for field, described in fields.get("properties", {}).items():
        name = within + field
        rows.append(
            Row(
                name=name,
                type=describe_type(described),
                link=type_link(described),
                required=field in required,
                default=_default(described),
                description=described.get("description", ""),
            )
        )
        if schemas and depth < _MAX_DEPTH:
            mark = "[]." if any("array" in _kinds(part) for part in _unwrapped(described)) else "."
            rows += read_rows(described, schemas, name + mark, depth + 1)
    return rows


def _object(schema: Schema, schemas: Schema) -> Schema:
    """Return the object schema in a schema: itself, its reference, or its list items; empty if there isn't one."""
    for inner in _unwrapped(schema):
        resolved = schemas.get(str(inner.get("$ref", "")).removeprefix(_REF), inner)
        if "properties" in resolved:
            return dict(resolved)
    return {}


def _kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _default(schema: Schema) -> str | None:
    """Return the default as JSON; ``None`` if there isn't one or it is empty."""
    return json.dumps(schema["default"]) if schema.get("default") not in (None, "", [], {}) else None


def type_link(schema: Schema | None) -> str | None:
    """Return the name of the schema to which a schema, or the schema of its list items, refers."""
    for inner in _unwrapped(schema or {}):
        if "$ref" in inner:
            return str(inner["$ref"]).removeprefix(_REF)
    return None


def _unwrapped(schema: Schema) -> list[Schema]:
    """Return a schema and all schemas nested in it."""
    inner = [schema]
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            inner += _unwrapped(part)
    for choice in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        inner += _unwrapped(choice)
    return inner


def describe_type(schema: Schema) -> str:
    """Describe a type, such as ``string, 1 to 100 characters``, ``list of Hit``, or ``integer from 1 to 100``."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    choices = [*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())]
    if choices:
        return " or ".join(dict.fromkeys(describe_type(choice) for choice in choices))
    if "enum" in schema:
        return " | ".join("null" if value is None else str(value) for value in schema["enum"])
    kinds = schema.get("type", "any value")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    described = [_describe_kind(kind, schema) for kind in kinds]
    return " or ".join(described)


def _describe_kind(kind: str, schema: Schema) -> str:
    if kind == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    if kind in ("integer", "number"):
        return _with_bounds(kind, schema.get("minimum"), schema.get("maximum"))
    if kind == "string":
        formats = {"date-time": "ISO 8601 date-time", "email": "email address", "uri": "URL", "date": "date"}
        text = formats.get(schema.get("format", ""), "string")
        low, high = schema.get("minLength"), schema.get("maxLength")
        if high is not None:
            return f"{text}, {low} to {high} characters" if low else f"{text}, at most {high} characters"
        return text
    return kind


def _with_bounds(kind: str, low: float | None, high: float | None) -> str:
    if low is not None and low <= -(2**31):
        low = None
    if high is not None and high >= 2**31 - 1:
        high = None
    if low is not None and high is not None:
        return f"{kind} from {low} to {high}"
    return f"{kind} from {low}" if low is not None else kind


def examples_of(schema: Schema, schemas: Schema, name: str = "", depth: int = 0) -> Any:
    """Return an example value with the required fields, or with one field if no field is required."""
    if "$ref" in schema:
        return examples_of(schemas[str(schema["$ref"]).removeprefix(_REF)], schemas, name, depth)
    if "properties" in schema and depth < _MAX_DEPTH:
        names = schema.get("required") or list(schema["properties"])[:1]
        return {field: examples_of(schema["properties"][field], schemas, field, depth + 1) for field in names}
    if "example" in schema or name in EXAMPLES:
        return schema.get("example", EXAMPLES.get(name))
    if name.endswith("_at"):
        return EXAMPLES["expires_at"]
    choices = [*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())]
    if choices:
        return examples_of(choices[0], schemas, name, depth)
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "array":
        return [examples_of(schema.get("items", {}), schemas, "", depth + 1)]
    plain = {"integer": max(1, schema.get("minimum", 1)), "number": 1, "boolean": True, "object": {}}
    return plain.get(kind, "text")
