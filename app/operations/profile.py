"""The profile of whoever calls, and the end of their account."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.counters.base import WindowRequest
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations import accounts as account_operations
from app.operations.attempts import check_own_password, count_attempt
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.quota import DAY_SECONDS
from app.services.accounts import accounts, members

EMAIL_CHANGES = 10
"""Changes of a member's e-mail a day of which the old address is told; an account's keys have as many together."""


def get_user(session: Session, caller: Caller) -> Member:
    """The member whose profile is the caller's: the member's own; for a key, the first owner's.

    Raises:
        ApiError: 404 if the member was removed meanwhile.
    """
    if caller.member is None:
        return members.first_owner(session, caller.account.id)
    return members.get_member(session, caller.account.id, caller.member.id)


def update_profile(runtime: Runtime, caller: Caller, changes: dict[str, Any]) -> Member:
    """Change name, e-mail or password of the caller's user.

    From a session, a new e-mail or password needs the current password and ends the other sessions. A key changes no
    password.

    Raises:
        ApiError: 400 for a taken e-mail, or a missing password; 403 for a wrong password, or what only owners, or only
            members, may change; 429 after too many.
    """
    member_id = caller.member_id
    if member_id is None and "new_password" in changes:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION, "A key can change no password; the member who is logged in can."
        )
    if "weekly_digest" in changes and not caller.is_owner:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only an owner can change which mails the account gets.")
    proof = None
    if "current_password" in changes:
        proof = check_own_password(runtime, caller.account.id, member_id, changes["current_password"])
    elif "new_password" in changes:
        raise accounts.password_missing()
    if "new_password" in changes:
        changes = {**changes, "password_hash": accounts.hash_password(changes["new_password"])}
    if "email" in changes and runtime.settings.sends_mail:
        _count_email_change(runtime, caller, changes["email"])
    with runtime.database.write() as session:
        return accounts.update_profile(
            session,
            caller.account.id,
            changes,
            member_id=member_id,
            kept_session=caller.session_hash or None,
            proof=proof,
            tells_email=runtime.settings.sends_mail,
        )


def _count_email_change(runtime: Runtime, caller: Caller, email: str) -> None:
    """Count a change of which an address is told, and which keeps that address for a while."""
    with runtime.database.read() as session:
        is_moved = get_user(session, caller).compared_email != members.email_key(email)
    if is_moved:
        who = "keys" if caller.member is None else caller.member.id
        window = WindowRequest(f"email:{caller.account.id}:{who}", EMAIL_CHANGES, DAY_SECONDS)
        count_attempt(runtime, [window], "changes of the e-mail")


def delete_account(runtime: Runtime, caller: Caller, password: str, reason: str) -> None:
    """Delete the caller's account with everything it has.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many.
    """
    check_own_password(runtime, caller.account.id, caller.member_id, password)
    account_operations.delete_account(runtime, caller.account.id, reason)
