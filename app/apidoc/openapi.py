"""Blueprints that describe their operations, and the OpenAPI document."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

from flask import Flask, current_app, request
from flask_smorest import Api
from flask_smorest import Blueprint as SmorestBlueprint
from marshmallow import Schema

from app.apidoc.document import (
    HEADERS,
    PROPERTY_FUNCTIONS,
    RETRY_HEADER,
    SECURITY_SCHEMES,
    SHARED_SCHEMAS,
    finish_document,
)
from app.apidoc.examples import ERRORS, GATEWAY_ERRORS
from app.errors import STATUS, ErrorCode
from app.web.auth import BEARER
from app.web.error_handlers import ErrorResponder
from app.web.parsing import StrictParser, read_nothing
from app.web.policy import OperationPolicy, set_policy
from schemas.base import ErrorSchema, RateLimitErrorSchema

View = TypeVar("View", bound=Callable[..., Any])

GATEWAY_PREFIX = "engine_"
"""Prefix in the names of the gateway's error examples."""

_COUNTED = (
    ErrorCode.RATE_LIMIT_EXCEEDED,
    ErrorCode.DATABASE_UNAVAILABLE,
    ErrorCode.COUNTERS_UNAVAILABLE,
    ErrorCode.SERVER_BUSY,
)
_KEY_ERRORS = (
    ErrorCode.MISSING_API_KEY,
    ErrorCode.INVALID_API_KEY,
    ErrorCode.KEY_DISABLED,
    ErrorCode.KEY_EXPIRED,
    ErrorCode.EMAIL_NOT_CONFIRMED,
)
_DESCRIPTIONS = {
    400: "Invalid parameters or malformed request body",
    401: "Missing or invalid credentials",
    403: "Authenticated, but not permitted",
    404: "Resource not found",
    405: "Method not allowed",
    408: "Request body sent too slowly",
    412: "Changed by someone else in the meantime",
    413: "Request body too large",
    415: "Unsupported content type",
    429: "Rate limit or daily quota exceeded",
    500: "Internal error",
    503: "A component is temporarily unavailable; retry after `Retry-After` seconds",
}


