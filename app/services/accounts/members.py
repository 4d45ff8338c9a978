"""The members of an account. It always has an owner; its name and e-mail are those of the first one."""

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
from app.storage.database import ROW_LOCK
from app.wording import counted
from backends.text import normalized

MAX_MEMBERS = 100
"""Most members and open invitations of an account."""


def email_key(email: str) -> str:
    """The form in which e-mails are compared: trimmed, without case."""
    return normalized("NFC", email.strip()).casefold()


def is_same_mailbox(email: str, other: str) -> bool:
    """Whether two e-mails are one person's: without case, as far as the case of ASCII goes.

    Other letters are equal without case that are not the same: ``straße.example`` and ``strasse.example`` are domains
    of different people. What a mailbox proves must hold for that mailbox alone.
    """
    return email.strip().encode().lower() == other.strip().encode().lower()


def find_members(session: Session, email: str) -> Sequence[Member]:
    """The members with this e-mail, one of each account, oldest first.

    Those found without case may be of different people; see :func:`is_same_mailbox`.
    """
    key = email_key(email)
    has_email = or_(Member.email_key == key, Member.shared_email_key == key)
    return session.scalars(select(Member).where(has_email).order_by(Member.id)).all()


def first_owner(session: Session, account_id: int) -> Member:
    """The owner who has been a member for longest: whom keys, commands and mails mean by the account's user.

    Raises:
        ApiError: 401 if the account is gone.
    """
    owners = select(Member).where(Member.account_id == account_id, Member.role == Role.OWNER)
    owner = session.scalar(owners.order_by(Member.id).limit(1))
    if owner is None:
        raise ApiError(ErrorCode.INVALID_API_KEY, "The account no longer exists.")
    return owner


def get_member(session: Session, account_id: int, member_id: int) -> Member:
    """Load a member for a caller.

    Raises:
        ApiError: 404 if there is none with this id, or it is another account's.
    """
    member = session.get(Member, member_id) if 0 < member_id <= MAX_INT64 else None
    if member is None or member.account_id != account_id:
        raise member_not_found()
    return member


def member_not_found() -> ApiError:
    """The 404 for a member who is unknown, gone, or of another account."""
    return ApiError(ErrorCode.MEMBER_NOT_FOUND, "Member not found.")


def lock_member(session: Session, member_id: int) -> Member | None:
    """Load a member, so that changes of what they log in with follow one another; ``None`` if they have gone."""
    return session.get(Member, member_id, with_for_update={**ROW_LOCK, "of": Member}, populate_existing=True)


def list_members(session: Session, account_id: int, *, limit: int, offset: int) -> tuple[Sequence[Member], int]:
    """One page of the account's members, oldest first, and how many there are."""
    members = session.scalars(
        select(Member).where(Member.account_id == account_id).order_by(Member.id).limit(limit).offset(offset)
    ).all()
    total = session.scalar(select(func.count()).select_from(Member).where(Member.account_id == account_id)) or 0
    return members, total


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
    """Add a member to an account that is new, or locked.

    Args:
        confirmed: Whether it is certain that the mailbox is theirs.

    Raises:
        ApiError: 400 if a member of this account has the e-mail, or somebody whose e-mail was changed gets it back.
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
    refuse_held_email(session, member)
    return member


def _set_keys(session: Session, member: Member) -> None:
    """Set what a member's e-mail is found by."""
    key = email_key(member.email)
    is_shared = any(other.account_id != member.account_id for other in find_members(session, member.email))
    member.email_key = f"{member.account_id} {hashlib.sha256(key.encode()).hexdigest()}" if is_shared else key
    member.shared_email_key = key if is_shared else None


def set_email(session: Session, member: Member, email: str, *, by_key: bool = False) -> None:
    """Give a member another e-mail, which they have not confirmed; :func:`flush_email` writes it."""
    is_moved = not is_same_mailbox(email, member.email)
    member.email = email
    if is_moved:
        member.email_confirmed, member.email_by_key = False, by_key
        with session.no_autoflush:
            _set_keys(session, member)


def confirm_email(member: Member) -> None:
    """Note that a member's mailbox is theirs, after which the keys of an owner's account go on; see ``confirm_by``.

    To be called where credentials change.
    """
    member.email_confirmed, member.email_by_key = True, False
    if member.role == Role.OWNER:
        member.account.confirm_by = None


