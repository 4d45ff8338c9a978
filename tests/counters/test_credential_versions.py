"""Credential versions let every process detect stale cached keys."""

from __future__ import annotations

from app.counters.base import CounterStore
from app.counters.values import CredentialVersion, WindowRequest

NOW = 1_700_000_000.0


def credential_version(counters: CounterStore, account_id: int = 1, now: float = NOW) -> CredentialVersion:
    found = counters.consume([], credentials_of=account_id, now=now).credential_version
    assert found is not None
    return found


def test_version_stays_the_same_without_changes(counters: CounterStore) -> None:
    first = credential_version(counters)
    assert first.is_settled
    assert credential_version(counters, now=NOW + 5) == first
    assert counters.peek([], credentials_of=1, now=NOW + 9).credential_version == first


def test_version_is_unsettled_during_a_change_and_different_after_it(counters: CounterStore) -> None:
    before = credential_version(counters)
    begun = counters.begin_credential_change(1, now=NOW)
    assert not begun.is_settled
    assert credential_version(counters) == begun
    ended = counters.end_credential_change(1, now=NOW)
    assert ended.is_settled
    assert credential_version(counters) == ended != before


def test_version_stays_unsettled_until_both_concurrent_changes_end(counters: CounterStore) -> None:
    counters.begin_credential_change(1, now=NOW)
    counters.begin_credential_change(1, now=NOW)
    assert not counters.end_credential_change(1, now=NOW).is_settled
    assert counters.end_credential_change(1, now=NOW).is_settled


def test_change_affects_only_its_own_account(counters: CounterStore) -> None:
    other = credential_version(counters, 2)
    counters.begin_credential_change(1, now=NOW)
    assert credential_version(counters, 2) == other


def test_rejected_request_still_returns_the_credential_version(counters: CounterStore) -> None:
    settled = credential_version(counters)
    rejected = counters.consume([WindowRequest("full", 0, 60)], credentials_of=1, now=NOW)
    assert not rejected.allowed
    assert rejected.credential_version == settled


def test_abandoned_change_is_healed_after_its_timeout(counters: CounterStore) -> None:
    before = credential_version(counters)
    counters.begin_credential_change(1, now=NOW)
    counters.begin_credential_change(2, now=NOW + 50)
    assert counters.heal_credential_epochs(60, now=NOW + 60) == 0
    assert counters.heal_credential_epochs(60, now=NOW + 61) == 1
    assert credential_version(counters).is_settled
    assert credential_version(counters) != before
    assert not credential_version(counters, 2).is_settled
    assert counters.heal_credential_epochs(60, now=NOW + 61) == 0


def test_completed_credential_change_is_not_healed(counters: CounterStore) -> None:
    credential_version(counters)
    counters.begin_credential_change(1, now=NOW)
    counters.end_credential_change(1, now=NOW)
    settled = credential_version(counters)
    assert counters.heal_credential_epochs(60, now=NOW + 3600) == 0
    assert credential_version(counters) == settled


def test_change_that_ends_after_healing_yields_another_version(counters: CounterStore) -> None:
    counters.begin_credential_change(1, now=NOW)
    counters.heal_credential_epochs(60, now=NOW + 61)
    healed = credential_version(counters)
    counters.end_credential_change(1, now=NOW + 62)
    assert credential_version(counters).is_settled
    assert credential_version(counters) != healed


def test_deleted_account_gets_another_settled_version(counters: CounterStore) -> None:
    before = credential_version(counters)
    counters.forget_account(1, now=NOW)
    assert credential_version(counters).is_settled
    assert credential_version(counters) != before


def test_cleared_store_does_not_repeat_a_version(counters: CounterStore) -> None:
    before = credential_version(counters)
    counters.begin_credential_change(1, now=NOW)
    counters.end_credential_change(1, now=NOW)
    counters.clear()
    assert credential_version(counters, now=NOW + 5) != before
