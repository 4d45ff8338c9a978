"""Include and exclude globs match paths with queries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
import time_machine

from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.run.visits.admission import MAX_CALENDAR_URLS, MAX_COMBINATIONS, Traps, UrlRules


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("/docs/*", ["/docs/", "/docs/a/b", "/docs/?q=1"], ["/docs", "/x/docs/a"]),
        ("/docs", ["/docs"], ["/docs/", "/docs?a=1"]),
        ("*.html", ["/a.html", "/a/b.html"], ["/a.html?x=1", "/html"]),
        ("*?print=*", ["/a?print=1"], ["/a?x=print"]),
        ("/*/old/*", ["/a/old/b", "/a/b/old/c"], ["/old/b", "/a/old"]),
        ("*a*a*", ["/aa", "/banana"], ["/a", "/b"]),
        ("/ab*ba", ["/abba", "/abxba"], ["/aba"]),
        ("*", ["/", "/a?b"], []),
        ("**", ["/", "/a?b"], []),
        ("/[a]+", ["/[a]+"], ["/aa"]),
    ],
)
def test_star_in_a_glob_matches_any_characters(glob: str, matching: list[str], others: list[str]) -> None:
    rules = UrlRules([glob], [])
    assert [path for path in [*matching, *others] if rules.allow(f"https://example.com{path}")] == matching
    refusing = UrlRules([], [glob])
    assert [path for path in [*matching, *others] if refusing.allow(f"https://example.com{path}")] == others


def test_exclude_globs_take_precedence_over_include_globs() -> None:
    rules = UrlRules(["/docs/*"], ["/docs/old/*"])
    assert rules.allow("https://example.com/docs/a")
    assert not rules.allow("https://example.com/docs/old/a")


def test_glob_with_many_stars_is_matched_quickly() -> None:
    rules = UrlRules(["*a" * 1000 + "b"], [])
    assert not rules.allow("https://example.com/" + "a" * 2000)


SITE = "https://www.example.com"


@pytest.fixture(autouse=True)
def _today() -> Iterator[None]:
    with time_machine.travel("2026-05-01T12:00:00Z", tick=False):
        yield


def is_trap(traps: Traps, path: str) -> bool:
    try:
        traps.check(SITE + path)
    except NotIndexed as error:
        return error.reason == Reason.TRAP
    return False


@pytest.mark.parametrize(
    "path",
    [
        "/a/b/a/b/a/b/a/b",
        "/de/de/de/de/page",
        "/x" * 45,
        "/" + "x" * 2_100,
        "/list?" + "&".join(f"p{number}=1" for number in range(20)),
        "/list?" + "&".join(["tag=a"] * 5),
        "/calendar/2031/05/",
        "/events/2031-05-12",
        "/calendar?year=2044&month=3",
        "/calendar?date=2031-05-12",
        "/calendar?month=2031-05",
        "/events/month/2031-05/?view=list",
        "/calendar/9999",
        "/events/20310512/",
    ],
)
def test_repeated_segments_and_far_future_dates_are_traps(path: str) -> None:
    assert is_trap(Traps(), path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs/a/b/c/d/e/f/",
        "/2031/05/12/a-story-about-the-future",
        "/2026/06/",
        "/events/2026-12-24",
        "/events?year=2027&month=1",
        "/report-2050.html",
        "/plan-2050",
        "/products/2000001",
        "/releases/3.2",
        "/std/iso/8601",
        "/std/vec/vec/struct.Vec.html",
        "/a/a/a/b",
        "/list?tag=a&tag=b&tag=c&tag=d",
        "/archive/1999/12/31",
        "/page?id=20310512",
        "/product?sku=2050",
        "/product/20310512",
    ],
)
def test_ordinary_urls_are_not_traps(path: str) -> None:
    assert not is_trap(Traps(), path)


def test_calendar_with_too_many_past_days_is_a_trap() -> None:
    traps = Traps()
    days = [date(2026, 5, 1) - timedelta(days=number) for number in range(MAX_CALENDAR_URLS + 5)]

    caught = [is_trap(traps, f"/calendar/{day:%Y/%m/%d}/") for day in days]

    assert caught == [False] * MAX_CALENDAR_URLS + [True] * 5
    assert not is_trap(traps, "/news/2026/05/01/")


def test_many_stories_in_dated_folders_are_not_a_trap() -> None:
    traps = Traps()

    assert not any(is_trap(traps, f"/2020/01/{number % 28 + 1:02}/story-{number}") for number in range(3_000))


def test_too_many_parameter_combinations_are_a_trap() -> None:
    traps = Traps()

    caught = [is_trap(traps, f"/shop?color={n % 7}&size={n % 11}&sort={n % 13}&page={n}") for n in range(1_010)]

    assert caught == [False] * MAX_COMBINATIONS + [True] * 10
    assert not is_trap(traps, "/other?a=1&b=2&c=3&d=4")


def test_many_values_of_one_parameter_are_not_a_trap() -> None:
    traps = Traps()

    assert not any(is_trap(traps, f"/topic?f=1&t={number}") for number in range(3_000))


@pytest.mark.slow
def test_trap_counters_are_bounded() -> None:
    traps = Traps()

    for number in range(25_000):
        is_trap(traps, f"/{'x' * (number % 150)}{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}?a=1&b=2&c=3&d=4")

    assert len(traps._combinations) <= 10_000


@pytest.mark.parametrize("path", ["/a" * 1_000, "/" * 2_000, "/ab" * 30 + "/c", "/1" * 600, "/" + "2031-" * 400])
def test_hostile_urls_are_checked_in_linear_time(path: str) -> None:
    """With polynomial cost this test would take minutes."""
    for _ in range(100):
        is_trap(Traps(), path)
