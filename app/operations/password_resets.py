"""New passwords for people who have forgotten theirs, with the limits that slow guessing and flooding down."""

from __future__ import annotations

from app.counters.base import WindowRequest
from app.errors import ApiError, ErrorCode, field_error
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, count_attempt
from app.operations.logins import forget_failures
from app.runtime import Runtime
from app.services.access.callers import Client
from app.services.access.quota import address_key
from app.services.accounts import accounts, password_resets
from app.services.accounts.members import email_key
from app.services.audit_log.actors import acting
from app.services.sites import get_account
from app.wording import operator_text

REQUESTS_PER_EMAIL = 5
"""Requests an hour for one e-mail, whether or not there is such an account."""
REQUESTS_PER_ADDRESS = 20
"""Requests an hour of one client's address."""


def request_reset(runtime: Runtime, client: Client, email: str) -> None:
    """Have a link sent to an e-mail, if there is such an account; nothing tells whether there is.

    Raises:
        ApiError: 403 where no mail is sent, 429 after too many.
    """
    if not runtime.settings.sends_mail:
        whom = operator_text(runtime.settings.operator_contact)
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, f"This service sends no mail; ask {whom} for a new password.")
    who = address_key(f"reset:{email_key(email)}", runtime.settings.secret_key)
    windows = [
        WindowRequest(f"reset:{who}", REQUESTS_PER_EMAIL, HOUR_SECONDS),
        WindowRequest(f"reset:{client.key}", REQUESTS_PER_ADDRESS, HOUR_SECONDS),
    ]
    count_attempt(runtime, windows, "requests for a new password")
    with runtime.database.write() as session:
        password_resets.request_reset(session, email)


def check_token(runtime: Runtime, token: str) -> None:
    """Make sure that a link still works.

    Raises:
        ApiError: 400.
    """
    with runtime.database.read() as session:
        if password_resets.find_reset(session, token, runtime.settings.secret_key) is None:
            raise _ended()


def reset_password(runtime: Runtime, client: Client, token: str, new_password: str) -> None:
    """Set a new password; it ends the link, all others of the member, and all of their sessions.

    Raises:
        ApiError: 400 if the link no longer works.
    """
    check_token(runtime, token)
    password_hash = accounts.hash_password(new_password)
    with runtime.database.write() as session:
        reset = password_resets.find_reset(session, token, runtime.settings.secret_key)
        if reset is None:
            raise _ended()
        member = session.get_one(Member, reset.member_id)
        get_account(session, member.account_id, lock=True)
        # Who used the link, or changed the password or the e-mail, held that lock: only now it is certain.
        if password_resets.find_reset(session, token, runtime.settings.secret_key) is None:
            raise _ended()
        with acting(client.member(member.email, member.id)):
            accounts.update_profile(
                session,
                member.account_id,
                {"password_hash": password_hash},
                member_id=member.id,
                proof=accounts.PasswordProof(None),
            )
    forget_failures(runtime, client, member.email)


def _ended() -> ApiError:
    return field_error("token", "expired", "no longer works: it was used, or is older than 30 minutes")
