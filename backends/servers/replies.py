"""Reading the replies of servers: errors become exceptions, hits are built one by one."""

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
    ReplyTooLarge,
    UnreadableReply,
)
from backends.query import SearchQuery
from backends.servers.http import EngineError, Response

_EngineHit = TypeVar("_EngineHit")


class Refusal(Exception):
    """A server rejected a request. The server's message belongs in logs and never reaches callers."""

    @property
    @abstractmethod
    def is_missing_index(self) -> bool:
        """Whether the index does not exist."""


def checked(response: Response, refusal_of: Callable[[int, Any], Refusal]) -> Response:
    """Return a successful response, or raise.

    Args:
        refusal_of: Builds a refusal from a status and a decoded body; raises ``KeyError`` or ``TypeError`` if the body
            is not a refusal.

    Raises:
        Refusal: The server rejected the request.
        BackendMisconfigured: The server rejected our key.
        UnreadableReply: The response is neither a success nor a valid refusal.
    """
    if 200 <= response.status < 300:
        return response
    cause = EngineError.of(response)
    if response.status in (401, 403):
        raise BackendMisconfigured("The search engine rejects the configured key.") from cause
    # A redirect or a 1xx does not come from the engine, but from something in front of it.
    if not 400 <= response.status < 500:
        raise UnreadableReply from cause
    try:
        refusal = refusal_of(response.status, orjson.loads(response.body))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise UnreadableReply from cause
    raise refusal


@contextmanager
def translated(index: str = "") -> Iterator[None]:
    """Translate refusals into our exceptions. Refusals that only a caller's query can cause are handled elsewhere."""
    try:
        yield
    except Refusal as error:
        if error.is_missing_index and index:
            raise IndexNotFound(index) from error
        raise BackendUnavailable("The search engine rejected a request of this service.") from error


@contextmanager
def readable() -> Iterator[None]:
    """Treat a response without its required parts as a failure of the engine."""
    try:
        yield
    except (BackendError, Refusal):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise UnreadableReply from error


def count_in(value: Any) -> int:
    """Read a count from a reply.

    Raises:
        ValueError: The value is not a count.
    """
    # In Python, ``True`` is an integer, and ``int`` would silently truncate 1.5.
    if isinstance(value, bool | float) or int(value) < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def text_in(value: Any) -> str:
    """Read a nonempty text from a reply.

    Raises:
        ValueError: The value is not a nonempty text.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a nonempty text")
    return value


def source_in(value: Any) -> str:
    """Read a document from a reply as JSON, which is passed on unchanged.

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
    """Build each hit when it is requested, with the fields that the query returns."""
    for engine_hit in engine_hits:
        with readable():
            hit = make_hit(engine_hit)
            if query.returned_fields is not None:
                hit = replace(hit, json=orjson.dumps(select_fields(hit.document, query)))
        yield hit


def within_budget(hits: Iterable[Hit], max_bytes: int | None) -> tuple[Hit, ...]:
    """Return the hits, and stop building them as soon as they exceed a query's ``max_bytes``.

    Raises:
        ReplyTooLarge: The hits exceed the limit.
    """
    if max_bytes is None:
        return tuple(hits)
    kept: list[Hit] = []
    for hit in hits:
        max_bytes -= len(hit.json) + (0 if hit.formatted is None else len(orjson.dumps(hit.formatted)))
        if max_bytes < 0:
            raise ReplyTooLarge
        kept.append(hit)
    return tuple(kept)
