"""Flask-Limiter over the counter store checks all limits of a request in one step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import flask
import pytest
import time_machine
from flask_limiter import Limiter, RateLimitExceeded

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.limiter import (
    CounterStorage,
    RequestLimiter,
    RequestLimitExceeded,
    RequestLimits,
    rate_headers,
    shown_window,
)
from app.counters.values import CountersUnavailable, UsageReservation, WindowRequest, WindowState

NOW = 1_700_000_000.25
MINUTE = WindowRequest("account minute", 3, 60)
DAY = WindowRequest("account day", 5, 86_400)
VISITOR = WindowRequest("visitor", 2, 60)


class Site:
    """An application whose requests pass ``limits``."""

    def __init__(self, counters: CounterStore) -> None:
        self.limits = RequestLimits((MINUTE, DAY))
        self.outcome: Any = None
        self.windows: tuple[WindowState, ...] = ()
        self.rejection: Any = None
        self.app = flask.Flask("site")
        self.limiter = RequestLimiter(counters)
        self.limiter.init_app(self.app)
        self.app.before_request(self.check)
        self.app.after_request(self.describe)
        self.app.add_url_rule("/", view_func=lambda: "fine", endpoint="home")
        self.app.register_error_handler(RateLimitExceeded, self.explain)
        self.app.register_error_handler(CountersUnavailable, lambda error: ("away", 503))
        self.client = self.app.test_client()

    def check(self) -> None:
        now = time.time()
        self.windows = self.limits.unused(now)
        try:
            self.outcome = self.limiter.check_request_limits(self.limits, now=now)
        except RequestLimitExceeded as error:
            self.windows = (error.window._replace(seconds=60),)
            raise
        self.windows = self.outcome.windows

    def describe(self, response: flask.Response) -> flask.Response:
        window = shown_window(self.windows)
        response.headers.update({} if window is None else rate_headers(window))
        return response

    def explain(self, error: Exception) -> tuple[str, int, dict[str, str]]:
        assert isinstance(error, RequestLimitExceeded)
        self.rejection = error
        return error.description or "", 429, {"Retry-After": str(error.retry_after)}

    def get(self, path: str = "/") -> tuple[int, tuple[str | None, ...], str | None]:
        response = self.client.get(path)
        shown = tuple(response.headers.get(f"X-RateLimit-{name}") for name in ("Limit", "Remaining", "Reset"))
        return response.status_code, shown, response.headers.get("Retry-After")


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def site(counters: CounterStore, clock: time_machine.Traveller) -> Site:
    return Site(counters)


def test_limits_are_enforced_and_shown_in_every_response(site: Site, clock: time_machine.Traveller) -> None:
    assert [site.get() for _ in range(4)] == [
        (200, ("3", "2", "1700000061"), None),
        (200, ("3", "1", "1700000061"), None),
        (200, ("3", "0", "1700000061"), None),
        (429, ("3", "0", "1700000061"), "60"),
    ]
    clock.shift(59.5)
    assert site.get() == (429, ("3", "0", "1700000061"), "1")
    clock.shift(0.5)
    assert site.get() == (200, ("3", "2", "1700000121"), None)


def test_rejection_shows_the_exceeded_limit(site: Site, clock: time_machine.Traveller) -> None:
    for _ in range(3):
        site.get()
    clock.shift(60)
    assert [site.get()[0] for _ in range(2)] == [200, 200]
    assert site.get() == (429, ("5", "0", "1700006400"), "6340")
    assert site.rejection.window.key == DAY.key
    assert site.rejection.limit.limit.amount == 5
    assert site.rejection.description == "5 per 1 day"


def test_headers_show_the_window_with_the_fewest_requests_left(site: Site) -> None:
    site.limits = RequestLimits((MINUTE, VISITOR, DAY))
    assert site.get() == (200, ("2", "1", "1700000061"), None)
    site.limits = RequestLimits((MINUTE, VISITOR._replace(key="another visitor"), DAY))
    assert site.get() == (200, ("3", "1", "1700000061"), None)


def test_response_of_an_unknown_route_includes_rate_limit_headers(site: Site) -> None:
    assert site.get("/nowhere") == (404, ("3", "2", "1700000061"), None)


def test_request_without_limits_has_no_rate_limit_headers(site: Site) -> None:
    site.limits = RequestLimits(())
    assert site.get() == (200, (None, None, None), None)


def test_exhausted_quota_is_left_to_the_application(site: Site) -> None:
    site.limits = RequestLimits((MINUTE,), reserve=UsageReservation(1, 1))
    assert site.get() == (200, ("3", "2", "1700000061"), None)
    assert site.outcome.reservation is not None
    assert site.get() == (200, ("3", "1", "1700000061"), None)
    assert site.outcome.reservation is None


def test_request_takes_a_single_step_in_the_store(
    site: Site, counters: CounterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for method in sorted(CounterStore.__abstractmethods__):
        original = getattr(counters, method)

        def counted(*arguments: Any, method: str = method, original: Any = original, **named: Any) -> Any:
            steps.append(method)
            return original(*arguments, **named)

        monkeypatch.setattr(counters, method, counted)
    site.limits = RequestLimits((MINUTE, DAY, VISITOR), reserve=UsageReservation(1, 9), credentials_of=1)
    site.get()
    assert steps == ["consume"]
    assert site.outcome.used_today == 1
    assert site.outcome.credential_version.is_settled


def test_limiter_is_registered_with_flask_and_uses_the_counter_store(site: Site, counters: CounterStore) -> None:
    assert site.app.extensions["limiter"] == {site.limiter}
    assert isinstance(site.limiter, Limiter)
    assert isinstance(site.limiter.storage, CounterStorage)
    assert site.limiter.storage.store is counters


def test_decorated_views_and_blueprints_are_limited(site: Site) -> None:
    def page() -> str:
        return "page"

    def view() -> str:
        return "view"

    pages = flask.Blueprint("pages", __name__)
    pages.add_url_rule("/page", view_func=page)
    site.limiter.limit("1/minute")(pages)
    site.app.register_blueprint(pages)
    site.app.add_url_rule("/view", view_func=site.limiter.limit("2/minute", key_func=lambda: "everyone")(view))
    site.limits = RequestLimits(())
    site.app.register_error_handler(RateLimitExceeded, lambda error: ("limited", 429))
    assert [site.get("/view")[0] for _ in range(3)] == [200, 200, 429]
    assert [site.get("/page")[0] for _ in range(2)] == [200, 429]


def test_unavailable_store_is_handled_by_the_application(
    tmp_path_factory: pytest.TempPathFactory, clock: time_machine.Traveller
) -> None:
    missing = tmp_path_factory.mktemp("empty") / "missing" / "counters.db"
    site = Site(create_counters(f"sqlite://{missing}"))
    assert site.get() == (503, ("3", "3", "1700000061"), None)
