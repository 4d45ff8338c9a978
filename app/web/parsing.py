"""Strict reading of request bodies and query strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson
from flask import Request, current_app, request
from gunicorn.http.errors import ParseException
from marshmallow import Schema, ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.routing import IntegerConverter

from app.crawl.fetch import responses
from app.errors import ApiError, Detail, ErrorCode, field_error, validation_error
from app.importers.csv import read_csv
from app.importers.json_values import read_json_lines
from app.importers.records import BadLine, Read, UnreadableFile
from app.texts.formats import html_to_marked_text, markdown_to_marked_text
from app.texts.sections import as_field, take_sections
from app.web.admission import current_admission
from backends.sections import SECTIONS
from backends.standard_fields import TEXT_FIELDS
from schemas.base import NothingSchema
from schemas.validation.documents import MAX_BATCH, UnreadableDocument
from schemas.validation.problems import MAX_PROBLEMS, Problem, walk


def read_body(req: Request) -> bytes:
    """Read the request's body.

    Raises:
        ApiError: 413 above the limit of the route, 408 if the body arrives too slowly, 415 for an encoded body.
    """
    # Limits count the bytes that arrive, and a compressed body may expand a thousandfold.
    if req.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise ApiError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Encoded bodies are not accepted; send the body without Content-Encoding."
        )
    limit = _body_limit(req)
    with _reading(req, limit, ErrorCode.INVALID_JSON):
        length = req.content_length
        if length is None or length > limit or not is_json(req):
            return req.get_data()
        return _read_at_once(req, length)


MAX_OPEN_BODY_BYTES = 65_536
"""Maximum size of forms that anyone may send, such as the login form: parsing a megabyte takes half a CPU second."""


def _body_limit(req: Request) -> int:
    config = current_app.config
    limit: int = config["BODY_LIMITS"].get(req.endpoint, config["MAX_BODY_BYTES"])
    policy = current_admission().policy
    return min(limit, MAX_OPEN_BODY_BYTES) if policy.access.anyone and policy.has_page else limit


def _read_at_once(req: Request, length: int) -> bytes:
    """Read a body of known length in one call. werkzeug reads in pieces, and gunicorn copies its buffer for each.

    Raises:
        ClientDisconnected: The body is truncated.
    """
    body: bytes = req.environ["wsgi.input"].read(length)
    if len(body) < length:
        raise ClientDisconnected
    return body


FILE_TYPES = (
    "text/csv",
    "application/json",
    "application/x-ndjson",
    "application/xml",
    "text/xml",
    "application/octet-stream",
    "text/plain",
)
"""Media types of unencoded file bodies."""


def read_file_body(req: Request, *, is_page: bool = False) -> bytes:
    """Read the request's body as a file.

    Args:
        is_page: Whether the file becomes one page, which allows more media types.

    Raises:
        ApiError: As :func:`read_body`; 415 for another media type; 400 for an empty body.
    """
    body = read_body(req)
    if req.mimetype not in FILE_TYPES and not (is_page and responses.is_page(req.mimetype)):
        raise ApiError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"Send the unencoded file with a Content-Type of {', '.join(FILE_TYPES)}."
        )
    if not body:
        raise field_error("file", "required", "is empty")
    return body


def too_large(limit: int) -> ApiError:
    """Return the 413 with the limit. It closes the connection, since the rest of the body was not read."""
    return ApiError(
        ErrorCode.PAYLOAD_TOO_LARGE, f"The body is larger than {limit} bytes.", headers={"Connection": "close"}
    )


def is_json(req: Request) -> bool:
    """Whether the request's Content-Type is JSON."""
    mimetype = req.mimetype
    return mimetype == "application/json" or (mimetype.startswith("application/") and mimetype.endswith("+json"))


_MUST_BE_THERE = object()


def read_json(req: Request, *, absent: Any = _MUST_BE_THERE, any_type: bool = False) -> Any:
    """Read the request's JSON body.

    Args:
        absent: Value for an empty body. By default, the body is required.
        any_type: Whether to ignore the Content-Type.

    Raises:
        ApiError: 413; 415 for a missing or other content type; 400 ``invalid_json`` for invalid JSON or UTF-8.
    """
    body = read_body(req)
    if not body and absent is not _MUST_BE_THERE:
        return absent
    if not (any_type or is_json(req)):
        raise ApiError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, "The body must be JSON: send the header Content-Type: application/json."
        )
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _invalid_json(body, error) from error


