"""Adds examples to the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from importlib.resources import files
from operator import getitem
from typing import Any

import orjson

from app.apidoc.examples.requests import PATHS, REQUESTS, RequestExample

JSON = "application/json"
FILE = "answers.json"

Answers = Mapping[str, Mapping[str, Any]]
"""Maps each operation ID, then media type, to the body of a successful response."""


def read_answers() -> Answers:
    """Read the recorded responses."""
    answers: Answers = orjson.loads(files(__package__).joinpath(FILE).read_bytes())
    return answers


def path_values(answers: Answers) -> dict[str, Any]:
    """Return the values of path parameters, from these responses. If a value is a URL, its last segment is used."""
    values = {
        name: reduce(getitem, members, answers[operation][JSON])
        for name, (operation, *members) in PATHS.items()
        if operation in answers
    }
    return {name: value.rpartition("/")[2] if isinstance(value, str) else value for name, value in values.items()}


def add_examples(paths: Mapping[str, dict[str, Any]]) -> None:
    """Add examples to the parameters, request bodies, and successful responses of all operations, in place."""
    answers = read_answers()
    places = path_values(answers)
    for item in paths.values():
        for operation in _operations(item):
            example = REQUESTS.get(operation["operationId"], RequestExample())
            _add_to_parameters(operation, {**places, **example.parameters})
            _add_to_contents([operation.get("requestBody", {})], {JSON: example.body, **example.other_bodies})
            successes = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            _add_to_contents(successes, answers.get(operation["operationId"], {}))
        _add_to_parameters(item, places)


def _operations(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    return (operation for method, operation in item.items() if method != "parameters")


def _add_to_parameters(described: dict[str, Any], values: Mapping[str, Any]) -> None:
    if "parameters" in described:
        described["parameters"] = [
            {**parameter, "example": values[parameter["name"]]} if parameter["name"] in values else parameter
            for parameter in described["parameters"]
        ]


def _add_to_contents(holders: Sequence[dict[str, Any]], values: Mapping[str, Any]) -> None:
    for holder in holders:
        for media_type, content in holder.get("content", {}).items():
            if values.get(media_type) is not None:
                content["example"] = values[media_type]
