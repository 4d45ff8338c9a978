"""A cache for reports on large sites."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from app.clock import now

LARGE_SEARCHES = 100_000
"""Minimum number of searches in a cached result, because only large sums are slow. Other results are always current.
"""
LIFETIME = timedelta(seconds=60)
"""Lifetime of a cached result."""
MAX_RESULTS = 64
"""Maximum number of cached results per process; the oldest are dropped first. Each contains up to 4,000 queries."""

T = TypeVar("T")


class RecentResults:
    """A cache of large reports. Thread-safe: each result is computed by one thread at a time."""

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, tuple[datetime, Any]] = OrderedDict()
        self._computing: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], T], searches: Callable[[T], int]) -> T:
        """Return the result cached under ``key``, or compute it.

        Args:
            key: Everything that determines the result, except the data.
            compute: Computes the result. Errors are not cached.
            searches: Returns the number of searches in a result.
        """
        moment = now()
        with self._lock:
            if self._is_fresh(key, moment):
                return self._results[key][1]  # type: ignore[no-any-return]
            computing = self._computing.setdefault(key, threading.Lock())
        with computing:
            with self._lock:
                if self._is_fresh(key, moment):  # Another thread computed it meanwhile.
                    return self._results[key][1]  # type: ignore[no-any-return]
            try:
                result = compute()
                if searches(result) >= LARGE_SEARCHES:
                    self._keep(key, moment, result)
                return result
            finally:
                with self._lock:
                    self._computing.pop(key, None)

    def _is_fresh(self, key: Hashable, moment: datetime) -> bool:
        # If the clock was set back, a result must not stay cached for longer.
        return key in self._results and abs(moment - self._results[key][0]) < LIFETIME

    def _keep(self, key: Hashable, moment: datetime, result: Any) -> None:
        with self._lock:
            self._results.pop(key, None)
            self._results[key] = moment, result
            while len(self._results) > MAX_RESULTS:
                self._results.popitem(last=False)