def change_role(session: Session, account_id: int, member_id: int, role: Role, *, by: int | None) -> Member:
    """Give a member another role; it holds from the member's next request on.

    Args:
        by: The member who asks for it; ``None`` if it is a key, which neither makes nor demotes owners.

    Raises:
        ApiError: 404; 403 for the last owner, for what is not for keys, or if who asks is an owner no longer.
    """
    account = lock_as_owner(session, account_id, by)
    member = get_member(session, account_id, member_id)
    if member.role != role:
        refuse_key(by, member.role, role)
    if member.role == Role.OWNER != role:
        _refuse_last_owner(session, member)
    member.role = role
    session.flush()
    follow_first_owner(session, account)
    return member


def remove_member(session: Session, account_id: int, member_id: int, *, by: int | None) -> None:
    """Remove a member; all of their sessions end.

    Args:
        by: As in :func:`change_role`.

    Raises:
        ApiError: 404; 403 for the last owner, for what is not for keys, or if who asks is an owner no longer.
    """
    account = lock_as_owner(session, account_id, by)
    member = get_member(session, account_id, member_id)
    refuse_key(by, member.role)
    if member.role == Role.OWNER:
        _refuse_last_owner(session, member)
    session.execute(delete(Login).where(Login.member_id == member.id))
    session.delete(member)
    session.flush()
    follow_first_owner(session, account)


def lock_as_owner(session: Session, account_id: int, by: int | None) -> Account:
    """Lock the account, so that changes of its members follow one another.

    Args:
        by: The member who asks; ``None`` if it is a key.

    Raises:
        ApiError: 403 if they are an owner no longer: somebody else was faster.
    """
    account = get_account(session, account_id, lock=True)
    if by is not None:
        member = session.get(Member, by, populate_existing=True)
        if member is None or member.role != Role.OWNER:
            raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "You are no longer an owner of this account.")
    return account


def refuse_key(by: int | None, *roles: str) -> None:
    """Refuse a key what makes or unmakes an owner: who found it would have the account with it.

    Args:
        by: The member who asks; ``None`` if it is a key.
        roles: Those that somebody has, or is to have.

    Raises:
        ApiError: 403.
    """
    if by is None and Role.OWNER in roles:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "A key can neither invite, make, nor remove an owner; an owner who is logged in can.",
        )


def check_room(session: Session, account_id: int) -> None:
    """Refuse one more member or invitation than an account may have; the account must be locked.

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
            f"An account can have {counted(MAX_MEMBERS, 'member')}, open invitations included.",
        )


def follow_first_owner(session: Session, account: Account) -> None:
    """Give the account the name and e-mail of its first owner."""
    owner = first_owner(session, account.id)
    account.name = owner.name
    account.email = owner.email
    account.email_key = owner.email_key
    session.flush()


def flush_email(session: Session) -> None:
    """Write an e-mail.

    Raises:
        ApiError: 400 if it is taken.
    """
    try:
        session.flush()
    except IntegrityError as error:
        raise _taken() from error


def refuse_held_email(session: Session, member: Member) -> None:
    """Refuse an e-mail that another member had confirmed and may still get back; to be called when it is written.

    Raises:
        ApiError: 400.
    """
    held = select(EmailChange.id).where(
        EmailChange.email_key == member.compared_email,
        EmailChange.member_id != member.id,
        EmailChange.was_confirmed,
        EmailChange.expires_at > now(),
    )
    if session.scalar(held.limit(1)) is not None:
        raise _taken()


def refuse_taken_email(session: Session, email: str, by: Member | None = None) -> None:
    """Refuse an e-mail that somebody has, of whichever account: only an invitation makes them a member of another.

    Args:
        by: The member who is to have it.

    Raises:
        ApiError: 400.
    """
    if any(member is not by for member in find_members(session, email)):
        raise _taken()


def _taken() -> ApiError:
    return field_error("email", "taken", "is already in use")


def _refuse_last_owner(session: Session, member: Member) -> None:
    others = select(Member.id).where(
        Member.account_id == member.account_id, Member.role == Role.OWNER, Member.id != member.id
    )
    if session.scalar(others.limit(1)) is None:
        raise ApiError(ErrorCode.LAST_OWNER, "An account must have an owner; make another member an owner first.")
