"""The API reference pages, generated from the OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from app.apidoc.openapi import document
from app.apidoc.reference import CANNOT_BE_UNDONE, Operation, read_reference
from app.apidoc.schema_tables import describe_type, examples_of, read_rows

SCHEMAS: dict[str, Any] = {
    "Page": {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string", "maxLength": 9}, "limit": {"type": "integer", "default": 20}},
    },
    "Pages": {
        "type": "object",
        "properties": {"pages": {"type": "array", "items": {"$ref": "#/components/schemas/Page"}}},
    },
}


def read_one(operation: dict[str, Any], path: str = "/pages", verb: str = "post") -> Operation:
    described = {"operationId": "one", "tags": ["pages"], "responses": {}, **operation}
    reference = read_reference({"paths": {path: {verb: described}}, "components": {"schemas": SCHEMAS}})
    return reference.groups["pages"].operations[0]


def test_generated_examples_match_their_schemas(app: Flask) -> None:
    with app.app_context():
        described = document()
    registry = Registry().with_resource("urn:openapi", Resource(contents=described, specification=DRAFT202012))
    checked = 0
    for path, item in described["paths"].items():
        for verb, operation in item.items():
            if verb == "parameters":
                continue
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if schema is None:
                continue
            checked += 1
            example = examples_of(schema, described["components"]["schemas"])
            absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:openapi#/'))
            errors = [e.message for e in Draft202012Validator(absolute, registry=registry).iter_errors(example)]
            assert errors == [], f"{verb} {path}: {example}"
    assert checked > 12


def test_irreversible_operations_ask_for_confirmation(app: Flask) -> None:
    with app.app_context():
        reference = read_reference(document())
    operations = [operation for group in reference.groups.values() for operation in group.operations]
    assert {operation.name for operation in operations} >= CANNOT_BE_UNDONE
    for operation in operations:
        asks = operation.method == "DELETE" or operation.name in CANNOT_BE_UNDONE
        assert json.loads(operation.trial)["asks"] is asks, operation.name


def test_examples_are_generated_only_if_the_document_has_none() -> None:
    schema = {"$ref": "#/components/schemas/Page"}
    for given in ({"example": {"id": "x"}}, {"examples": {"usual": {"summary": "One", "value": {"id": "x"}}}}):
        shown = read_one({"requestBody": {"content": {"application/json": {"schema": schema, **given}}}})
        assert json.loads(shown.bodies["application/json"]) == {"id": "x"}
        assert '{"id": "x"}' in shown.samples["python"]
    made = read_one({"requestBody": {"content": {"application/json": {"schema": schema}}}})
    assert json.loads(made.bodies["application/json"]) == {"id": "opening-hours"}


def test_body_without_example_and_fields_gets_no_generated_example() -> None:
    contents = {
        "text/csv": {"schema": {"type": "string"}, "example": "id\n1\n"},
        "application/xml": {"schema": {"type": "string"}},
    }
    shown = read_one({"requestBody": {"content": contents}})
    assert shown.bodies == {"text/csv": "id\n1\n"}
    assert "-H 'Content-Type: text/csv'" in shown.samples["curl"]


def test_parameters_use_the_documents_examples() -> None:
    parameters = [
        {"name": "a", "in": "query", "schema": {"type": "string"}, "example": "x y"},
        {"name": "b", "in": "query", "schema": {"type": "integer", "examples": [7]}},
        {"name": "c", "in": "query", "schema": {"type": "boolean"}},
        {"name": "d", "in": "header", "required": True, "schema": {"enum": ["p", "q"]}},
        {"name": "key_id", "in": "path", "required": True, "schema": {"type": "string"}},
    ]
    shown = read_one({"parameters": parameters}, "/pages/{key_id}", "get")
    assert "'https://search.example.com/pages/key_a2b3c4d5e6?a=x%20y&b=7'" in shown.samples["curl"]
    assert "-H 'd: p'" in shown.samples["curl"]
    trial = {parameter["name"]: parameter for parameter in json.loads(shown.trial)["parameters"]}
    assert trial["c"]["choices"] == ["true", "false"]
    assert trial["d"]["choices"] == ["p", "q"]


def test_readers_site_replaces_site_examples_in_samples() -> None:
    site = {"name": "site_id", "schema": {"type": "integer"}, "example": 1}
    parameters = [
        {"in": "path", "required": True, **site},
        {"in": "path", "required": True, "name": "uid", "schema": {"type": "string"}, "example": "site_1"},
    ]
    path = "/sites/{site_id}/indexes/{uid}"
    needed = read_one({"parameters": [*parameters, {"in": "query", "required": True, **site}]}, path)
    optional = read_one({"parameters": [*parameters, {"in": "query", **site}]}, path)
    assert "/sites/YOUR_SITE/indexes/YOUR_INDEX?site_id=YOUR_SITE'" in needed.samples["curl"]
    assert "/sites/YOUR_SITE/indexes/YOUR_INDEX'" in optional.samples["curl"]


def test_required_private_key_scope_is_listed() -> None:
    shown = read_one({"security": [{"privateKey": ["documents"]}, {"session": [], "csrfToken": []}]})
    assert shown.callers == ["a private key with the scope documents", "a session"]


@pytest.mark.parametrize(
    ("security", "token"),
    [
        ([{"searchKey": []}, {"privateKey": []}], "YOUR_KEY"),
        ([{"privateKey": []}, {"session": [], "csrfToken": []}], "YOUR_KEY"),
        ([{"engineKey": []}], "YOUR_ENGINE_KEY"),
        ([], ""),
    ],
)
def test_samples_send_the_key_that_the_operation_accepts(security: list[dict[str, list[str]]], token: str) -> None:
    shown = read_one({"security": security})
    assert json.loads(shown.trial)["key"] == token
    for sample in shown.samples.values():
        assert ("Authorization" in sample) == bool(token)
        assert f"Bearer {token}" in sample or not token


def test_nested_fields_are_listed_with_their_paths() -> None:
    rows = {row.name: row for row in read_rows({"$ref": "#/components/schemas/Pages"}, SCHEMAS)}
    assert list(rows) == ["pages", "pages[].id", "pages[].limit"]
    assert (rows["pages"].type, rows["pages"].link) == ("list of Page", "Page")
    assert (rows["pages[].id"].required, rows["pages[].limit"].default) == (True, "20")


def test_recursive_schema_is_listed_to_a_limited_depth() -> None:
    tree = {"Node": {"type": "object", "properties": {"child": {"$ref": "#/components/schemas/Node"}}}}
    assert len(read_rows({"$ref": "#/components/schemas/Node"}, tree)) == 5


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "minLength": 1, "maxLength": 100}, "string, 1 to 100 characters"),
        ({"type": ["string", "null"], "format": "date-time"}, "ISO 8601 date-time or null"),
        ({"type": "integer", "minimum": 1, "maximum": 100}, "integer from 1 to 100"),
        ({"type": "integer", "minimum": 0, "maximum": 2147483647}, "integer from 0"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Hit"}}, "list of Hit"),
        ({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or list of string"),
        ({"enum": ["a", "b", None]}, "a | b | null"),
        ({}, "any value"),
    ],
)
def test_types_are_described_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_type(schema) == words
