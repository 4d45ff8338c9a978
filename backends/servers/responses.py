"""Reading the responses of search servers: checking them, converting errors to exceptions, building hits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from backends.base import Hit, select_fields
from backends.errors import (
    BackendError,
    BackendMisconfigured,
    BackendUnavailable,
    IndexNotFound,
    ResponseTooLarge,
    UnreadableResponse,
)
from backends.query import SearchQuery
from backends.servers.http import EngineError, Response

_EngineHit = TypeVar("_EngineHit")


class ServerRejection(Exception):
    """A server rejected a request. The server's message belongs in logs and never reaches callers."""

    @property
    @abstractmethod
    def is_missing_index(self) -> bool:
        """Whether the index does not exist."""


def checked(response: Response, make_rejection: Callable[[int, Any], ServerRejection]) -> Response:
    """Return the response if its status is 2xx; raise otherwise.

    Args:
        make_rejection: Builds a rejection from a status and a decoded body; raises ``KeyError`` or ``TypeError`` if the
            body is not a rejection.

    Raises:
        ServerRejection: The server rejected the request.
        BackendMisconfigured: The server rejected our key.
        UnreadableResponse: The response is neither a success nor a valid rejection.
    """
    if 200 <= response.status < 300:
        return response
    cause = EngineError.of(response)
    if response.status in (401, 403):
        raise BackendMisconfigured("The search engine rejects the configured key.") from cause
    # A redirect or a 1xx does not come from the engine, but from something in front of it.
    if not 400 <= response.status < 500:
        raise UnreadableResponse from cause
    try:
        rejection = make_rejection(response.status, orjson.loads(response.body))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise UnreadableResponse from cause
    raise rejection


@contextmanager
def translated(index: str = "") -> Iterator[None]:
    """Raise :class:`IndexNotFound` or :class:`BackendUnavailable` from a server's rejection in the block.

    Rejections that only a caller's query can cause must be handled inside the block.

    Args:
        index: The index of the requests; ``""`` if they concern no index.
    """
    try:
        yield
    except ServerRejection as error:
        if error.is_missing_index and index:
            raise IndexNotFound(index) from error
        raise BackendUnavailable("The search engine rejected a request of this service.") from error


@contextmanager
def readable() -> Iterator[None]:
    """Raise :class:`UnreadableResponse` if the block cannot read a response because parts are missing or invalid."""
    try:
        yield
    except (BackendError, ServerRejection):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise UnreadableResponse from error


def count_in(value: Any) -> int:
    """Read a count from a response.

    Raises:
        ValueError: The value is not a count.
    """
    # In Python, ``True`` is an integer, and ``int`` would silently truncate 1.5.
    if isinstance(value, bool | float) or int(value) < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def text_in(value: Any) -> str:
    """Read a nonempty text from a response.

    Raises:
        ValueError: The value is not a nonempty text.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a nonempty text")
    return value


def source_in(value: Any) -> str:
    """Read a document from a response as JSON, which is passed on unchanged.

    Raises:
        ValueError: The value is not a JSON object.
    """
    source = text_in(value)
    if not (source.startswith("{") and source.endswith("}")):
        raise ValueError("not a document")
    return source


def hits_of(
    engine_hits: Iterable[_EngineHit], make_hit: Callable[[_EngineHit], Hit], query: SearchQuery
) -> Iterator[Hit]:
    """Yield each hit of the server as a :class:`Hit` with the fields that the query returns, built when requested."""
    for engine_hit in engine_hits:
        with readable():
            hit = with_fields(make_hit(engine_hit), query)
        yield hit


def with_fields(hit: Hit, query: SearchQuery) -> Hit:
    """Return a hit with only the fields that a query returns."""
    if query.returned_fields is None:
        return hit
    return replace(hit, json=orjson.dumps(select_fields(hit.document, query)))


def within_budget(hits: Iterable[Hit], max_bytes: int | None) -> tuple[Hit, ...]:
    """Return the hits as a tuple; stops building them as soon as they exceed a query's ``max_bytes``.

    Raises:
        ResponseTooLarge: The hits exceed the limit.
    """
    if max_bytes is None:
        return tuple(hits)
    built: list[Hit] = []
    for hit in hits:
        max_bytes -= len(hit.json) + (0 if hit.formatted is None else len(orjson.dumps(hit.formatted)))
        if max_bytes < 0:
            raise ResponseTooLarge
        built.append(hit)
    return tuple(built)
