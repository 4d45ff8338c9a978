"""Logging in and out, with limits that slow down guessing."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from sqlalchemy.orm import Session

from app.clock import now
from app.counters.values import WindowRequest, WindowState
from app.errors import ApiError, ErrorCode, field_error
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, QUARTER_SECONDS, count_attempt, count_hashes, forgiving_outages
from app.runtime import Runtime
from app.services.access import sessions
from app.services.access.callers import Caller, Client
from app.services.access.sessions import LoginProof, offer_members, read_offer
from app.services.accounts import accounts, one_time_codes
from app.services.accounts.emails import queue_confirmation
from app.services.accounts.members import email_key, find_members, get_member, lock_member
from app.services.accounts.one_time_codes import CodeUse
from app.services.audit_log.actors import acting
from app.services.audit_log.recording import log_login
from app.services.usage.quota import DAY_SECONDS, address_key
from app.services.webhooks import notify_operator
from app.wording import operator_text
from schemas.validation.webhooks import ACCOUNT_CREATED

COMPARISONS = 10
"""Number of password comparisons that count as one attempt. Comparing is slow, so more count as further attempts."""
REGISTRATIONS = 30
"""Maximum number of registrations per hour from one IP address."""
CODE_FAILURES = 30
"""Maximum number of wrong codes per day for one member, from any address. Callers need the password to try a code."""


class CodeRejected(ApiError):
    """The password was correct, but the code was missing or wrong.

    Args:
        proof: Token that replaces the password in the next attempt.
    """

    def __init__(self, error: ApiError, proof: str):
        super().__init__(error.code, error.message)
        self.proof = proof


class AccountChoice(Exception):
    """The login matches several members, and the person must choose one."""

    def __init__(self, members: list[Member]):
        super().__init__()
        self.members = members


def register(runtime: Runtime, client: Client, name: str, email: str, password: str) -> tuple[Member, str, str]:
    """Create an account and a session. Returns the owner, the CSRF token, and the cookie's value.

    Raises:
        ApiError: 400 if the email address is taken or the password is weak; 403 if registration is closed; 429 after
            too many registrations.
    """
    if not runtime.settings.registration:
        operator = operator_text(runtime.settings.operator_contact)
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, f"Registration is closed; ask {operator} for an account.")
    reject_without_passwords(runtime)
    window = WindowRequest(f"register:{client.key}", REGISTRATIONS, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "registrations")
    password_hash = accounts.hash_new_password(password, name, email)
    with forgiving_outages(runtime, counted), acting(client.member(email)), runtime.database.write() as session:
        owner = accounts.create_owner(
            session, name=name, email=email, password_hash=password_hash, plan=runtime.settings.default_plan
        )
        if runtime.settings.sends_email:
            queue_confirmation(session, owner)
        notify_operator(session, runtime.settings, ACCOUNT_CREATED, owner.account)
        login, cookie = sessions.start_session(session, owner, runtime.settings.secret_key, client)
        return owner, login.csrf_token, cookie


def log_in(
    runtime: Runtime,
    client: Client,
    email: str,
    password: str,
    code: str = "",
    account_id: int | None = None,
    *,
    offers_choice: bool = False,
) -> tuple[Member, str, str, list[Member]]:
    """Start a session. Returns the member, the CSRF token, the cookie's value, and all matching members.

    The audit log does not record failures, because the time for writing it would reveal which addresses are known.

    Args:
        account_id: The account, if the address belongs to several. By default, the oldest membership with this password
            and a confirmed address, or else the oldest membership with this password.
        offers_choice: Whether to ask the person to choose among several accounts.

    Raises:
        AccountChoice: The person must choose an account.
        ApiError: 401, identical for an unknown address, a wrong password, and a wrong account; 403 if password logins
            are turned off; 429 after too many failures.
        CodeRejected: 401 for a correct password with a missing or wrong code.
    """
    reject_without_passwords(runtime)
    with runtime.database.read() as session:
        candidates = [member for member in find_members(session, email) if account_id in (None, member.account_id)]
    candidates.sort(key=lambda member: not member.email_confirmed)
    hashes = {member.password_hash: member for member in candidates}
    windows = _failure_windows(runtime, client, email, attempts=ceil(len(hashes) / COMPARISONS))
    counted = count_attempt(runtime, windows, "failed logins")
    count_hashes(runtime, client, max(1, len(hashes)))
    right = {hash for hash, member in hashes.items() if accounts.check_password(member, password)}
    if not candidates:
        # Takes as long as for a known address, so the response time does not reveal which addresses are known.
        accounts.check_password(None, password)
    members = [member for member in candidates if member.password_hash in right]
    if not members:
        raise wrong_credentials()
    runtime.counters.refund(windows=counted, now=now().timestamp())
    if offers_choice and account_id is None and len(members) > 1:
        raise AccountChoice(members)
    return *_enter(runtime, client, members[0], code), members


def log_in_with_code(runtime: Runtime, client: Client, proof: str, code: str) -> tuple[Member, str, str]:
    """Complete a login that lacked only a code. Returns the same values as :func:`enter`.

    Args:
        proof: Token from :class:`CodeRejected`.

    Raises:
        ApiError: 401 if the proof is too old or the password was changed; 429 after too many failures.
        CodeRejected: 401 for a missing or wrong code.
    """
    with runtime.database.read() as session:
        members = read_offer(proof, runtime.settings.secret_key).find_members(session)
    if len(members) != 1:
        raise ApiError(ErrorCode.INVALID_CREDENTIALS, "The login took too long; log in again.")
    return _enter(runtime, client, members[0], code)


def enter(runtime: Runtime, client: Client, member: Member) -> tuple[Member, str, str]:
    """Start a session for a member identified by the identity provider, without a code.

    Returns the member, the CSRF token, and the cookie's value.

    Raises:
        ApiError: 401 if the member has since been removed.
    """
    return _enter(runtime, client, member, None)


def choose_account(runtime: Runtime, client: Client, offer: str, account_id: int) -> tuple[Member, str, str]:
    """Start a session for one of the members in an offer. Returns the same values as :func:`enter`.

    Raises:
        ApiError: 401 if the offer has expired or does not include the account.
        CodeRejected: 401 if the person logged in with a password and the member has two-factor authentication.
    """
    offered = read_offer(offer, runtime.settings.secret_key)
    with runtime.database.read() as session:
        members = offered.find_members(session)
    for member in members:
        if member.account_id == account_id:
            return _enter(runtime, client, member, "" if offered.needs_code else None)
    raise ApiError(ErrorCode.INVALID_CREDENTIALS, "Choosing an account took too long; log in again.")


def _enter(runtime: Runtime, client: Client, member: Member, code: str | None) -> tuple[Member, str, str]:
    """Start a session for a member with a correct password, after checking their code; ``None`` skips the check."""
    counted = () if code is None else _count_code(runtime, client, member, code)
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        # Hashing takes a while. Meanwhile, the member may have been removed or their password changed.
        present = lock_member(session, member.id)
        if present is None or present.password_hash != member.password_hash:
            raise wrong_credentials()
        proof = LoginProof.PROVIDER if code is None else _check_code(runtime, session, client, present, code)
        login, cookie = sessions.start_session(session, present, runtime.settings.secret_key, client, proof)
        log_login(session, present, client.member(present.email, present.id))
    runtime.counters.refund(windows=counted, now=now().timestamp())
    return present, login.csrf_token, cookie


def give_code(runtime: Runtime, client: Client, caller: Caller, code: str) -> None:
    """Use up a code of the caller's in a session that was opened without one.

    Raises:
        ApiError: 400 for a missing or wrong code; 429 after too many wrong codes.
    """
    assert caller.member is not None
    with runtime.database.read() as session:
        member = get_member(session, caller.account.id, caller.member.id)
    counted = _count_code(runtime, client, member, code)
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        present = lock_member(session, member.id)
        if present is None or present.codes_since is None or not _use_code(runtime, session, client, present, code):
            raise field_error("code", "incorrect", "is incorrect or was already used")
        sessions.record_code(session, caller.session_hash)
    runtime.counters.refund(windows=counted, now=now().timestamp())


def _count_code(runtime: Runtime, client: Client, member: Member, code: str) -> tuple[WindowState, ...]:
    """Count an entered code as wrong until it has been accepted."""
    if member.codes_since is None or not one_time_codes.is_entered(code):
        return ()
    return count_attempt(runtime, [*_code_windows(client, member.id), _client_window(client)], "wrong codes")


def _check_code(runtime: Runtime, session: Session, client: Client, member: Member, code: str) -> LoginProof:
    """Use up a code, if the member needs one.

    Raises:
        CodeRejected: The code is missing or wrong.
    """
    if member.codes_since is None:
        return LoginProof.PASSWORD
    if not one_time_codes.is_entered(code):
        raise CodeRejected(one_time_codes.code_required(), _write_proof(runtime, member))
    use = _use_code(runtime, session, client, member, code)
    if use is None:
        wrong = ApiError(ErrorCode.INVALID_CREDENTIALS, "The code is incorrect or was already used.")
        raise CodeRejected(wrong, _write_proof(runtime, member))
    return LoginProof.RECOVERY_CODE if use is CodeUse.RECOVERY_CODE else LoginProof.CODE


def _use_code(runtime: Runtime, session: Session, client: Client, member: Member, code: str) -> CodeUse | None:
    with acting(client.member(member.email, member.id)):
        use = one_time_codes.accept(member, code, runtime.settings.secret_key)
        session.flush()
    if use is CodeUse.RECOVERY_CODE and runtime.settings.sends_email:
        one_time_codes.queue_recovery_notice(session, member, runtime.settings.public_url)
    return use


def _write_proof(runtime: Runtime, member: Member) -> str:
    return offer_members([member], runtime.settings.secret_key, needs_code=True)


def reject_without_passwords(runtime: Runtime) -> None:
    """Reject operations with passwords if password logins are turned off.

    Raises:
        ApiError: 403.
    """
    if not runtime.settings.password_login:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "Password login is turned off here; open the page `/login` and log in with the identity provider.",
        )


def wrong_credentials() -> ApiError:
    return ApiError(ErrorCode.INVALID_CREDENTIALS, "The email or password is incorrect.")


def _failure_windows(runtime: Runtime, client: Client, email: str, attempts: int) -> list[WindowRequest]:
    return [*_email_windows(runtime, client, email), _client_window(client, max(1, attempts))]


def _email_windows(runtime: Runtime, client: Client, email: str) -> list[WindowRequest]:
    login_key = address_key(f"login:{email_key(email)}", runtime.settings.secret_key)
    return [
        WindowRequest(f"login:{login_key}:{client.key}", 10, QUARTER_SECONDS),
        WindowRequest(f"login:{login_key}", 100, HOUR_SECONDS),
    ]


def _client_window(client: Client, attempts: int = 1) -> WindowRequest:
    return WindowRequest(f"login:{client.key}", 50, QUARTER_SECONDS, attempts)


def _code_windows(client: Client, member_id: int) -> list[WindowRequest]:
    """Return the rate limit windows for a member's wrong codes.

    The windows count by member, not by email address, because strangers can create members with another person's
    address in their own accounts.
    """
    return [
        WindowRequest(f"login-code:{member_id}:{client.key}", 10, QUARTER_SECONDS),
        WindowRequest(f"login-code:{member_id}", CODE_FAILURES, DAY_SECONDS),
    ]


def forget_failures(runtime: Runtime, client: Client, email: str, member_ids: Iterable[int]) -> None:
    """Delete the failed attempts of members with a new password, so that they can log in immediately."""
    windows = _email_windows(runtime, client, email)
    for member_id in member_ids:
        windows += _code_windows(client, member_id)
    runtime.counters.reset([window.key for window in windows])


def log_out(runtime: Runtime, caller: Caller | None) -> None:
    """End the caller's session, if the caller has one."""
    if caller is not None and caller.session_hash:
        with runtime.database.write() as session:
            sessions.end_session(session, caller.session_hash)
