"""Suggested queries are found quickly, and cached in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
import time_machine
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from app.services.search.suggestions import (
    LIFETIME,
    MAX_QUERIES,
    MAX_QUERY_LENGTH,
    FrequentQueries,
    FrequentQueryCache,
)
from app.storage.database import Database
from backends.text import normal_form
from tests.api.test_suggestions import searched
from tests.callers import Tenant, page

NOON = datetime(2024, 6, 15, 12, tzinfo=UTC)


def first(queries: Iterable[str], limit: int) -> list[str]:
    """Return the first ``limit`` queries."""
    return list(islice(queries, limit))


@pytest.fixture
def clock() -> Iterator[time_machine.Coordinates]:
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


@pytest.fixture
def owner(clock: time_machine.Coordinates, tenant: Tenant) -> Tenant:
    tenant.index(page(1))
    return tenant


def database(app: Flask) -> Database:
    found: Database = app.extensions["runtime"].database
    return found


class TestFrequentQueries:
    QUERIES = ("opening hours", "hours", "opening", "how to get here", "open data")

    @pytest.mark.parametrize(("start", "wanted"), [
        ("open", ["opening hours", "opening", "open data"]),
        ("ho", ["hours", "how to get here", "opening hours"]),
        ("opening h", ["opening hours"]),
        ("", ["opening hours", "hours", "opening", "how to get here", "open data"]),
        ("pening", []),
        ("xyz", []),
    ])  # fmt: skip
    def test_queries_starting_with_the_text_precede_queries_with_a_later_matching_word(
        self, start: str, wanted: list[str]
    ) -> None:
        assert first(FrequentQueries(self.QUERIES).continuing(start), 8) == wanted

    def test_continuing_queries_are_limited(self) -> None:
        assert first(FrequentQueries(self.QUERIES).continuing("open"), 2) == ["opening hours", "opening"]
        assert first(FrequentQueries(()).continuing(""), 8) == []

    words = st.text(st.sampled_from("ab \u202e日"), min_size=1, max_size=8).map(normal_form).filter(bool)

    @given(st.lists(words, unique=True, max_size=12), words, st.integers(1, 6))
    def test_continuing_queries_match_a_linear_scan(self, queries: list[str], start: str, limit: int) -> None:
        beginning = [query for query in queries if query.startswith(start)]
        later = [query for query in queries if f" {start}" in query and query not in beginning]

        assert first(FrequentQueries(queries).continuing(start), limit) == (beginning + later)[:limit]


class TestFrequentQueryCache:
    def test_frequent_queries_are_cached_for_their_lifetime(
        self, owner: Tenant, clock: time_machine.Coordinates
    ) -> None:
        cache = FrequentQueryCache(database(owner.app))
        seen = []
        for _ in range(3):
            seen.append(first(cache.get(owner.site_id).continuing(""), 8))
            searched(owner, hours=3)
            clock.shift(LIFETIME - timedelta(seconds=1) if len(seen) == 1 else timedelta(seconds=1))

        assert seen == [[], [], ["hours"]]

    def test_setting_the_clock_back_expires_cached_queries(
        self, owner: Tenant, clock: time_machine.Coordinates
    ) -> None:
        cache = FrequentQueryCache(database(owner.app))
        cache.get(owner.site_id)
        searched(owner, hours=3)
        clock.shift(-timedelta(hours=1))

        assert first(cache.get(owner.site_id).continuing(""), 8) == ["hours"]

    @pytest.mark.slow
    def test_query_cache_stays_within_its_byte_limit(self, owner: Tenant) -> None:
        searched(owner, **{f"a query with the number {number}": 3 for number in range(200)})
        one = FrequentQueryCache(database(owner.app))
        one.get(owner.site_id)
        cache = FrequentQueryCache(database(owner.app), max_bytes=3 * one.size)

        for site_id in [*range(1000, 1999), *(owner.site_id for _ in range(2))]:
            cache.get(site_id)
            assert cache.size <= 3 * one.size

        assert first(cache.get(owner.site_id).continuing("a query with"), 1) != []

    @pytest.mark.slow
    def test_cache_contains_queries_with_the_most_visitors_and_omits_long_queries(self, owner: Tenant) -> None:
        searched(owner, **{f"query {number}": 3 + number for number in range(MAX_QUERIES + 5)})
        searched(owner, **{"x" * (MAX_QUERY_LENGTH + 1): 9, "y" * MAX_QUERY_LENGTH: 3})

        kept = first(FrequentQueryCache(database(owner.app)).get(owner.site_id).continuing(""), 2000)

        assert len(kept) == MAX_QUERIES
        assert kept[:2] == [f"query {MAX_QUERIES + 4}", f"query {MAX_QUERIES + 3}"]
        assert not any(query.startswith("x") for query in kept)
