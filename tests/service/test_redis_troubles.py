"""A Redis that is restored to an older state, restarts, or responds late: access and charges stay correct."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.counters.conftest import RedisServer
from tests.server import Server, running_server
from tests.service.clients import Answer, Customer, connections_to_all_workers, crowd, eventually, page, register
from tests.service.conftest import COMMON
from tests.service.slow_proxy import slow_proxy
from tests.service.stored import change, rows

pytestmark = pytest.mark.service

SETS_BACK = 2
RESTARTS = 6
LATE = 60
KEPT = ("--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder, options=KEPT)
    server.start()
    yield server
    server.stop()


@contextmanager
def two_workers(folder: Path, limits_url: str, **settings: str | int) -> Iterator[tuple[Server, Customer]]:
    with running_server(folder / "data", workers=2, limits_url=limits_url, **{**COMMON, **settings}) as server:
        customer = register([server], "ann@example.com", ("search", "private", "public"))
        server.set_plan(customer.email, "business", requests_per_minute="unlimited")
        assert customer.private.index(page(1)).status == 200
        yield server, customer


def test_deleted_key_stays_deleted_when_redis_is_restored_to_an_older_state(tmp_path: Path, redis: RedisServer) -> None:
    got_in: list[Answer] = []
    with two_workers(tmp_path, redis.url) as (server, customer), connections_to_all_workers([server]) as workers:
        for number in range(SETS_BACK):
            keys = {
                kind: customer.session.must(
                    "POST", f"/api/sites/{customer.site_id}/keys", {"name": f"{kind}{number}", "type": kind}
                )
                for kind in ("search", "private")
            }
            asked = {
                "search": ("GET", "/v1/search?q=page", None),
                "private": ("POST", "/api/v1/index/bulk", {"documents": [page(number)]}),
            }
            for worker in workers:
                for kind, (method, path, body) in asked.items():
                    assert worker.call(method, path, keys[kind]["api_key"], body).status == 200
            copy = tmp_path / f"copy{number}"
            shutil.copytree(redis.directory, copy)
            for kind in asked:
                path = f"/api/sites/{customer.site_id}/keys/{keys[kind]['key']['id']}"
                assert customer.session.call("DELETE", path).status in (200, 204)
            redis.stop()
            shutil.rmtree(redis.directory)
            shutil.copytree(copy, redis.directory)
            redis.start()
            for worker in workers * 3:
                for kind, (method, path, body) in asked.items():
                    answer = worker.call(method, path, keys[kind]["api_key"], body)
                    got_in += [answer] if answer.status == 200 else []
    assert got_in == []


def test_every_successful_search_is_charged_despite_redis_restarts(tmp_path: Path, redis: RedisServer) -> None:
    with two_workers(tmp_path, redis.url) as (_, customer):
        before = customer.used_today()
        with crowd(3, lambda _: customer.search.search("page"), pause_seconds=0.01) as searchers:
            for _ in range(RESTARTS):
                searchers.wait_for(15)
                redis.stop()
                searchers.wait_for(5)
                redis.start()
            searchers.wait_for(15)
        answered = sum(answer.status == 200 for _, answer in searchers.answers)

        def all_are_charged() -> None:
            assert customer.used_today() - before == answered

        eventually(all_are_charged, seconds=30)


def test_failed_searches_are_not_charged_when_redis_responds_late(tmp_path: Path, redis: RedisServer) -> None:
    chance = random.Random(27)
    with slow_proxy(redis.port) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        with two_workers(tmp_path, url, limits_timeout_seconds=1.5) as (server, customer):
            before = customer.used_today()
            proxy.delay = lambda: 0.7 if chance.random() < 0.3 else 0.0
            numbers = itertools.count()

            def ask(_: int) -> Answer:
                if next(numbers) % 2:
                    return customer.search.call("GET", "/v1/search?q=page&sort=nowhere")
                return customer.private.call(
                    "POST",
                    "/v1/report-usage",
                    {"operation": "search", "count": 1, "index": f"site_{customer.site_id}"},
                )

            with crowd(3, ask) as clients:
                clients.wait_for(LATE)
            proxy.delay = lambda: 0.0
            statuses = [answer.status for _, answer in clients.answers]
            assert set(statuses) <= {200, 400, 503}, server.log[-4000:]
            reported = statuses.count(200)

            def only_reports_that_were_taken_count() -> None:
                assert customer.used_today() - before == reported

            eventually(only_reports_that_were_taken_count, seconds=30)


def test_redis_that_lost_its_data_continues_from_the_usage_in_sql(tmp_path: Path, redis: RedisServer) -> None:
    with two_workers(tmp_path, redis.url) as (server, customer):
        for _ in range(10):
            assert customer.search.search("page").status == 200
        server.set_plan(customer.email, "business", searches_per_day=12)
        ((today,),) = rows(server, "SELECT DATE('now')")
        change(
            server,
            f"INSERT INTO usage_days (account_id, day, searches, indexing_operations)"
            f" VALUES ({customer.account_id}, '{today}', 10, 0)"
            f" ON CONFLICT (account_id, day) DO UPDATE SET searches=10",
        )
        redis.stop()
        shutil.rmtree(redis.directory)
        redis.directory.mkdir()
        redis.start()

        answers = [customer.search.search("page") for _ in range(4)]

        assert [answer.status for answer in answers] == [200, 200, 429, 429]
        assert [answer.body["remaining_quota"]["used_today"] for answer in answers[:2]] == [11, 12]
