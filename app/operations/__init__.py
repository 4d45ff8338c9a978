"""Use cases, each implemented once for the JSON API, the pages, and the commands: a transaction, services, and
follow-up work.

An operation takes the runtime and the caller, and does not depend on the HTTP request.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from sqlalchemy.orm import Session

from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import credential_change


def changing(runtime: Runtime, caller: Caller) -> AbstractContextManager[Session]:
    """Open a transaction that changes the caller's account, sites, or keys."""
    return credential_change(runtime.database, runtime.counters, caller.account.id)
