"""Slow requests of one caller leave half of the threads to other callers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask import Flask

from app.errors import ApiError, ErrorCode
from app.services.usage import cpu_limits
from app.services.usage.cpu_limits import ThreadShares
from tests.callers import ApiClient, Tenant, add_member, member_id, register_tenant
from tests.gateway.callers import Gateway, assert_engine_error
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error


@pytest.fixture
def shares() -> ThreadShares:
    made = ThreadShares()
    made.share_out(8)
    return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not let requests wait."""
    monkeypatch.setattr(cpu_limits, "WAIT_SECONDS", 0.0)


def rejection(shares: ThreadShares, who: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        shares.enter(who, shares.max_per_caller)
    return caught.value


class Page:
    """Concurrent requests of one caller, each in a thread; ``entered`` lists the admitted requests, in order."""

    def __init__(self, shares: ThreadShares, who: object, group: object = None):
        self.shares, self.who, self.group = shares, who, group
        self.entered: list[int] = []
        self.rejected: list[ApiError] = []
        self._threads: list[threading.Thread] = []
        self._came = threading.Semaphore(0)

    def send(self, count: int) -> None:
        """Send further requests, each one after the previous request is waiting."""
        for _ in range(count):
            number, before = len(self._threads), self.shares._waiting.total()
            thread = threading.Thread(target=self._enter, args=(number,))
            self._threads.append(thread)
            thread.start()
            while self.shares._waiting.total() == before and thread.is_alive():
                thread.join(0.001)

    def _enter(self, number: int) -> None:
        try:
            self.shares.enter(self.who, self.shares.max_per_caller, self.group)
        except ApiError as error:
            self.rejected.append(error)
        else:
            self.entered.append(number)
            self._came.release()

    def await_turn(self) -> None:
        assert self._came.acquire(timeout=PATIENCE_SECONDS)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)


def test_one_caller_uses_at_most_half_of_the_threads_and_waiting_requests_are_admitted(shares: ThreadShares) -> None:
    page = Page(shares, "ann")
    page.send(16)
    assert sorted(page.entered) == [0, 1, 2, 3]
    for _ in range(4):
        shares.enter("eve", shares.max_per_caller)
    for _ in range(16):
        page.await_turn()
        shares.leave("ann")
    page.join()
    assert page.rejected == []


def test_waiting_requests_are_admitted_in_order(shares: ThreadShares) -> None:
    page = Page(shares, "ann")
    page.send(12)
    for _ in range(4):
        page.await_turn()
    for _ in range(8):
        shares.leave("ann")
        page.await_turn()
    page.join()
    assert page.entered[4:] == [4, 5, 6, 7, 8, 9, 10, 11]


def test_waiting_request_releases_its_server_thread(shares: ThreadShares) -> None:
    aside: list[str] = []

    @contextmanager
    def record() -> Iterator[None]:
        aside.append("in")
        yield
        aside.append("out")

    shares.share_out(2, record)
    page = Page(shares, "ann")
    page.send(2)
    assert aside == ["in"]
    shares.leave("ann")
    page.join()
    assert aside == ["in", "out"]


@pytest.mark.usefixtures("impatient")
def test_request_queued_too_long_gets_server_busy(shares: ThreadShares) -> None:
    for _ in range(4):
        shares.enter("ann", shares.max_per_caller)

    error = rejection(shares, "ann")

    assert (error.code, error.retry_after) == (ErrorCode.SERVER_BUSY, 2)
    shares.enter("eve", shares.max_per_caller)
    shares.leave("ann")
    shares.enter("ann", shares.max_per_caller)


def test_waiting_requests_are_limited_per_caller_and_in_total(
    shares: ThreadShares, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_limits, "MAX_WAITING", 3)
    monkeypatch.setattr(cpu_limits, "MAX_WAITING_TOTAL", 5)
    ann, eve = Page(shares, "ann"), Page(shares, "eve")
    ann.send(4 + 3)
    assert rejection(shares, "ann").code is ErrorCode.SERVER_BUSY
    eve.send(4 + 2)
    assert rejection(shares, "eve").code is ErrorCode.SERVER_BUSY
    for page in (ann, eve):
        for _ in range(page.shares.max_per_caller + (3 if page is ann else 2)):
            page.await_turn()
            shares.leave(page.who)
        page.join()
    assert ann.rejected == eve.rejected == []
    assert shares._callers == {}
    assert not shares._waiting


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4)])
@pytest.mark.usefixtures("impatient")
def test_one_caller_always_leaves_a_thread_for_others(shares: ThreadShares, threads: int, most: int) -> None:
    shares.share_out(threads)
    for _ in range(most):
        shares.enter("ann", shares.max_per_caller)
    rejection(shares, "ann")
    shares.enter("eve", shares.max_per_caller)


