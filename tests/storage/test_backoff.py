"""Pauses between retries."""

from __future__ import annotations

import random

import pytest

from app.storage.backoff import Backoff, Pauses


def test_pauses_double_up_to_the_maximum() -> None:
    pauses = Pauses(2.0, 300.0, chance=lambda: 1.0)
    assert [pauses.after(failures) for failures in (1, 2, 3, 7, 8, 9, 5000)] == [2, 4, 8, 128, 256, 300, 300]


@pytest.mark.parametrize(("failures", "least", "most"), [(1, 1.0, 2.0), (4, 8.0, 16.0), (50, 150.0, 300.0)])
def test_half_of_each_pause_is_random(failures: int, least: float, most: float) -> None:
    pauses = Pauses(2.0, 300.0, chance=random.Random(1).random)
    taken = [pauses.after(failures) for _ in range(1000)]
    assert least <= min(taken) < least * 1.05
    assert most * 0.95 < max(taken) <= most


def test_processes_that_failed_together_retry_at_different_times() -> None:
    one, other = (Backoff(lambda: 0.0, Pauses(2.0, 300.0, random.Random(seed).random)) for seed in (1, 2))
    assert one.note_failure(7) != other.note_failure(7)


def test_forgotten_failures_restart_with_the_first_pause() -> None:
    moment = [0.0]
    backoff = Backoff(lambda: moment[0], Pauses(2.0, 300.0, chance=lambda: 1.0))
    assert [backoff.note_failure(7), backoff.note_failure(7), backoff.note_failure(8)] == [2, 4, 2]
    moment[0] = 3.0
    assert backoff.due() == [8]
    moment[0] = 4.0
    assert backoff.due() == [8, 7]
    backoff.forget(7)
    assert backoff.note_failure(7) == 2
    backoff.forget_all_but([8])
    assert 7 not in backoff
    assert 8 in backoff
