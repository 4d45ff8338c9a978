"""Two-factor authentication: one-time codes (RFC 6238) from an app, and recovery codes for a lost phone.

No secret is stored. An app's secret derives from the server's secret and a stored random salt, so the database alone is
not enough to compute codes.
"""

from __future__ import annotations

import base64
import secrets
from datetime import timedelta
from enum import Enum

import pyotp
from pyotp.exceptions import OTPVerificationError
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Member
from app.services.emails.letters import Letter, queue_email
from app.tokens import hash_token
from app.wording import counted

KIND = "one_time_codes"
"""Kind of emails about two-factor authentication in the queue."""
SET_UP_FOR = timedelta(minutes=15)
"""Time within which the first code of a new app must be entered."""
RECOVERY_CODES = 10
_DRIFT = 1
"""Tolerated difference of the app's clock, in time steps of 30 seconds."""
_SECRET_BYTES = 20
_HALF = 6
"""Digits in each half of a recovery code."""


class CodeUse(Enum):
    """Kinds of codes that a login accepts."""

    CODE = "code"
    RECOVERY_CODE = "recovery code"


def begin(member: Member, secret: str) -> pyotp.TOTP:
    """Begin setting up an authenticator app. Nothing changes until its first code is entered.

    Args:
        member: A locked member.
    """
    salt = secrets.token_urlsafe(16)
    member.new_codes_salt, member.new_codes_until = salt, now() + SET_UP_FOR
    return _app(salt, secret)


def find_new_app(member: Member, secret: str) -> pyotp.TOTP | None:
    """Return the app that is being set up, if any."""
    if member.new_codes_salt is None or member.new_codes_until is None or member.new_codes_until <= now():
        return None
    return _app(member.new_codes_salt, secret)


def confirm(member: Member, code: str, secret: str) -> list[str]:
    """Turn on two-factor authentication with the first code of the new app. Returns new recovery codes.

    An existing app and its recovery codes are replaced.

    Args:
        member: A locked member.

    Raises:
        ApiError: 400 if the code is wrong, or no app is being set up.
    """
    app = find_new_app(member, secret)
    if app is None:
        raise field_error("code", "expired", "has expired; start the setup again")
    step = _step_of(app, _normal(code))
    if step is None:
        raise field_error("code", "incorrect", "is incorrect; enter the current code from your authenticator app")
    recovery = [_recovery_code() for _ in range(RECOVERY_CODES)]
    # The step is stored, so that the code that completed the setup cannot be used again for a login.
    member.codes_since, member.codes_salt, member.codes_step = now(), member.new_codes_salt, step
    member.recovery_hashes = [_recovery_hash(_normal(code), secret) for code in recovery]
    member.new_codes_salt = member.new_codes_until = None
    return recovery


def accept(member: Member, code: str, secret: str) -> CodeUse | None:
    """Use up a code or recovery code. Returns its kind, or ``None`` if it is wrong or was used before.

    Args:
        member: A locked member with two-factor authentication. The lock serializes concurrent uses of a code.
    """
    assert member.codes_salt is not None
    code = _normal(code)
    step = _step_of(_app(member.codes_salt, secret), code)
    # Steps must increase, so that an intercepted code cannot be replayed.
    if step is not None and step > member.codes_step:
        member.codes_step = step
        return CodeUse.CODE
    used = _recovery_hash(code, secret)
    if used in member.recovery_hashes:
        member.recovery_hashes = [recovery_hash for recovery_hash in member.recovery_hashes if recovery_hash != used]
        return CodeUse.RECOVERY_CODE
    return None


def is_entered(code: str) -> bool:
    """Whether a code was entered."""
    return _normal(code) != ""


def switch_off(member: Member) -> None:
    """Turn off two-factor authentication, and discard an app that is being set up."""
    member.codes_since = member.codes_salt = member.new_codes_salt = member.new_codes_until = None
    member.codes_step, member.recovery_hashes = 0, []


def queue_switch_notice(session: Session, member: Member, public_url: str, operator: str) -> None:
    """Queue an email about turning two-factor authentication on or off. Call this only if email is set up.

    Args:
        operator: The contact for help, as text.
    """
    where = f"your account at {public_url} ({member.email})"
    if member.codes_since is None:
        text = (
            f"From now on, the password alone is enough to log in to {where}. If you did not make this change, choose "
            "a new password at once."
        )
        _queue(session, member, "Two-factor authentication was turned off", text)
    else:
        text = (
            f"From now on, logging in to {where} also requires a code from an app. If you did not make this change, "
            f"contact {operator}."
        )
        _queue(session, member, "Two-factor authentication was turned on", text)


def queue_recovery_notice(session: Session, member: Member, public_url: str) -> None:
    """Queue an email about the use of a recovery code. Call this only if email is set up."""
    remaining_codes = counted(len(member.recovery_hashes), "recovery code")
    text = (
        f"Your account at {public_url} ({member.email}) was accessed with the password and a recovery code. You have "
        f"{remaining_codes} left. If that was not you, choose a new password, and set up two-factor authentication "
        "again in your profile, which replaces all recovery codes."
    )
    _queue(session, member, "A recovery code was used", text)


def _queue(session: Session, member: Member, subject: str, text: str) -> None:
    queue_email(session, member.email, Letter(subject, (text,)), kind=KIND, account_id=member.account_id)


def code_required() -> ApiError:
    """Return the 401 for a correct password without the required code."""
    return ApiError(ErrorCode.CODE_REQUIRED, "Send a code from your app or a recovery code in the field code.")


def _app(salt: str, secret: str) -> pyotp.TOTP:
    key = bytes.fromhex(hash_token(f"totp:{salt}", secret))[:_SECRET_BYTES]
    return pyotp.TOTP(base64.b32encode(key).decode("ascii"))


def _step_of(app: pyotp.TOTP, code: str) -> int | None:
    """Return the time step of a code; ``None`` if the code is wrong or outside the tolerated drift."""
    try:
        return app.verify_and_get_timecode(code, for_time=now(), valid_window=_DRIFT)
    except OTPVerificationError:
        return None


def _normal(code: str) -> str:
    """``"123 456" -> "123456"``, ``"123456-789012" -> "123456789012"``"""
    return "".join(code.split()).replace("-", "").lower()


def _recovery_code() -> str:
    digits = secrets.token_hex(_HALF)
    return f"{digits[:_HALF]}-{digits[_HALF:]}"


def _recovery_hash(code: str, secret: str) -> str:
    return hash_token(f"recovery:{code}", secret)
