"""Examples in the OpenAPI document: requests to all operations, recorded responses, and a body for each error code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from importlib.resources import files
from operator import getitem
from typing import Any

import orjson

from app.apidoc.example_requests import PATHS, REQUESTS, RequestExample
from app.errors import ApiError, Detail, ErrorCode, error_body, field_error
from app.services.access.sessions import session_not_found
from app.services.accounts.invitations import invitation_not_found
from app.services.accounts.one_time_codes import code_required
from app.services.search.search import rejected
from app.web.gateway_errors import GatewayError, code_of, gateway_error_body, invalid_engine_key
from backends.errors import BackendRejected

JSON = "application/json"
FILE = "responses.json"

Responses = Mapping[str, Mapping[str, Any]]
"""Maps each operation ID, then media type, to the body of a successful response."""


def read_responses() -> Responses:
    """Read the recorded responses."""
    responses: Responses = orjson.loads(files(__package__).joinpath(FILE).read_bytes())
    return responses


def path_values(responses: Responses) -> dict[str, Any]:
    """Return the values of path parameters, taken from the responses. If a value is a URL, its last segment is used."""
    values = {
        name: reduce(getitem, members, responses[operation][JSON])
        for name, (operation, *members) in PATHS.items()
        if operation in responses
    }
    return {name: value.rpartition("/")[2] if isinstance(value, str) else value for name, value in values.items()}


def add_examples(paths: Mapping[str, dict[str, Any]]) -> None:
    """Add examples to the parameters, request bodies, and successful responses of all operations, in place."""
    responses = read_responses()
    ids = path_values(responses)
    for item in paths.values():
        for operation in _operations(item):
            example = REQUESTS.get(operation["operationId"], RequestExample())
            _add_to_parameters(operation, {**ids, **example.parameters})
            _add_to_contents([operation.get("requestBody", {})], {JSON: example.body, **example.other_bodies})
            successes = [response for status, response in operation["responses"].items() if status.startswith("2")]
            _add_to_contents(successes, responses.get(operation["operationId"], {}))
        _add_to_parameters(item, ids)


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


_ERRORS = (
    ApiError(ErrorCode.INVALID_JSON, "The body is not valid JSON in UTF-8 (line 3, column 14): unexpected character."),
    field_error("limit", "out_of_range", "must be between 1 and 100"),
    rejected(
        BackendRejected("filters", "Expected an operator: =, !=, >, >=, <, <=, TO, IN, EXISTS, or IS.", position=8)
    ),
    rejected(BackendRejected("sort", "Results cannot be sorted by 'content'.")),
    rejected(BackendRejected("facets", "The values of 'content' cannot be counted.")),
    ApiError(
        ErrorCode.BROWSER_UNAVAILABLE,
        "render requires a browser, which this service does not have",
        details=[
            Detail("render", "browser_unavailable", "render requires a browser, which this service does not have")
        ],
    ),
    ApiError(
        ErrorCode.BATCH_TOO_LARGE,
        "documents must contain at most 10000 documents",
        details=[Detail("documents", "batch_too_large", "documents must contain at most 10000 documents")],
    ),
    ApiError(
        ErrorCode.ANSWER_TOO_LARGE,
        "The response would contain more than 16777216 bytes of documents: request fewer hits, or select the fields "
        "you need.",
    ),
    ApiError(
        ErrorCode.SYNC_RUNNING,
        "The sync sync_K5LSWPD3A7RX2QYM of this source is running; finish or abandon it, or send replace: true.",
    ),
    ApiError(
        ErrorCode.SYNC_REMOVES_TOO_MUCH,
        "This would remove 120 of the source's 200 documents, more than 20 percent. Nothing was removed; to allow it, "
        "send a higher max_removed_percent.",
    ),
    ApiError(ErrorCode.MISSING_API_KEY, "Send an API key: Authorization: Bearer <API_KEY>."),
    ApiError(ErrorCode.INVALID_API_KEY, "The API key is invalid."),
    ApiError(ErrorCode.KEY_DISABLED, "The API key is disabled."),
    ApiError(ErrorCode.KEY_EXPIRED, "The API key has expired."),
    ApiError(ErrorCode.INVALID_CREDENTIALS, "The email or password is incorrect."),
    code_required(),
    ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "A search key cannot do this; use a private key."),
    ApiError(
        ErrorCode.ORIGIN_NOT_ALLOWED,
        "Pages of this origin may not use the key; add the origin to the key's allowed_origins.",
    ),
    ApiError(ErrorCode.SITE_INACTIVE, "The site is paused; resume it to search or index."),
    ApiError(ErrorCode.ACCOUNT_SUSPENDED, "The account is suspended. Please pay your bill."),
    ApiError(ErrorCode.KEY_LIMIT_REACHED, "The plan allows 10 keys; delete one or change the plan."),
    ApiError(ErrorCode.SITE_LIMIT_REACHED, "The plan allows 10 sites; delete one or change the plan."),
    ApiError(ErrorCode.COLLECTION_LIMIT_REACHED, "An account can have 20 collections; delete one first."),
    ApiError(ErrorCode.SOURCE_LIMIT_REACHED, "A site can have 20 sources; delete one first."),
    ApiError(
        ErrorCode.DOCUMENT_LIMIT_REACHED,
        "The plan allows 1,000 documents; the account has 990, and this batch adds 50 new documents. None of the batch "
        "was indexed.",
    ),
    ApiError(ErrorCode.MEMBER_LIMIT_REACHED, "An account can have at most 100 members, including pending invitations."),
    ApiError(ErrorCode.WEBHOOK_LIMIT_REACHED, "An account can have 10 webhooks; delete one."),
    ApiError(ErrorCode.LAST_OWNER, "An account must have an owner; make another member an owner first."),
    ApiError(ErrorCode.PASSWORD_INCORRECT, "The password is incorrect."),
    ApiError(
        ErrorCode.EMAIL_NOT_CONFIRMED,
        "The email address of the account's owner is not confirmed: open the link in the email, or request another "
        "one on the dashboard.",
    ),
    ApiError(ErrorCode.CSRF_FAILED, "Send the session's token in X-CSRF-Token (in a form: in the field csrf_token)."),
    ApiError(ErrorCode.ASK_DISABLED, "Questions are not answered on this site; turn on ask in its search settings."),
    ApiError(ErrorCode.ACCOUNT_NOT_FOUND, "Account not found."),
    ApiError(ErrorCode.SITE_NOT_FOUND, "Site not found."),
    ApiError(ErrorCode.COLLECTION_NOT_FOUND, "Collection not found."),
    ApiError(ErrorCode.KEY_NOT_FOUND, "Key not found."),
    ApiError(ErrorCode.DOCUMENT_NOT_FOUND, "Document not found."),
    ApiError(ErrorCode.SOURCE_NOT_FOUND, "Source not found."),
    ApiError(ErrorCode.RUN_NOT_FOUND, "Run not found."),
    ApiError(ErrorCode.SYNC_NOT_FOUND, "Sync not found: it does not exist, or has ended."),
    ApiError(ErrorCode.MEMBER_NOT_FOUND, "Member not found."),
    session_not_found(),
    invitation_not_found(),
    ApiError(ErrorCode.WEBHOOK_NOT_FOUND, "Webhook not found."),
    ApiError(ErrorCode.DELIVERY_NOT_FOUND, "Delivery not found."),
    ApiError(ErrorCode.INDEX_NOT_FOUND, "Index not found."),
    ApiError(ErrorCode.ASK_NOT_FOUND, "Question not found."),
    ApiError(ErrorCode.NOT_FOUND, "This URL does not exist."),
    ApiError(ErrorCode.METHOD_NOT_ALLOWED, "This URL supports GET, POST, not PUT."),
    ApiError(ErrorCode.REQUEST_TIMEOUT, "The request was sent too slowly."),
    ApiError(
        ErrorCode.CHANGED_MEANWHILE,
        "The search settings have changed in the meantime; fetch them again and repeat your change.",
    ),
    ApiError(ErrorCode.PAYLOAD_TOO_LARGE, "The body is larger than 16777216 bytes."),
    ApiError(
        ErrorCode.URI_TOO_LONG,
        "The request line is longer than 8190 bytes; send a long search with POST, as JSON.",
    ),
    ApiError(
        ErrorCode.UNSUPPORTED_MEDIA_TYPE, "The body must be JSON: send the header Content-Type: application/json."
    ),
    ApiError(
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "More than 1,200 requests per minute; try again in 12 seconds.",
        retry_after=12,
    ),
    ApiError(ErrorCode.HEADERS_TOO_LARGE, "The request's headers are too large; send fewer or shorter ones."),
    ApiError(ErrorCode.INTERNAL_ERROR, "Internal error. For details, search the service's log for this X-Request-Id."),
    ApiError(ErrorCode.SEARCH_ENGINE_UNAVAILABLE, "The search engine is unavailable; try again.", retry_after=5),
    ApiError(ErrorCode.DATABASE_UNAVAILABLE, "The database is unavailable; try again.", retry_after=5),
    ApiError(ErrorCode.COUNTERS_UNAVAILABLE, "The counter store is unavailable; try again.", retry_after=5),
    ApiError(
        ErrorCode.SERVER_BUSY,
        "Too many of your requests are waiting; try again when some have finished.",
        retry_after=1,
    ),
    ApiError(ErrorCode.ASK_UNAVAILABLE, "The language model is unavailable; try again.", retry_after=5),
    ApiError(
        ErrorCode.IDENTITY_PROVIDER_UNAVAILABLE,
        "The identity provider is not responding correctly; try again in a minute.",
        retry_after=10,
    ),
)

_LIKE_THE_GATEWAYS = {
    ErrorCode.ANSWER_TOO_LARGE,
    ErrorCode.MISSING_API_KEY,
    ErrorCode.ORIGIN_NOT_ALLOWED,
    ErrorCode.REQUEST_TIMEOUT,
    ErrorCode.PAYLOAD_TOO_LARGE,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
    ErrorCode.RATE_LIMIT_EXCEEDED,
    ErrorCode.INTERNAL_ERROR,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
    ErrorCode.DATABASE_UNAVAILABLE,
    ErrorCode.COUNTERS_UNAVAILABLE,
    ErrorCode.SERVER_BUSY,
}


def _gateway_body(error: ApiError) -> dict[str, Any]:
    return gateway_error_body(error, "https://search.example.com")


ERRORS: Mapping[str, dict[str, Any]] = {error.code.value: error_body(error) for error in _ERRORS}
"""Maps each error code to an example body."""

GATEWAY_ERRORS: Mapping[str, dict[str, Any]] = {
    "bad_request": _gateway_body(GatewayError("bad_request", "Unknown field `querry`.")),
    "invalid_search_…": _gateway_body(
        GatewayError("invalid_search_limit", "Invalid value at `.limit`: it must be an integer.")
    ),
    "invalid_api_key": _gateway_body(invalid_engine_key()),
    **{code_of(error): _gateway_body(error) for error in _ERRORS if error.code in _LIKE_THE_GATEWAYS},
}
"""Maps each gateway error code to an example body; codes with the same prefix share one."""
