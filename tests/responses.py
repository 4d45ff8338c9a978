"""Checks for every response: it must match our API document and the error format.

Tests call the application through :class:`CheckedClient`, so they need not request these checks: a response that the
document does not describe fails the test that received it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from werkzeug.test import TestResponse

from app.apidoc.openapi import document
from app.compat import algolia, custom_search
from app.errors import STATUS, ErrorCode
from app.web.gateway_errors import is_gateway_path
from schemas.validation.problems import MAX_PROBLEMS

Document = dict[str, Any]
UNDESCRIBED_STATUSES = (404, 405)
"""Statuses that any URL may return without a description in its operation."""
DETAIL_MEMBERS = {"field", "code", "message", "index", "id", "position"}


class CheckedClient(FlaskClient):
    """A test client that checks every response."""

    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        response = super().open(*args, **kwargs)
        request = response.request
        check_response(self.application, request.method, request.path, response)
        return response


def check_response(app: Flask, method: str, path: str, response: TestResponse) -> None:
    """Fail unless the document describes the response and it has the headers of all responses."""
    if path.startswith("/static/"):
        return
    _check_headers(method, response)
    if response.status_code >= 400 and response.mimetype == "application/json" and method != "HEAD":
        _check_of(path)(response)
    described = _described(app)
    operation = find_operation(described, method, path)
    if operation is None:
        return
    template, verb = operation
    responses = described["paths"][template][verb]["responses"]
    status = str(response.status_code)
    if response.status_code in UNDESCRIBED_STATUSES and status not in responses:
        return
    if response.mimetype == "text/html" or response.status_code in (302, 303):
        return  # The HTML page at the same URL; see tests/pages.
    assert status in responses, (
        f"{verb.upper()} {template} has undocumented status {status}: {response.get_data(as_text=True)[:500]}"
    )
    if response.mimetype in ("application/x-ndjson", "text/event-stream"):
        assert response.mimetype in responses[status]["content"]
        return  # An empty body is also valid, and a stream of events may not have ended yet.
    if method == "HEAD" or not response.data:
        assert method == "HEAD" or "content" not in responses[status], f"{verb.upper()} {template} {status} has no body"
        return
    assert response.mimetype in responses[status]["content"], f"{response.mimetype} is not documented"
    if response.mimetype == "application/json":
        errors = sorted(_validator(template, verb, status).iter_errors(response.get_json()), key=str)
        assert not errors, f"{verb.upper()} {template} {status}: {errors[0].json_path} {errors[0].message[:500]}"


def _check_of(path: str) -> Callable[[TestResponse], dict[str, Any]]:
    """Return the check for the error format of this path."""
    if is_gateway_path(path):
        return check_engine_error
    if path.startswith(algolia.PREFIX):
        return check_algolia_error
    if path.partition("/mcp")[0] == "":
        return check_mcp_error
    return check_custom_search_error if path == custom_search.PATH else check_error


def find_operation(described: Document, method: str, path: str) -> tuple[str, str] | None:
    """Return the template and method of the operation for ``method path``, or ``None``."""
    verb = "get" if method == "HEAD" else method.lower()
    matching = [
        template
        for template, pattern in _patterns(tuple(described["paths"]))
        if pattern.fullmatch(path) and verb in described["paths"][template]
    ]
    return (min(matching, key=lambda template: template.count("{")), verb) if matching else None


@cache
def _patterns(templates: tuple[str, ...]) -> list[tuple[str, re.Pattern[str]]]:
    return [(template, re.compile(re.sub(r"\{[^}]+\}", "[^/]+", template))) for template in templates]


api_documents: list[Document] = []


def _described(app: Flask) -> Document:
    """Return the API document, created once because it is the same for every application."""
    if not api_documents:
        with app.app_context():
            api_documents.append(document())
    return api_documents[0]


@cache
def _validator(template: str, verb: str, status: str) -> Draft202012Validator:
    registry: Registry[Any] = Registry().with_resource(
        "urn:openapi", Resource(contents=api_documents[0], specification=DRAFT202012)
    )
    pointer = "/".join(
        part.replace("~", "~0").replace("/", "~1")
        for part in ("paths", template, verb, "responses", status, "content", "application/json", "schema")
    )
    return Draft202012Validator({"$ref": f"urn:openapi#/{pointer}"}, registry=registry)


def _check_headers(method: str, response: TestResponse) -> None:
    headers = response.headers
    assert re.fullmatch(r"[A-Za-z0-9._:+/=-]{1,128}", headers["X-Request-Id"])
    assert headers["X-Content-Type-Options"] == "nosniff"
    is_preflight = method == "OPTIONS" and "Access-Control-Max-Age" in headers
    if is_preflight:
        return
    numbers = [int(headers[f"X-RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset")]
    assert all(number >= 0 for number in numbers), numbers
    assert numbers[1] <= numbers[0], numbers


def check_error(response: TestResponse) -> dict[str, Any]:
    """Fail unless the response has the common error format; return its body."""
    body: dict[str, Any] = response.get_json()
    status = response.status_code
    assert {"error", "message"} <= set(body) <= {"error", "message", "details", "retry_after"}, body
    assert STATUS[ErrorCode(body["error"])] == status, body
    assert isinstance(body["message"], str)
    assert body["message"]
    if status == 429:
        assert set(body) == {"error", "message", "retry_after"}
    if status in (429, 503):
        assert body["retry_after"] >= 1
    assert response.headers.get("Retry-After") == (str(body["retry_after"]) if "retry_after" in body else None)
    assert ("retry_after" in body) == (status in (429, 503))
    if status == 401:
        assert response.headers["WWW-Authenticate"] == "Bearer"
    if status == 405:
        assert response.headers["Allow"]
    if "details" in body:
        assert status == 400
        assert 1 <= len(body["details"]) <= MAX_PROBLEMS
        for detail in body["details"]:
            assert (
                {"field", "code", "message"} <= set(detail) <= {"field", "code", "message", "index", "id", "position"}
            )
            assert all(isinstance(detail[name], str) and detail[name] for name in ("field", "code", "message"))
    _check_no_secrets(response)
    return body


def check_algolia_error(response: TestResponse) -> dict[str, Any]:
    """Fail unless the response has Algolia's error format; return its body."""
    body: dict[str, Any] = response.get_json()
    assert set(body) == {"message", "status"}
    assert body["status"] == response.status_code
    assert response.status_code not in (429, 503) or int(response.headers["Retry-After"]) >= 1
    _check_no_secrets(response)
    return body