class ApiBlueprint(SmorestBlueprint):
    """A flask-smorest blueprint with this API's parser and operation descriptions."""

    ARGUMENTS_PARSER = StrictParser()
    DEFAULT_LOCATION_CONTENT_TYPE_MAPPING: dict[str, str] = {  # noqa: RUF012
        **SmorestBlueprint.DEFAULT_LOCATION_CONTENT_TYPE_MAPPING,
        "json_optional": "application/json",
        "hook": "application/json",
        "documents": "application/json",
    }

    def __init__(self, *args: Any, error_examples: Mapping[str, Any] = MappingProxyType({}), **kwargs: Any):
        """Create a blueprint. ``error_examples`` maps example names to bodies of the blueprint's own errors."""
        super().__init__(*args, **kwargs)
        self.error_examples = error_examples

    def arguments(self, schema: Any, *, location: str = "json", **options: Any) -> Callable[[View], View]:
        """Parse arguments as in flask-smorest, but share one schema instance among requests: creating one is slow."""
        schema = schema() if isinstance(schema, type) else schema
        describe = super().arguments(schema, location=location, **options)
        read = cast("Callable[[View], View]", self.ARGUMENTS_PARSER.use_args(schema, location=location))
        return lambda view: _described(read(view), describe(view))

    @staticmethod
    def doc(**described: Any) -> Callable[[View], View]:
        """Describe a view as flask-smorest does, but without wrapping the view in a function."""
        describe = SmorestBlueprint.doc(**described)
        return lambda view: _described(view, describe(view))

    def described_response(self, status: int, schema: type[Schema]) -> Callable[[View], View]:
        """Describe the response of a view that returns it as a :class:`flask.Response`."""
        describe = self.response(status, schema)
        return lambda view: _described(view, describe(view))

    def error_responder(self, respond: ErrorResponder) -> ErrorResponder:
        """Let a function render errors before others do; it returns ``None`` for errors at other URLs."""
        # Before the pages' responder, which would otherwise take the errors that browsers get.
        self.record_once(lambda state: state.app.extensions["error_responders"].insert(0, respond))
        return respond

    def undocumented_body(self, schema: type[Schema]) -> Callable[[View], View]:
        """Read an optional body that the OpenAPI document doesn't describe.

        A DELETE takes its options as query parameters, but some callers send them in a body, and ignoring a condition
        there would delete too much. Describing the body would change the methods of generated clients, and would make
        the Go client send ``null``.
        """
        reader = self.ARGUMENTS_PARSER.use_args(schema(), location="json_optional")
        return cast(Callable[[View], View], reader)

    def register_views_in_doc(self, api: ServiceApi, *args: Any, **kwargs: Any) -> None:
        """Defer describing the operations until the document is first requested, since it would slow down startup."""
        for name, body in self.error_examples.items():
            api.spec.components.example(name, {"value": body}, lazy=True)
        api.descriptions.append(partial(super().register_views_in_doc, api, *args, **kwargs))

    def operation(
        self,
        operation_id: str,
        policy: OperationPolicy,
        *,
        errors: tuple[ErrorCode, ...] = (),
        body: bool = False,
        empty_body: bool = False,
    ) -> Callable[[View], View]:
        """Declare the policy and responses of an operation. Place it below ``route`` and above the other decorators.

        Args:
            operation_id: Name of the operation in generated clients.
            policy: Policy for every request.
            errors: Specific error codes. Codes for keys, limits, and bodies are derived from the other arguments.
            body: Whether the operation reads a JSON body.
            empty_body: Whether the operation rejects bodies with content, since a caller may have meant the body of a
                DELETE as a condition.
        """
        codes = {*errors, ErrorCode.VALIDATION_FAILED, ErrorCode.INTERNAL_ERROR}
        if not policy.uncounted:
            codes.update(_COUNTED)
        if policy.access.operator:
            codes.update((ErrorCode.MISSING_API_KEY, ErrorCode.INVALID_API_KEY, ErrorCode.NOT_FOUND))
        elif not policy.access.anyone:
            codes.update(_KEY_ERRORS)
        if not policy.access.anyone:
            codes.update((ErrorCode.INSUFFICIENT_PERMISSION, ErrorCode.ACCOUNT_SUSPENDED))
        if policy.access.public or policy.access.search or policy.access.private:
            codes.add(ErrorCode.SITE_INACTIVE)
        if policy.access.public:
            codes.add(ErrorCode.ORIGIN_NOT_ALLOWED)
        if policy.access.session or policy.opens_session:
            codes.add(ErrorCode.CSRF_FAILED)
        if body or empty_body:
            codes.update(
                (
                    ErrorCode.INVALID_JSON,
                    ErrorCode.REQUEST_TIMEOUT,
                    ErrorCode.PAYLOAD_TOO_LARGE,
                    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
                )
            )

        declare = self.declare(operation_id, policy, error_responses(codes))
        return (lambda view: declare(_with_empty_body(view))) if empty_body else declare

    def put_and_patch(
        self,
        rule: str,
        operation_ids: tuple[str, str],
        policy: OperationPolicy,
        errors: tuple[ErrorCode, ...],
        schema: type[Schema],
        response: type[Schema],
    ) -> Callable[[View], View]:
        """Register a view ``update_…`` for PUT, and under the name ``patch_…`` also for PATCH.

        Args:
            operation_ids: Names of the operations in generated clients, for PUT and PATCH.
            schema: Schema of the request body.
        """

        def register(view: View) -> View:
            def patch(*args: Any, **kwargs: Any) -> Any:
                return view(*args, **kwargs)

            patch.__name__, patch.__doc__ = view.__name__.replace("update_", "patch_", 1), "Same as PUT."
            views: tuple[Callable[..., Any], ...] = (view, patch)
            for method, operation_id, each in zip(("PUT", "PATCH"), operation_ids, views, strict=True):
                described = self.arguments(schema)(self.response(200, response)(each))
                self.route(rule, methods=[method])(
                    self.operation(operation_id, policy, errors=errors, body=True)(described)
                )
            return view

        return register

    def declare(self, operation_id: str, policy: OperationPolicy, responses: dict[str, Any]) -> Callable[[View], View]:
        """Set the policy of a view and describe the given responses. Use it instead of ``operation``."""

        def decorate(view: View) -> View:
            self.record_once(lambda state: set_policy(state.app, f"{self.name}.{view.__name__}", policy))
            documented: View = self.doc(operationId=operation_id, security=security_of(policy), responses=responses)(
                view
            )
            return documented

        return decorate


def _described(view: View, described: Callable[..., Any]) -> View:
    """Return the view with flask-smorest's description of it, and without its wrapper."""
    view._apidoc = described._apidoc  # type: ignore[attr-defined]
    return view


