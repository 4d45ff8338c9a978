"""Accounts: registration, passwords, profiles, plans, suspension, and deletion.

The members of an account are in ``members.py``, and invitations to it in ``invitations.py``. People prove their
identity with a link sent by email (``emails.py``), a code (``one_time_codes.py``), or a login with an identity provider
(``oidc.py``, ``id_tokens.py``). New passwords are checked in ``passwords.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, DepartureReason, Key, Member, Site
from app.services.access.rights import Role
from app.services.access.sessions import end_other_sessions
from app.services.accounts.emails import end_resets, record_change
from app.services.accounts.members import (
    add_member,
    email_key,
    first_owner,
    flush_email,
    follow_first_owner,
    get_member,
    is_same_mailbox,
    reject_reserved_email,
    reject_taken_email,
    set_email,
)
from app.services.accounts.passwords import reject_weak_password
from app.services.sites import end_engine_credentials, get_account, lock_keys, remove_site
from app.storage.database import ROW_LOCK

_hasher = PasswordHasher()
_NO_ACCOUNT_HASH = "$argon2id$v=19$m=65536,t=3,p=4$X8aDstYCxVAyyAUqbep03Q$7seAC/6S+Pc9uEj0Kmtl8t9fM9sghwBG0PHpoMyjQqE"
"""Hash for checking passwords of unknown email addresses, so that known and unknown addresses take equally long.

It is a constant because computing it would take as long as loading a tenth of the program.
"""


@dataclass(frozen=True, slots=True)
class PasswordProof:
    """Evidence that a person knew a member's password at the time of the check.

    Attributes:
        password_hash: Hash that the password was compared with; ``None`` if no password is required: for the operator,
            and for a link sent by email.
    """

    password_hash: str | None

    def is_valid_for(self, member: Member) -> bool:
        """Whether the member's password is still the same."""
        return self.password_hash in (None, member.password_hash)


def hash_password(password: str) -> str:
    """Hash a password with argon2id. Deliberately slow, so call it outside a transaction."""
    return _hasher.hash(password)


def hash_new_password(password: str, *personal: str, field: str = "password") -> str:
    """Hash a password that a person chose, unless it is easy to guess. Call it outside a transaction.

    Args:
        personal: The member's name and email address.
        field: Name of the password's field in the request.

    Raises:
        ApiError: 400 for a weak password.
    """
    reject_weak_password(field, password, *personal)
    return hash_password(password)


def check_password(member: Member | None, password: str) -> bool:
    """Whether ``password`` is the member's. Equally slow if ``member`` is ``None``. Call it outside a transaction."""
    # Always verifies a hash, so that response times do not reveal whether an address is known.
    try:
        matches = _hasher.verify(_NO_ACCOUNT_HASH if member is None else member.password_hash, password)
    except VerificationError:
        return False
    return matches and member is not None


def create_account(session: Session, *, name: str, email: str, password_hash: str, plan: str) -> Account:
    """Create an account with its first owner, whose email address the operator vouches for.

    Raises:
        ApiError: 400 if the address is taken.
    """
    return create_owner(session, name=name, email=email, password_hash=password_hash, plan=plan, confirmed=True).account


def create_owner(
    session: Session, *, name: str, email: str, password_hash: str, plan: str, confirmed: bool = False
) -> Member:
    """Create an account and return its first owner.

    Args:
        confirmed: Whether the email address is known to be the owner's.

    Raises:
        ApiError: 400 if the address is taken.
    """
    reject_taken_email(session, email)
    account = Account(
        name=name,
        email=email.strip(),
        email_key=email_key(email),
        plan=plan,
        limit_overrides={},
        created_at=now(),
    )
    session.add(account)
    flush_email(session)
    return add_member(
        session, account, name=name, email=email, password_hash=password_hash, role=Role.OWNER, confirmed=confirmed
    )


def replace_password(session: Session, member: Member, password_hash: str) -> Member:
    """Set a member's password without the current one, after another proof of identity. Ends the member's sessions."""
    return update_profile(
        session, member.account_id, {"password_hash": password_hash}, member_id=member.id, proof=PasswordProof(None)
    )


