"""The counter stores as a storage of the ``limits`` library."""

from __future__ import annotations

import time
from typing import Any

from limits.storage import Storage

from app.counters.base import CounterStore, CountersUnavailable, WindowRequest
from app.counters.registry import create_counters

SCHEME = "counters+"
"""Before the URL of a store, in the words of ``limits``."""

_ANY_LENGTH_SECONDS = 100 * 366 * 86_400


class CounterStorage(Storage):
    """A counter store for whatever speaks ``limits``: ``counters+`` before the URL of the store.

    Args:
        uri: ``counters+sqlite:///path``, ``counters+redis://…``, ``counters+memory://`` and so on.
        store: A store that is there already, used instead of making one from ``uri``.
    """

    STORAGE_SCHEME = [  # noqa: RUF012 - the library's own declaration
        "counters+sqlite",
        "counters+redis",
        "counters+rediss",
        "counters+unix",
        "counters+memory",
    ]

    def __init__(
        self,
        uri: str | None = None,
        wrap_exceptions: bool = False,
        store: CounterStore | None = None,
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self.store = store or create_counters((uri or "").removeprefix("counters+"), **options)

    @property
    def base_exceptions(self) -> type[Exception]:
        return CountersUnavailable

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count ``amount`` hits in the window of ``key``, which lasts ``expiry`` seconds; returns its hits."""
        return self.store.consume([WindowRequest(key, None, expiry, amount)], now=time.time()).windows[0].hits

    def get(self, key: str) -> int:
        """Hits in the window of ``key``."""
        return self.store.peek([WindowRequest(key, None, _ANY_LENGTH_SECONDS)], now=time.time()).windows[0].hits

    def get_expiry(self, key: str) -> float:
        """The end of the window of ``key``, in Unix seconds; now, if there is none."""
        now = time.time()
        window = self.store.peek([WindowRequest(key, None, _ANY_LENGTH_SECONDS)], now=now).windows[0]
        return window.reset_ms / 1000 if window.hits else now

    def check(self) -> bool:
        """Tell whether the store answers."""
        try:
            self.store.check()
        except CountersUnavailable:
            return False
        return True

    def reset(self) -> int:
        """Forget all windows, but no usage; returns their number."""
        return self.store.reset_all()

    def clear(self, key: str) -> None:
        """Forget the window of ``key``."""
        self.store.reset([key])
