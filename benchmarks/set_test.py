"""The set test: whether acknowledged writes survive while processes are killed, paused, and slowed.

    python -m benchmarks.set_test SEED MINUTES [--on files|servers|typesense] [--history FILE]

The test follows Jepsen's test of the same name. Four clients write batches of documents with their own IDs, two clients
search, and one creates and deletes keys. Meanwhile, one or two parts at a time are killed (SIGKILL), paused (SIGSTOP),
slowed to a tenth of their speed, or locked, for up to eight seconds. ``files`` is one service of two workers with
SQLite and the embedded engine; ``typesense`` is the same with Typesense; ``servers`` is two services of two workers
each that share a PostgreSQL, a Redis, and a Typesense.

The test prints the number of operations, the lost writes, and every broken promise. The seed determines the requests
and the faults, but not the order of threads. ``--history`` writes each request to a file, as one JSON array per line.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from tests.backends.live_servers import KEY, TypesenseNode, typesense_cluster
from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import Server
from tests.service.clients import Answer, Caller, Crowd, Customer, NoAnswer, crowd, eventually, page, register
from tests.service.conftest import LASTING, one_machine, two_machines
from tests.service.frozen import frozen, slowed
from tests.service.stored import counted_queries, locked

INSTALLATIONS = ("files", "servers", "typesense")
MOST_FIELDS = 10
"""Additional fields of a site; a batch with more is rejected within the transaction that it shares with others."""
WRITERS, SEARCHERS = 4, 2
EVERYTHING = "*"
"""Query whose searches are charged, but not recorded as events."""
PATIENCE_SECONDS = 180.0
"""Maximum seconds until the service recovers from a fault by itself."""


# The history


@dataclass(frozen=True)
class Write:
    """A batch that was sent. The status is 0 without a response. A batch that is not ``valid`` must be rejected."""

    bulk: int
    ids: tuple[str, ...]
    valid: bool
    status: int
    answered_at: float

    @property
    def rejected(self) -> bool:
        return not self.valid or 400 <= self.status < 500


@dataclass(frozen=True)
class Search:
    """A search that was sent, with its key; ``bulk`` for a search for one batch."""

    query: str
    key: str
    status: int
    asked_at: float
    found: tuple[str, ...] = ()
    bulk: int | None = None


@dataclass(frozen=True)
class Deletion:
    """A key whose deletion was acknowledged."""

    key: str
    answered_at: float


@dataclass
class History:
    """All requests of the clients."""

    writes: list[Write] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """The state of the service at the end: listed documents, search results, and counters."""

    listed: set[str]
    found: set[str]
    pages: int
    operations: int
    charged: int
    events: Counter[str]


# The checker


def check(history: History, end: Outcome) -> list[str]:
    """Return the broken promises, each with examples."""
    acknowledged = {id_ for write in history.writes if write.status == 200 for id_ in write.ids}
    sent = {id_ for write in history.writes for id_ in write.ids}
    rejected = {id_ for write in history.writes if write.rejected for id_ in write.ids}
    shown = {id_ for search in history.searches for id_ in search.found}
    halves = [
        write.bulk
        for write in history.writes
        for there in (end.listed, end.found)
        if 0 < len(there & {*write.ids}) < len(write.ids)
    ]
    ended = {deletion.key: deletion.answered_at for deletion in history.deletions}
    written = {write.bulk: write for write in history.writes if write.status == 200}
    late = [
        search.bulk
        for search in history.searches
        if search.status == 200 and search.bulk in written and written[search.bulk].answered_at <= search.asked_at
        and not {*written[search.bulk].ids} <= {*search.found}
    ]  # fmt: skip
    broken: dict[str, Sequence[object]] = {
        "acknowledged, but not listed": sorted(acknowledged - end.listed),
        "acknowledged, but not found": sorted(acknowledged - end.found),
        "acknowledged, but not found by the next search": late,
        "listed, but not found": sorted(end.listed - end.found),
        "found, but not listed": sorted(end.found - end.listed),
        "listed, but never sent": sorted(end.listed - sent),
        "refused, but shown": sorted(rejected & (shown | end.listed | end.found)),
        "batches of which a part is there": halves,
        "searches with a deleted key": [
            search.key
            for search in history.searches
            if search.status == 200 and ended.get(search.key, search.asked_at) < search.asked_at
        ],
        "failures of the program": [
            *(write for write in history.writes if write.status == 500),
            *(search for search in history.searches if search.status in (400, 500)),
        ],
    }
    problems = [f"{len(found)} {what}: {list(found[:5])}" for what, found in broken.items() if found]
    asked = Counter(search.query for search in history.searches)
    answered = Counter(search.query for search in history.searches if search.status == 200)
    numbers = [
        ("searches charged", answered.total(), end.charged, asked.total()),
        ("documents counted", len(acknowledged), end.operations, sum(len(write.ids) for write in history.writes)),
        ("pages of the site", len(end.listed), end.pages, len(end.listed)),
        *(
            (f"events of {query!r}", answered[query], end.events[query], asked[query])
            for query in asked | end.events
            if query != EVERYTHING
        ),
    ]
    problems += [f"{what}: {low} <= {n} <= {high} is not so" for what, low, n, high in numbers if not low <= n <= high]
    return problems


# The workload


class Workload:
    """The clients of one customer, which record their requests in a history."""

    def __init__(self, servers: Sequence[Server], seed: int):
        self.history = History()
        self.servers = servers
        self.customer: Customer = register(servers, "ann@example.com")
        servers[0].set_plan(self.customer.email, "business", requests_per_minute="unlimited")
        self._seed = seed
        self._keys: deque[tuple[str, Caller]] = deque(maxlen=6)
        """Keys that live or were deleted lately; every worker has some of them in its cache."""
        self._searched = itertools.count()
        is_embedded = not servers[0].environment.get("SEARCH_URL", "").startswith("typesense")
        self._range = "bulk >= {} AND bulk <= {}" if is_embedded else "bulk:[{}..{}]"

    def write(self, bulk: int) -> Answer:
        """Send a batch, every third time an invalid one, and search for it if it was acknowledged."""
        chance = random.Random(f"{self._seed} write {bulk}")
        documents = [page(f"{bulk}-{number}", bulk=bulk) for number in range(chance.randint(1, 5))]
        fault = chance.choice(("", "", "", "", "no title", "too many fields"))
        if fault == "no title":
            del documents[-1]["title"]
        elif fault:
            documents[-1] |= {f"field_{bulk}_{number}": "surplus" for number in range(MOST_FIELDS)}
        status = 0
        try:
            answer = self.customer.private.index(*documents)
            status = answer.status
        finally:
            ids = tuple(document["id"] for document in documents)
            self.history.writes.append(Write(bulk, ids, not fault, status, time.monotonic()))
        if status == 200:
            self._search(self.customer.search, "search", EVERYTHING, (bulk, bulk))
        return answer

    def search(self, number: int) -> Answer:
        """Search with the customer's key, or with a key that is being or was deleted."""
        chance = random.Random(f"{self._seed} search {number}")
        keys = [("search", self.customer.search), *self._keys]
        key, caller = chance.choice(keys)
        return self._search(caller, key, f"page n{next(self._searched)}")

    def _search(self, caller: Caller, key: str, query: str, bulks: tuple[int, int] | None = None) -> Answer:
        parameters = {"q": query, "limit": 100, "fields": "id"}
        if bulks:
            parameters["filters"] = self._range.format(*bulks)
        asked_at, status, found = time.monotonic(), 0, ()
        try:
            answer = caller.call("GET", f"/v1/search?{urlencode(parameters)}")
            status = answer.status
            if status == 200:
                found = tuple(hit["id"] for hit in answer.body["results"]["hits"])
        finally:
            bulk = bulks[0] if bulks and bulks[0] == bulks[1] else None
            self.history.searches.append(Search(query, key, status, asked_at, found, bulk))
        return answer

    def change_keys(self, number: int) -> Answer:
        """Create a key, search with it, delete it, and search with it on every machine."""
        path = f"/api/sites/{self.customer.site_id}/keys"
        made = self.customer.private.call("POST", path, {"name": f"key {number}", "type": "search"})
        if made.status != 201:
            return made
        key, caller = made.body["key"]["id"], Caller(self.servers, made.body["api_key"])
        self._keys.append((key, caller))
        for _ in range(4):
            self._search_somehow(caller, key)
        deleted = self.customer.private.call("DELETE", f"{path}/{key}")
        if deleted.status == 200:
            self.history.deletions.append(Deletion(key, time.monotonic()))
        for _ in range(4):
            self._search_somehow(caller, key)
        return deleted

    def _search_somehow(self, caller: Caller, key: str) -> None:
        with suppress(NoAnswer):
            self._search(caller, key, f"page n{next(self._searched)}")

    def read_end(self) -> Outcome:
        """Read all documents and counters.

        Raises:
            AssertionError: The service does not respond to every request yet.
        """
        private = self.customer.private
        for server in self.servers:
            ready = private.call_at(server, "GET", "/readyz")
            assert ready.status == 200, ready.body
        listed: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            batch = private.must("GET", f"/api/v1/documents?limit=1000&fields=id&cursor={cursor}")
            listed += [document["id"] for document in batch["documents"]]
            cursor = batch["next_cursor"]
        found: set[str] = set()
        for first in range(0, len(self.history.writes), 20):
            answer = self._search(self.customer.search, "search", EVERYTHING, (first, first + 19))
            assert answer.status == 200, answer.body
            found |= {hit["id"] for hit in answer.body["results"]["hits"]}
        usage = private.must("GET", "/dashboard")["usage"]
        return Outcome(
            set(listed), found, usage["indexed_pages"], usage["indexing_operations_this_month"],
            usage["searches_this_month"], counted_queries(self.servers[0]),
        )  # fmt: skip


