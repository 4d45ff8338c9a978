"""The API reference, generated from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.apidoc.samples import ANY_KEY, INDEX, SITE, Call, pretty_json, write_samples
from app.apidoc.schema_tables import (
    EXAMPLES,
    Row,
    Table,
    describe_type,
    examples_of,
    read_rows,
    read_table,
    type_link,
)

Document = dict[str, Any]

BASE_URL = "https://search.example.com"
"""Placeholder for the service's URL in samples."""

ENGINE_KEY = "YOUR_ENGINE_KEY"
"""Placeholder for an engine key in samples."""
OPERATOR_TOKEN = "YOUR_OPERATOR_TOKEN"
"""Placeholder for the operator token in samples."""

_PLACEHOLDERS = {("path", "site_id"): SITE, ("query", "site_id"): SITE, ("path", "uid"): INDEX}
"""Maps the location and name of each parameter that identifies the reader's site to a placeholder."""

CALLERS = {
    "publicKey": "a public key",
    "searchKey": "a search key",
    "privateKey": "a private key",
    "session": "a session",
    "engineKey": "an engine key",
    "operatorToken": "the operator",
}
TITLES = {"algolia": "Algolia's search", "custom_search": "Google's Custom Search", "engine": "Gateway"}
"""Maps tags to page titles that differ from the tag's name. The page appends “API”."""

CANNOT_BE_UNDONE = frozenset({"deleteDocuments", "finishSync", "rotateKey", "updateSearchSettings"})
"""IDs of irreversible operations, in addition to all operations with the method DELETE."""

_VERBS = ("get", "post", "put", "patch", "delete")
_KEYS = ("publicKey", "searchKey", "privateKey")
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    Attributes:
        location: ``path``, ``query``, or ``header``.
        row: The parameter as a table row.
        choices: All allowed values, if they can be listed.
        example: An example as text; empty if samples omit the parameter.
    """

    location: str
    row: Row
    choices: Sequence[str]
    example: str


@dataclass(frozen=True, slots=True)
class ResponseDescription:
    """A response of an operation.

    Attributes:
        schema: Name of the body's schema.
        rows: The body's fields; only for successful responses.
        example: An example body; only for successful responses.
    """

    status: str
    description: str
    schema: str | None
    rows: Sequence[Row] = ()
    example: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path.

    Attributes:
        title: First sentence of the summary. The description contains the rest.
        callers: Kinds of callers that may use it; empty for everyone.
        body: Name of the body's schema.
        fields: The body's fields.
        bodies: Maps content types to examples as text.
        samples: Maps languages to sample programs.
        trial: JSON for the “try it” form.
    """

    name: str
    method: str
    path: str
    title: str
    description: str
    callers: Sequence[str]
    parameters: Sequence[Parameter]
    body: str | None
    fields: Sequence[Row]
    bodies: Mapping[str, str]
    samples: Mapping[str, str]
    successes: Sequence[ResponseDescription]
    errors: Sequence[ResponseDescription]
    trial: str