def _invalid_json(body: bytes, error: orjson.JSONDecodeError) -> ApiError:
    line, column, reason = error.lineno, error.colno, error.msg
    try:
        body.decode()
    except UnicodeDecodeError as undecodable:
        # orjson reports the start of the body, whichever byte is wrong.
        before = body[: undecodable.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = f"the byte 0x{body[undecodable.start]:02x} is not UTF-8"
    message = f"The body is not valid JSON in UTF-8 (line {line}, column {column}): {reason}."
    return ApiError(ErrorCode.INVALID_JSON, message)


def read_nothing(req: Request) -> None:
    """Reject a body with content.

    Raises:
        ApiError: As :func:`read_json`; 400 for any field.
    """
    try:
        _NOTHING.load(read_json(req, absent={}))
    except ValidationError as error:
        raise invalid(error) from error


_NOTHING = NothingSchema()


def read_json_once(req: Request, *, any_type: bool = False) -> Any:
    """Read the request's JSON body and cache it, for policies that need it before the view.

    Args:
        any_type: As for :func:`read_json`.

    Raises:
        ApiError: As :func:`read_json`, again on every call.
    """
    # The body is a stream, which can be read only once. An error is cached, too, so that the view reports it in its
    # order.
    admission = current_admission()
    if admission.json_body is None:
        try:
            admission.json_body = (read_json(req, any_type=any_type), None)
        except ApiError as error:
            admission.json_body = (None, error)
    body, failure = admission.json_body
    if failure is not None:
        raise failure
    return body


LINE_READERS: Mapping[str, Callable[[BytesIO], Iterator[Read]]] = {
    "application/x-ndjson": read_json_lines,
    "text/csv": read_csv,
}
"""Maps content types to readers of documents."""


def read_lines_of_documents(req: Request) -> list[Any]:
    """Read a body with one document per line, up to one document more than a batch may contain.

    Raises:
        ApiError: 413; 415 for a media type without a reader; 400 for an unreadable body.
    """
    body = read_body(req)
    reader = LINE_READERS.get(req.mimetype)
    if reader is None:
        names = ", ".join(LINE_READERS)
        raise ApiError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            f"Send documents with the header Content-Type: application/json, or one of {names}.",
        )
    documents: list[Any] = []
    try:
        # One more than allowed, so that validation reports the batch as too large.
        for read in islice(reader(BytesIO(body)), MAX_BATCH + 1):
            if isinstance(read, BadLine):
                problem = Problem(f"(line {read.line}) {read.problem}", read.problem.code)
                documents.append(UnreadableDocument(problem))
            else:
                documents.append(read.value)
    except UnreadableFile as error:
        raise field_error("body", error.problem.code, str(error.problem)) from error
    return documents


TEXT_READERS: Mapping[str, Callable[[str], str]] = {"html": html_to_marked_text, "markdown": markdown_to_marked_text}
"""Maps text formats of documents to converters that mark headings."""
MAX_MARKUP_CHARACTERS = 2 * 1_048_576
"""Maximum length of markup to convert, since converting hostile markup takes up to 430 times its size in memory. Longer
markup stays unchanged and then exceeds the maximum length of a document."""


def _convert(document: Any, to_text: Callable[[str], str]) -> None:
    """Replace markup with text, and add the content's sections unless they were sent.

    Invalid documents and values are left for validation.
    """
    if isinstance(document, dict):
        for name in TEXT_FIELDS:
            if isinstance(text := document.get(name), str) and len(text) <= MAX_MARKUP_CHARACTERS:
                document[name], sections = take_sections(to_text(text))
                if name == "content" and sections and document.get(SECTIONS) is None:
                    document[SECTIONS] = as_field(sections)


def read_form_body(req: Request) -> MultiDict[str, str]:
    """Read the fields of the request's HTML form; empty for an unreadable form.

    Raises:
        ApiError: 413.
    """
    with _reading(req, _body_limit(req), ErrorCode.VALIDATION_FAILED):
        return req.form


