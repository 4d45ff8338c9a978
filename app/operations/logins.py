"""Logging people in and out, with the limits that slow guessing down."""

from __future__ import annotations

from sqlalchemy import select

from app.clock import now
from app.counters.base import WindowRequest, WindowState
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, QUARTER_SECONDS, count_attempt
from app.runtime import Runtime
from app.services.access import sessions
from app.services.access.callers import Caller, Client
from app.services.access.choices import is_offered, read_offer
from app.services.access.quota import address_key
from app.services.accounts import accounts
from app.services.accounts.confirmations import ask_registrant
from app.services.accounts.members import email_key, find_members
from app.services.audit_log.actors import acting
from app.services.audit_log.recording import log_login
from app.storage.database import ROW_LOCK
from app.wording import operator_text

MOST_ACCOUNTS = 10
"""Most accounts of one e-mail whose passwords are compared with one that is sent: each takes a while."""
REGISTRATIONS = 30
"""Registrations an hour of one address."""


class AccountChoice(Exception):
    """The members whom somebody could be, of whom they are to choose one."""

    def __init__(self, members: list[Member]):
        super().__init__()
        self.members = members


def register(runtime: Runtime, client: Client, name: str, email: str, password: str) -> tuple[Member, str, str]:
    """Create an account and a session; gives its owner, the CSRF token and the cookie's value.

    Raises:
        ApiError: 400 if the e-mail is taken, 403 where registration is closed, 429 after too many.
    """
    if not runtime.settings.registration:
        whom = operator_text(runtime.settings.operator_contact)
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, f"Registration is closed; ask {whom} for an account.")
    refuse_without_passwords(runtime)
    count_attempt(runtime, [WindowRequest(f"register:{client.key}", REGISTRATIONS, HOUR_SECONDS)], "registrations")
    password_hash = accounts.hash_password(password)
    with acting(client.member(email)), runtime.database.write() as session:
        owner = accounts.create_owner(
            session, name=name, email=email, password_hash=password_hash, plan=runtime.settings.default_plan
        )
        if runtime.settings.sends_mail:
            ask_registrant(session, owner)
        login, cookie = sessions.start_session(session, owner, runtime.settings.secret_key)
        return owner, login.csrf_token, cookie


def log_in(
    runtime: Runtime, client: Client, email: str, password: str, account_id: int | None = None, *, asks: bool = False
) -> tuple[Member, str, str, list[Member]]:
    """Start a session; gives the member, the CSRF token, the cookie's value, and all members they could be.

    A failure is not written to the audit log: the time that takes would tell which e-mails are known.

    Args:
        account_id: Which account, if the e-mail belongs to several; the oldest membership with this password if not
            given.
        asks: Whether a person is there to be asked which.

    Raises:
        AccountChoice: They are to be asked.
        ApiError: 401 alike for an unknown e-mail, a wrong password and another account; 429 after too many failures.
    """
    members, counted = prove_password(runtime, client, email, password)
    member = next((member for member in members if account_id in (None, member.account_id)), None)
    if member is None:
        raise wrong_credentials()
    if asks and account_id is None and len(members) > 1:
        runtime.counters.refund(windows=counted, now=now().timestamp())
        raise AccountChoice(members)
    started = enter(runtime, client, member)
    runtime.counters.refund(windows=counted, now=now().timestamp())
    return *started, members


def prove_password(
    runtime: Runtime, client: Client, email: str, password: str
) -> tuple[list[Member], tuple[WindowState, ...]]:
    """The members with this e-mail and password, oldest first, and what a success gives back to the counters.

    Raises:
        ApiError: 401 alike for an unknown e-mail and a wrong password; 403 without passwords; 429 after too many
            failures.
    """
    refuse_without_passwords(runtime)
    counted = count_attempt(runtime, _failure_windows(runtime, client, email), "failed logins")
    with runtime.database.read() as session:
        known = find_members(session, email)[:MOST_ACCOUNTS]
    members = [member for member in known if accounts.check_password(member, password)]
    if not known:
        accounts.check_password(None, password)
    if not members:
        raise wrong_credentials()
    return members, counted


def enter(runtime: Runtime, client: Client, member: Member) -> tuple[Member, str, str]:
    """Start the session of a member who has shown who they are; gives them, the CSRF token and the cookie's value.

    Raises:
        ApiError: 401 if they have gone since, or have another password.
    """
    with runtime.database.write() as session:
        # Hashing takes a while, in which the member may have gone or been given another password.
        present = session.get(Member, member.id, with_for_update={**ROW_LOCK, "of": Member})
        if present is None or present.password_hash != member.password_hash:
            raise wrong_credentials()
        login, cookie = sessions.start_session(session, present, runtime.settings.secret_key)
        log_login(session, present, client.member(present.email, present.id))
    return present, login.csrf_token, cookie


def choose_account(runtime: Runtime, client: Client, offer: str, account_id: int) -> tuple[Member, str, str]:
    """Start the session of one of the members that an offer is for; gives what :func:`enter` does.

    Raises:
        ApiError: 401 if the offer is not for the account, or no longer.
    """
    secret = runtime.settings.secret_key
    offered = read_offer(offer, secret)
    with runtime.database.read() as session:
        members = session.scalars(select(Member).where(Member.id.in_(offered), Member.account_id == account_id)).all()
    for member in members:
        if is_offered(member, offered, secret):
            return enter(runtime, client, member)
    raise ApiError(ErrorCode.INVALID_CREDENTIALS, "The choice of an account has expired; log in again.")


def refuse_without_passwords(runtime: Runtime) -> None:
    """Refuse what is for people with passwords, where nobody logs in with one.

    Raises:
        ApiError: 403.
    """
    if not runtime.settings.password_login:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "Nobody logs in with a password here; open the page `/login` and log in with the identity provider.",
        )


def wrong_credentials() -> ApiError:
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
