"""The OpenAPI document and what blueprints say of themselves for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

from flask import Flask, current_app, request
from flask_smorest import Api
from flask_smorest import Blueprint as SmorestBlueprint
from marshmallow import Schema
from marshmallow.fields import Field

from app.apidoc.examples.document import add_examples
from app.apidoc.examples.errors import ERRORS, GATEWAY_ERRORS
from app.errors import STATUS, ErrorCode
from app.web.auth import BEARER
from app.web.parsing import StrictParser, read_nothing
from app.web.policy import OperationPolicy, set_policy
from schemas.documents import ChangesField, DocumentChangeSchema, DocumentSchema, DocumentsField
from schemas.errors import ErrorSchema, RateLimitErrorSchema
from schemas.fields import ItemList
from schemas.gateway.searches import MAX_QUERIES, EngineQuerySchema, FilterField, Queries
from schemas.search import HitSections, NamesOrList, SectionHitSchema
from schemas.validation.documents import MAX_BATCH

View = TypeVar("View", bound=Callable[..., Any])

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
        "description": "`engine_key` or `engine_public_key` from `GET /v1/client-info`.",
    },
}

GATEWAY_PREFIX = "engine_"
"""How the names of examples of the gateway's errors begin."""

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
    412: "Changed meanwhile",
    413: "Request body too large",
    415: "Unsupported content type",
    429: "Rate limit or daily quota exceeded",
    500: "Internal error",
    503: "A component is temporarily unavailable; retry after `Retry-After` seconds",
}
_HEADERS = {
    "X-RateLimit-Limit": {"schema": {"type": "integer"}, "description": "Requests allowed in the window."},
    "X-RateLimit-Remaining": {"schema": {"type": "integer"}, "description": "Requests left in the window."},
    "X-RateLimit-Reset": {"schema": {"type": "integer"}, "description": "End of the window, in Unix seconds."},
    "X-Request-Id": {"schema": {"type": "string"}, "description": "Identifies this request in the logs."},
}
_RETRY_HEADER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
_HEADER_REFERENCES = {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS}


_TEXT = {"type": "string"}
_SHARED_SCHEMAS = {
    "Names": {
        "description": "Names separated by commas, or a list of them.",
        "oneOf": [_TEXT, {"type": "array", "items": _TEXT}],
    },
    "HitSection": {
        "description": "A section; or a member of a further field of that name, if the document has one.",
        "oneOf": [{"$ref": "#/components/schemas/SectionHit"}, _TEXT, {"type": "number"}],
    },
    # Not by oneOf: in another oneOf, openapi-generator for TypeScript takes it for an object.
    "EngineFilterPart": {
        "description": "An expression, or a list of which one must hold.",
        "type": ["string", "array"],
        "items": _TEXT,
    },
    "EngineSearchFilter": {
        "description": "An expression, or a list of which all must hold.",
        "oneOf": [_TEXT, {"type": "array", "items": {"$ref": "#/components/schemas/EngineFilterPart"}}],
    },
}
"""Parts of schemas with a name of their own, for the sake of generated clients."""


class ApiBlueprint(SmorestBlueprint):
    """A flask-smorest blueprint with this API's parser and its way to describe an operation."""

    ARGUMENTS_PARSER = StrictParser()
    DEFAULT_LOCATION_CONTENT_TYPE_MAPPING: dict[str, str] = {  # noqa: RUF012
        **SmorestBlueprint.DEFAULT_LOCATION_CONTENT_TYPE_MAPPING,
        "json_optional": "application/json",
        "hook": "application/json",
        "documents": "application/json",
    }

    def __init__(self, *args: Any, error_examples: Mapping[str, Any] = MappingProxyType({}), **kwargs: Any):
        """flask-smorest's, with bodies of the blueprint's own errors, by the names of their examples."""
        super().__init__(*args, **kwargs)
        self.error_examples = error_examples

    def arguments(self, schema: Any, **kwargs: Any) -> Callable[[View], View]:
        """flask-smorest's, with one instance of the schema for all requests: making one costs more than using it."""
        reader: Callable[[View], View] = super().arguments(schema() if isinstance(schema, type) else schema, **kwargs)
        return reader

    def undocumented_body(self, schema: type[Schema]) -> Callable[[View], View]:
        """Read an optional body that the OpenAPI document does not mention.

        A DELETE takes its options as query parameters. Some callers send them in a body, where ignoring a condition
        would delete too much. A documented body would change the methods of generated clients, and makes the client
        for Go send ``null``.
        """
        reader = self.ARGUMENTS_PARSER.use_args(schema(), location="json_optional")
        return cast(Callable[[View], View], reader)

    def register_views_in_doc(self, api: ServiceApi, *args: Any, **kwargs: Any) -> None:
        """Describe the operations when the document is first asked for: that takes most of the time of a start."""
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
        """Say whom an operation is for and what it may answer; goes below ``route`` and above the rest.

        Args:
            operation_id: Name of the operation in generated clients.
            policy: What holds for every request of it.
            errors: Error codes of its own; those of keys, limits and bodies follow from the rest, and any request may
                be malformed.
            body: Whether it reads a JSON body.
            empty_body: Whether it is a DELETE that reads no body, and refuses one that says anything: the caller may
                have meant it as a condition.
        """
        codes = {*errors, ErrorCode.VALIDATION_FAILED, ErrorCode.INTERNAL_ERROR}
        if not policy.uncounted:
            codes.update(_COUNTED)
        if not policy.access.anyone:
            codes.update(_KEY_ERRORS)
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

    def declare(self, operation_id: str, policy: OperationPolicy, responses: dict[str, Any]) -> Callable[[View], View]:
        """Give a view its policy, and describe it with these responses; goes where ``operation`` goes."""

        def decorate(view: View) -> View:
            self.record_once(lambda state: set_policy(state.app, f"{self.name}.{view.__name__}", policy))
            documented: View = self.doc(operationId=operation_id, security=security_of(policy), responses=responses)(
                view
            )
            return documented

        return decorate


