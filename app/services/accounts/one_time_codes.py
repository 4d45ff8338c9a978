"""One-time codes (RFC 6238), which a login needs besides the password, and recovery codes for a lost phone.

No secret is stored. That of an app follows from the server's secret and a random salt, which is stored: who has the
database alone, can make no code.
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
from app.services.mail.letters import Letter, queue_mail
from app.tokens import hash_token
from app.wording import counted

KIND = "one_time_codes"
SET_UP_FOR = timedelta(minutes=15)
"""How long an app may take to show its first code."""
RECOVERY_CODES = 10
_DRIFT = 1
"""Time steps, of 30 seconds, by which the app's clock may be ahead or behind."""
_SECRET_BYTES = 20
_HALF = 6


class CodeUse(Enum):
    """Kinds of codes that a login takes."""

    CODE = "code"
    RECOVERY_CODE = "recovery code"


def begin(member: Member, secret: str) -> pyotp.TOTP:
    """Begin to set up an app; until it has shown a code, nothing changes.

    Args:
        member: Who is locked.
    """
    salt = secrets.token_urlsafe(16)
    member.new_codes_salt, member.new_codes_until = salt, now() + SET_UP_FOR
    return _app(salt, secret)


def find_new_app(member: Member, secret: str) -> pyotp.TOTP | None:
    """The app that is being set up, if any is."""
    if member.new_codes_salt is None or member.new_codes_until is None or member.new_codes_until <= now():
        return None
    return _app(member.new_codes_salt, secret)


def confirm(member: Member, code: str, secret: str) -> list[str]:
    """Switch codes on with the first one of the app that is being set up; gives new recovery codes.

    They replace an app and recovery codes that there were.

    Args:
        member: Who is locked.

    Raises:
        ApiError: 400 if the code is wrong, or no app is being set up.
    """
    app = find_new_app(member, secret)
    if app is None:
        raise field_error("code", "expired", "comes too late: begin to set codes up again")
    step = _step_of(app, _normal(code))
    if step is None:
        raise field_error("code", "incorrect", "is not the one that the app shows now")
    recovery = [_recovery_code() for _ in range(RECOVERY_CODES)]
    member.codes_since, member.codes_salt, member.codes_step = now(), member.new_codes_salt, step
    member.recovery_hashes = [_recovery_hash(_normal(made), secret) for made in recovery]
    member.new_codes_salt = member.new_codes_until = None
    return recovery


def accept(member: Member, code: str, secret: str) -> CodeUse | None:
    """Use a code or a recovery code up; ``None`` if it is neither, or was used before.

    Args:
        member: Who is locked, and has codes: of two who use one at once, one is first.
    """
    assert member.codes_salt is not None
    code = _normal(code)
    step = _step_of(_app(member.codes_salt, secret), code)
    if step is not None and step > member.codes_step:
        member.codes_step = step
        return CodeUse.CODE
    used = _recovery_hash(code, secret)
    if used in member.recovery_hashes:
        member.recovery_hashes = [one for one in member.recovery_hashes if one != used]
        return CodeUse.RECOVERY_CODE
    return None


def is_given(code: str) -> bool:
    """Tell whether somebody has typed a code at all."""
    return _normal(code) != ""


def switch_off(member: Member) -> None:
    """Let a member log in with the password alone, and forget an app that is being set up."""
    member.codes_since = member.codes_salt = member.new_codes_salt = member.new_codes_until = None
    member.codes_step, member.recovery_hashes = 0, []


def tell_of_switch(session: Session, member: Member, public_url: str, operator: str) -> None:
    """Queue a mail that says whether a member's codes are on now; to be called where mail is sent.

    Args:
        operator: Who can help, as text.
    """
    where = f"your account at {public_url} ({member.email})"
    if member.codes_since is None:
        text = f"From now on, the password alone opens {where}. If that was not you, choose a new password at once."
        _queue(session, member, "One-time codes were switched off", text)
    else:
        text = f"From now on, {where} needs a code from an app, too. If that was not you, ask {operator}."
        _queue(session, member, "One-time codes were switched on", text)


def tell_of_recovery(session: Session, member: Member, public_url: str) -> None:
    """Queue a mail that says that a recovery code was used; to be called where mail is sent."""
    left = counted(len(member.recovery_hashes), "recovery code")
    text = (
        f"Somebody logged in to your account at {public_url} ({member.email}) with the password and a recovery code; "
        f"{left} remain. If that was not you, choose a new password, and set one-time codes up again in your profile: "
        "that replaces all recovery codes."
    )
    _queue(session, member, "A recovery code was used", text)


def _queue(session: Session, member: Member, subject: str, text: str) -> None:
    letter = Letter(subject, (text,))
    queue_mail(session, member.email, letter.subject, letter.text, letter.html, kind=KIND, account_id=member.account_id)


def code_required() -> ApiError:
    """The 401 for a password that is right, but not enough."""
    return ApiError(ErrorCode.CODE_REQUIRED, "Send a code of your app, or a recovery code, as code.")


def _app(salt: str, secret: str) -> pyotp.TOTP:
    key = bytes.fromhex(hash_token(f"totp:{salt}", secret))[:_SECRET_BYTES]
    return pyotp.TOTP(base64.b32encode(key).decode("ascii"))


def _step_of(app: pyotp.TOTP, code: str) -> int | None:
    """The time step of a code, if it is near; of others ``None``."""
    try:
        return app.verify_and_get_timecode(code, for_time=now(), valid_window=_DRIFT)
    except OTPVerificationError:
        return None


def _normal(code: str) -> str:
    """A code without what people add or leave out."""
    return "".join(code.split()).replace("-", "").lower()


def _recovery_code() -> str:
    digits = secrets.token_hex(_HALF)
    return f"{digits[:_HALF]}-{digits[_HALF:]}"


def _recovery_hash(code: str, secret: str) -> str:
    return hash_token(f"recovery:{code}", secret)
