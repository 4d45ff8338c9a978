"""Accounts and profiles: registering, changing, and deleting them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyotp import TOTP
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import WindowRequest
from app.crawl.sources import removal
from app.crawl.sources.runs import cancel_runs_of_sites
from app.errors import ApiError, ErrorCode
from app.models import Account, Member
from app.operations.attempts import HOUR_SECONDS, check_own_password, count_attempt, forgiving_outages
from app.runtime import Runtime
from app.services.access import sessions
from app.services.access.callers import Caller, MemberRecord
from app.services.access.credentials import account_record, credential_change
from app.services.accounts import accounts, members, one_time_codes
from app.services.accounts.members import find_members, is_same_mailbox, lock_member
from app.services.usage.quota import DAY_SECONDS
from app.wording import operator_text


def create_account(runtime: Runtime, *, name: str, email: str, password: str, plan: str) -> Account:
    """Add an account with its owner.

    Raises:
        ApiError: 400 for a taken e-mail.
    """
    password_hash = accounts.hash_password(password)
    with runtime.database.write() as session:
        return accounts.create_account(session, name=name, email=email, password_hash=password_hash, plan=plan)


def set_plan(runtime: Runtime, account_id: int, plan: str, overrides: Mapping[str, int | None]) -> Account:
    """Give an account another plan. ``overrides`` replace what it had of its own."""
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        return accounts.set_plan(session, account_id, plan, dict(overrides))


def suspend_account(runtime: Runtime, account_id: int, reason: str) -> None:
    """Keep everybody from an account until it is resumed, and stop its runs. Nothing of it is lost."""
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        site_ids = accounts.suspend(session, account_id, reason)
    with runtime.database.write() as session:
        cancel_runs_of_sites(session, site_ids)
    runtime.run_engine_tasks()


def resume_account(runtime: Runtime, account_id: int) -> None:
    """Let everybody use a suspended account again."""
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        accounts.resume(session, account_id)


def set_password(runtime: Runtime, email: str, password: str) -> Member | None:
    """Give whoever has an e-mail another password, in all of their accounts, which ends their sessions.

    Gives the member of the oldest account; ``None`` if nobody has this e-mail.
    """
    password_hash = accounts.hash_password(password)
    with runtime.database.write() as session:
        members = sorted(_members_of(session, email), key=lambda member: member.account_id)
        for member in members:
            accounts.replace_password(session, member, password_hash)
        return members[0] if members else None


def reset_codes(runtime: Runtime, email: str) -> Member | None:
    """Let whoever has an e-mail log in without one-time codes, in all of their accounts: their phone is lost.

    Gives the member of the oldest account; ``None`` if nobody has this e-mail.
    """
    with runtime.database.write() as session:
        locked = [lock_member(session, member.id) for member in _members_of(session, email)]
        members = [member for member in locked if member is not None]
        for member in members:
            one_time_codes.switch_off(member)
        return members[0] if members else None


def _members_of(session: Session, email: str) -> list[Member]:
    """The members whose mailbox it is."""
    return [member for member in find_members(session, email) if is_same_mailbox(member.email, email)]


def delete_account(runtime: Runtime, account_id: int, reason: str = "") -> None:
    """Delete an account with everything it has."""
    removal.delete_pages_of_sites(runtime.database, account_id)
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        accounts.delete_account(session, account_id, reason=reason)
    runtime.counters.forget_account(account_id, now=now().timestamp())
    runtime.run_engine_tasks()


def acting_for(runtime: Runtime, account: Account) -> Caller:
    """The operator, who does what an owner of the account may."""
    return Caller("session", account_record(runtime.plans, account))


CODE_GUESSES = 10
"""Wrong codes an hour of a member who sets codes up."""
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
            ErrorCode.INSUFFICIENT_PERMISSION, "A key cannot change a password; log in as the member to do this."
        )
    if "weekly_digest" in changes and not caller.is_owner:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only an owner can change which mails the account receives.")
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
        is_moved = not members.is_same_mailbox(get_user(session, caller).email, email)
    if is_moved:
        holder = "keys" if caller.member is None else caller.member.id
        window = WindowRequest(f"email:{caller.account.id}:{holder}", EMAIL_CHANGES, DAY_SECONDS)
        count_attempt(runtime, [window], "changes of the e-mail")


def delete_own_account(runtime: Runtime, caller: Caller, password: str, reason: str) -> None:
    """Delete the caller's account with everything it has.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many.
    """
    check_own_password(runtime, caller.account.id, caller.member_id, password)
    delete_account(runtime, caller.account.id, reason)


def begin_codes(runtime: Runtime, caller: Caller, password: str, issuer: str) -> tuple[str, str]:
    """Begin to set up an app for one-time codes; gives its secret, and the ``otpauth:`` address that holds it.

    Args:
        issuer: What apps call this service.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many.
    """
    with _own_codes(runtime, caller, password) as (_, member):
        return _app_of(one_time_codes.begin(member, runtime.settings.secret_key), member, issuer)


def find_begun_codes(runtime: Runtime, caller: Caller, issuer: str) -> tuple[str, str] | None:
    """Secret and address that :func:`begin_codes` gave, while the app may still show its first code."""
    with runtime.database.read() as session:
        member = get_user(session, caller)
        app = one_time_codes.find_new_app(member, runtime.settings.secret_key)
        return None if app is None else _app_of(app, member, issuer)


def _app_of(app: TOTP, member: Member, issuer: str) -> tuple[str, str]:
    return app.secret, app.provisioning_uri(name=member.email, issuer_name=issuer)


def confirm_codes(runtime: Runtime, caller: Caller, code: str) -> list[str]:
    """Switch codes on with the first one that the app shows; gives the recovery codes.

    Raises:
        ApiError: 400 for a wrong code, or without an app that is being set up; 429 after too many.
    """
    own = _own(caller)
    counted = count_attempt(runtime, [WindowRequest(f"code:{own.id}", CODE_GUESSES, HOUR_SECONDS)], "wrong codes")
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        member = _lock(session, own)
        recovery = one_time_codes.confirm(member, code, runtime.settings.secret_key)
        _tell_of_switch(runtime, session, member)
    runtime.counters.refund(windows=counted, now=now().timestamp())
    return recovery


def remove_codes(runtime: Runtime, caller: Caller, password: str) -> None:
    """Switch codes off; harmless if they are off.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many.
    """
    with _own_codes(runtime, caller, password) as (session, member):
        was_on = member.codes_since is not None
        one_time_codes.switch_off(member)
        if was_on:
            _tell_of_switch(runtime, session, member)


@contextmanager
def _own_codes(runtime: Runtime, caller: Caller, password: str) -> Iterator[tuple[Session, Member]]:
    """A transaction over the member whose session it is, who has shown their password."""
    own = _own(caller)
    proof = check_own_password(runtime, caller.account.id, own.id, password)
    with runtime.database.write() as session:
        member = _lock(session, own)
        if not proof.holds_for(member):
            raise accounts.password_incorrect()
        yield session, member


def _own(caller: Caller) -> MemberRecord:
    assert caller.member is not None  # The operations are for sessions only.
    return caller.member


def _lock(session: Session, own: MemberRecord) -> Member:
    member = members.lock_member(session, own.id)
    if member is None:
        raise members.member_not_found()
    return member


def _tell_of_switch(runtime: Runtime, session: Session, member: Member) -> None:
    settings = runtime.settings
    if settings.sends_mail:
        one_time_codes.tell_of_switch(session, member, settings.public_url, operator_text(settings.operator_contact))


def list_sessions(runtime: Runtime, caller: Caller, *, limit: int, offset: int) -> tuple[list[dict[str, Any]], int]:
    """One page of the caller's sessions, newest first, and how many there are."""
    with runtime.database.read() as session:
        logins, total = sessions.list_sessions(session, _own(caller).id, limit=limit, offset=offset)
    return [
        {
            "id": sessions.session_id(login.token_hash),
            "created_at": login.created_at,
            "last_used_at": login.seen_at,
            "browser": login.browser,
            "address": login.address,
            "current": login.token_hash == caller.session_hash,
        }
        for login in logins
    ], total


def end_session(runtime: Runtime, caller: Caller, name: str) -> None:
    """End one of the caller's sessions, in every process with its next request.

    Raises:
        ApiError: 404 if they have none of this name.
    """
    with runtime.database.write() as session:
        sessions.end_session_of(session, _own(caller).id, name)


def end_other_sessions(runtime: Runtime, caller: Caller) -> None:
    """End all of the caller's sessions but the one that asks."""
    with runtime.database.write() as session:
        sessions.end_other_sessions(session, _own(caller).id, caller.session_hash)
