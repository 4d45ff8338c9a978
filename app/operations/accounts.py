"""Accounts, for their operators and their owners."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.clock import now
from app.crawl.sources import removal
from app.crawl.sources.runs import cancel_runs_of_sites
from app.models import Account, Member
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import account_record, credential_change
from app.services.accounts import accounts, one_time_codes
from app.services.accounts.members import find_members, is_same_mailbox, lock_member


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
        found = [lock_member(session, member.id) for member in _members_of(session, email)]
        members = [member for member in found if member is not None]
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
