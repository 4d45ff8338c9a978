"""Accounts: registration, login, profile, plan, deletion."""

from __future__ import annotations

from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, DepartureReason, Key, PasswordReset, Site
from app.services.access.sessions import end_other_sessions
from app.services.sites import get_account, lock_keys, remove_site
from app.storage.database import ROW_LOCK
from backends.text import normalized

_hasher = PasswordHasher()
_NO_ACCOUNT_HASH = _hasher.hash("no account has this password")
"""Verified against when the e-mail is unknown, so that both cases take alike."""


def email_key(email: str) -> str:
    """What e-mails are compared by: trimmed, without case."""
    return normalized("NFC", email.strip()).casefold()


def find_account(session: Session, email: str) -> Account | None:
    """The account with this e-mail."""
    return session.scalar(select(Account).where(Account.email_key == email_key(email)))


def hash_password(password: str) -> str:
    """argon2id of a password. Slow on purpose: call it outside a transaction."""
    return _hasher.hash(password)


def check_password(account: Account | None, password: str) -> bool:
    """Tell whether ``password`` is the account's; as slow for no account. Call it outside a transaction."""
    try:
        matches = _hasher.verify(_NO_ACCOUNT_HASH if account is None else account.password_hash, password)
    except VerificationError:
        return False
    return matches and account is not None


def create_account(session: Session, *, name: str, email: str, password_hash: str, plan: str) -> Account:
    """Add an account.

    Raises:
        ApiError: 400 if the e-mail is taken.
    """
    account = Account(
        name=name,
        email=email.strip(),
        email_key=email_key(email),
        password_hash=password_hash,
        plan=plan,
        limit_overrides={},
        created_at=now(),
    )
    session.add(account)
    _flush_email(session)
    return account


def update_profile(
    session: Session, account_id: int, changes: dict[str, Any], *, kept_session: str | None = None
) -> Account:
    """Change ``name``, ``email``, ``weekly_digest`` or ``password_hash``; the last one ends other sessions.

    Links to a new password end with the password and the e-mail that they were sent for.

    Raises:
        ApiError: 400 if the e-mail is taken.
    """
    account = get_account(session, account_id, lock=True)
    if "name" in changes:
        account.name = changes["name"]
    if "email" in changes:
        account.email = changes["email"]
        account.email_key = email_key(changes["email"])
    if "weekly_digest" in changes:
        account.weekly_digest = changes["weekly_digest"]
    if "password_hash" in changes:
        account.password_hash = changes["password_hash"]
        end_other_sessions(session, account_id, kept_session)
    _flush_email(session)
    if changes.keys() & {"email", "password_hash"}:
        session.execute(delete(PasswordReset).where(PasswordReset.account_id == account_id))
    return account


def delete_account(session: Session, account_id: int, *, reason: str = "") -> None:
    """Remove an account with everything it has; the reason is kept without identity."""
    account = get_account(session, account_id, lock=True)
    sites = session.scalars(
        select(Site).where(Site.account_id == account_id).order_by(Site.id).with_for_update(**ROW_LOCK)
    ).all()
    lock_keys(session, Key.account_id == account_id)
    for site in sites:
        remove_site(session, site)
    if reason.strip():
        session.add(DepartureReason(reason=reason, created_at=now()))
    session.delete(account)
    session.flush()


def set_plan(session: Session, account_id: int, plan: str, overrides: dict[str, int | None]) -> Account:
    """Put an account on a plan with its own limits laid over it; earlier ones are cleared."""
    account = get_account(session, account_id, lock=True)
    account.plan = plan
    account.limit_overrides = dict(overrides)
    session.flush()
    return account


def password_incorrect() -> ApiError:
    """The 403 for a wrong password of somebody already known."""
    return ApiError(ErrorCode.PASSWORD_INCORRECT, "The password is incorrect.")


def _flush_email(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError as error:
        raise field_error("email", "taken", "is already in use") from error
