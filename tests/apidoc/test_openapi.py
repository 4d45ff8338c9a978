"""GET /openapi.json is complete, resolvable, and matches the routes. tests/responses.py checks responses against it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from jsonschema import Draft202012Validator

from tests.callers import ApiClient
from tests.conftest import close_app, make_app, make_settings
from tests.responses import Document

BY_HAND = {"/openapi.json", "/metrics", "/static/<path:filename>"}
"""Routes that are not operations of the API."""


@pytest.fixture(scope="module")
def spec(shared_app: Flask) -> Document:
    response = ApiClient(shared_app).get("/openapi.json")
    assert response.status_code == 200
    assert response.mimetype == "application/json"
    answer: Document = response.get_json()
    return answer


def operations(spec: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in spec["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield method, path, operation


def nested(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in the document."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from nested(member)


def test_document_has_version_and_title(spec: Document) -> None:
    assert spec["openapi"].startswith("3.1")
    assert spec["info"]["title"]
    assert spec["info"]["version"] == "1.0.0"
    assert "license" not in spec["info"]


def test_document_names_the_server_url(tmp_path: Path, spec: Document) -> None:
    assert spec["servers"] == [{"url": "http://localhost"}], "while the request was being sent"
    named = make_app(make_settings(tmp_path, public_url="https://search.example.com/"))
    answer = ApiClient(named).get("/openapi.json", headers={"Host": "internal:8000"}).get_json()
    close_app(named)
    assert answer["servers"] == [{"url": "https://search.example.com"}]


def test_every_operation_has_id_summary_tags_and_success_response(spec: Document) -> None:
    identifiers = []
    for method, path, operation in operations(spec):
        name = f"{method} {path}"
        identifiers.append(operation["operationId"])
        assert re.fullmatch(r"[a-z][A-Za-z]+", operation["operationId"]), name
        assert operation["summary"], name
        assert operation["tags"], name
        assert isinstance(operation["security"], list), name
        success = min(operation["responses"])
        assert success.startswith("2"), name
        assert operation["responses"][success]["content"]["application/json"]["schema"], name
        assert "default" not in operation["responses"], name
    assert len(identifiers) == len(set(identifiers))


def test_every_operation_documents_its_possible_errors(spec: Document) -> None:
    for method, path, operation in operations(spec):
        if path.startswith(("/engine", "/customsearch", "/1/indexes")):
            continue
        name = f"{method} {path}"
        needed = {"500"}
        if path not in ("/healthz", "/readyz"):
            needed |= {"429", "503"}
        if operation["security"]:
            needed |= {"401", "403"}
        if "{" in path:
            needed.add("404")
        if "requestBody" in operation:
            # A hook ignores bodies that are not JSON.
            needed |= {"400", "413"} | (set() if path.startswith("/hooks/") else {"415"})
        if any(parameter["in"] == "query" for parameter in operation.get("parameters", ())):
            needed.add("400")
        assert needed <= set(operation["responses"]), f"{name} lacks {needed - set(operation['responses'])}"


def test_every_response_documents_its_headers(spec: Document) -> None:
    for method, path, operation in operations(spec):
        for status, response in operation["responses"].items():
            assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"} <= set(
                response["headers"]
            ), f"{method} {path} {status}"
            assert ("Retry-After" in response["headers"]) == (status in ("429", "503"))


def test_session_writes_require_the_csrf_token(spec: Document) -> None:
    for method, path, operation in operations(spec):
        for requirement in operation["security"]:
            assert ("csrfToken" in requirement) == ("session" in requirement and method != "get"), path


def test_every_reference_resolves_and_every_component_is_used(spec: Document) -> None:
    references = {value["$ref"] for value in nested(spec) if "$ref" in value}
    referred_to = ("schemas", "headers", "examples")
    used_schemes = {name for _, _, o in operations(spec) for requirement in o["security"] for name in requirement}

    assert references == {f"#/components/{kind}/{name}" for kind in referred_to for name in spec["components"][kind]}
    assert used_schemes == set(spec["components"]["securitySchemes"])
    assert set(spec["components"]) == {*referred_to, "securitySchemes"}


def test_every_schema_is_valid(spec: Document) -> None:
    for name, schema in spec["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert "None" not in json.dumps(schema), name


def test_query_parameters_are_not_nullable(spec: Document) -> None:
    for method, path, operation in operations(spec):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                assert "null" not in json.dumps(parameter["schema"]), f"{method} {path} {parameter['name']}"


def test_path_parameters_are_documented(spec: Document) -> None:
    for method, path, operation in operations(spec):
        common = spec["paths"][path].get("parameters", [])
        described = {p["name"] for p in [*common, *operation.get("parameters", [])] if p["in"] == "path"}
        assert described == set(re.findall(r"\{([^}]+)\}", path)), f"{method} {path}"


def test_every_api_route_is_documented(shared_app: Flask, spec: Document) -> None:
    described = {(method.upper(), path) for method, path, _ in operations(spec)}
    for rule in shared_app.url_map.iter_rules():
        template = re.sub(r"<(?:[^:>]+:)?([^>]+)>", r"{\1}", rule.rule)
        is_page = rule.endpoint.startswith("pages.") or "." not in rule.endpoint
        if rule.rule in BY_HAND or is_page:
            continue
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            assert (method, template) in described, f"{method} {rule.rule} ({rule.endpoint})"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/search"),
        ("GET", "/v1/client-info"),
        ("POST", "/api/v1/index/bulk"),
        ("DELETE", "/api/v1/index/destroy"),
        ("POST", "/api/v1/search-log"),
        ("POST", "/v1/report-usage"),
        ("GET", "/api/analytics"),
        ("GET", "/api/sites/{site_id}/keys"),
        ("POST", "/api/sites/{site_id}/keys"),
        ("PUT", "/api/sites/{site_id}/keys/{key_id}"),
        ("DELETE", "/api/sites/{site_id}/keys/{key_id}"),
        ("GET", "/api/sites/{site_id}/keys/{key_id}/edit"),
        ("POST", "/api/keys/{key_id}/toggle"),
        ("GET", "/sites"),
        ("POST", "/sites"),
        ("GET", "/sites/create"),
        ("GET", "/sites/{site_id}/edit"),
        ("PUT", "/sites/{site_id}"),
        ("DELETE", "/sites/{site_id}"),
        ("GET", "/dashboard"),
        ("GET", "/profile/edit"),
        ("PUT", "/profile"),
        ("DELETE", "/profile"),
    ],
)
def test_required_endpoints_are_documented(spec: Document, method: str, path: str) -> None:
    assert method.lower() in spec["paths"][path]


def test_openapi_command_writes_the_same_document_without_servers(
    shared_app: Flask, spec: Document, tmp_path: Path
) -> None:
    file = tmp_path / "openapi.json"
    result = shared_app.test_cli_runner().invoke(args=["openapi", str(file)])

    assert result.exit_code == 0
    described = json.loads(file.read_text())
    assert described == {name: value for name, value in spec.items() if name != "servers"}, "imported files have no URL"
