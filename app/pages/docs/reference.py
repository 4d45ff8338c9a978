"""The API's reference for people, read from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.pages.docs.schema_tables import Row, Table, describe_type, examples_of, read_table, type_link

Document = dict[str, Any]

CALLERS = {
    "publicKey": "a public key",
    "searchKey": "a search key",
    "privateKey": "a private key",
    "session": "a session",
    "engineKey": "an engine key",
}
_VERBS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Answer:
    """One status an operation answers with."""

    status: str
    description: str
    schema: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one address.

    Attributes:
        callers: Who may call it; empty for everybody.
        body: Name of the body's schema.
        curl: A command to paste, with ``$BASE`` and ``$KEY``.
    """

    name: str
    method: str
    path: str
    summary: str
    description: str
    callers: Sequence[str]
    parameters: Sequence[Row]
    body: str | None
    curl: str
    answers: Sequence[Answer]


@dataclass(frozen=True, slots=True)
class Group:
    """Operations about one noun."""

    name: str
    description: str
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole API."""

    groups: Sequence[Group]
    schemas: Sequence[Table]


def read_reference(document: Document) -> Reference:
    """The reference of an OpenAPI document."""
    schemas = document["components"]["schemas"]
    groups = {tag["name"]: Group(tag["name"], tag.get("description", "")) for tag in document.get("tags", ())}
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for verb in _VERBS:
            if verb in item:
                operation = _read_operation(path, verb, item[verb], shared, schemas)
                name = item[verb].get("tags", ["other"])[0]
                groups.setdefault(name, Group(name, "")).operations.append(operation)
    return Reference(
        [group for group in groups.values() if group.operations],
        [read_table(name, schema) for name, schema in sorted(schemas.items())],
    )


def _read_operation(path: str, verb: str, described: Document, shared: list[Document], schemas: Document) -> Operation:
    parameters = [*shared, *described.get("parameters", [])]
    body_schema = _json_schema(described.get("requestBody", {}))
    callers = [
        _describe_caller(name, scopes)
        for need in described.get("security", [])
        for name, scopes in need.items()
        if name in CALLERS
    ]
    return Operation(
        name=described["operationId"],
        method=verb.upper(),
        path=path,
        summary=described.get("summary", ""),
        description=described.get("description", ""),
        callers=callers,
        parameters=[_read_parameter(parameter) for parameter in parameters],
        body=type_link(body_schema),
        curl=_curl(path, verb, parameters, body_schema, callers, schemas),
        answers=[
            Answer(status, answer.get("description", ""), type_link(_json_schema(answer)))
            for status, answer in sorted(described["responses"].items())
        ],
    )


def _describe_caller(name: str, scopes: Sequence[str]) -> str:
    return f"{CALLERS[name]} with the scope {', '.join(scopes)}" if scopes else CALLERS[name]


def _read_parameter(parameter: Document) -> Row:
    schema = parameter.get("schema", {})
    where = {"path": "In the path.", "header": "A header."}.get(parameter["in"], "")
    return Row(
        name=parameter["name"],
        type=describe_type(schema),
        link=None,
        required=bool(parameter.get("required")),
        default=None if schema.get("default") in (None, "") else json.dumps(schema["default"]),
        description=" ".join(filter(None, (parameter.get("description", ""), where))),
    )


def _json_schema(content: Document) -> Document | None:
    schema: Document | None = content.get("content", {}).get("application/json", {}).get("schema")
    return schema


def _curl(
    path: str, verb: str, parameters: list[Document], body: Document | None, callers: Sequence[str], schemas: Document
) -> str:
    """A command that calls the operation, with the parameters and the fields it cannot do without."""
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", _path_example(parameter))
    query = "&".join(
        f"{p['name']}={p['schema'].get('example', 'harbour')}"
        for p in parameters
        if p["in"] == "query" and p.get("required")
    )
    parts = ["curl"]
    if verb not in ("get", "post") or (verb == "post" and body is None):
        parts.append(f"-X {verb.upper()}")
    parts.append(f'"$BASE{path}{"?" + query if query else ""}"')
    if callers:
        parts.append('\\\n  -H "Authorization: Bearer $KEY"')
    if body is not None:
        example = json.dumps(examples_of(body, schemas), ensure_ascii=False)
        parts.append("\\\n  -H 'Content-Type: application/json'")
        parts.append(f"\\\n  -d '{example}'")
    return " ".join(parts)


def _path_example(parameter: Document) -> str:
    examples = {"key_id": "key_a2b3c4d5e6", "uid": "site_1"}
    return examples.get(parameter["name"], "1")