def _with_empty_body(view: View) -> View:
    @wraps(view)
    def checked(*args: Any, **kwargs: Any) -> Any:
        read_nothing(request)
        return view(*args, **kwargs)

    return cast("View", checked)


def security_of(policy: OperationPolicy) -> list[dict[str, list[str]]]:
    """The security requirement of an operation; that of private keys names the scope."""
    access = policy.access
    if policy.token_places is not BEARER:
        return []  # The parameter or header is described where it is.
    schemes = [
        ("publicKey", access.public),
        ("searchKey", access.search),
        ("privateKey", access.private),
        ("session", access.session),
        ("engineKey", access.engine),
    ]
    scopes = {"privateKey": [] if policy.scope is None else [policy.scope.value]}
    return [] if access.anyone else [{name: scopes.get(name, [])} for name, allowed in schemes if allowed]


def error_responses(codes: set[ErrorCode]) -> dict[str, Any]:
    """Responses of an operation for its error codes."""
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
    """Responses for the codes of each status.

    Args:
        schema: Of their bodies.
        own_schemas: Of the bodies of some statuses, instead.
        prefix: How the names of the examples of these codes begin.
    """
    responses: dict[str, Any] = {}
    for status, names in sorted(by_status.items()):
        headers = {**_HEADERS, **(_RETRY_HEADER if status in (429, 503) else {})}
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
    """The name of the example of an error code among the document's components, where not all characters may be."""
    return prefix + code.removesuffix("_…")


def create_api(app: Flask) -> Api:
    """Register flask-smorest, which collects the document, on ``app``."""
    app.config.update(
        API_TITLE="Site Search Service",
        API_VERSION="1.0.0",
        OPENAPI_VERSION="3.1.0",
    )
    api = ServiceApi()
    api.init_app(app)
    converter = api.ma_plugin.converter
    converter.add_attribute_function(_batch_property)
    converter.add_attribute_function(_shared_property)
    converter.add_attribute_function(_list_property)
    converter.add_attribute_function(_sections_property)
    for name, scheme in SECURITY_SCHEMES.items():
        api.spec.components.security_scheme(name, scheme)
    for name, schema in _SHARED_SCHEMAS.items():
        api.spec.components.schema(name, schema)
    for name, header in {**_HEADERS, **_RETRY_HEADER}.items():
        api.spec.components.header(name, header, lazy=True)
    for prefix, examples in (("", ERRORS), (GATEWAY_PREFIX, GATEWAY_ERRORS)):
        for code, body in examples.items():
            api.spec.components.example(example_name(prefix, code), {"value": body}, lazy=True)
    api.spec.options["info"] = {
        "description": "Hosted site search: index documents in bulk, search them, and read search statistics.",
    }
    return api


class ServiceApi(Api):
    """flask-smorest without its error handler and its responses for every status of HTTP: both are ours."""

    ERROR_SCHEMA = ErrorSchema

    def __init__(self) -> None:
        super().__init__()
        self.descriptions: list[Callable[[], None]] = []
        self._document: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def document(self) -> dict[str, Any]:
        """The document, made once."""
        with self._lock:
            if self._document is None:
                for describe in self.descriptions:
                    describe()
                self._document = _finished(self.spec.to_dict())
            return self._document

    def _register_error_handlers(self) -> None:
        return

    def _register_responses(self) -> None:
        return


_BATCHES: Mapping[type[Field[Any]], tuple[type[Schema], int, int]] = {
    DocumentsField: (DocumentSchema, 1, MAX_BATCH),
    ChangesField: (DocumentChangeSchema, 1, MAX_BATCH),
    Queries: (EngineQuerySchema, 0, MAX_QUERIES),
}
"""Fields that read a list by themselves: what is in it, and the least and the most of it."""


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


def _sections_property(self: Any, field: Any, **kwargs: Any) -> dict[str, Any]:
    if not isinstance(field, HitSections):
        return {}
    self.resolve_nested_schema(SectionHitSchema)
    return {"items": {"$ref": "#/components/schemas/HitSection"}}


def _shared_property(self: Any, field: Any, **kwargs: Any) -> dict[str, Any]:
    name = {NamesOrList: "Names", FilterField: "EngineSearchFilter"}.get(type(field))
    return {} if name is None else {"$ref": f"#/components/schemas/{name}"}


def document() -> dict[str, Any]:
    """The OpenAPI document of the current application."""
    api: ServiceApi = current_app.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    return api.document()


def document_at(base_url: str) -> dict[str, Any]:
    """The document of a service that answers at ``base_url``; empty: wherever the document itself is found."""
    described = document()
    opening = {"openapi": described["openapi"], "info": described["info"]}
    return {**opening, **({"servers": [{"url": base_url}]} if base_url else {}), **described}


def _finished(spec: dict[str, Any]) -> dict[str, Any]:
    """The collected document as it is served."""
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
    """Leave out defaults that only say "absent", and name null among the values of what may be null."""
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
    """Tell the default of a body's member in words: generators take one that has a default for always present."""
    if "default" not in member:
        return
    default = member.pop("default")
    if default not in ("", [], {}):
        member["description"] = f"{member.get('description', '')} Default: `{json.dumps(default)}`.".lstrip()


def _forbid_null(schema: dict[str, Any]) -> None:
    """A query parameter is absent or has a value; there is no null in a query string."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema["type"] = next(kind for kind in kinds if kind != "null")
