"""Accounts and profiles: changing and deleting them, and the figures and problems on their dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from pyotp import TOTP
from sqlalchemy.orm import Session

from app.clock import now, today
from app.counters.base import CounterStore
from app.counters.values import WindowRequest
from app.crawl.sources import removal
from app.crawl.sources.sources import FailedSource, list_failed
from app.errors import ApiError, ErrorCode
from app.models import Account, Member
from app.operations import write
from app.operations.attempts import HOUR_SECONDS, check_own_password, count_attempt, forgiving_outages
from app.plans import PlanLimits, limit_or_unlimited, per_month
from app.runtime import Runtime
from app.services.access import sessions
from app.services.access.callers import Caller, MemberRecord
from app.services.access.credentials import account_record, credential_change
from app.services.access.key_sightings import ExposedKey, list_exposed
from app.services.accounts import accounts, members, one_time_codes
from app.services.health import HealthMonitor, Trouble, find_troubles
from app.services.sites import count_documents, count_keys, count_sites, get_account
from app.services.usage.month_usage import account_month, first_of_last_month, usage_of_month
from app.services.usage.quota import DAY_SECONDS, asks_today
from app.services.webhooks import notify_operator
from app.wording import operator_text
from schemas.validation.webhooks import ACCOUNT_DELETED


def delete_account(runtime: Runtime, account_id: int, reason: str = "") -> None:
    """Delete an account with all its data."""
    details = _final_usage(runtime, account_id) if runtime.settings.operator_webhook_url else {}
    removal.delete_pages_of_sites(runtime.database, account_id)
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        account = get_account(session, account_id, lock=True)
        notify_operator(session, runtime.settings, ACCOUNT_DELETED, account, **details)
        accounts.delete_account(session, account_id, reason=reason)
    runtime.counters.forget_account(account_id, now=now().timestamp())
    runtime.run_engine_tasks()


def _final_usage(runtime: Runtime, account_id: int) -> dict[str, Any]:
    """Return the usage of the current and of the last month, for the last invoices of a deleted account."""
    month = today().replace(day=1)
    with runtime.database.read() as session:
        this_month, last_month = (
            {
                "month": f"{first:%Y-%m}",
                "usage": asdict(account_month(session, runtime.counters, account_id, first).usage),
            }
            for first in (month, first_of_last_month(month))
        )
    return {**this_month, "last_month": last_month}


def acting_for(runtime: Runtime, account: Account) -> Caller:
    """Return the operator as a caller with the rights of the account's owner."""
    return Caller("session", account_record(runtime.plans, account))


CODE_GUESSES = 10
"""Maximum number of wrong codes per hour while a member sets up two-factor authentication."""
EMAIL_CHANGES = 10
"""Maximum number of address changes per day and member, if the service sends email. An account's keys share one limit.
"""


def get_user(session: Session, caller: Caller) -> Member:
    """Return the member whose profile the caller uses: for a session, its member; for a key, the first owner.

    Raises:
        ApiError: 404 if the member has since been removed.
    """
    if caller.member is None:
        return members.first_owner(session, caller.account.id)
    return members.get_member(session, caller.account.id, caller.member.id)


def update_profile(runtime: Runtime, caller: Caller, changes: dict[str, Any]) -> Member:
    """Change name, email address, or password of the caller's user.

    For a session, changing the address or the password requires the current password and ends the other sessions. A key
    cannot change a password.

    Raises:
        ApiError: 400 for a taken address, or a missing or weak password; 403 for a wrong password, or changes reserved
            for owners or members; 429 after too many attempts.
    """
    member_id = caller.member_id
    if member_id is None and "new_password" in changes:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION, "A key cannot change a password; log in as the member to do this."
        )
    if "weekly_digest" in changes and not caller.has_owner_rights:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only an owner can change which emails the account receives.")
    proof = None
    if "current_password" in changes:
        proof = check_own_password(runtime, caller.account.id, member_id, changes["current_password"])
    elif "new_password" in changes:
        raise accounts.password_missing()
    if "new_password" in changes:
        changes = {**changes, "password_hash": _hash_own_password(runtime, caller, changes)}
    if "email" in changes and runtime.settings.sends_email:
        _count_email_change(runtime, caller, changes["email"])
    return write(
        runtime,
        caller,
        accounts.update_profile,
        changes,
        member_id=member_id,
        kept_session=caller.session_hash or None,
        proof=proof,
        notify_old_address=runtime.settings.sends_email,
    )


