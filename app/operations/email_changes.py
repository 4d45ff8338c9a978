"""Undoing a changed e-mail, for whoever has the link that was sent to the old one."""

from __future__ import annotations

import secrets

from app.errors import ApiError, field_error
from app.models import Member
from app.operations.logins import forget_failures
from app.runtime import Runtime
from app.services.access.callers import Client
from app.services.access.credentials import credential_change
from app.services.accounts import accounts, email_changes
from app.services.audit_log.actors import acting
from app.services.sites import get_account


def show_change(runtime: Runtime, token: str) -> str:
    """The e-mail that a link gives back.

    Raises:
        ApiError: 400 if it no longer works.
    """
    return _find(runtime, token)[0]


def _find(runtime: Runtime, token: str) -> tuple[str, Member]:
    with runtime.database.read() as session:
        change = email_changes.find_change(session, token, runtime.settings.secret_key)
        if change is None:
            raise _ended()
        return change.email, session.get_one(Member, change.member_id)


def undo_change(runtime: Runtime, client: Client, token: str) -> None:
    """Undo the change that a link is for.

    Raises:
        ApiError: 400 if it no longer works.
    """
    email, member = _find(runtime, token)
    password_hash = accounts.hash_password(secrets.token_urlsafe(32))
    with credential_change(runtime.database, runtime.counters, member.account_id) as session:
        get_account(session, member.account_id, lock=True)
        # Who used the link, or changed the e-mail once more, held that lock: only now it is certain.
        change = email_changes.find_change(session, token, runtime.settings.secret_key)
        if change is None:
            raise _ended()
        with acting(client.member(change.email, change.member_id)):
            email_changes.undo_change(session, change, password_hash)
    forget_failures(runtime, client, email, [member.id])
    runtime.run_engine_tasks()


def _ended() -> ApiError:
    return field_error("token", "expired", "no longer works: it was used, or is older than 7 days")
