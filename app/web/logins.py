"""Logging people in and out, with the limits that slow guessing down."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Request
from werkzeug.http import dump_cookie

from app.clock import now
from app.counters.base import WindowRequest, WindowState
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.runtime import Runtime, runtime
from app.services.access import sessions
from app.services.accounts import accounts
from app.services.accounts.members import email_key, find_member, first_owner
from app.services.audit_log.actors import acting
from app.services.audit_log.recording import log_login
from app.storage.database import ROW_LOCK
from app.web.actors import member_actor
from app.web.auth import SESSION_COOKIE
from app.web.client_ip import address_key, is_forwarded, is_loopback
from app.web.quota import rate_limited
from app.web.request_checks import address, current_session
from app.wording import duration, operator_text

QUARTER_SECONDS = 900
HOUR_SECONDS = 3600
PASSWORD_FAILURES = 5
"""Wrong passwords an hour when an account is to be deleted or its password changed."""
REGISTRATIONS = 30
"""Registrations an hour of one address."""


def register(name: str, email: str, password: str) -> tuple[Member, str, str]:
    """Create an account and a session; gives its owner, the CSRF token and the cookie's value.

    Raises:
        ApiError: 400 if the e-mail is taken, 403 where registration is closed, 429 after too many.
    """
    part = runtime()
    if not part.settings.registration:
        whom = operator_text(part.settings.operator_contact)
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, f"Registration is closed; ask {whom} for an account.")
    count_attempt(part, [WindowRequest(f"register:{address()}", REGISTRATIONS, HOUR_SECONDS)], "registrations")
    password_hash = accounts.hash_password(password)
    with acting(member_actor(email)), part.database.write() as session:
        owner = accounts.create_owner(
            session, name=name, email=email, password_hash=password_hash, plan=part.settings.default_plan
        )
        login, cookie = sessions.start_session(session, owner, part.settings.secret_key)
        return owner, login.csrf_token, cookie


def log_in(email: str, password: str) -> tuple[Member, str, str]:
    """Start a session; gives the member, the CSRF token and the cookie's value.

    A failure is not written to the audit log: the time that takes would tell which e-mails are known.

    Raises:
        ApiError: 401 alike for an unknown e-mail and a wrong password; 429 after too many failures.
    """
    part = runtime()
    windows = _failure_windows(part, email)
    counted = count_attempt(part, windows, "failed logins")
    with part.database.read() as session:
        member = find_member(session, email)
    if not accounts.check_password(member, password) or member is None:
        raise _wrong_credentials()
    with part.database.write() as session:
        # Hashing takes a while, in which the member may have gone or been given another password.
        present = session.get(Member, member.id, with_for_update={**ROW_LOCK, "of": Member})
        if present is None or present.password_hash != member.password_hash:
            raise _wrong_credentials()
        login, cookie = sessions.start_session(session, present, part.settings.secret_key)
        log_login(session, present, member_actor(present.email, present.id))
    part.counters.refund(windows=counted, now=now().timestamp())
    return present, login.csrf_token, cookie


def _wrong_credentials() -> ApiError:
    return ApiError(ErrorCode.INVALID_CREDENTIALS, "The e-mail or password is incorrect.")


def _failure_windows(part: Runtime, email: str) -> list[WindowRequest]:
    return [*_account_windows(part, email), WindowRequest(f"login:{address()}", 50, QUARTER_SECONDS)]


def _account_windows(part: Runtime, email: str) -> list[WindowRequest]:
    who = address_key(f"login:{email_key(email)}", part.settings.secret_key)
    return [
        WindowRequest(f"login:{who}:{address()}", 10, QUARTER_SECONDS),
        WindowRequest(f"login:{who}", 100, HOUR_SECONDS),
    ]


def forget_failures(email: str) -> None:
    """Let somebody with a new password log in, however often they tried the one before."""
    part = runtime()
    part.counters.reset([window.key for window in _account_windows(part, email)])


def check_own_password(account_id: int, member_id: int | None, password: str) -> None:
    """Make sure that somebody already known knows their password.

    Args:
        member_id: Whose it is; ``None`` for the first owner's, as a key needs it.

    Raises:
        ApiError: 403 if it is wrong, 429 after five wrong ones in an hour.
    """
    part = runtime()
    with part.database.read() as session:
        member = first_owner(session, account_id) if member_id is None else session.get(Member, member_id)
    window = WindowRequest(f"password:{account_id}:{member_id or ''}", PASSWORD_FAILURES, HOUR_SECONDS)
    counted = count_attempt(part, [window], "wrong passwords")
    if not accounts.check_password(member, password):
        raise accounts.password_incorrect()
    part.counters.refund(windows=counted, now=now().timestamp())


def count_attempt(part: Runtime, windows: Sequence[WindowRequest], what: str) -> tuple[WindowState, ...]:
    """Count an attempt as if it failed; who succeeds gives it back, so that racing guesses are all counted."""
    moment = now().timestamp()
    outcome = part.counters.consume(windows, now=moment)
    if outcome.refused is not None:
        wait = outcome.refused.retry_after(moment)
        raise rate_limited(f"Too many {what}; try again in {duration(wait)}.", wait, outcome.refused)
    return outcome.windows


def log_out() -> None:
    """End the request's session, if it has one."""
    login = current_session()
    if login is not None:
        with runtime().database.write() as session:
            sessions.end_session(session, login)


def cookie_header(request: Request, value: str | None) -> str:
    """The ``Set-Cookie`` of a session, or of its end."""
    return dump_cookie(
        SESSION_COOKIE,
        value or "",
        max_age=int(sessions.LONGEST.total_seconds()) if value else 0,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="Lax",
    )


def is_secure(request: Request) -> bool:
    """Tell whether cookies are for https only."""
    public_url = runtime().settings.public_url
    return public_url.startswith("https:") if public_url else is_forwarded(request) or not is_loopback(request)