def _hash_own_password(runtime: Runtime, caller: Caller, changes: Mapping[str, Any]) -> str:
    with runtime.database.read() as session:
        user = get_user(session, caller)
    personal = (user.name, user.email, changes.get("name", ""), changes.get("email", ""))
    return accounts.hash_new_password(changes["new_password"], *personal, field="new_password")


def _count_email_change(runtime: Runtime, caller: Caller, email: str) -> None:
    """Count a change of address toward :data:`EMAIL_CHANGES`. Changes within the same mailbox do not count."""
    with runtime.database.read() as session:
        is_moved = not members.is_same_mailbox(get_user(session, caller).email, email)
    if is_moved:
        holder = "keys" if caller.member is None else caller.member.id
        window = WindowRequest(f"email:{caller.account.id}:{holder}", EMAIL_CHANGES, DAY_SECONDS)
        count_attempt(runtime, [window], "changes of the email address")


def delete_own_account(runtime: Runtime, caller: Caller, password: str, reason: str) -> None:
    """Delete the caller's account with all its data.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many attempts.
    """
    check_own_password(runtime, caller.account.id, caller.member_id, password)
    delete_account(runtime, caller.account.id, reason)


def begin_codes(runtime: Runtime, caller: Caller, password: str, issuer: str) -> tuple[str, str]:
    """Begin to set up an authenticator app. Returns the secret and an ``otpauth:`` URL that contains it.

    Args:
        issuer: Name that the app shows for this service.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many attempts.
    """
    with _codes_of_caller(runtime, caller, password) as (_, member):
        return _app_of(one_time_codes.begin(member, runtime.settings.secret_key), member, issuer)


def find_begun_codes(runtime: Runtime, caller: Caller, issuer: str) -> tuple[str, str] | None:
    """Return the secret and URL of :func:`begin_codes` while the setup can still be completed."""
    with runtime.database.read() as session:
        member = get_user(session, caller)
        app = one_time_codes.find_new_app(member, runtime.settings.secret_key)
        return None if app is None else _app_of(app, member, issuer)


def _app_of(app: TOTP, member: Member, issuer: str) -> tuple[str, str]:
    return app.secret, app.provisioning_uri(name=member.email, issuer_name=issuer)


def confirm_codes(runtime: Runtime, caller: Caller, code: str) -> list[str]:
    """Turn on two-factor authentication with the first code of the app. Returns the recovery codes.

    Ends the member's other sessions, which were opened without a code of this app.

    Raises:
        ApiError: 400 for a wrong code, or if no app is being set up; 429 after too many attempts.
    """
    member_record = _member_of(caller)
    counted = count_attempt(
        runtime, [WindowRequest(f"code:{member_record.id}", CODE_GUESSES, HOUR_SECONDS)], "wrong codes"
    )
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        member = _lock(session, member_record)
        recovery = one_time_codes.confirm(member, code, runtime.settings.secret_key)
        sessions.end_other_sessions(session, member.id, caller.session_hash)
        sessions.record_code(session, caller.session_hash)
        _queue_switch_notice(runtime, session, member)
    runtime.counters.refund(windows=counted, now=now().timestamp())
    return recovery


def remove_codes(runtime: Runtime, caller: Caller, current_password: str) -> None:
    """Turn off two-factor authentication; harmless if it is off.

    Raises:
        ApiError: 403 for a wrong password, 429 after too many attempts.
    """
    with _codes_of_caller(runtime, caller, current_password) as (session, member):
        was_on = member.codes_since is not None
        one_time_codes.switch_off(member)
        if was_on:
            _queue_switch_notice(runtime, session, member)


