"""The operator's work on accounts, for the operator API and the commands."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.orm import Session

from app.crawl.sources.runs import cancel_runs_of_sites
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, Member
from app.operations import accounts as account_operations
from app.runtime import Runtime
from app.services.access.credentials import credential_change
from app.services.accounts import accounts, emails, one_time_codes
from app.services.accounts.members import find_members, is_same_mailbox, lock_member
from app.services.sites import AccountMissing, get_account
from app.services.webhooks import tell_operator
from schemas.validation.webhooks import ACCOUNT_CREATED, ACCOUNT_SUSPENDED, PLAN_CHANGED


def account_not_found() -> ApiError:
    """Return the 404 for an account that does not exist."""
    return ApiError(ErrorCode.ACCOUNT_NOT_FOUND, "Account not found.")


@contextmanager
def _changing(runtime: Runtime, account_id: int) -> Iterator[Session]:
    """Open a transaction that changes an account.

    Raises:
        ApiError: 404 if the account does not exist.
    """
    try:
        with credential_change(runtime.database, runtime.counters, account_id) as session:
            yield session
    except AccountMissing as error:
        raise account_not_found() from error


def create_account(runtime: Runtime, *, name: str, email: str, password: str | None, plan: str | None) -> Account:
    """Create an account with its owner.

    Args:
        password: The owner's password. ``None`` invites the owner by mail to choose one.
        plan: ``None`` for the setting DEFAULT_PLAN.

    Raises:
        ApiError: 400 for a taken e-mail address, a weak password, an unknown plan, or an invitation without mail.
    """
    settings = runtime.settings
    plan = settings.default_plan if plan is None else plan
    _check_plan(runtime, plan)
    if password is None and not settings.sends_mail:
        raise field_error("password", "required", "is required, because this service sends no e-mail")
    if password is None:
        password_hash = accounts.hash_password(secrets.token_urlsafe(32))
    else:
        password_hash = accounts.hash_new_password(password, name, email)
    with runtime.database.write() as session:
        account = accounts.create_account(session, name=name, email=email, password_hash=password_hash, plan=plan)
        if password is None:
            emails.invite_owner(session, account)
        tell_operator(session, settings, ACCOUNT_CREATED, account)
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
            tell_operator(session, runtime.settings, PLAN_CHANGED, account, previous=previous)
        return account


def suspend_account(runtime: Runtime, account_id: int, reason: str) -> None:
    """Block an account until it is resumed, and stop its runs. No data is deleted.

    Raises:
        ApiError: 404.
    """
    with _changing(runtime, account_id) as session:
        site_ids = accounts.suspend(session, account_id, reason)
        tell_operator(session, runtime.settings, ACCOUNT_SUSPENDED, get_account(session, account_id))
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
    try:
        account_operations.delete_account(runtime, account_id)
    except AccountMissing as error:
        raise account_not_found() from error


def set_password(runtime: Runtime, email: str, password: str) -> Member | None:
    """Set the password of all members with this e-mail address, and end their sessions.

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
    """Turn off two-factor authentication for all members with this e-mail address, for example after a lost phone.

    Returns the member of the oldest account; ``None`` if the address is unknown.
    """
    with runtime.database.write() as session:
        locked = [lock_member(session, member.id) for member in _members_of(session, email)]
        members = [member for member in locked if member is not None]
        for member in members:
            one_time_codes.switch_off(member)
        return members[0] if members else None


def _members_of(session: Session, email: str) -> list[Member]:
    """Return the members with this mailbox."""
    return [member for member in find_members(session, email) if is_same_mailbox(member.email, email)]