@dataclass(frozen=True, slots=True)
class Group:
    """Operations with the same tag."""

    name: str
    title: str
    description: str
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole API.

    Attributes:
        groups: Maps names to groups, in reading order.
    """

    groups: Mapping[str, Group]
    schemas: Sequence[Table]


def read_reference(document: Document) -> Reference:
    """Create the API reference from an OpenAPI document."""
    schemas = document["components"]["schemas"]
    descriptions = {tag["name"]: tag.get("description", "") for tag in document.get("tags", ())}
    groups = {name: _group(name, description) for name, description in descriptions.items()}
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for verb in _VERBS:
            if verb in item:
                operation = _read_operation(path, verb, item[verb], shared, schemas)
                name = item[verb].get("tags", ["other"])[0]
                groups.setdefault(name, _group(name, "")).operations.append(operation)
    return Reference(
        {name: group for name, group in groups.items() if group.operations},
        [read_table(name, schema) for name, schema in sorted(schemas.items())],
    )


def _group(name: str, description: str) -> Group:
    return Group(name, TITLES.get(name, name.replace("-", " ").capitalize()), description)


def _read_operation(path: str, verb: str, described: Document, shared: list[Document], schemas: Document) -> Operation:
    parameters = [_read_parameter(parameter) for parameter in [*shared, *described.get("parameters", [])]]
    contents = described.get("requestBody", {}).get("content", {})
    examples = {kind: _example_of(content, schemas) for kind, content in contents.items() if _has_example(content)}
    schema = contents.get(_JSON, {}).get("schema")
    schemes = [name for need in described.get("security", []) for name in need]
    tokens = {**dict.fromkeys(_KEYS, ANY_KEY), "engineKey": ENGINE_KEY, "operatorToken": OPERATOR_TOKEN}
    token = next((tokens[scheme] for scheme in schemes if scheme in tokens), "")
    method = verb.upper()
    title, _, rest = str(described.get("summary", described["operationId"])).rstrip(".").partition(". ")
    responses = [
        _read_response(status, response, schemas) for status, response in sorted(described["responses"].items())
    ]
    bodies = {kind: value if isinstance(value, str) else pretty_json(value) for kind, value in examples.items()}
    kind = _JSON if _JSON in examples else next(iter(examples), _JSON)
    return Operation(
        name=described["operationId"],
        method=method,
        path=path,
        title=title,
        description=" ".join(filter(None, (f"{rest}." if rest else "", described.get("description", "")))),
        callers=[
            _describe_caller(name, scopes)
            for need in described.get("security", [])
            for name, scopes in need.items()
            if name in CALLERS
        ],
        parameters=parameters,
        body=type_link(schema),
        fields=read_rows(schema or {}, schemas),
        bodies=bodies,
        samples=write_samples(
            Call(
                method=method,
                url=BASE_URL + _filled(path, parameters),
                query=_values(parameters, "query"),
                headers=_values(parameters, "header"),
                token=token,
                body=examples.get(kind),
                content_type=kind,
                returns_json=_returns_json(described),
            )
        ),
        successes=[response for response in responses if response.status < "4"],
        errors=[response for response in responses if response.status >= "4"],
        trial=json.dumps(
            {
                "name": described["operationId"],
                "method": method,
                "path": path,
                "key": token,
                "parameters": [
                    {
                        "name": parameter.row.name,
                        "in": parameter.location,
                        "required": parameter.row.required,
                        "choices": parameter.choices,
                        "example": parameter.example,
                    }
                    for parameter in parameters
                ],
                "bodies": bodies,
                "asks": method == "DELETE" or described["operationId"] in CANNOT_BE_UNDONE,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        ),
    )


def _describe_caller(name: str, scopes: Sequence[str]) -> str:
    return f"{CALLERS[name]} with the scope {', '.join(scopes)}" if scopes else CALLERS[name]


def _returns_json(described: Document) -> bool:
    """Whether a successful response has a JSON body."""
    return any(
        _JSON in response.get("content", {}) for status, response in described["responses"].items() if status < "4"
    )


def _read_parameter(parameter: Document) -> Parameter:
    schema = parameter.get("schema", {})
    location = parameter["in"]
    where = {"path": "In the path of the URL.", "header": "A header."}.get(location, "")
    row = Row(
        name=parameter["name"],
        type=describe_type(schema),
        link=None,
        required=bool(parameter.get("required")),
        default=None if schema.get("default") in (None, "") else json.dumps(schema["default"]),
        description=" ".join(filter(None, (parameter.get("description", ""), where))),
    )
    choices = ["true", "false"] if schema.get("type") == "boolean" else schema.get("enum", [])
    return Parameter(location, row, [_text(choice) for choice in choices if choice is not None], _value_of(parameter))


def _value_of(parameter: Document) -> str:
    """Return a parameter's value for samples; empty if samples omit the parameter."""
    placeholder = _PLACEHOLDERS.get((parameter["in"], parameter["name"]))
    if placeholder is not None:
        return placeholder if parameter.get("required") else ""
    schema = parameter.get("schema", {})
    for source in (parameter, schema):
        for value in (source.get("example"), *_values_of_examples(source.get("examples"))):
            if value is not None:
                return _text(value)
    if not parameter.get("required"):
        return ""
    return _text(EXAMPLES.get(parameter["name"].lower(), examples_of(schema, {}, parameter["name"])))


def _values_of_examples(examples: Any) -> list[Any]:
    """``{"one": {"value": 1}} -> [1]`` as in OpenAPI, ``[1] -> [1]`` as in JSON Schema"""
    if isinstance(examples, dict):
        return [example.get("value") for example in examples.values()]
    return list(examples or ())


def _text(value: Any) -> str:
    """``["a", "b"] -> "a,b"``, ``True -> "true"``"""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value)


def _has_example(content: Document) -> bool:
    """Whether an example body of this content type exists or can be generated."""
    return "example" in content or bool(content.get("examples")) or "$ref" in content.get("schema", {})


def _example_of(content: Document, schemas: Document) -> Any:
    for value in (content.get("example"), *_values_of_examples(content.get("examples"))):
        if value is not None:
            return value
    return examples_of(content.get("schema", {}), schemas)


def _values(parameters: Sequence[Parameter], location: str) -> dict[str, str]:
    return {p.row.name: p.example for p in parameters if p.location == location and (p.example or p.row.required)}


def _filled(path: str, parameters: Sequence[Parameter]) -> str:
    for parameter in parameters:
        path = path.replace("{" + parameter.row.name + "}", parameter.example)
    return path


def _read_response(status: str, response: Document, schemas: Document) -> ResponseDescription:
    content = response.get("content", {}).get(_JSON, {})
    schema = content.get("schema")
    if status >= "4" or schema is None:
        return ResponseDescription(status, response.get("description", ""), type_link(schema))
    return ResponseDescription(
        status,
        response.get("description", ""),
        type_link(schema),
        read_rows(schema, schemas),
        pretty_json(_example_of(content, schemas)),
    )
