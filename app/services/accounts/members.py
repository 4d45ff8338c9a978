"""Members of an account. Every account has an owner, and has the name and email address of its first owner."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import delete, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, EmailChange, Invitation, Member
from app.models import Session as Login
from app.services.access.rights import Role
from app.services.sites import MAX_INT64, get_account
from app.storage.database import ROW_LOCK, read_page
from app.wording import counted
from backends.text import normalized

MAX_MEMBERS = 100
"""Maximum number of members and open invitations of an account."""


def email_key(email: str) -> str:
    """Return the normalized form of an address, for comparisons: trimmed and case-folded."""
    return normalized("NFC", email.strip()).casefold()


def is_same_mailbox(email: str, other: str) -> bool:
    """Whether two addresses are the same mailbox, ignoring the case of ASCII letters only.

    Case folding also equates different letters: ``straße.example`` and ``strasse.example`` are domains of different
    people. A proof for one mailbox must not hold for another.
    """
    return email.strip().encode().lower() == other.strip().encode().lower()


def find_members(session: Session, email: str) -> Sequence[Member]:
    """Return the members with this address, one for each account, oldest first.

    They are matched by case folding, so they may be different people; see :func:`is_same_mailbox`.
    """
    key = email_key(email)
    has_email = or_(Member.email_key == key, Member.shared_email_key == key)
    return session.scalars(select(Member).where(has_email).order_by(Member.id)).all()


def first_owner(session: Session, account_id: int) -> Member:
    """Return the account's first owner, who represents it for keys, commands, and emails.

    Raises:
        ApiError: 401 if the account was deleted.
    """
    owners = select(Member).where(Member.account_id == account_id, Member.role == Role.OWNER)
    owner = session.scalar(owners.order_by(Member.id).limit(1))
    if owner is None:
        raise ApiError(ErrorCode.INVALID_API_KEY, "The account no longer exists.")
    return owner


def get_member(session: Session, account_id: int, member_id: int) -> Member:
    """Load a member for a caller.

    Raises:
        ApiError: 404 if the account has no member with this ID.
    """
    member = session.get(Member, member_id) if 0 < member_id <= MAX_INT64 else None
    if member is None or member.account_id != account_id:
        raise member_not_found()
    return member


def member_not_found() -> ApiError:
    """Return the 404 for a member who does not exist or belongs to another account."""
    return ApiError(ErrorCode.MEMBER_NOT_FOUND, "Member not found.")


def lock_member(session: Session, member_id: int) -> Member | None:
    """Load and lock a member, to serialize changes of their credentials; ``None`` if the member was removed."""
    # The session may have loaded the member before it was locked, so its values are read again.
    return session.get(Member, member_id, with_for_update={**ROW_LOCK, "of": Member}, populate_existing=True)


def list_members(session: Session, account_id: int, *, limit: int, offset: int) -> tuple[Sequence[Member], int]:
    """Return one page of the account's members, oldest first, and their total number."""
    oldest = select(Member).where(Member.account_id == account_id).order_by(Member.id)
    return read_page(session, oldest, limit=limit, offset=offset)


def add_member(
    session: Session,
    account: Account,
    *,
    name: str,
    email: str,
    password_hash: str,
    role: Role,
    confirmed: bool = False,
) -> Member:
    """Add a member to an account that is new or locked.

    Args:
        confirmed: Whether the address is known to be the person's.

    Raises:
        ApiError: 400 if a member of this account has the address, or another member can still reclaim it by undoing a
            change.
    """
    member = Member(
        account_id=account.id,
        name=name,
        email=email.strip(),
        email_confirmed=confirmed,
        password_hash=password_hash,
        role=role,
        created_at=now(),
    )
    _set_keys(session, member)
    member.account = account
    session.add(member)
    flush_email(session)
    reject_reserved_email(session, member)
    return member


def _set_keys(session: Session, member: Member) -> None:
    """Set the columns by which a member's address is looked up."""
    key = email_key(member.email)
    is_shared = any(other.account_id != member.account_id for other in find_members(session, member.email))
    # The column is unique over all accounts. If a member of another account has the address, a placeholder fills it.
    member.email_key = f"{member.account_id} {hashlib.sha256(key.encode()).hexdigest()}" if is_shared else key
    member.shared_email_key = key if is_shared else None


def set_email(session: Session, member: Member, email: str, *, by_key: bool = False) -> None:
    """Set a member's address. A new mailbox is unconfirmed. Call :func:`flush_email` to write it."""
    is_moved = not is_same_mailbox(email, member.email)
    member.email = email
    if is_moved:
        member.email_confirmed, member.email_set_by_key = False, by_key
        # The lookup of other members would otherwise write the address before its key columns are set.
        with session.no_autoflush:
            _set_keys(session, member)


