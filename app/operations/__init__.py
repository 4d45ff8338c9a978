"""Use cases, each implemented once for the JSON API, the pages, and the commands: a transaction, services, and
follow-up work.

An operation takes the runtime and the caller, and does not depend on the HTTP request. A use case that is only one
function of a service has no operation: its views pass the function to :func:`change` or :func:`write`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.orm import Session

from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import credential_change

P = ParamSpec("P")
T = TypeVar("T")


def changing(runtime: Runtime, caller: Caller) -> AbstractContextManager[Session]:
    """Open a transaction that changes the caller's account, sites, or keys."""
    return credential_change(runtime.database, runtime.counters, caller.account.id)


def change(
    runtime: Runtime,
    caller: Caller,
    step: Callable[Concatenate[Session, int, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call a step that changes the caller's account, sites, or keys, in one transaction, then run due engine tasks.

    The step gets the session, the account's ID, and the other arguments. Its result and errors are passed on.
    """
    with changing(runtime, caller) as session:
        result = step(session, caller.account.id, *args, **kwargs)
    runtime.run_engine_tasks()
    return result


def write(
    runtime: Runtime,
    caller: Caller,
    step: Callable[Concatenate[Session, int, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call a step as :func:`change` does, if it changes nothing that processes cache with credentials."""
    with runtime.database.write() as session:
        return step(session, caller.account.id, *args, **kwargs)