# The nemesis

Trouble = Callable[[random.Random], AbstractContextManager[None]]


@contextmanager
def installed(
    kind: str, folder: Path, servers: Callable[[], tuple[PostgresServer, RedisServer]]
) -> Iterator[tuple[list[Server], dict[str, Trouble]]]:
    """One of the :data:`INSTALLATIONS`, and the faults that can be injected, by name.

    Args:
        servers: Starts a PostgreSQL and a Redis, if needed.
    """
    with ExitStack() as stack:
        shipped: dict[str, Any] = {
            "database_timeout_seconds": "",
            "limits_timeout_seconds": "",
            "max_site_fields": MOST_FIELDS,
        }
        troubles: dict[str, Trouble] = {}
        if kind != "files":
            (node,) = stack.enter_context(typesense_cluster(folder, 1))
            shipped["search_url"] = f"typesense://:{KEY}@{node.host}"
            troubles |= _troubles_of("engine", node)
        if kind == "servers":
            postgres, redis = servers()
            troubles |= _troubles_of("database", postgres) | _troubles_of("counters", redis)
            machines = stack.enter_context(two_machines(folder, postgres, redis, workers=2, **shipped))
        else:
            machines = stack.enter_context(one_machine(folder, workers=2, **shipped))
            for name, file in (("database", "service.db"), ("counters", "counters.db")):
                troubles[f"{name} locked"] = lambda _, file=file: locked(machines[0].folder / file)
        troubles |= {
            "worker killed": lambda chance: _worker_killed(machines, chance),
            "worker paused": lambda chance: frozen(*_worker(machines, chance)),
            "worker slowed": lambda chance: slowed(*_worker(machines, chance)),
            "service killed": lambda chance: _killed(chance.choice(machines)),
            "service paused": lambda chance: frozen(chance.choice(machines).pid),
        }
        yield machines, troubles