def _with_empty_body(view: View) -> View:
    @wraps(view)
    def checked(*args: Any, **kwargs: Any) -> Any:
        read_nothing(request)
        return view(*args, **kwargs)

    return cast("View", checked)


def security_of(policy: OperationPolicy) -> list[dict[str, list[str]]]:
    """Return the security requirements of an operation, including the scope for private keys."""
    access = policy.access
    if policy.token_locations is not BEARER:
        return []  # Keys in a query parameter or another header are described as parameters of the operation.
    schemes = [
        ("publicKey", access.public),
        ("searchKey", access.search),
        ("privateKey", access.private),
        ("session", access.session),
        ("engineKey", access.engine),
        ("operatorToken", access.operator),
    ]
    scopes = {"privateKey": [] if policy.scope is None else [policy.scope.value]}
    return [] if access.anyone else [{name: scopes.get(name, [])} for name, allowed in schemes if allowed]


def error_responses(codes: set[ErrorCode]) -> dict[str, Any]:
    """Return an operation's error responses, by status."""
    by_status: dict[int, list[str]] = {}
    for code in ErrorCode:
        if code in codes:
            by_status.setdefault(STATUS[code], []).append(code.value)
    return described_errors(by_status, ErrorSchema, {429: RateLimitErrorSchema})


def described_errors(
    by_status: Mapping[int, Sequence[str]],
    schema: type[Schema],
    own_schemas: Mapping[int, type[Schema]] = MappingProxyType({}),
    *,
    prefix: str = "",
) -> dict[str, Any]:
    """Return error responses for the codes of each status.

    Args:
        schema: Schema of the bodies.
        own_schemas: Maps statuses whose bodies have other schemas to these schemas.
        prefix: Prefix in the names of the examples.
    """
    responses: dict[str, Any] = {}
    for status, names in sorted(by_status.items()):
        headers = {**HEADERS, **(RETRY_HEADER if status in (429, 503) else {})}
        responses[str(status)] = {
            "description": f"{_DESCRIPTIONS[status]}: " + ", ".join(f"`{name}`" for name in names),
            "headers": {name: name for name in headers},
            "content": {
                "application/json": {
                    "schema": own_schemas.get(status, schema),
                    "examples": {name: example_name(prefix, name) for name in names},
                }
            },
        }
    return responses


def example_name(prefix: str, code: str) -> str:
    """Return the component name of an error code's example, without the ``…`` of some codes, which is not allowed."""
    return prefix + code.removesuffix("_…")


def create_api(app: Flask) -> Api:
    """Register flask-smorest, which generates the OpenAPI document, on ``app``."""
    app.config.update(
        API_TITLE="Site Search Service",
        API_VERSION="1.0.0",
        OPENAPI_VERSION="3.1.0",
    )
    api = ServiceApi()
    api.init_app(app)
    converter = api.ma_plugin.converter
    for function in PROPERTY_FUNCTIONS:
        converter.add_attribute_function(function)
    for name, scheme in SECURITY_SCHEMES.items():
        api.spec.components.security_scheme(name, scheme)
    for name, schema in SHARED_SCHEMAS.items():
        api.spec.components.schema(name, schema)
    for name, header in {**HEADERS, **RETRY_HEADER}.items():
        api.spec.components.header(name, header, lazy=True)
    for prefix, examples in (("", ERRORS), (GATEWAY_PREFIX, GATEWAY_ERRORS)):
        for code, body in examples.items():
            api.spec.components.example(example_name(prefix, code), {"value": body}, lazy=True)
    api.spec.options["info"] = {
        "description": "Hosted site search: index documents in bulk, search them, and read search statistics.",
    }
    return api


class ServiceApi(Api):
    """flask-smorest without its error handlers and default responses, which this service replaces."""

    ERROR_SCHEMA = ErrorSchema

    def __init__(self) -> None:
        super().__init__()
        self.descriptions: list[Callable[[], None]] = []
        self._document: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document, which is created on first use."""
        with self._lock:
            if self._document is None:
                for describe in self.descriptions:
                    describe()
                self._document = finish_document(self.spec.to_dict())
            return self._document

    def _register_error_handlers(self) -> None:
        return

    def _register_responses(self) -> None:
        return


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the current application."""
    api: ServiceApi = current_app.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    return api.document()


def document_at(base_url: str) -> dict[str, Any]:
    """Return the document with ``base_url`` as the server's URL; if empty, it is relative to the document's own URL."""
    described = document()
    opening = {"openapi": described["openapi"], "info": described["info"]}
    return {**opening, **({"servers": [{"url": base_url}]} if base_url else {}), **described}
