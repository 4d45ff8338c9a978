"""Transactions that lock the same rows never deadlock, regardless of their order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.values import UsageReservation
from app.models import Account, Key, UsageDay
from app.runtime import Runtime
from app.services.access.credentials import KeyRecord, site_record
from app.services.access.engine_keys import CredentialsStopped, direct_keys
from app.services.access.keys import toggle_key
from app.services.sites import get_account, get_site, update_site
from app.storage.database import ROW_LOCK
from app.storage.migrate import upgrade
from backends.base import Credential
from tests.callers import Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.patience import PATIENCE_SECONDS
from tests.postgres import PostgresServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer | None]:
    """A PostgreSQL server for these tests, unless all tests run on one."""
    if os.environ.get("TEST_DATABASE_URL"):
        yield None
        return
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def app(tmp_path: Path, postgres: PostgresServer | None) -> Iterator[Flask]:
    """An application on PostgreSQL, because SQLite has one writer at a time."""
    own = {} if postgres is None else {"database_url": postgres.create_database(f"locks_{os.urandom(4).hex()}")}
    application = make_app(make_settings(tmp_path, **own))
    upgrade(application.extensions["runtime"].database)
    yield application
    close_app(application)


@contextmanager
def doing(work: Callable[[], object]) -> Iterator[Future[object]]:
    """Run ``work`` in another thread and join it at the end of the block."""
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(work)


def await_waiting(part: Runtime, session: Session) -> None:
    """Wait until another transaction waits for a lock of ``session``."""
    mine = session.scalar(text("SELECT pg_backend_pid()"))
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE :mine = ANY(pg_blocking_pids(pid))")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with part.database.read() as looking:  # PostgreSQL repeats the same activity within one transaction.
            if looking.scalar(waiting, {"mine": mine}):
                return
        assert time.monotonic() < deadline, "no other transaction waits for a lock"


def pause(part: Runtime, account_id: int, site_id: int) -> None:
    with part.database.write() as session:
        update_site(session, account_id, site_id, {"active": False})


def build_anew(part: Runtime, account_id: int, site_id: int) -> None:
    part.rebuilder.rebuild(site_id)


@pytest.mark.parametrize("change", [pause, build_anew])
def test_site_can_be_changed_while_a_document_writer_locks_its_account(
    part: Runtime, tenant: Tenant, change: Callable[[Runtime, int, int], None]
) -> None:
    ended = threading.Event()

    def run() -> None:
        change(part, tenant.account_id, tenant.site_id)
        ended.set()

    with part.database.write() as session:
        get_account(session, tenant.account_id, lock=True)
        with doing(run):
            assert ended.wait(PATIENCE_SECONDS), "it waits for the account's lock while it holds the site's"
        get_site(session, tenant.account_id, tenant.site_id, lock=True)


def test_usage_is_copied_in_account_order(app: Flask, part: Runtime) -> None:
    """If two workers copied accounts in different orders, each could hold a lock that the other waits for."""
    accounts = [register_tenant(app, f"number{number}@example.com").account_id for number in range(12)]
    for account_id in accounts:
        part.counters.consume((), reserve=UsageReservation(account_id, None, None), now=now().timestamp())
        part.usage_copies.record(account_id)
    part.usage_copies.flush()

    with part.database.write() as session:
        get_account(session, accounts[0], lock=True)
        with doing(part.usage_copies.flush):
            await_waiting(part, session)
            free = session.scalars(select(Account.id).with_for_update(skip_locked=True, **ROW_LOCK)).all()
            session.commit()

    assert sorted(free) == accounts
    with part.database.read() as session:
        assert len(session.scalars(select(UsageDay).where(UsageDay.searches == 1)).all()) == len(accounts)


@pytest.mark.parametrize("what", ["site", "account"])
def test_keys_are_deleted_in_the_order_in_which_their_use_is_written(part: Runtime, tenant: Tenant, what: str) -> None:
    path = f"/sites/{tenant.site_id}?purge=true" if what == "site" else "/profile"
    body = None if what == "site" else {"password": "correct horse battery"}
    for number in range(7):
        assert tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json={"name": str(number)}).status_code == 201
    with part.database.write() as session:
        # PostgreSQL visits rows in the order of their last write: from now on, last to first.
        for key in session.scalars(select(Key).order_by(Key.id.desc())).all():
            key.name = "changed"
            session.flush()

    with part.database.write() as session:
        first = session.scalars(select(Key.id).order_by(Key.id).limit(1).with_for_update(**ROW_LOCK)).one()
        with doing(lambda: tenant.browser.delete(path, json=body)) as deleted:
            await_waiting(part, session)
            free = session.scalars(select(Key.id).with_for_update(skip_locked=True, **ROW_LOCK)).all()
            session.commit()

    assert first in free
    assert len(free) == 10
    assert deleted.result().status_code == 200
    with part.database.read() as session:
        assert session.scalars(select(Key)).all() == []


def test_failed_write_of_key_usage_is_retried(part: Runtime, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tenant.search.get("/v1/search?q=x").status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(part.database, "write", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            part.keys_last_used.flush()

    part.keys_last_used.flush()

    address = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}"
    assert tenant.browser.get(address).get_json()["key"]["last_used_at"] is not None


class _Engine:
    """An engine that issues credentials like a server."""

    identity = "server"

    def __init__(self) -> None:
        self.revoked: list[str] = []

    def issue_credential(self, index: str, holder: str, expires_at: datetime) -> Credential:
        return Credential("token", holder)

    def revoke_credential(self, reference: str) -> None:
        self.revoked.append(reference)


def test_engine_key_is_not_issued_while_its_key_is_being_disabled(part: Runtime, tenant: Tenant) -> None:
    engine = _Engine()
    with part.database.read() as session:
        stored = session.get_one(Key, tenant.keys["search"]["id"])
        site = site_record(stored.site)
        key = KeyRecord(stored.id, stored.account_id, stored.site_id, stored.type, True, None, False, 1)

    with part.database.write() as session:
        toggle_key(session, tenant.account_id, key.id, active=False, caller_rights=None)
        with doing(lambda: direct_keys(part.database, engine, key, site)) as handed_out:
            await_waiting(part, session)
            session.commit()

    assert isinstance(handed_out.exception(), CredentialsStopped)
    assert engine.revoked == [f"{key.id}-v1"]
