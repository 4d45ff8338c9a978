"""The counter store, which counts exactly across threads, processes, and machines: creating it for a URL.

Its interface and contract are in :mod:`app.counters.base`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prometheus_client import Counter, Histogram

from app.clock import observe_calls
from app.counters.base import CounterStore
from app.counters.metering import RaisedDays, ReadMinimum
from app.counters.sqlite.store import SqliteCounters
from app.counters.values import CountersUnavailable

COUNTER_STORE_SECONDS = Histogram(
    "search_counter_store_seconds",
    "Time that a step of the counter store takes.",
    buckets=(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
COUNTER_STORE_FAILURES = Counter(
    "search_counter_store_failures_total", "Steps that failed because the counter store was unavailable or too slow."
)
STEPS = (
    "consume", "peek", "refund", "settle", "report_usage", "count_rejection", "usage_of_day", "usage_between",
    "begin_credential_change", "end_credential_change", "check",
)  # fmt: skip
"""Observed methods of :class:`CounterStore`."""

DEFAULT_TIMEOUT_SECONDS = 1.0
"""Seconds that a step waits for a server's response before the store counts as unavailable."""
BUSY_SECONDS = 20.0
"""Seconds that a step waits for its turn at a file: the time within which a stopping worker still finishes requests.
Processes lock the file only briefly, but on a machine without free CPU this may take seconds.
"""


def create_counters(
    url: str,
    read_minimum: ReadMinimum | None = None,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    busy_seconds: float = BUSY_SECONDS,
) -> CounterStore:
    """Return the counter store for a URL, without opening anything.

    Args:
        url: ``sqlite:///absolute/path`` (one machine), ``redis://…``, ``rediss://…``, or ``unix:///socket`` (Redis;
            several machines), ``memory://`` (one process; tests).
        read_minimum: Returns the copy of an account's usage on a day, to which a store that lost the day is raised.
        timeout_seconds: A server's time budget for one step.
        busy_seconds: Seconds that a step may wait for its turn at a file.

    Raises:
        ValueError: The URL has an unknown scheme or lacks a part. The message contains the URL without its password.
    """
    scheme = urlsplit(url).scheme
    maker = _MAKERS.get(scheme)
    if maker is None:
        schemes = ", ".join(f"{name}://" for name in _MAKERS)
        raise ValueError(f"Unknown counter store {scheme or url!r}: the URL must begin with one of {schemes}.")
    store = maker(url, RaisedDays(read_minimum), timeout_seconds, busy_seconds)
    observe_calls(
        store,
        STEPS,
        seconds=lambda _: COUNTER_STORE_SECONDS,
        failures={CountersUnavailable: lambda _: COUNTER_STORE_FAILURES},
    )
    return store


def _memory(url: str, raised_days: RaisedDays, timeout_seconds: float, busy_seconds: float) -> CounterStore:
    return SqliteCounters(None, raised_days, busy_seconds=busy_seconds)


def _sqlite(url: str, raised_days: RaisedDays, timeout_seconds: float, busy_seconds: float) -> CounterStore:
    parts = urlsplit(url)
    if parts.netloc or len(parts.path.strip("/")) == 0 or parts.query or parts.fragment:
        raise ValueError(f"The counter store {url!r} must look like sqlite:///absolute/path/of/the/file.")
    return SqliteCounters(Path("/" + unquote(parts.path).lstrip("/")), raised_days, busy_seconds=busy_seconds)


def _redis(url: str, raised_days: RaisedDays, timeout_seconds: float, busy_seconds: float) -> CounterStore:
    try:
        from app.counters.redis.store import RedisCounters
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise ValueError("A Redis counter store requires the Python package redis; install it.") from error
    return RedisCounters(url, raised_days, timeout_seconds=timeout_seconds)


_MAKERS: dict[str, Callable[[str, RaisedDays, float, float], CounterStore]] = {
    "sqlite": _sqlite,
    "redis": _redis,
    "rediss": _redis,
    "unix": _redis,
    "memory": _memory,
}
