"""Replies of servers: refusals and nonsense as our errors, hits one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

from backends.base import Hit
from backends.errors import BackendError, BackendMisconfigured, BackendUnavailable, IndexNotFound, UnreadableReply
from backends.servers.http import Answer, EngineAnswer

_Found = TypeVar("_Found")


class Refusal(Exception):
    """A server said no to a request. Its own words are for logs, never for callers."""

    @property
    @abstractmethod
    def is_missing_index(self) -> bool:
        """Tell whether the index does not exist."""


def checked(answer: Answer, refusal_of: Callable[[int, Any], Refusal]) -> Answer:
    """An answer that is a success.

    Args:
        refusal_of: Makes the refusal of a status and decoded body; a ``KeyError`` or ``TypeError`` says it is none.

    Raises:
        Refusal: The server said no.
        BackendMisconfigured: It refuses our key.
        UnreadableReply: It is neither.
    """
    if 200 <= answer.status < 300:
        return answer
    cause = EngineAnswer.of(answer)
    if answer.status in (401, 403):
        raise BackendMisconfigured("The search engine refuses the key it is given.") from cause
    if not 400 <= answer.status < 500:
        raise UnreadableReply from cause
    try:
        refusal = refusal_of(answer.status, orjson.loads(answer.body))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise UnreadableReply from cause
    raise refusal


@contextmanager
def translated(index: str = "") -> Iterator[None]:
    """Refusals as our errors. What only a caller's query can cause is handled where it is sent."""
    try:
        yield
    except Refusal as error:
        if error.is_missing_index and index:
            raise IndexNotFound(index) from error
        raise BackendUnavailable("The search engine refused a request of ours.") from error


@contextmanager
def readable() -> Iterator[None]:
    """An answer without the parts it must have is an engine that does not work."""
    try:
        yield
    except (BackendError, Refusal):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise UnreadableReply from error


def count_in(value: Any) -> int:
    """A number of things in a reply.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, bool | float) or int(value) < 0:
        raise ValueError(f"{value!r} is not a number of things")
    return int(value)


def text_in(value: Any) -> str:
    """A text in a reply that is not empty.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a text")
    return value


def source_in(value: Any) -> str:
    """A document in a reply, as JSON, which is answered as it is.

    Raises:
        ValueError: It is none.
    """
    source = text_in(value)
    if not (source.startswith("{") and source.endswith("}")):
        raise ValueError("not a document")
    return source


def hits_of(found: Iterable[_Found], make_hit: Callable[[_Found], Hit]) -> Iterator[Hit]:
    """The hits, each made when it is asked for."""
    for each in found:
        with readable():
            hit = make_hit(each)
        yield hit
