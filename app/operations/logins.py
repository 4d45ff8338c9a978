"""Logging people in and out, with the limits that slow guessing down."""

from __future__ import annotations

from app.clock import now
from app.counters.base import WindowRequest
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, QUARTER_SECONDS, count_attempt
from app.runtime import Runtime
from app.services.access import sessions
from app.services.access.callers import Caller, Client
from app.services.access.quota import address_key
from app.services.accounts import accounts
from app.services.accounts.members import email_key, find_member
from app.services.audit_log.actors import acting
from app.services.audit_log.recording import log_login
from app.storage.database import ROW_LOCK
from app.wording import operator_text

REGISTRATIONS = 30
"""Registrations an hour of one address."""


def register(runtime: Runtime, client: Client, name: str, email: str, password: str) -> tuple[Member, str, str]:
    """Create an account and a session; gives its owner, the CSRF token and the cookie's value.

    Raises:
        ApiError: 400 if the e-mail is taken, 403 where registration is closed, 429 after too many.
    """
    if not runtime.settings.registration:
        whom = operator_text(runtime.settings.operator_contact)
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, f"Registration is closed; ask {whom} for an account.")
    count_attempt(runtime, [WindowRequest(f"register:{client.key}", REGISTRATIONS, HOUR_SECONDS)], "registrations")
    password_hash = accounts.hash_password(password)
    with acting(client.member(email)), runtime.database.write() as session:
        owner = accounts.create_owner(
            session, name=name, email=email, password_hash=password_hash, plan=runtime.settings.default_plan
        )
        login, cookie = sessions.start_session(session, owner, runtime.settings.secret_key)
        return owner, login.csrf_token, cookie


def log_in(runtime: Runtime, client: Client, email: str, password: str) -> tuple[Member, str, str]:
    """Start a session; gives the member, the CSRF token and the cookie's value.

    A failure is not written to the audit log: the time that takes would tell which e-mails are known.

    Raises:
        ApiError: 401 alike for an unknown e-mail and a wrong password; 429 after too many failures.
    """
    windows = _failure_windows(runtime, client, email)
    counted = count_attempt(runtime, windows, "failed logins")
    with runtime.database.read() as session:
        member = find_member(session, email)
    if not accounts.check_password(member, password) or member is None:
        raise _wrong_credentials()
    with runtime.database.write() as session:
        # Hashing takes a while, in which the member may have gone or been given another password.
        present = session.get(Member, member.id, with_for_update={**ROW_LOCK, "of": Member})
        if present is None or present.password_hash != member.password_hash:
            raise _wrong_credentials()
        login, cookie = sessions.start_session(session, present, runtime.settings.secret_key)
        log_login(session, present, client.member(present.email, present.id))
    runtime.counters.refund(windows=counted, now=now().timestamp())
    return present, login.csrf_token, cookie


def _wrong_credentials() -> ApiError:
    return ApiError(ErrorCode.INVALID_CREDENTIALS, "The e-mail or password is incorrect.")


def _failure_windows(runtime: Runtime, client: Client, email: str) -> list[WindowRequest]:
    return [*_account_windows(runtime, client, email), WindowRequest(f"login:{client.key}", 50, QUARTER_SECONDS)]


def _account_windows(runtime: Runtime, client: Client, email: str) -> list[WindowRequest]:
    who = address_key(f"login:{email_key(email)}", runtime.settings.secret_key)
    return [
        WindowRequest(f"login:{who}:{client.key}", 10, QUARTER_SECONDS),
        WindowRequest(f"login:{who}", 100, HOUR_SECONDS),
    ]


def forget_failures(runtime: Runtime, client: Client, email: str) -> None:
    """Let somebody with a new password log in, however often they tried the one before."""
    runtime.counters.reset([window.key for window in _account_windows(runtime, client, email)])


def log_out(runtime: Runtime, caller: Caller | None) -> None:
    """End the caller's session, if it is one."""
    if caller is not None and caller.session_hash:
        with runtime.database.write() as session:
            sessions.end_session(session, caller.session_hash)