@contextmanager
def _reading(req: Request, limit: int, broken: ErrorCode) -> Iterator[None]:
    """Convert errors that occur while reading a body of at most ``limit`` bytes.

    Raises:
        ApiError: 413; 408; 400 with the code ``broken`` for malformed or truncated chunks.
    """
    req.max_content_length = limit
    try:
        yield
        # Without a length, werkzeug reads up to the limit and silently truncates the body.
        more = req.content_length is None and req.environ.get("wsgi.input_terminated") and req.input_stream.read(1)
    except RequestEntityTooLarge as error:
        raise too_large(limit) from error
    except TimeoutError as error:
        # The rest of the body was not read, so the connection cannot be used for another request.
        raise ApiError(
            ErrorCode.REQUEST_TIMEOUT, "The body was sent too slowly.", headers={"Connection": "close"}
        ) from error
    except (ParseException, OSError) as error:
        raise ApiError(
            broken,
            "The body could not be read: it is truncated, or its chunks are malformed.",
            headers={"Connection": "close"},
        ) from error
    if more:
        raise too_large(limit)


def check_query_string(req: Request) -> None:
    """Reject query strings that are not UTF-8.

    Raises:
        ApiError: 400.
    """
    raw = req.query_string
    # The usual case: only percent-encoded or raw bytes can be invalid UTF-8.
    if b"%" not in raw and raw.isascii():
        return
    try:
        unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ApiError(
            ErrorCode.VALIDATION_FAILED,
            "The query string is not UTF-8.",
            details=[Detail("query string", "invalid", "query string is not UTF-8")],
        ) from error


def invalid(error: ValidationError) -> ApiError:
    """Convert marshmallow's error messages to a 400."""
    details = []
    for path, problem in islice(walk(error.messages), MAX_PROBLEMS + 1):
        name = path.rsplit(".", 1)[-1] or "body"
        details.append(Detail(path or "body", problem.code, f"{name} {problem}", problem.extra))
        if problem.code == "batch_too_large":
            return ApiError(ErrorCode.BATCH_TOO_LARGE, f"{path} {problem}", details=details[-1:])
    return validation_error(details)


def load_values(schema: Schema, values: Any) -> dict[str, Any]:
    """Load values with a schema.

    Raises:
        ApiError: 400 with the problems of each field.
    """
    try:
        loaded: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        raise invalid(error) from error
    return loaded


class StrictParser(FlaskParser):
    """webargs with this API's rules: 400 instead of 422, strict JSON, and unknown fields left to the schema."""

    DEFAULT_VALIDATION_STATUS = 400

    def parse(self, argmap: Any, req: Request | None = None, *, location: str | None = None, **options: Any) -> Any:
        """Read a part of the request with a schema."""
        current: Request = request._get_current_object()  # type: ignore[attr-defined]
        return load_values(argmap, getattr(self, f"load_{location}")(current, argmap))

    def load_json(self, req: Request, schema: Any) -> Any:
        return read_json(req)

    def load_json_optional(self, req: Request, schema: Any) -> Any:
        """Read an optional JSON body. A missing body is treated as ``{}``, without a Content-Type; ``null`` is not."""
        return read_json(req, absent={})

    def load_hook(self, req: Request, schema: Any) -> Any:
        """Read a body that may be anything. Only a JSON object is used; any other body is treated as ``{}``."""
        try:
            body = read_json(req, absent={}, any_type=True)
        except ApiError as error:
            # If the body was not read completely, the connection must be closed.
            if error.code not in (ErrorCode.INVALID_JSON, ErrorCode.UNSUPPORTED_MEDIA_TYPE) or error.headers:
                raise
            return {}
        return body if isinstance(body, dict) else {}

    def load_documents(self, req: Request, schema: Any) -> Any:
        """Read a batch of documents, as JSON or with one document per line."""
        body = read_json(req) if is_json(req) else {"documents": read_lines_of_documents(req)}
        to_text = TEXT_READERS.get(req.args.get("format", ""))
        if to_text is not None and isinstance(body, dict) and isinstance(body.get("documents"), list):
            # Validation rejects longer batches, so converting the rest would only cost time.
            for document in body["documents"][:MAX_BATCH]:
                _convert(document, to_text)
        return body

    def load_query(self, req: Request, schema: Any) -> Any:
        check_query_string(req)
        values: dict[str, Any] = req.args.to_dict()  # The first value of a repeated name counts.
        for name in schema.repeated:
            if name in values:
                values[name] = req.args.getlist(name)
        return values


class PathInteger(IntegerConverter):
    """An integer of at most 19 ASCII digits; other paths don't match the route."""

    # 19 digits cover 64-bit IDs. Not ``\d``, which matches digits of all scripts.
    regex = "[0-9]{1,19}"
