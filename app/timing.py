"""Metrics for the duration and failures of method calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from prometheus_client import Counter, Histogram


def observe_calls(
    target: object,
    names: Iterable[str],
    *,
    seconds: Callable[[str], Histogram],
    failures: Callable[[str], Counter],
    failure: type[Exception],
) -> None:
    """Record the duration and failures of every call to the named methods of ``target``.

    Args:
        names: Names of the methods.
        seconds: Maps a method's name to the histogram of its durations.
        failures: Maps a method's name to the counter of its calls that raise ``failure``.
    """
    for name in names:
        setattr(target, name, _observed(getattr(target, name), seconds(name), failures(name), failure))


def _observed(
    call: Callable[..., Any], seconds: Histogram, failures: Counter, failure: type[Exception]
) -> Callable[..., Any]:
    observe, clock = seconds.observe, time.perf_counter

    @wraps(call)
    def observed(*args: Any, **kwargs: Any) -> Any:
        began = clock()
        try:
            return call(*args, **kwargs)
        except failure:
            failures.inc()
            raise
        finally:
            observe(clock() - began)

    return observed
