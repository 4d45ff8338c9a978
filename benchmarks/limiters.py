"""Cost of counting a request: our counter stores, compared with Flask-Limiter's own memory and Redis storages.

    python -m benchmarks.limiters [--requests N] [--redis URL]

The first table shows a whole Flask request with two limits (per minute and per day) and the X-RateLimit headers, minus
the same request without limits. The second table shows one step of a store with everything that a search needs: three
windows, a search charged to the daily quota, and the account's credential version; then the same step while a visitor
types, when keystrokes count as one search. CPU time is this process's own. The time of a Redis server is not included,
but waiting for it is part of the wall time. Each figure is the best of several interleaved rounds.

Without --redis, the benchmark starts the redis-server on the PATH on its own port, and stops it afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import flask
from flask_limiter import Limiter

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.limiter import RequestLimiter, RequestLimits
from app.counters.values import IntentRequest, UsageReservation, WindowRequest

ROUNDS = 7
ACCOUNTS = 200
PLENTY = 10**9
WORD = "documentation"


class Cost(NamedTuple):
    """Microseconds per call."""

    cpu: float
    wall: float

    def less(self, other: Cost) -> Cost:
        return Cost(self.cpu - other.cpu, self.wall - other.wall)


def measure(calls: dict[str, Callable[[int], None]], repeats: int) -> dict[str, Cost]:
    """Return the best round of each call. Rounds are interleaved, so that noise affects all alike."""
    best = {name: Cost(float("inf"), float("inf")) for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            cpu, wall = time.process_time(), time.perf_counter()
            for number in range(repeats):
                call(number)
            spent = Cost((time.process_time() - cpu) * 1e6 / repeats, (time.perf_counter() - wall) * 1e6 / repeats)
            best[name] = Cost(min(best[name].cpu, spent.cpu), min(best[name].wall, spent.wall))
    return best


def request(prepare: Callable[[flask.Flask], None]) -> Callable[[int], None]:
    """Return a request to a small application with the limiter that ``prepare`` adds."""
    app = flask.Flask(__name__)
    app.add_url_rule("/", view_func=lambda: "fine", endpoint="home")
    prepare(app)
    environment = app.test_request_context("/").request.environ

    def call(number: int) -> None:
        environ = dict(environment, REMOTE_ADDR=f"10.0.{number % ACCOUNTS}.1")
        environ.pop("werkzeug.request", None)
        app.wsgi_app(environ, lambda status, headers: None)

    return call


def with_flask_limiter(storage_uri: str) -> Callable[[flask.Flask], None]:
    def prepare(app: flask.Flask) -> None:
        Limiter(
            lambda: flask.request.remote_addr or "",
            app=app,
            application_limits=[f"{PLENTY}/minute", f"{PLENTY}/day"],
            storage_uri=storage_uri,
            headers_enabled=True,
        )

    return prepare


def with_counters(store: CounterStore) -> Callable[[flask.Flask], None]:
    def prepare(app: flask.Flask) -> None:
        limiter = RequestLimiter(store)
        limiter.init_app(app)

        @app.before_request
        def check() -> None:
            address = flask.request.remote_addr
            windows = (WindowRequest(f"{address}:minute", PLENTY, 60), WindowRequest(f"{address}:day", PLENTY, 86_400))
            limiter.check_request_limits(RequestLimits(windows))

    return prepare


def search_step(store: CounterStore, *, typing: bool = False) -> Callable[[int], None]:
    """Return the step of a search with a public key. With ``typing``, each visitor types a word letter by letter."""
    steps = [
        (
            (
                WindowRequest(f"account:{account}:minute", PLENTY, 60),
                WindowRequest(f"account:{account}:day", PLENTY, 86_400),
                WindowRequest(f"visitor:{account * 7919 % ACCOUNTS:032x}", PLENTY, 60),
            ),
            UsageReservation(account, PLENTY),
        )
        for account in range(ACCOUNTS)
    ]

    def call(number: int) -> None:
        windows, reserve = steps[number % ACCOUNTS]
        intent = None
        if typing:
            # The account's windows are counted when an intent begins, the visitor's always.
            text = WORD[: 1 + number // ACCOUNTS % len(WORD)]
            intent, windows = IntentRequest(windows[2].key, text, windows[:2]), windows[2:]
        store.consume(windows, reserve=reserve, intent=intent, credentials_of=reserve.account_id, now=time.time())

    return call


@contextlib.contextmanager
def redis_url(given: str | None, directory: Path) -> Iterator[str | None]:
    program = shutil.which("redis-server")
    if given is not None or program is None:
        yield given
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()


def print_table(title: str, costs: dict[str, Cost], reference: str) -> None:
    print(f"\n{title}\n")
    print(f"| {'':42} | CPU µs | wall µs | CPU, as a multiple of {reference} |")
    print(f"|{'-' * 44}|-------:|--------:|{'-' * (len(reference) + 24)}:|")
    for name, cost in costs.items():
        ratio = cost.cpu / costs[reference].cpu
        print(f"| {name:42} | {cost.cpu:6.1f} | {cost.wall:7.1f} | {ratio:{len(reference) + 23}.2f} |")


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--requests", type=int, default=1000, help="requests in a round (default 1000)")
    arguments.add_argument("--redis", metavar="URL", help="a Redis to use; its counters are cleared")
    options = arguments.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        redis_url(options.redis, Path(directory)) as redis,
        contextlib.ExitStack() as opened,
    ):
        urls = {"memory": "memory://", "SQLite": f"sqlite://{directory}/counters.db"}
        if redis is None:
            print("No redis-server found and no --redis given: Redis is not measured.")
        else:
            urls["Redis"] = redis
        stores = {name: create_counters(url, timeout_seconds=5) for name, url in urls.items()}
        for store in stores.values():
            opened.callback(store.close)
            store.clear()

        def nothing(app: flask.Flask) -> None:
            """Add no limiter."""

        requests = {"bare": request(nothing), "Flask-Limiter, memory": request(with_flask_limiter("memory://"))}
        if redis is not None:
            requests["Flask-Limiter, Redis"] = request(with_flask_limiter(redis))
        requests |= {f"ours, {name}": request(with_counters(store)) for name, store in stores.items()}
        costs = measure(requests, options.requests)
        bare = costs.pop("bare")
        print(f"A bare Flask request costs {bare.cpu:.0f} µs of CPU here.")
        added = {name: cost.less(bare) for name, cost in costs.items()}
        print_table("Two limits and headers, added to a Flask request:", added, "Flask-Limiter, memory")

        calls = {f"{name} step": search_step(store) for name, store in stores.items()}
        calls |= {f"{name} step, typing": search_step(store, typing=True) for name, store in stores.items()}
        steps = measure(calls, options.requests)
        print_table("One step of the store: 3 windows, 1 search charged, 1 epoch:", steps, "SQLite step")


if __name__ == "__main__":
    main()