@contextmanager
def _codes_of_caller(runtime: Runtime, caller: Caller, password: str) -> Iterator[tuple[Session, Member]]:
    """Open a transaction on the member of the session, after checking their password."""
    member_record = _member_of(caller)
    proof = check_own_password(runtime, caller.account.id, member_record.id, password)
    with runtime.database.write() as session:
        member = _lock(session, member_record)
        if not proof.is_valid_for(member):
            raise accounts.password_incorrect()
        yield session, member


def _member_of(caller: Caller) -> MemberRecord:
    assert caller.member is not None  # Policy admits only sessions to these operations.
    return caller.member


def _lock(session: Session, member_record: MemberRecord) -> Member:
    member = members.lock_member(session, member_record.id)
    if member is None:
        raise members.member_not_found()
    return member


def _queue_switch_notice(runtime: Runtime, session: Session, member: Member) -> None:
    settings = runtime.settings
    if settings.sends_email:
        one_time_codes.queue_switch_notice(
            session, member, settings.public_url, operator_text(settings.operator_contact)
        )


def list_sessions(runtime: Runtime, caller: Caller, *, limit: int, offset: int) -> tuple[list[dict[str, Any]], int]:
    """Return one page of the caller's sessions, newest first, and their total number."""
    with runtime.database.read() as session:
        logins, total = sessions.list_sessions(session, _member_of(caller).id, limit=limit, offset=offset)
    return [
        {
            "id": sessions.session_id(login.token_hash),
            "created_at": login.created_at,
            "last_used_at": login.seen_at,
            "browser": login.browser,
            "address": login.address,
            "opened_with": login.opened_with or None,
            "current": login.token_hash == caller.session_hash,
        }
        for login in logins
    ], total


def end_session(runtime: Runtime, caller: Caller, session_id: str) -> None:
    """End one of the caller's sessions. Every process rejects its next request.

    Raises:
        ApiError: 404 if the caller has no such session.
    """
    with runtime.database.write() as session:
        sessions.end_session_of(session, _member_of(caller).id, session_id)


def end_other_sessions(runtime: Runtime, caller: Caller) -> None:
    """End all of the caller's sessions except the current one."""
    with runtime.database.write() as session:
        sessions.end_other_sessions(session, _member_of(caller).id, caller.session_hash)


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Counts, limits, and problems of an account, as the API shows them."""

    siteCount: int
    apiKeyCount: int
    plan: str
    usage: dict[str, int]
    limits: dict[str, int | bool]
    failed_sources: list[FailedSource]
    troubles: list[Trouble]
    exposed_keys: Sequence[ExposedKey]


def get_dashboard(
    session: Session,
    counters: CounterStore | None,
    health: HealthMonitor,
    account_id: int,
    plan: str,
    limits: PlanLimits,
    today: date,
) -> Dashboard:
    """Return an account's sites and limits, its usage in this calendar month (UTC), and problems with dependencies.

    Args:
        counters: The counter store, or ``None`` to use the last copy of its counts, which has no questions.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    month = usage_of_month(session, counters, [account_id], today.replace(day=1))[account_id]
    monthly = per_month(limits.searches_per_day)
    return Dashboard(
        siteCount=count_sites(session, account_id),
        apiKeyCount=count_keys(session, account_id),
        plan=plan,
        usage={
            "searches_this_month": month.searches,
            "indexed_pages": count_documents(session, account_id),
            "indexing_operations_this_month": month.indexing_operations,
            "refused_searches_this_month": month.refused_searches,
            "most_indexed_pages_this_month": month.most_documents,
            "pages_crawled_this_month": month.pages_crawled,
            **({} if counters is None else {"asks_today": asks_today(counters, account_id, limits)}),
        },
        limits={
            "max_sites": limit_or_unlimited(limits.sites),
            "max_api_keys": limit_or_unlimited(limits.keys),
            "searches_per_month": limit_or_unlimited(monthly),
            "asks_per_day": limit_or_unlimited(limits.asks_per_day),
            "unlimited": limits.sites is None and limits.keys is None and monthly is None,
        },
        failed_sources=list_failed(session, account_id),
        troubles=find_troubles(session, health, account_id),
        exposed_keys=list_exposed(session, account_id),
    )
