"""Transactions that change a caller's data."""

from __future__ import annotations

from contextlib import AbstractContextManager

from sqlalchemy.orm import Session

from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import credential_change


def changing(runtime: Runtime, caller: Caller) -> AbstractContextManager[Session]:
    """Open a transaction that changes the caller's account, sites, or keys."""
    return credential_change(runtime.database, runtime.counters, caller.account.id)