@contextmanager
def busy(tenant: Tenant) -> Iterator[None]:
    """Use up the tenant's share of the threads."""
    shares: ThreadShares = tenant.app.extensions["runtime"].shares
    shares.share_out(2)
    shares.enter(tenant.account_id, shares.max_per_caller)
    yield
    shares.leave(tenant.account_id)


@pytest.mark.usefixtures("impatient")
def test_tenant_without_a_free_thread_gets_503_and_other_callers_are_served(app: Flask, tenant: Tenant) -> None:
    other = register_tenant(app, "eve@example.com")
    asked = ((tenant.search, "/v1/search?q=x"), (tenant.private, "/sites"))

    with busy(tenant):
        for client, path in asked * 2:
            response = client.get(path)
            assert_error(response, 503, "server_busy")
            assert response.headers["Retry-After"] == "2"
            assert other.search.get("/v1/search?q=x").status_code == 200
            assert ApiClient(app).get("/openapi.json").status_code == 200
            assert tenant.browser.get("/sites").status_code == 200, "slow searches with keys must not block members"
    for client, path in asked:
        assert client.get(path).status_code == 200


@pytest.mark.usefixtures("impatient")
def test_gateway_returns_server_busy_in_meilisearchs_format(tenant: Tenant) -> None:
    gateway = Gateway(tenant)
    with busy(tenant):
        assert_engine_error(gateway.send({"q": "x"}), 503, "server_busy")


def test_every_response_releases_its_thread_share(app: Flask, tenant: Tenant) -> None:
    shares: ThreadShares = app.extensions["runtime"].shares
    shares.share_out(2)

    for _ in range(2):
        assert tenant.search.get("/v1/search?q=x").status_code == 200
        assert tenant.search.get("/v1/search").status_code == 400
        assert tenant.search.get("/nowhere").status_code == 404
        assert ApiClient(app, "svc_srch_wrong").get("/v1/search?q=x").status_code == 401
        assert ApiClient(app).post("/login", json={}).status_code == 400


@pytest.mark.parametrize(("threads", "members", "member"), [(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 3, 2), (16, 7, 4)])
def test_members_and_keys_of_an_account_leave_threads_to_others(
    shares: ThreadShares, threads: int, members: int, member: int
) -> None:
    shares.share_out(threads)
    assert (shares.max_of_members, shares.max_of_member) == (members, member)
    if threads > 2:
        assert (shares.max_per_caller or 0) + members < threads


@pytest.mark.usefixtures("impatient")
def test_members_of_one_account_share_its_threads(app: Flask, tenant: Tenant) -> None:
    colleague, stranger = add_member(tenant, "bo@example.com", "viewer"), register_tenant(app, "eve@example.com")
    shares: ThreadShares = app.extensions["runtime"].shares
    shares.share_out(8)
    group = f"members {tenant.account_id}"

    for _ in range(3):
        shares.enter(group, shares.max_of_members)
    for browser in (tenant.browser, colleague):
        assert_error(browser.get("/sites"), 503, "server_busy")
    assert stranger.browser.get("/sites").status_code == 200
    assert tenant.private.get("/sites").status_code == 200
    shares.leave(group)
    assert tenant.browser.get("/sites").status_code == 200


@pytest.mark.usefixtures("impatient")
def test_one_member_leaves_threads_to_the_others(app: Flask, tenant: Tenant) -> None:
    colleague = add_member(tenant, "bo@example.com", "viewer")
    shares: ThreadShares = app.extensions["runtime"].shares
    shares.share_out(8)
    busy_member = f"member {member_id(tenant, 'bo@example.com')}"

    for _ in range(2):
        shares.enter(busy_member, shares.max_of_member)
    assert_error(colleague.get("/sites"), 503, "server_busy")
    assert tenant.browser.get("/sites").status_code == 200
    assert list(shares._callers) == [busy_member], (
        "a rejected request must be removed from the limits that it had entered"
    )


def test_waiting_requests_of_an_accounts_members_are_limited_together(
    shares: ThreadShares, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_limits, "MAX_WAITING", 3)
    members = [Page(shares, f"member {number}", "members 1") for number in range(2)]
    for page in members:
        page.send(4)
    members[0].send(2)
    members[1].send(1)
    with pytest.raises(ApiError):
        shares.enter("member 0", shares.max_per_caller, "members 1")
    with pytest.raises(ApiError):
        shares.enter("member 1", shares.max_per_caller, "members 1")

    for page, count in zip(members, (6, 5), strict=True):
        for _ in range(count):
            page.await_turn()
            shares.leave(page.who)
        page.join()
    assert not shares._waiting
