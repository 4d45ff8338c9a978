"""The actor of a change: a member, a key, the operator, or the service itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.orm import Session

ActorKind = Literal["member", "key", "operator", "system"]


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of a change.

    Attributes:
        id: ID of the member or key.
        name: Email address of the member, or name and visible token parts of the key.
        address: IP address of the request, if any.
    """

    kind: ActorKind
    name: str
    id: str | None = None
    address: str | None = None


SYSTEM = Actor("system", "Service")
"""The service itself, in background work."""
OPERATOR = Actor("operator", "Command line")
"""The operator on the command line."""

FindActor = Callable[[Session], Actor]
"""Function that returns the actor of a transaction; it may read from the session."""

_current: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Attribute changes within the block to this actor."""
    token = _current.set(actor)
    try:
        yield
    finally:
        _current.reset(token)


def current_actor() -> Actor | None:
    """Return the actor set by :func:`acting`."""
    return _current.get()