def _troubles_of(name: str, server: TypesenseNode | PostgresServer | RedisServer) -> dict[str, Trouble]:
    def pids() -> list[int]:
        return [] if server.process is None else [server.process.pid]

    return {
        f"{name} killed": lambda _: _killed(server),
        f"{name} paused": lambda _: frozen(*pids()),
        f"{name} slowed": lambda _: slowed(*pids()),
    }


@contextmanager
def _killed(server: Server | TypesenseNode | PostgresServer | RedisServer) -> Iterator[None]:
    server.stop() if isinstance(server, RedisServer) else server.kill()
    try:
        yield
    finally:
        server.start(ready=False) if isinstance(server, Server) else server.start()


def _worker(machines: Sequence[Server], chance: random.Random) -> list[int]:
    """Return a live worker, or ``None`` if all are dead."""
    pids = [pid for server in machines for pid in server.worker_pids()]
    return [chance.choice(pids)] if pids else []


@contextmanager
def _worker_killed(machines: Sequence[Server], chance: random.Random) -> Iterator[None]:
    for pid in _worker(machines, chance):
        with suppress(ProcessLookupError):  # It ended meanwhile.
            os.kill(pid, signal.SIGKILL)
    yield


def befall(
    troubles: dict[str, Trouble], chance: random.Random, minutes: float, writes: Crowd
) -> Iterator[tuple[float, str]]:
    """Inject one or two faults at a time, and let the service recover, until time is up; each fault at least once.

    Yields:
        Seconds for which each fault lasted.
    """
    end = time.monotonic() + minutes * 60
    longest = 8.0 if minutes else 1.0
    while True:
        names = chance.sample(sorted(troubles), len(troubles))
        while names:
            together = [names.pop() for _ in range(min(len(names), chance.choice((1, 1, 2))))]
            together.sort(key=lambda name: not name.endswith("locked"))  # A paused process may hold the lock for long.
            seconds = chance.uniform(0.2, longest)
            with ExitStack() as stack:
                for name in together:
                    stack.enter_context(troubles[name](chance))
                time.sleep(seconds)
            yield from ((seconds, name) for name in together)
            writes.wait_for(2, seconds=PATIENCE_SECONDS, status=200)
        if time.monotonic() > end:
            return