def update_profile(
    session: Session,
    account_id: int,
    changes: dict[str, Any],
    *,
    member_id: int | None = None,
    kept_session: str | None = None,
    proof: PasswordProof | None = None,
    notify_old_address: bool = False,
) -> Member:
    """Change a member's ``name``, ``email``, or ``password_hash``, or the account's ``weekly_digest``.

    A new password ends the member's other sessions. So does a new email address, unless a key sets it. Both void
    password reset links sent earlier.

    Args:
        member_id: The member to change; ``None`` for the first owner, when the caller is a key.
        kept_session: The session to keep.
        proof: Evidence of the current password, required to change a member's address or password.
        notify_old_address: Whether to email a link that undoes the change to the old address. True if email is set up.

    Raises:
        ApiError: 400 if the address is taken or the password is missing; 403 if the password has changed meanwhile; 404
            if the member was removed.
    """
    account = get_account(session, account_id, lock=True)
    member = first_owner(session, account_id) if member_id is None else get_member(session, account_id, member_id)
    before, was_confirmed = member.email, member.email_confirmed
    is_moved = "email" in changes and not is_same_mailbox(changes["email"], member.email)
    if member_id is not None and (is_moved or "password_hash" in changes):
        if proof is None:
            raise password_missing()
        if not proof.is_valid_for(member):
            raise password_incorrect()
    if "name" in changes:
        member.name = changes["name"]
    if "email" in changes:
        if is_moved:
            reject_taken_email(session, changes["email"], member)
        set_email(session, member, changes["email"], by_key=member_id is None)
    if "weekly_digest" in changes:
        account.weekly_digest = changes["weekly_digest"]
    if "password_hash" in changes:
        member.password_hash = changes["password_hash"]
    flush_email(session)
    if "password_hash" in changes or (is_moved and member_id is not None):
        end_other_sessions(session, member.id, kept_session)
    if is_moved:
        # After the flush: the unique index serializes concurrent changes, so this query sees the winner.
        reject_reserved_email(session, member)
        if notify_old_address:
            record_change(session, member, before, was_confirmed=was_confirmed, by_key=member_id is None)
    if changes.keys() & {"email", "password_hash"}:
        # A link that was sent to the old address, or requested by an intruder, must not work anymore.
        end_resets(session, member.id)
    follow_first_owner(session, account)
    return member


def delete_account(session: Session, account_id: int, *, reason: str = "") -> None:
    """Delete an account and all its data. The reason is stored anonymously."""
    account = get_account(session, account_id, lock=True)
    sites = _lock_sites(session, account_id)
    lock_keys(session, Key.account_id == account_id)
    for site in sites:
        remove_site(session, site)
    if reason.strip():
        session.add(DepartureReason(reason=reason, created_at=now()))
    session.delete(account)
    session.flush()


def suspend(session: Session, account_id: int, reason: str) -> list[int]:
    """Block an account and revoke the engine keys of its sites. Returns the IDs of the sites.

    Args:
        reason: Message shown to blocked users; replaces an earlier message.
    """
    account = get_account(session, account_id, lock=True)
    # A second suspension only changes the message.
    account.suspended_at = account.suspended_at or now()
    account.suspension_reason = reason
    sites = _lock_sites(session, account_id)
    for site in sites:
        end_engine_credentials(session, site)
    session.flush()
    return [site.id for site in sites]


def resume(session: Session, account_id: int) -> None:
    """End the suspension of an account."""
    account = get_account(session, account_id, lock=True)
    account.suspended_at, account.suspension_reason = None, ""
    session.flush()


def _lock_sites(session: Session, account_id: int) -> Sequence[Site]:
    """Lock and return an account's sites, including deleted sites."""
    return session.scalars(
        # Locked in the order of IDs, so that concurrent transactions do not deadlock.
        select(Site).where(Site.account_id == account_id).order_by(Site.id).with_for_update(**ROW_LOCK)
    ).all()


def change_plan(
    session: Session, account_id: int, plan: str | None, overrides: dict[str, int | None] | None
) -> Account:
    """Change an account's plan, or replace all of its limit overrides. ``None`` keeps either."""
    account = get_account(session, account_id, lock=True)
    if plan is not None:
        account.plan = plan
    if overrides is not None:
        account.limit_overrides = overrides
    session.flush()
    return account


def password_missing() -> ApiError:
    """Return the 400 for changing the email address or password without the current password."""
    return field_error("current_password", "required", "is required to change the email address or the password")


def password_incorrect() -> ApiError:
    """Return the 403 for a wrong password of an identified member."""
    return ApiError(ErrorCode.PASSWORD_INCORRECT, "The password is incorrect.")
