"""Invitations to join an account: a link that works once and is valid for a week."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Invitation, Member
from app.services.access.rights import Role
from app.services.accounts.members import (
    add_member,
    check_member_limit,
    email_key,
    find_members,
    lock_as_owner,
    reject_key,
)
from app.services.sites import account_suspended, get_account
from app.storage.database import ROW_LOCK, read_page
from app.tokens import hash_token, is_invitation_token, make_invitation_token

VALID = timedelta(days=7)
"""Lifetime of an invitation's link."""


def invitation_not_found() -> ApiError:
    """Return the 404 for an invitation that does not exist or has ended."""
    return ApiError(
        ErrorCode.INVITATION_NOT_FOUND,
        "Invitation not found. It was accepted, revoked, or replaced, or it has expired; ask for a new one.",
    )


def list_invitations(session: Session, account_id: int, *, limit: int, offset: int) -> tuple[Sequence[Invitation], int]:
    """Return one page of the account's open invitations, oldest first, and their total number."""
    of_account = select(Invitation).where(Invitation.account_id == account_id)
    oldest = of_account.order_by(Invitation.created_at, Invitation.id)
    return read_page(session, oldest, limit=limit, offset=offset)


def create_invitation(
    session: Session, account_id: int, secret: str, *, email: str, role: Role, by: int | None, is_mailed: bool
) -> tuple[Invitation, str]:
    """Invite a person. Returns the invitation and the token of its link, which is not stored.

    The response does not reveal whether members of other accounts have the address.

    Args:
        by: The inviting member; ``None`` for a key.
        is_mailed: Whether the link goes only to the invited address.

    Raises:
        ApiError: 400 if the person is a member or invited already; 403 if the account has reached its member limit, if
            a key invites an owner, or if the inviting member is no longer an owner.
    """
    reject_key(by, role)
    lock_as_owner(session, account_id, by)
    # Only members of this account are checked: the response must not reveal who uses the service.
    if any(member.account_id == account_id for member in find_members(session, email)):
        raise field_error("email", "taken", "already belongs to a member")
    existing = select(Invitation.id).where(
        Invitation.account_id == account_id, Invitation.email_key == email_key(email)
    )
    if session.scalar(existing) is not None:
        raise field_error("email", "taken", "is already invited; renew or revoke that invitation first")
    check_member_limit(session, account_id)
    token, moment = make_invitation_token(), now()
    invitation = Invitation(
        id=f"inv_{secrets.token_hex(8)}",
        account_id=account_id,
        email=email.strip(),
        email_key=email_key(email),
        role=role,
        token_hash=hash_token(token, secret),
        is_mailed=is_mailed,
        created_at=moment,
        expires_at=moment + VALID,
    )
    session.add(invitation)
    session.flush()
    return invitation, token


def renew_invitation(
    session: Session, account_id: int, secret: str, invitation_id: str, *, by: int | None, is_mailed: bool
) -> tuple[Invitation, str]:
    """Replace the link of an invitation and extend it by a week. The arguments are as in :func:`create_invitation`.

    Raises:
        ApiError: 404; 403 if a key renews an owner's invitation, or the calling member is no longer an owner.
    """
    lock_as_owner(session, account_id, by)
    invitation = _get_invitation(session, account_id, invitation_id)
    reject_key(by, invitation.role)
    token = make_invitation_token()
    invitation.token_hash, invitation.is_mailed = hash_token(token, secret), is_mailed
    invitation.expires_at = now() + VALID
    session.flush()
    return invitation, token


def revoke_invitation(session: Session, account_id: int, invitation_id: str, *, by: int | None) -> None:
    """Revoke an invitation.

    Raises:
        ApiError: 404; 403 if the calling member is no longer an owner.
    """
    lock_as_owner(session, account_id, by)
    session.delete(_get_invitation(session, account_id, invitation_id))
    session.flush()


def _get_invitation(session: Session, account_id: int, invitation_id: str) -> Invitation:
    invitation = session.get(Invitation, invitation_id) if "\x00" not in invitation_id else None
    if invitation is None or invitation.account_id != account_id:
        raise invitation_not_found()
    return invitation


def get_open_invitation(session: Session, token: str, secret: str) -> Invitation:
    """Return the open invitation that a link's token belongs to.

    Raises:
        ApiError: 404 if it was accepted, revoked, or replaced, has expired, or never existed; 403 while the account is
            suspended.
    """
    if not is_invitation_token(token):
        raise invitation_not_found()
    invitation = session.scalar(select(Invitation).where(Invitation.token_hash == hash_token(token, secret)))
    if invitation is None or invitation.expires_at <= now():
        raise invitation_not_found()
    account = get_account(session, invitation.account_id)
    if account.suspended_at is not None:
        raise account_suspended(account.suspension_reason)
    return invitation


def accept_invitation(
    session: Session, token: str, secret: str, *, name: str, password_hash: str, confirmed: bool = False
) -> Member:
    """Add the holder of the link as a member. A second concurrent use gets a 404.

    Args:
        confirmed: Whether the person's address is already confirmed by other means. A link that was sent only by email
            also confirms it.

    Raises:
        ApiError: 404 as in :func:`get_open_invitation`; 400 if another member can still reclaim this address by undoing
            a change.
    """
    account_id = get_open_invitation(session, token, secret).account_id
    # The account before the invitation, in the order of every other function that locks both.
    account = get_account(session, account_id, lock=True)
    locked = select(Invitation).where(Invitation.token_hash == hash_token(token, secret))
    invitation = session.scalar(locked.with_for_update(**ROW_LOCK).execution_options(populate_existing=True))
    if invitation is None:
        raise invitation_not_found()
    session.delete(invitation)
    session.flush()
    return add_member(
        session,
        account,
        name=name,
        email=invitation.email,
        password_hash=password_hash,
        role=Role(invitation.role),
        # A link that was only mailed proves control of the mailbox. One that an inviter passed on does not.
        confirmed=confirmed or invitation.is_mailed,
    )


def delete_expired_invitations(session: Session) -> None:
    """Delete invitations a week after they expired. Until then, they are listed and can be renewed."""
    session.execute(delete(Invitation).where(Invitation.expires_at <= now() - VALID))