@dataclass(frozen=True)
class Round:
    """A round: the injected faults, the history, and the broken promises."""

    troubles: Sequence[tuple[float, str]]
    history: History
    end: Outcome
    problems: list[str]


def run(servers: Sequence[Server], troubles: dict[str, Trouble], seed: int, minutes: float) -> Round:
    """Run a round of some minutes, or one in which each fault occurs once, for at most a second."""
    work = Workload(servers, seed)
    with (
        crowd(WRITERS, work.write, pause_seconds=0.1) as writes,
        crowd(SEARCHERS, work.search, pause_seconds=0.05),
        crowd(1, work.change_keys, pause_seconds=0.05),
    ):
        writes.wait_for(5, seconds=PATIENCE_SECONDS, status=200)
        done = list(befall(troubles, random.Random(seed), minutes, writes))
    settled: list[tuple[Outcome, list[str]]] = []

    def settle() -> None:
        try:
            end = work.read_end()
        except NoAnswer as error:
            raise AssertionError(error) from error
        settled.append((end, check(work.history, end)))
        assert not settled[-1][1]

    try:
        eventually(settle, seconds=PATIENCE_SECONDS)
    except AssertionError:
        if not settled:
            raise
    return Round(done, work.history, *settled[-1])


def report(done: Round) -> str:
    """Return the printed report of a round."""
    history, end = done.history, done.end
    times = Counter(name for _, name in done.troubles)
    lines = ["done: " + ", ".join(f"{name} {count}" for name, count in sorted(times.items()))]
    for what, writes in (
        ("acknowledged", [write for write in history.writes if write.status == 200]),
        ("refused", [write for write in history.writes if write.rejected]),
        ("not answered, or 503", [write for write in history.writes if write.status != 200 and not write.rejected]),
    ):
        ids = {id_ for write in writes for id_ in write.ids}
        lines.append(
            f"documents {what}: {len(ids)}, of them listed: {len(ids & end.listed)}, found: {len(ids & end.found)}"
        )
    answered = sum(search.status == 200 for search in history.searches)
    lines.append(f"searches answered: {answered}, charged: {end.charged}, sent: {len(history.searches)}")
    lines.append(f"documents counted: {end.operations}, sent: {sum(len(write.ids) for write in history.writes)}")
    lines.append(f"keys deleted: {len(history.deletions)}")
    return "\n".join([*lines, *done.problems, f"{len(done.problems)} promises broken"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("minutes", type=float)
    parser.add_argument("--on", choices=INSTALLATIONS, default="files")
    parser.add_argument("--history", type=Path)
    wishes = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))

        def servers() -> tuple[PostgresServer, RedisServer]:
            (folder / "redis").mkdir()
            postgres, redis = PostgresServer(), RedisServer(folder / "redis", options=LASTING)
            stack.callback(postgres.remove)
            stack.callback(redis.stop)
            postgres.start()
            redis.start()
            return postgres, redis

        with installed(wishes.on, folder, servers) as (machines, troubles):
            done = run(machines, troubles, wishes.seed, wishes.minutes)
    if wishes.history:
        every = (*done.history.writes, *done.history.searches, *done.history.deletions)
        wishes.history.write_bytes(b"".join(orjson.dumps((type(one).__name__, *astuple(one))) + b"\n" for one in every))
    print(report(done))
    return 1 if done.problems else 0


if __name__ == "__main__":
    sys.exit(main())