def confirm_email(member: Member) -> None:
    """Confirm a member's address. If the member is an owner, this also clears ``confirm_by``, after which keys stop.

    Call this within a credential change.
    """
    member.email_confirmed, member.email_set_by_key = True, False
    if member.role == Role.OWNER:
        member.account.confirm_by = None


def change_role(session: Session, account_id: int, member_id: int, role: Role, *, by: int | None) -> Member:
    """Change a member's role. It takes effect with the member's next request.

    Args:
        by: The calling member; ``None`` for a key, which can neither promote nor demote owners.

    Raises:
        ApiError: 404; 403 for the last owner, for changes that keys cannot make, or if the caller is no longer an
            owner.
    """
    account = lock_as_owner(session, account_id, by)
    member = get_member(session, account_id, member_id)
    if member.role != role:
        reject_key(by, member.role, role)
    if member.role == Role.OWNER != role:
        _reject_last_owner(session, member)
    member.role = role
    session.flush()
    follow_first_owner(session, account)
    return member


def remove_member(session: Session, account_id: int, member_id: int, *, by: int | None) -> None:
    """Remove a member and end all of their sessions.

    Args:
        by: As in :func:`change_role`.

    Raises:
        ApiError: 404; 403 for the last owner, for changes that keys cannot make, or if the caller is no longer an
            owner.
    """
    account = lock_as_owner(session, account_id, by)
    member = get_member(session, account_id, member_id)
    reject_key(by, member.role)
    if member.role == Role.OWNER:
        _reject_last_owner(session, member)
    session.execute(delete(Login).where(Login.member_id == member.id))
    session.delete(member)
    session.flush()
    follow_first_owner(session, account)


def lock_as_owner(session: Session, account_id: int, by: int | None) -> Account:
    """Lock the account, to serialize changes of its members.

    Args:
        by: The calling member; ``None`` for a key.

    Raises:
        ApiError: 403 if the caller is no longer an owner, because of a concurrent change.
    """
    account = get_account(session, account_id, lock=True)
    if by is not None:
        # Read again under the lock, because the caller may have lost the role since the request began.
        member = session.get(Member, by, populate_existing=True)
        if member is None or member.role != Role.OWNER:
            raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "You are no longer an owner of this account.")
    return account


def reject_key(by: int | None, *roles: str) -> None:
    """Reject changes of owners by keys: otherwise, a stolen key would be enough to take over the account.

    Args:
        by: The calling member; ``None`` for a key.
        roles: Roles before and after the change.

    Raises:
        ApiError: 403.
    """
    if by is None and Role.OWNER in roles:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "A key cannot invite, promote, or remove an owner; log in as an owner to do this.",
        )


def check_member_limit(session: Session, account_id: int) -> None:
    """Reject a member or invitation beyond the account's limit. The account must be locked.

    Raises:
        ApiError: 403.
    """
    counts = [
        session.scalar(select(func.count()).select_from(table).where(table.account_id == account_id)) or 0
        for table in (Member, Invitation)
    ]
    if sum(counts) >= MAX_MEMBERS:
        raise ApiError(
            ErrorCode.MEMBER_LIMIT_REACHED,
            f"An account can have at most {counted(MAX_MEMBERS, 'member')}, including pending invitations.",
        )


def follow_first_owner(session: Session, account: Account) -> None:
    """Copy the first owner's name and address to the account."""
    owner = first_owner(session, account.id)
    account.name = owner.name
    account.email = owner.email
    account.email_key = owner.email_key
    session.flush()


def flush_email(session: Session) -> None:
    """Write a changed address.

    Raises:
        ApiError: 400 if it is taken.
    """
    try:
        session.flush()
    # The unique index decides, since two requests may pass an earlier check at the same time.
    except IntegrityError as error:
        raise _email_in_use() from error


def reject_reserved_email(session: Session, member: Member) -> None:
    """Reject an address that another member had confirmed and can still reclaim. Call this after writing the address.

    Raises:
        ApiError: 400.
    """
    reserved = select(EmailChange.id).where(
        EmailChange.email_key == member.compared_email,
        EmailChange.member_id != member.id,
        EmailChange.was_confirmed,
        EmailChange.expires_at > now(),
    )
    if session.scalar(reserved.limit(1)) is not None:
        raise _email_in_use()


def reject_taken_email(session: Session, email: str, by: Member | None = None) -> None:
    """Reject an address that a member of any account has. Only an invitation adds a person to a second account.

    Args:
        by: The member who is changing their address.

    Raises:
        ApiError: 400.
    """
    if any(member is not by for member in find_members(session, email)):
        raise _email_in_use()


def _email_in_use() -> ApiError:
    return field_error("email", "taken", "is already in use")


def _reject_last_owner(session: Session, member: Member) -> None:
    others = select(Member.id).where(
        Member.account_id == member.account_id, Member.role == Role.OWNER, Member.id != member.id
    )
    if session.scalar(others.limit(1)) is None:
        raise ApiError(ErrorCode.LAST_OWNER, "An account must have an owner; make another member an owner first.")
