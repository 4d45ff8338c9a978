"""Visitors are distinguished by IDs that cannot be traced back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

import pytest
import time_machine
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.models import VisitorKey
from app.services.analytics.event_retention import EventMaintenance
from app.services.analytics.visitors import KEY_DAYS, VisitorKeys, session_visitor
from app.storage.database import Database

from .conftest import MOMENT

ADDRESS = "198.51.100.7"
SECRET = "a secret of the server"


@pytest.fixture
def clock() -> Iterator[time_machine.Coordinates]:
    """Freeze the time at the beginning of a key's period."""
    days = int(MOMENT.timestamp()) // 86_400 % KEY_DAYS
    with time_machine.travel(MOMENT.replace(hour=0) - timedelta(days=days), tick=False) as clock:
        yield clock


def stored_keys(database: Database) -> list[bytes]:
    with database.read() as session:
        return list(session.scalars(select(VisitorKey.key)))


def test_all_processes_derive_the_same_visitor_id_within_a_key_period(
    database: Database, clock: time_machine.Coordinates
) -> None:
    one, other = VisitorKeys(database, SECRET), VisitorKeys(database, SECRET)
    number = one.address_visitor(1, ADDRESS)

    assert other.address_visitor(1, ADDRESS) == number
    assert one.address_session("1:key_a", ADDRESS) == other.address_session("1:key_a", ADDRESS)
    assert len(stored_keys(database)) == 1
    clock.shift(timedelta(days=KEY_DAYS, microseconds=-1))
    assert one.address_visitor(1, ADDRESS) == number


def test_visitor_ids_differ_by_site_ip_address_and_session(database: Database, clock: time_machine.Coordinates) -> None:
    keys = VisitorKeys(database, SECRET)

    numbers = {keys.address_visitor(site, address) for site in (1, 2) for address in (ADDRESS, "2001:db8::/64")}
    numbers |= {session_visitor(site, session) for site in (1, 2) for session in ("s", ADDRESS)}

    assert len(numbers) == 8
    assert all(-(2**63) <= number < 2**63 for number in numbers)


def test_derived_session_differs_by_api_key_and_day_and_omits_the_ip_address(
    database: Database, clock: time_machine.Coordinates
) -> None:
    keys = VisitorKeys(database, SECRET)
    session = keys.address_session("1:key_a", ADDRESS)

    assert ADDRESS not in session
    assert session != keys.address_session("1:key_b", ADDRESS)
    clock.shift(timedelta(days=1))
    assert session != keys.address_session("1:key_a", ADDRESS)


def test_visitor_key_is_renewed_after_its_period_and_the_old_key_is_deleted(
    database: Database, clock: time_machine.Coordinates
) -> None:
    keys = VisitorKeys(database, SECRET)
    number = keys.address_visitor(1, ADDRESS)
    (key,) = stored_keys(database)
    clock.shift(timedelta(days=KEY_DAYS))

    assert keys.address_visitor(1, ADDRESS) != number
    clock.shift(timedelta(days=1))
    EventMaintenance(database, 400).run()

    (renewed,) = stored_keys(database)
    assert renewed != key


def test_visitor_id_cannot_be_derived_without_the_server_secret(
    database: Database, clock: time_machine.Coordinates
) -> None:
    number = VisitorKeys(database, SECRET).address_visitor(1, ADDRESS)

    assert VisitorKeys(database, "a guess").address_visitor(1, ADDRESS) != number


def test_last_visitor_key_is_used_while_the_database_is_unavailable(
    database: Database, clock: time_machine.Coordinates
) -> None:
    keys = VisitorKeys(database, SECRET)
    number = keys.address_visitor(1, ADDRESS)
    away = OperationalError("SELECT", {}, Exception("unable to open database file"))
    with mock.patch.object(keys, "_read", side_effect=away) as read:
        assert keys.address_visitor(1, ADDRESS) == number
        clock.shift(timedelta(days=KEY_DAYS))
        with mock.patch("app.services.analytics.visitors.is_unavailable", return_value=True):
            assert keys.address_visitor(1, ADDRESS) == number
            assert keys.address_visitor(1, ADDRESS) == number
        assert read.call_count == 1, "a search must not query it again"
    keys._retry_at = 0.0

    assert keys.address_visitor(1, ADDRESS) != number


def test_process_without_a_readable_or_writable_visitor_key_uses_a_temporary_key(
    database: Database, clock: time_machine.Coordinates
) -> None:
    keys = VisitorKeys(database, SECRET)
    full = OperationalError("INSERT", {}, Exception("database or disk is full"))
    with mock.patch.object(keys, "_read", side_effect=full) as read:
        number = keys.address_visitor(1, ADDRESS)
        assert keys.address_visitor(1, ADDRESS) == number
        assert read.call_count == 1
    keys._retry_at = 0.0

    assert keys.address_visitor(1, ADDRESS) == VisitorKeys(database, SECRET).address_visitor(1, ADDRESS) != number
