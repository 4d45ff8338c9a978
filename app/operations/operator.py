"""The operator's work on accounts, for the operator API and the commands."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import now
from app.crawl.sources.runs import cancel_runs_of_sites
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, Member
from app.operations import accounts as account_operations
from app.runtime import Runtime
from app.services.access.credentials import credential_change
from app.services.access.sessions import end_sessions_without_code
from app.services.accounts import accounts, emails, one_time_codes
from app.services.accounts.members import find_members, is_same_mailbox, lock_member
from app.services.sites import MAX_INT64, AccountMissing, get_account
from app.services.webhooks import notify_operator
from schemas.validation.webhooks import ACCOUNT_CREATED, ACCOUNT_SUSPENDED, PLAN_CHANGED


def account_not_found() -> ApiError:
    """Return the 404 for an account that does not exist."""
    return ApiError(ErrorCode.ACCOUNT_NOT_FOUND, "Account not found.")


def _check_number(account_id: int) -> None:
    """Reject an ID that the database cannot compare."""
    if not 0 < account_id <= MAX_INT64:
        raise account_not_found()


@contextmanager
def _changing(runtime: Runtime, account_id: int) -> Iterator[Session]:
    """Open a transaction that changes an account.

    Raises:
        ApiError: 404 if the account does not exist.
    """
    _check_number(account_id)
    try:
        with credential_change(runtime.database, runtime.counters, account_id) as session:
            yield session
    except AccountMissing as error:
        raise account_not_found() from error


def create_account(runtime: Runtime, *, name: str, email: str, password: str | None, plan: str | None) -> Account:
    """Create an account with its owner.

    Args:
        password: The owner's password. ``None`` invites the owner by email to choose one.
        plan: ``None`` for the setting DEFAULT_PLAN.

    Raises:
        ApiError: 400 for a taken email address, a weak password, an unknown plan, or an invitation without email.
    """
    settings = runtime.settings
    plan = settings.default_plan if plan is None else plan
    _check_plan(runtime, plan)
    if password is None and not settings.sends_email:
        raise field_error("password", "required", "is required, because this service sends no email")
    if password is None:
        # Nobody knows this password: the invited owner chooses one.
        password_hash = accounts.hash_password(secrets.token_urlsafe(32))
    else:
        password_hash = accounts.hash_new_password(password, name, email)
    with runtime.database.write() as session:
        account = accounts.create_account(session, name=name, email=email, password_hash=password_hash, plan=plan)
        if password is None:
            emails.invite_owner(session, account)
        notify_operator(session, settings, ACCOUNT_CREATED, account)
        return account


def _check_plan(runtime: Runtime, plan: str) -> None:
    if plan not in runtime.plans:
        raise field_error("plan", "invalid_choice", f"must be one of {', '.join(runtime.plans)}")


def change_plan(
    runtime: Runtime, account_id: int, *, plan: str | None = None, overrides: Mapping[str, int | None] | None = None
) -> Account:
    """Change an account's plan, or its own limits, or both.

    Args:
        plan: ``None`` keeps the plan.
        overrides: Replaces all of the account's own limits; ``None`` keeps them.

    Raises:
        ApiError: 404; 400 for an unknown plan.
    """
    if plan is not None:
        _check_plan(runtime, plan)
    with _changing(runtime, account_id) as session:
        account = get_account(session, account_id, lock=True)
        previous = {"plan": account.plan, "limits": account.limit_overrides}
        account = accounts.change_plan(session, account_id, plan, None if overrides is None else dict(overrides))
        if previous != {"plan": account.plan, "limits": account.limit_overrides}:
            notify_operator(session, runtime.settings, PLAN_CHANGED, account, previous=previous)
        return account


def suspend_account(runtime: Runtime, account_id: int, reason: str) -> None:
    """Block an account until it is resumed, and stop its runs. No data is deleted.

    Raises:
        ApiError: 404.
    """
    with _changing(runtime, account_id) as session:
        site_ids = accounts.suspend(session, account_id, reason)
        notify_operator(session, runtime.settings, ACCOUNT_SUSPENDED, get_account(session, account_id))
    with runtime.database.write() as session:
        cancel_runs_of_sites(session, site_ids)
    runtime.run_engine_tasks()


def resume_account(runtime: Runtime, account_id: int) -> None:
    """End the suspension of an account.

    Raises:
        ApiError: 404.
    """
    with _changing(runtime, account_id) as session:
        accounts.resume(session, account_id)


def delete_account(runtime: Runtime, account_id: int) -> None:
    """Delete an account with all its data.

    Raises:
        ApiError: 404.
    """
    _check_number(account_id)
    try:
        account_operations.delete_account(runtime, account_id)
    except AccountMissing as error:
        raise account_not_found() from error


def set_password(runtime: Runtime, email: str, password: str) -> Member | None:
    """Set the password of all members with this email address, and end their sessions.

    Returns the member of the oldest account; ``None`` if the address is unknown.

    Raises:
        ApiError: 400 for a weak password.
    """
    with runtime.database.read() as session:
        names = [member.name for member in _members_of(session, email)]
    password_hash = accounts.hash_new_password(password, email, *names)
    with runtime.database.write() as session:
        members = sorted(_members_of(session, email), key=lambda member: member.account_id)
        for member in members:
            accounts.replace_password(session, member, password_hash)
        return members[0] if members else None


def reset_codes(runtime: Runtime, email: str) -> Member | None:
    """Turn off two-factor authentication for all members with this email address, for example after a lost phone.

    Returns the member of the oldest account; ``None`` if the address is unknown.
    """
    with runtime.database.write() as session:
        locked = [lock_member(session, member.id) for member in _members_of(session, email)]
        members = [member for member in locked if member is not None]
        for member in members:
            one_time_codes.switch_off(member)
        return members[0] if members else None


def list_operators(session: Session) -> Sequence[Member]:
    """Return the operators of the service, in the order of their appointment."""
    return session.scalars(
        select(Member).where(Member.operator_since.is_not(None)).order_by(Member.operator_since, Member.id)
    ).all()


def name_operator(runtime: Runtime, email: str, account_id: int | None = None) -> Member:
    """Make a member an operator of the service.

    Anyone can register with an address that is not theirs. So the address must be confirmed if the service sends email,
    and the account must be given if the address has several. The member's sessions without a one-time code end.

    Args:
        account_id: The member's account; ``None`` if the address belongs to only one.

    Raises:
        ValueError: No member has this address, several have it, or it is unconfirmed. The message is for people.
    """
    with runtime.database.write() as session:
        members = [member for member in _members_of(session, email) if account_id in (None, member.account_id)]
        if not members:
            raise ValueError(f"No member has the email address {email}.")
        if len(members) > 1:
            accounts_of = ", ".join(f"{member.account_id} ({member.account.name})" for member in members)
            raise ValueError(f"Several accounts have a member {email}; choose one with --account: {accounts_of}.")
        member = members[0]
        if runtime.settings.sends_email and not member.email_confirmed:
            raise ValueError(f"{email} is not confirmed: the member may be a stranger. Confirm the address first.")
        if member.operator_since is None:
            member.operator_since = now()
            # A stolen session from before must not gain the new right.
            end_sessions_without_code(session, member.id)
        return member


def revoke_operator(runtime: Runtime, email: str) -> list[Member]:
    """End the operator status of all members with this email address, as of their next request; return them."""
    with runtime.database.write() as session:
        members = [member for member in _members_of(session, email) if member.operator_since is not None]
        for member in members:
            member.operator_since = None
        return members


def _members_of(session: Session, email: str) -> list[Member]:
    return [member for member in find_members(session, email) if is_same_mailbox(member.email, email)]