def check_mcp_error(response: TestResponse) -> dict[str, Any]:
    """Fail unless the response is a JSON-RPC error or, before a message is read, an API error; return its body."""
    body: dict[str, Any] = response.get_json()
    if "jsonrpc" not in body:
        return check_error(response)
    assert {"jsonrpc", "error"} <= set(body) <= {"jsonrpc", "id", "error"}
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "data"}
    _check_no_secrets(response)
    return body


def check_custom_search_error(response: TestResponse) -> dict[str, Any]:
    """Fail unless the response has the error format of Google's APIs; return its body."""
    body: dict[str, Any] = response.get_json()
    error = body["error"]
    assert set(body) == {"error"}
    assert {"code", "message", "errors", "status"} <= set(error) <= {"code", "message", "errors", "status", "details"}
    assert error["code"] == response.status_code
    assert [problem["message"] for problem in error["errors"]] == [error["message"]]
    assert response.status_code not in (429, 503) or int(response.headers["Retry-After"]) >= 1
    _check_no_secrets(response)
    return body


def check_engine_error(response: TestResponse) -> dict[str, Any]:
    """Fail unless the response has Meilisearch's error format, used below ``/engine``; return its body."""
    body: dict[str, Any] = response.get_json()
    status = response.status_code
    assert set(body) == {"message", "code", "type", "link"}, body
    assert all(isinstance(value, str) and value for value in body.values()), body
    assert body["type"] == {401: "auth", 403: "auth", 429: "system", 500: "internal", 503: "system"}.get(
        status, "invalid_request"
    )
    assert body["link"].startswith(("https://", "http://"))
    if status in (429, 503):
        assert int(response.headers["Retry-After"]) >= 1
    if status == 405:
        assert response.headers["Allow"]
    _check_no_secrets(response)
    return body


def _check_no_secrets(response: TestResponse) -> None:
    for secret in ("Traceback", "sqlalchemy", "SELECT ", "tantivy", ".py"):
        assert secret not in response.get_data(as_text=True)


def assert_error(response: TestResponse, status: int, code: str, *, field: str | None = None) -> dict[str, Any]:
    """Fail unless the response is this error, about ``field`` if given; return its body."""
    text = response.get_data(as_text=True)[:500]
    assert response.status_code == status, f"{response.status_code} instead of {status}: {text}"
    body = check_error(response)
    assert body["error"] == code, text
    if field is not None:
        assert field in [detail["field"] for detail in body["details"]], text
    return body


def assert_ok(response: TestResponse, status: int = 200) -> dict[str, Any]:
    """Fail unless the response has this status; return its body."""
    assert response.status_code == status, f"{response.status_code}: {response.get_data(as_text=True)[:500]}"
    body: dict[str, Any] = response.get_json()
    return body
