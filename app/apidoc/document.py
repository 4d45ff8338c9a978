"""Parts of the OpenAPI document that flask-smorest doesn't generate, and corrections of its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from marshmallow import Schema
from marshmallow.fields import Field

from app.apidoc.examples import add_examples
from schemas.base import QuerySchema
from schemas.documents import ChangesField, DocumentChangeSchema, DocumentSchema, DocumentsField
from schemas.fields import ItemList
from schemas.gateway import MAX_QUERIES, EngineQuerySchema, FilterField, Queries
from schemas.search import NamesOrList
from schemas.search_results import HitSections, SectionHitSchema
from schemas.search_settings import SynonymsEntry
from schemas.validation.documents import MAX_BATCH

SECURITY_SCHEMES = {
    "publicKey": {"type": "http", "scheme": "bearer", "description": "A public key, `svc_pub_…`."},
    "searchKey": {"type": "http", "scheme": "bearer", "description": "A search key, `svc_srch_…`."},
    "privateKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A private key, `svc_prv_…`. It has full access to the account, unless it has fewer `scopes` or "
        "is `site_only`. The scope that an operation needs is named where it requires this key.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "session",
        "description": "Session cookie, set by `POST /login`.",
    },
    "csrfToken": {
        "type": "apiKey",
        "in": "header",
        "name": "X-CSRF-Token",
        "description": "The session's `csrf_token`, required for writes with a session.",
    },
    "engineKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A public key, or `engine_key` or `engine_public_key` from `GET /v1/client-info`.",
    },
    "operatorToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token in the setting `OPERATOR_TOKEN`.",
    },
}

HEADERS = {
    "X-RateLimit-Limit": {"schema": {"type": "integer"}, "description": "Requests allowed in the window."},
    "X-RateLimit-Remaining": {"schema": {"type": "integer"}, "description": "Requests left in the window."},
    "X-RateLimit-Reset": {"schema": {"type": "integer"}, "description": "End of the window, in Unix seconds."},
    "X-Request-Id": {"schema": {"type": "string"}, "description": "Identifies this request in the logs."},
}
RETRY_HEADER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
_HEADER_REFERENCES = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}


_TEXT = {"type": "string"}
SHARED_SCHEMAS = {
    "Names": {
        "description": "Names separated by commas, or a list of them.",
        "oneOf": [_TEXT, {"type": "array", "items": _TEXT}],
    },
    "HitSection": {
        "description": "A section, or an item of a custom field named `sections`.",
        "oneOf": [{"$ref": "#/components/schemas/SectionHit"}, _TEXT, {"type": "number"}],
    },
    # Avoids oneOf: inside another oneOf, openapi-generator for TypeScript treats it as an object.
    "EngineFilterPart": {
        "description": "An expression, or a list of expressions, at least one of which must hold.",
        "type": ["string", "array"],
        "items": _TEXT,
    },
    "EngineSearchFilter": {
        "description": "An expression, or a list of expressions that must all hold.",
        "oneOf": [_TEXT, {"type": "array", "items": {"$ref": "#/components/schemas/EngineFilterPart"}}],
    },
}
"""Schemas that are shared by name, as generated clients need."""


_BATCHES: Mapping[type[Field[Any]], tuple[type[Schema], int, int]] = {
    DocumentsField: (DocumentSchema, 1, MAX_BATCH),
    ChangesField: (DocumentChangeSchema, 1, MAX_BATCH),
    Queries: (EngineQuerySchema, 0, MAX_QUERIES),
}
"""Maps field classes that parse lists themselves to the items' schema and the minimum and maximum number of items."""


def _batch_property(self: Any, field: Any, **kwargs: Any) -> dict[str, Any]:
    if type(field) not in _BATCHES:
        return {}
    schema, low, high = _BATCHES[type(field)]
    return {"type": "array", "items": self.resolve_nested_schema(schema), "minItems": low, "maxItems": high}


def _list_property(self: Any, field: Any, **kwargs: Any) -> dict[str, Any]:
    if not isinstance(field, ItemList):
        return {}
    kind = ["array", "null"] if field.allow_none else "array"
    return {"type": kind, "items": self.field2property(field.item), "minItems": field.low, "maxItems": field.high}


def _synonyms_property(self: Any, field: Any, **kwargs: Any) -> dict[str, Any]:
    if not isinstance(field, SynonymsEntry):
        return {}
    # Not oneOf, and not two types: openapi-generator generates Java, Go, and Python for them that does not compile.
    return {
        "description": "A list of words or phrases that mean the same, or an object for one-way synonyms.",
        "if": {"type": "array"},
        "then": self.field2property(field.group),
        "else": self.field2property(field.one_way),
    }


def _sections_property(self: Any, field: Any, **kwargs: Any) -> dict[str, Any]:
    if not isinstance(field, HitSections):
        return {}
    self.resolve_nested_schema(SectionHitSchema)
    return {"items": {"$ref": "#/components/schemas/HitSection"}}


def _shared_property(self: Any, field: Any, ret: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    name = {NamesOrList: "Names", FilterField: "EngineSearchFilter"}.get(type(field))
    if name is None or isinstance(field.parent, QuerySchema):
        return {}
    for attribute in ret.keys() - {"description"}:
        del ret[attribute]
    return {"$ref": f"#/components/schemas/{name}"}


PROPERTY_FUNCTIONS = (_batch_property, _shared_property, _list_property, _synonyms_property, _sections_property)
"""Functions that convert fields to schemas, for apispec."""


def finish_document(spec: dict[str, Any]) -> dict[str, Any]:
    """Return flask-smorest's document with corrections and examples."""
    spec = deepcopy(spec)
    for item in spec["paths"].values():
        for parameter in item.get("parameters", ()):
            if parameter["schema"].get("type") == "integer":
                parameter["schema"]["format"] = "int64"
        for method, operation in item.items():
            if method != "parameters":
                _finish_operation(method, operation)
    add_examples(spec["paths"])
    components = spec["components"]
    components.pop("responses", None)
    components["schemas"].pop("PaginationMetadata", None)
    for schema in components["schemas"].values():
        _finish_schema(schema)
        for member in schema.get("properties", {}).values():
            _describe_default(member)
    return spec


def _finish_operation(method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    responses.pop("default", None)
    operation["responses"] = dict(sorted(responses.items()))
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            response.setdefault("headers", {}).update(_HEADER_REFERENCES)
    if method not in ("get", "head"):
        operation["security"] = [
            {**scheme, "csrfToken": []} if "session" in scheme else scheme for scheme in operation["security"]
        ]
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            _forbid_null(parameter["schema"])
        _finish_schema(parameter["schema"])


def _finish_schema(schema: Any) -> None:
    """Remove null defaults, and add null to the enums of nullable values, recursively."""
    if isinstance(schema, list):
        for member in schema:
            _finish_schema(member)
    if not isinstance(schema, dict):
        return
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    if isinstance(schema.get("enum"), list) and "null" in schema.get("type", ()) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    for member in schema.values():
        _finish_schema(member)


def _describe_default(member: dict[str, Any]) -> None:
    """Move the default of a body's member to its description: generators treat such members as always present."""
    if "default" not in member:
        return
    default = member.pop("default")
    if default not in ("", [], {}):
        member["description"] = f"{member.get('description', '')} Default: `{json.dumps(default)}`.".lstrip()


def _forbid_null(schema: dict[str, Any]) -> None:
    """Remove null from the types of a query parameter, since a query string can't contain it."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema["type"] = next(kind for kind in kinds if kind != "null")
