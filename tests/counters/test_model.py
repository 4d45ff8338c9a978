"""All three stores agree with a reference model over random steps that cross window ends and midnights."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.metering import day_of
from app.counters.values import (
    IdempotencyKey,
    IntentRequest,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
)

START = 1_700_005_000.0
DAY_SECONDS = 86_400
TICK = 0.125  # a fraction that floats hold exactly
LIMITS = {"minute": (3, 60), "hour": (6, 3600), "day": (9, DAY_SECONDS), "unlimited": (None, 60)}


class Typing:
    """One intent: the visitor's input, and whether a request succeeded."""

    def __init__(self, now: float, text: str, before: list[Typing]) -> None:
        self.began = max([now, *(typing.began + 0.001 for typing in before[-1:])])
        self.day, self.last, self.text = day_of(now), now, text
        self.requests, self.failed = 1, 0


class Model:
    """The contract in its simplest form: totals are recomputed on every read."""

    def __init__(self) -> None:
        self.windows: dict[str, tuple[float, int]] = {}
        self.searches: Counter[tuple[int, date]] = Counter()
        self.settled: Counter[tuple[int, date]] = Counter()
        self.indexing: Counter[tuple[int, date]] = Counter()
        self.sites: dict[tuple[int, date], dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self.keys: dict[tuple[int, str], tuple[str, float]] = {}
        self.rejections: Counter[tuple[int, date]] = Counter()
        self.typing: dict[str, list[Typing]] = defaultdict(list)

    def goes_on(self, intent: IntentRequest | None, now: float) -> Typing | None:
        if intent is None or not self.typing[intent.key]:
            return None
        last = self.typing[intent.key][-1]
        related = last.text.startswith(intent.text) or intent.text.startswith(last.text)
        return last if related and now - last.last <= 30 and now - last.began <= 120 and last.requests < 60 else None

    def used(self, account: int, day: date) -> int:
        charges = 0
        for site in self.sites[account, day].values():
            certain = max(site["gateway"], site["trusted"])
            charges += certain + min(10, max(0, site["trusted"] + site["capped"] - certain))
        return self.searches[account, day] + self.settled[account, day] + charges

    def window(self, key: str, seconds: int, now: float) -> tuple[float, int]:
        begins = now // DAY_SECONDS * DAY_SECONDS if seconds == DAY_SECONDS else now
        started, hits = self.windows.get(key, (begins, 0))
        return (started, hits) if now < started + seconds else (begins, 0)

    def consume(
        self, windows: list[WindowRequest], reserve: UsageReservation | None, intent: IntentRequest | None, now: float
    ) -> tuple[Any, ...]:
        goes_on = self.goes_on(intent, now)
        own = windows
        windows = [*windows, *(intent.windows if intent else ())]
        counted = own if goes_on else windows
        found = {window.key: self.window(window.key, window.seconds, now) for window in windows}
        full = [
            (found[window.key][0] + window.seconds, window.key)
            for window in counted
            if window.limit is not None and found[window.key][1] + window.cost > window.limit
        ]
        if not full:
            for window in counted:
                started, hits = found[window.key]
                self.windows[window.key] = found[window.key] = (started, hits + window.cost)
        shown = [(found[window.key][1], found[window.key][0] + window.seconds) for window in windows]
        if full:
            longest = max(end for end, _ in full)
            return shown, next(key for end, key in full if end == longest), None, None
        if reserve is None:
            return shown, None, None, None
        day = day_of(now)
        if goes_on and intent:
            goes_on.last, goes_on.text = now, intent.text
            goes_on.requests += 1
            return shown, None, goes_on, self.used(reserve.account_id, day)
        reserved: Any = reserve.daily_limit is None or self.used(reserve.account_id, day) < reserve.daily_limit
        if reserved:
            if reserve.gateway_site_id is None:
                self.searches[reserve.account_id, day] += 1
            else:
                self.sites[reserve.account_id, day][reserve.gateway_site_id]["gateway"] += 1
            if intent:
                reserved = Typing(now, intent.text, self.typing[intent.key])
                self.typing[intent.key].append(reserved)
        return shown, None, reserved, self.used(reserve.account_id, day)

    def refund(
        self, reservation: Reservation | None, typing: Any, windows: tuple[WindowState, ...], now: float
    ) -> None:
        for window in windows:
            started, hits = self.windows.get(window.key, (0.0, 0))
            if round((started + window.seconds) * 1000) == window.reset_ms and now < started + window.seconds:
                self.windows[window.key] = (started, max(0, hits - window.cost))
        if reservation is not None and reservation.intent is not None:
            typing.failed += 1
            if typing.failed < typing.requests:
                return
            self.typing[reservation.intent.key].remove(typing)
        if reservation is not None:
            owned = (reservation.account_id, reservation.day)
            if reservation.gateway_site_id is None:
                self.searches[owned] -= 1
            else:
                self.sites[owned][reservation.gateway_site_id]["gateway"] -= 1

    def settle(
        self, account: int, site: int | None, at: float, intent: IntentRequest | None, once: str, now: float
    ) -> None:
        if now >= self.keys.get((account, f" {once}"), ("", 0.0))[1]:
            self.keys[account, f" {once}"] = ("", now + DAY_SECONDS)
            self.consume([], UsageReservation(account, None, site), intent, at)

    def report(
        self, account: int, site: int, kind: str, count: int, key: IdempotencyKey | None, now: float
    ) -> tuple[str, int]:
        day = day_of(now)
        if key is not None:
            fingerprint, until = self.keys.get((account, key.key), ("", 0.0))
            if now < until:
                return "duplicate" if fingerprint == key.fingerprint else "conflict", self.used(account, day)
            self.keys[account, key.key] = (key.fingerprint, now + DAY_SECONDS)
        if kind == "indexing":
            self.indexing[account, day] += count
        else:
            self.sites[account, day][site][kind] += count
        return "recorded", self.used(account, day)

    def forget_site(self, account: int, site: int) -> None:
        for (owner, day), sites in list(self.sites.items()):
            if owner == account and site in sites:
                before = self.used(account, day)
                del sites[site]
                self.settled[account, day] += before - self.used(account, day)


accounts = st.integers(1, 2)
sites = st.integers(7, 8)
window_hits = st.builds(
    lambda key, cost: WindowRequest(key, *LIMITS[key], cost),
    st.sampled_from(sorted(LIMITS)),
    st.sampled_from([1, 1, 1, 2]),
)
reservations = st.none() | st.builds(UsageReservation, accounts, st.sampled_from([None, 0, 4, 12]), st.none() | sites)
idempotency_keys = st.none() | st.builds(IdempotencyKey, st.sampled_from("kl"), st.sampled_from("ab"))
texts = st.sampled_from(["h", "ha", "har", "harbor", "hat", "ü", "übe"])
intents = st.none() | st.builds(
    lambda visitor, text, window: IntentRequest(visitor, text, (WindowRequest(f"intents {window}", 5, window),)),
    st.sampled_from("vw"),
    texts,
    st.sampled_from([60, 3600]),
)
hits = st.tuples(
    st.just("consume"),
    st.lists(window_hits, min_size=1, max_size=3, unique_by=lambda window: window.key),
    reservations,
    intents,
)
steps = st.one_of(
    hits,
    hits,
    st.tuples(
        st.just("wait"),
        st.sampled_from([TICK, 30.0, 30 + TICK, 60 - TICK, 60.0, 60.0, 3600.0, DAY_SECONDS - TICK, DAY_SECONDS]),
    ),
    st.tuples(st.just("midnight"), st.sampled_from([-TICK, 0.0])),
    st.tuples(st.just("give back"), st.integers(0, 30), st.booleans(), st.booleans()),
    st.tuples(
        st.just("report"),
        accounts,
        sites,
        st.sampled_from(["trusted", "capped", "indexing"]),
        st.integers(1, 15),
        idempotency_keys,
    ),
    st.tuples(
        st.just("settle"),
        accounts,
        st.none() | sites,
        st.sampled_from([0.0, 5.0, 3600.0]),
        st.none() | texts,
        st.sampled_from("st"),
    ),
    st.tuples(st.just("settle failed"), st.integers(0, 30)),
    st.tuples(st.just("refusal"), accounts),
    st.tuples(st.just("forget site"), accounts, sites),
    st.tuples(st.just("reset"), st.sampled_from(sorted(LIMITS))),
)


@pytest.fixture(params=["sqlite", *(pytest.param(store, marks=pytest.mark.slow) for store in ("memory", "redis"))])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CounterStore]:
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
    elif request.param == "sqlite":
        url = f"sqlite://{tmp_path_factory.mktemp('model')}/counters.db"
    else:
        url = "memory://"
    made = create_counters(url)
    yield made
    made.close()


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(script=st.lists(steps, min_size=20, max_size=60))
def test_every_step_agrees_with_the_reference_model(store: CounterStore, script: list[tuple[Any, ...]]) -> None:
    store.clear()
    model = Model()
    now = START
    outcomes: list[Any] = []
    settlements = 0
    for step, *details in script:
        if step == "wait":
            now = now + details[0]
        elif step == "midnight":
            now = max(now, (now // DAY_SECONDS + 1) * DAY_SECONDS + details[0])
        elif step == "consume":
            windows, reserve, intent = details
            intent = None if reserve is None else intent
            seen = store.peek(windows, usage_of=None if reserve is None else reserve.account_id, now=now)
            goes_on = model.goes_on(intent, now)
            outcome = store.consume(windows, reserve=reserve, intent=intent, now=now)
            shown, rejected, reserved, used = model.consume(windows, reserve, intent, now)
            assert [(window.hits, window.reset_ms / 1000) for window in outcome.windows] == shown
            assert (None if outcome.rejected is None else outcome.rejected.key) == rejected
            assert (outcome.reservation is not None) == bool(reserved)
            assert outcome.used_today == used
            assert outcome.day == day_of(now)
            assert outcome.continues == (goes_on is not None and rejected is None)
            if goes_on and outcome.reservation is not None:
                assert outcome.reservation.day == goes_on.day
            if intent is None:
                assert (None if seen.rejected is None else seen.rejected.key) == rejected
            ends = [window.reset_ms for window in outcome.windows]
            assert [window.reset_ms for window in seen.windows] == ends[: len(windows)]
            if outcome.allowed:
                outcomes.append((outcome, reserved))
        elif step == "give back" and outcomes:
            outcome, typing = outcomes.pop(details[0] % len(outcomes))
            reservation = outcome.reservation if details[1] else None
            given_back = outcome.windows if details[2] and not outcome.continues else ()
            store.refund(reservation=reservation, windows=given_back, now=now)
            model.refund(reservation, typing, given_back, now)
        elif step == "settle failed" and outcomes:
            outcome, typing = outcomes.pop(details[0] % len(outcomes))
            if outcome.reservation is not None:
                settlements += 1
                for _ in range(2):
                    store.settle(outcome.reservation, once=f"failed-{settlements}", now=now)
                model.refund(outcome.reservation, typing, (), now)
        elif step == "settle":
            account, site, before, text, once = details
            intent = None if text is None else IntentRequest("v", text)
            store.settle(UncountedSearch(account, site, now - before, intent), once=once, now=now)
            model.settle(account, site, now - before, intent, once, now)
        elif step == "report":
            account, site, kind, count, key = details
            operation = "indexing" if kind == "indexing" else "search"
            told = store.report_usage(
                account, site, operation, count, capped=kind == "capped", idempotency=key, now=now
            )
            assert (told.status.value, told.used_today) == model.report(account, site, kind, count, key, now)
        elif step == "refusal":
            store.count_rejection(details[0], now=now)
            model.rejections[details[0], day_of(now)] += 1
        elif step == "forget site":
            store.forget_site(*details, now=now)
            model.forget_site(*details)
            outcomes = [
                (outcome, typing)
                for outcome, typing in outcomes
                if outcome.reservation is None or outcome.reservation.gateway_site_id is None
            ]
        elif step == "reset":
            store.reset(details)
            model.windows.pop(details[0], None)
        for account in (1, 2):
            usage = store.usage_of_day(account, day_of(now))
            assert (usage.used, usage.indexing, usage.rejected) == (
                model.used(account, day_of(now)),
                model.indexing[account, day_of(now)],
                model.rejections[account, day_of(now)],
            )
