"""Durations of calls, for the metrics."""

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
    """Have every call of some methods of one object observed, whether it ends well or not.

    Args:
        names: The methods.
        seconds: Gives where the time of a method's calls goes.
        failures: Gives where a method's calls are counted that raise ``failure``.
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
