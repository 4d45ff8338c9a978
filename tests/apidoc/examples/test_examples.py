"""The API document has examples for all bodies, required parameters, and errors, and all examples are valid."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from app.apidoc import examples
from app.apidoc.examples import ERRORS
from app.apidoc.openapi import document
from app.errors import ErrorCode
from tests.responses import Document

PROJECT = Path(__file__).resolve().parents[3]
MIN_WORDS = 3
"""Minimum number of fixed words in the template of a message; fewer match any message."""
HOW = "add a request to REQUESTS in app/apidoc/example_requests.py, then: make examples"


@pytest.fixture(scope="module")
def spec(shared_app: Flask) -> Document:
    with shared_app.app_context():
        return document()


def operations(spec: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every operation with its name, including the parameters of its path."""
    for item in spec["paths"].values():
        for method, operation in item.items():
            if method != "parameters":
                parameters = [*item.get("parameters", ()), *operation.get("parameters", ())]
                yield operation["operationId"], {**operation, "parameters": parameters}


def contents(spec: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every request and response body with its location in the document."""
    for name, operation in operations(spec):
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{name}, request, {media_type}", content
        for status, response in operation["responses"].items():
            for media_type, content in response["content"].items():
                yield f"{name}, {status}, {media_type}", content


def test_every_body_has_an_example(spec: Document) -> None:
    lacking = [where for where, content in contents(spec) if "example" not in content and not content.get("examples")]

    assert lacking == [], HOW


def test_every_required_parameter_has_an_example(spec: Document) -> None:
    lacking = [
        f"{name}, {parameter['name']}"
        for name, operation in operations(spec)
        for parameter in operation["parameters"]
        if parameter.get("required") and "example" not in parameter
    ]

    assert lacking == [], f"{HOW} (for paths: PATHS)"


def test_every_documented_error_code_has_an_example(spec: Document) -> None:
    for name, operation in operations(spec):
        for status, response in operation["responses"].items():
            if not status.startswith("2"):
                codes = re.findall("`([A-Za-z_…]+)`", response["description"].partition(": ")[2])
                assert list(response["content"]["application/json"]["examples"]) == codes, f"{name}, {status}"


def test_every_example_matches_its_schema(spec: Document) -> None:
    registry: Registry[Any] = Registry().with_resource("urn:spec", Resource(contents=spec, specification=DRAFT202012))

    def check(where: str, schema: dict[str, Any], example: Any) -> None:
        absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:spec#/'))
        validator = Draft202012Validator(absolute, registry=registry, format_checker=FormatChecker())
        assert [error.message for error in validator.iter_errors(example)] == [], where

    for where, content in contents(spec):
        examples = content.get("examples", {"": {"value": content.get("example")}})
        for example in examples.values():
            shared = spec["components"]["examples"].get(example.get("$ref", "").rpartition("/")[2])
            check(where, content["schema"], (shared or example)["value"])
    for name, operation in operations(spec):
        for parameter in operation["parameters"]:
            if "example" in parameter:
                check(f"{name}, {parameter['name']}", parameter["schema"], parameter["example"])


def test_every_error_code_has_an_example() -> None:
    assert sorted(ERRORS) == sorted(ErrorCode), "add what is missing to _ERRORS in app/apidoc/examples.py"


def test_example_error_messages_match_the_messages_in_the_code() -> None:
    """Reworded messages must be reworded in the examples, too."""
    templates = [re.compile(template) for template in set(message_templates())]

    foreign = [
        body["message"]
        for body in ERRORS.values()
        if not any(template.fullmatch(predicate(body)) for template in templates)
    ]

    assert foreign == []


def predicate(body: dict[str, Any]) -> str:
    """Return the message without the field at its beginning and the position at its end, as the code has it."""
    fields = [detail["field"] for detail in body.get("details", ())]
    return re.sub(r" \(At character \d+\.\)$", "", str(body["message"])).removeprefix(f"{fields[0]} " if fields else "")


def message_templates() -> Iterator[str]:
    """Yield a pattern for each text of the code, with any text in place of its expressions."""
    for folder in ("app", "backends", "schemas"):
        for path in (PROJECT / folder).rglob("*.py"):
            if path != Path(examples.__file__):
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield re.escape(node.value)
                    elif isinstance(node, ast.JoinedStr):
                        parts = [each.value if isinstance(each, ast.Constant) else None for each in node.values]
                        if sum(len(re.findall(r"\w+", part)) for part in parts if isinstance(part, str)) >= MIN_WORDS:
                            yield "".join(re.escape(part) if isinstance(part, str) else ".+" for part in parts)
