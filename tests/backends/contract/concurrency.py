"""Concurrency: readers alongside writers, and several writers."""

from __future__ import annotations

import threading
import uuid

import pytest

from backends.base import SearchBackend
from backends.query import Highlight
from tests.backends.contract.case import Case, page


class ConcurrencyContract:
    @pytest.mark.slow
    def test_searches_return_complete_results_during_writes(self, case: Case) -> None:
        case.add(*(page(f"base{number}", "steady word") for number in range(20)))
        failures: list[BaseException] = []
        done = threading.Event()

        def read() -> None:
            try:
                while not done.is_set():
                    result = case.search("steady", highlight=Highlight())
                    assert len(result.hits) == 20
                    assert result.total == 20
            except BaseException as error:  # noqa: BLE001 - reported to the test below
                failures.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            for number in range(10):
                case.add(page(f"new{number}", f"moving {number}"))
        finally:
            done.set()
            for reader in readers:
                reader.join()
        assert failures == []
        assert case.backend.count(case.index) == 30

    def test_concurrent_writes_to_different_indexes_all_succeed(self, backend: SearchBackend) -> None:
        cases = [Case(backend, f"t_{uuid.uuid4().hex}") for _ in range(3)]
        failures: list[BaseException] = []

        def write(case: Case) -> None:
            try:
                backend.create_index(case.index)
                for number in range(5):
                    case.add(page(str(number), "word"))
                assert case.search("word").total == 5
            except BaseException as error:  # noqa: BLE001 - reported to the test below
                failures.append(error)

        writers = [threading.Thread(target=write, args=(case,)) for case in cases]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        for case in cases:
            backend.delete_index(case.index)
        assert failures == []
