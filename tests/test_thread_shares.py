"""What one caller does slowly leaves half of the threads to the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask import Flask

from app.errors import ApiError, ErrorCode
from app.thread_shares import SLOW_SECONDS, ThreadShares
from tests.answers import assert_error
from tests.callers import ApiClient, Tenant, register_tenant
from tests.gateway.callers import Gateway, assert_engine_error


class Clock:
    """A clock that stands still unless it is told otherwise."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("app.thread_shares.time", made)
    return made


@pytest.fixture
def shares(clock: Clock) -> ThreadShares:
    made = ThreadShares()
    made.share_out(8)
    return made


def refusal(shares: ThreadShares, who: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        shares.enter(who)
    return caught.value


def test_while_half_of_the_threads_work_slowly_for_somebody_only_they_are_refused(
    shares: ThreadShares, clock: Clock
) -> None:
    begun = [shares.enter("ann") for _ in range(4)]
    clock.seconds += SLOW_SECONDS

    error = refusal(shares, "ann")
    assert error.code is ErrorCode.SERVER_BUSY
    assert error.retry_after == 2
    for _ in range(4):
        shares.enter("eve")
    shares.leave("ann", begun[2])
    shares.enter("ann")


def test_a_burst_of_fast_requests_waits_for_its_turn_and_is_not_refused(shares: ThreadShares, clock: Clock) -> None:
    begun = [shares.enter("ann") for _ in range(4)]
    entered = threading.Semaphore(0)

    def enter() -> None:
        shares.enter("ann")
        entered.release()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for began in begun:
        assert not entered.acquire(blocking=False)
        shares.leave("ann", began)
        assert entered.acquire(timeout=10)
    for thread in threads:
        thread.join()


def test_who_waits_is_refused_once_the_others_are_slow(shares: ThreadShares, clock: Clock) -> None:
    for _ in range(4):
        shares.enter("ann")
        clock.seconds += SLOW_SECONDS / 4
    refused: list[ApiError] = []
    thread = threading.Thread(target=lambda: refused.append(refusal(shares, "ann")))
    thread.start()
    clock.seconds += SLOW_SECONDS
    thread.join(10)
    assert [error.code for error in refused] == [ErrorCode.SERVER_BUSY]


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4)])
def test_there_is_always_a_thread_for_somebody(shares: ThreadShares, clock: Clock, threads: int, most: int) -> None:
    shares.share_out(threads)
    for _ in range(most):
        shares.enter("ann")
    clock.seconds += SLOW_SECONDS
    refusal(shares, "ann")
    shares.enter("eve")


@contextmanager
def busy(tenant: Tenant, clock: Clock) -> Iterator[None]:
    """The tenant's slow requests hold their share of the threads."""
    shares: ThreadShares = tenant.app.extensions["runtime"].shares
    shares.share_out(2)
    began = shares.enter(tenant.account_id)
    clock.seconds += SLOW_SECONDS
    yield
    shares.leave(tenant.account_id, began)


def test_a_tenant_without_a_free_share_is_told_when_to_come_again_and_others_are_answered(
    app: Flask, tenant: Tenant, clock: Clock
) -> None:
    other = register_tenant(app, "eve@example.com")
    asked = ((tenant.search, "/v1/search?q=x"), (tenant.private, "/sites"), (tenant.browser, "/sites"))

    with busy(tenant, clock):
        for client, path in asked * 2:
            response = client.get(path)
            assert_error(response, 503, "server_busy")
            assert response.headers["Retry-After"] == "2"
            assert other.search.get("/v1/search?q=x").status_code == 200
            assert ApiClient(app).get("/openapi.json").status_code == 200
    for client, path in asked:
        assert client.get(path).status_code == 200


def test_below_engine_it_is_told_in_meilisearchs_shape(tenant: Tenant, clock: Clock) -> None:
    gateway = Gateway(tenant)
    with busy(tenant, clock):
        assert_engine_error(gateway.send({"q": "x"}), 503, "server_busy")


def test_every_request_gives_its_share_back(app: Flask, tenant: Tenant) -> None:
    shares: ThreadShares = app.extensions["runtime"].shares
    shares.share_out(2)

    for _ in range(2):
        assert tenant.search.get("/v1/search?q=x").status_code == 200
        assert tenant.search.get("/v1/search").status_code == 400
        assert tenant.search.get("/nowhere").status_code == 404
        assert ApiClient(app, "svc_srch_wrong").get("/v1/search?q=x").status_code == 401
        assert ApiClient(app).post("/login", json={}).status_code == 400
