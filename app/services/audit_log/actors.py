"""Actors: whoever changes something now."""

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
    """An actor, who changes something.

    Attributes:
        id: The member's or the key's.
        name: The member's e-mail, or the key's name and what is shown of its token.
        address: Where the request came from; ``None`` without one.
    """

    kind: ActorKind
    name: str
    id: str | None = None
    address: str | None = None


SYSTEM = Actor("system", "Service")
"""The service itself, in its background work."""
OPERATOR = Actor("operator", "Command line")
"""The operator's command line."""

FindActor = Callable[[Session], Actor]
"""Tells who acts; it may read what it needs to know that."""

_named: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Changes inside are this actor's."""
    token = _named.set(actor)
    try:
        yield
    finally:
        _named.reset(token)


def named_actor() -> Actor | None:
    """The actor of :func:`acting`."""
    return _named.get()
