"""Transactions that lock an account and its site, in whichever order, do not wait for each other in a circle."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from flask import Flask

from app.runtime import Runtime
from app.services.sites import get_account, get_site, update_site
from tests.callers import Tenant


def pause(part: Runtime, account_id: int, site_id: int) -> None:
    with part.database.write() as session:
        update_site(session, account_id, site_id, {"active": False})


def build_anew(part: Runtime, account_id: int, site_id: int) -> None:
    part.rebuilder.rebuild(site_id)


@pytest.mark.parametrize("change", [pause, build_anew])
def test_a_site_is_changed_while_a_writer_of_documents_holds_its_account(
    app: Flask, tenant: Tenant, change: Callable[[Runtime, int, int], None]
) -> None:
    part = app.extensions["runtime"]
    if part.database.is_sqlite:
        pytest.skip("SQLite has one writer at a time; tests.databases runs this on PostgreSQL")
    ended = threading.Event()

    def run() -> None:
        change(part, tenant.account_id, tenant.site_id)
        ended.set()

    with part.database.write() as session:
        get_account(session, tenant.account_id, lock=True)
        changing = threading.Thread(target=run)
        changing.start()
        assert ended.wait(30), "it waits for the account's lock while it holds the site's"
        changing.join()
        get_site(session, tenant.account_id, tenant.site_id, lock=True)
