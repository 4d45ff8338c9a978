"""Threads that build hits take turns, but do not wait for a slow thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import pytest

from backends.base import Hit
from backends.embedded import search
from backends.embedded.results import highlighting
from backends.embedded.results.hits import make_hits
from backends.query import SearchQuery
from tests.backends.contract import Case
from tests.backends.embedded.in_memory import index_of
from tests.patience import PATIENCE_SECONDS


def _case() -> Case:
    return index_of(*({"id": str(number), "title": "harbour", "content": "ships"} for number in range(20)))


def test_hits_of_one_page_are_built_before_those_of_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlighting, "TURN_SECONDS", PATIENCE_SECONDS)
    case, made = _case(), []
    both = threading.Barrier(2)

    def make_slowly(*args: Any) -> Sequence[Hit]:
        for _ in range(20):
            made.append(threading.get_ident())
            time.sleep(0.0005)  # Let other threads run, as they can while a document is read.
        return make_hits(*args)

    monkeypatch.setattr(search, "make_hits", make_slowly)

    def find() -> None:
        both.wait(PATIENCE_SECONDS)
        case.backend.search(case.index, SearchQuery("harbour", limit=20))

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(find) for _ in range(2)]:
            future.result(PATIENCE_SECONDS)
    assert [len(list(page)) for _, page in groupby(made)] == [20, 20]


def test_slow_page_does_not_block_other_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    case = _case()
    begun, may_end = threading.Event(), threading.Event()

    def stall(*args: Any) -> Sequence[Hit]:
        if not begun.is_set():
            begun.set()
            assert may_end.wait(PATIENCE_SECONDS)
        return make_hits(*args)

    monkeypatch.setattr(search, "make_hits", stall)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(case.backend.search, case.index, SearchQuery("harbour", limit=1))
        assert begun.wait(PATIENCE_SECONDS)
        assert len(case.backend.search(case.index, SearchQuery("harbour", limit=20)).hits) == 20
        may_end.set()
        slow.result(PATIENCE_SECONDS)
    assert len(case.backend.search(case.index, SearchQuery("harbour", limit=20)).hits) == 20
