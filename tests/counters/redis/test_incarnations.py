"""After a Redis goes back in time, its earlier versions are invalid."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.values import CountersUnavailable, CredentialVersion
from tests.counters.conftest import RedisServer
from tests.counters.every_method import NOW

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server with durable data, so that only the tests take it back in time."""
    folder = tmp_path / "redis"
    folder.mkdir()
    kept = RedisServer(
        folder, options=("--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes")
    )
    kept.start()
    yield kept
    kept.stop()


@contextmanager
def process(server: RedisServer) -> Iterator[CounterStore]:
    """A store object with its own cached state, like that of a separate process."""
    with closing(create_counters(server.url, timeout_seconds=20)) as store:
        yield store


def version(store: CounterStore) -> CredentialVersion:
    found = store.consume([], credentials_of=1, now=NOW).credential_version
    assert found is not None
    assert found.is_settled
    return found


def change(store: CounterStore) -> None:
    store.begin_credential_change(1, now=NOW)
    store.end_credential_change(1, now=NOW)


def restored(server: RedisServer, forget: Callable[[], None]) -> None:
    copy = server.directory.with_name("copy")
    shutil.copytree(server.directory, copy)
    forget()
    server.stop()
    shutil.rmtree(server.directory)
    shutil.move(copy, server.directory)
    server.start()


def reloaded(server: RedisServer, forget: Callable[[], None]) -> None:
    """Replace the data with an older copy while the server keeps running."""
    with closing(redis.Redis(port=server.port)) as client:
        client.config_set("appendonly", "no")
        client.save()
        forget()
        client.execute_command("DEBUG", "RELOAD", "NOSAVE")


def put_back(server: RedisServer, forget: Callable[[], None]) -> None:
    with closing(redis.Redis(port=server.port)) as client:
        dumped: dict[Any, Any] = {key: client.dump(key) for key in client.scan_iter()}
        forget()
        client.flushall()
        for key, value in dumped.items():
            client.restore(key, 0, value)


def failed_over(server: RedisServer, forget: Callable[[], None]) -> None:
    """Let a lagging replica take over, and the first server follow it until it takes over again."""
    folder = server.directory.with_name("replica")
    folder.mkdir()
    replica = RedisServer(folder)
    replica.start()
    try:
        with closing(redis.Redis(port=server.port)) as first, closing(redis.Redis(port=replica.port)) as second:
            follow(second, server.port)
            second.replicaof("NO", "ONE")
            forget()
            follow(first, replica.port)
            first.replicaof("NO", "ONE")
    finally:
        replica.stop()


def follow(client: redis.Redis, port: int) -> None:
    client.replicaof("127.0.0.1", port)
    deadline = time.monotonic() + 60
    while client.info("replication")["master_link_status"] != "up":
        assert time.monotonic() < deadline
        time.sleep(0.01)


BACK_IN_TIME = [restored, reloaded, put_back, failed_over]


@pytest.mark.parametrize("goes_back", BACK_IN_TIME)
def test_cached_version_is_invalid_after_the_store_goes_back_in_time(
    server: RedisServer, goes_back: Callable[[RedisServer, Callable[[], None]], None]
) -> None:
    with process(server) as changing, process(server) as caching:
        change(changing)
        cached = version(caching)
        goes_back(server, lambda: change(changing))
        changing.check()  # Processes check every few seconds; only one that saw the change can notice it.

        assert version(caching) != cached
        assert version(caching) == version(changing)


@pytest.mark.parametrize("goes_back", BACK_IN_TIME)
def test_version_is_never_issued_twice(
    server: RedisServer, goes_back: Callable[[RedisServer, Callable[[], None]], None]
) -> None:
    given: set[CredentialVersion] = set()
    with process(server) as store:
        version(store)

        def change_and_note() -> None:
            change(store)
            given.add(version(store))

        goes_back(server, change_and_note)
        store.check()
        for _ in range(3):
            change(store)
            assert version(store) not in given


def test_restart_is_noticed_by_a_process_that_saw_no_change(server: RedisServer) -> None:
    with process(server) as caching:
        cached = version(caching)

        def change_elsewhere() -> None:
            with process(server) as changing:
                change(changing)

        restored(server, change_elsewhere)

        assert version(caching) != cached


def test_all_processes_agree_on_the_new_incarnation(server: RedisServer) -> None:
    with process(server) as early, process(server) as late:
        before = version(early), version(late)
        server.stop()
        server.start()
        after = version(early)
        change(early)
        changed = version(early)

        assert before[0] == before[1] != after
        assert version(late) == changed == version(early)


def test_flushed_server_starts_a_new_incarnation(server: RedisServer) -> None:
    with process(server) as store:
        before = version(store)
        with closing(redis.Redis(port=server.port)) as client:
            client.flushall()
        assert version(store).incarnation != before.incarnation


def test_change_with_a_lost_end_invalidates_cached_versions(server: RedisServer) -> None:
    """The killed server loses the start of the change, so processes that load before its end see the old state."""
    with process(server) as changing, process(server) as caching:
        version(changing)
        restored(server, lambda: changing.begin_credential_change(1, now=NOW) and None)
        cached = version(caching)
        server.stop()
        with pytest.raises(CountersUnavailable):
            changing.end_credential_change(1, now=NOW)
        server.start()
        changing.check()

        assert version(caching) != cached
