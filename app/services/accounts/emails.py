"""Links in emails that prove who receives them: confirming an address, undoing a change of it, resetting a password.

A new owner receives a link to confirm the address; without confirmation, the account's keys stop working after a day.
When an address is changed, the old address receives a link that can undo the change for a week.

A link to reset a password works once, for 30 minutes, and only its hash is stored. A request only queues an email to
the entered address. The account is looked up, and the link created, when the email is sent. A request therefore
behaves the same, and takes equally long, for every address, so it does not reveal accounts.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.config import Settings
from app.errors import ApiError, field_error
from app.models import Account, EmailChange, EmailChangeLink, Member, PasswordReset, QueuedEmail
from app.models import Session as Login
from app.services.access.keys import disable_keys
from app.services.access.rights import Role
from app.services.access.sessions import end_other_sessions
from app.services.accounts.members import (
    confirm_email,
    email_key,
    find_members,
    first_owner,
    flush_email,
    follow_first_owner,
    is_same_mailbox,
    set_email,
)
from app.services.accounts.one_time_codes import switch_off
from app.services.emails.letters import Composed, Letter, Link, Writer, queue_email
from app.services.sites import get_account
from app.tokens import hash_token, read_signed, sign
from app.wording import moment_text

RESET_KIND = "password_reset"
"""Kind of password reset emails in the queue."""
RESET_VALID_FOR = timedelta(minutes=30)
"""Lifetime of a link."""
RESET_PAUSE = timedelta(minutes=10)
"""Minimum time between two links to the same mailbox, unless the last link has been used.

Requests are not limited by address; otherwise, an attacker could use up the limit of another person's address.
"""


def request_reset(session: Session, email: str) -> None:
    """Queue an email with a reset link to the member with this address. Does nothing for unknown addresses."""
    queue_email(session, email, None, kind=RESET_KIND, expires_at=now() + RESET_VALID_FOR)


def _write_reset(session: Session, settings: Settings, email: QueuedEmail) -> Composed | None:
    """Write an email with a reset link.

    Skips unknown addresses, addresses set by a key while the change can still be undone, and members who received a
    link in the last ten minutes.
    """
    # Case folding also finds similar addresses of other people. The email goes to the stored address, never to the
    # entered one.
    matches = find_members(session, email.recipient)
    exact = [member for member in matches if is_same_mailbox(member.email, email.recipient)] or matches[:1]
    members = find_owners_of(session, exact[0].email) if exact else []
    # Only the first attempt checks for a fresh link: a retry must not be suppressed by the link of an earlier attempt.
    if not members or (email.attempts == 1 and _has_recent_link(session, members, email.expires_at)):
        return None
    member = members[0]
    return member.email, Letter(
        "Choose a new password",
        (
            f"We received a request to reset the password of your account at {settings.public_url} ({member.email}). "
            "If that was you, open this page:",
            Link("Choose a new password", _reset_link(session, settings, member, email)),
            f"The link works once and is valid until {moment_text(email.expires_at)}, 30 minutes after the request.",
            "If you didn’t request this, ignore this email; your password stays the same.",
        ),
    )


def _new_link(settings: Settings, path: str) -> tuple[str, str]:
    """Return the URL of a new link, and the hash of its token. Links are created when the email is sent."""
    token = secrets.token_urlsafe(32)
    return f"{settings.public_url}{path}?token={token}", hash_token(token, settings.secret_key)


def _reset_link(session: Session, settings: Settings, member: Member, email: QueuedEmail) -> str:
    url, token_hash = _new_link(settings, "/password/reset")
    session.add(PasswordReset(token_hash=token_hash, member_id=member.id, expires_at=email.expires_at))
    return url


def find_owners_of(session: Session, email: str) -> list[Member]:
    """Return the members who can be identified by their control of this mailbox.

    Excludes members whose address was set by a key, because that can still be undone.
    """
    return [
        member
        for member in find_members(session, email)
        if is_same_mailbox(member.email, email)
        and not ((last := find_last_change(session, member.id)) is not None and last.by_key)
    ]


def _has_recent_link(session: Session, members: list[Member], expires_at: datetime) -> bool:
    """Whether a link was sent less than :data:`RESET_PAUSE` before a link with this expiry would be."""
    ids = [member.id for member in members]
    recent_links = select(PasswordReset.token_hash).where(
        PasswordReset.member_id.in_(ids),
        PasswordReset.expires_at > expires_at - RESET_PAUSE,
        PasswordReset.expires_at < expires_at + RESET_VALID_FOR,  # Links of invitations are valid for longer.
    )
    return session.scalar(recent_links.limit(1)) is not None


def get_reset(session: Session, token: str, secret: str) -> PasswordReset:
    """Return the password reset that a link's token belongs to.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    reset = session.scalar(select(PasswordReset).where(PasswordReset.token_hash == hash_token(token, secret)))
    if reset is None or reset.expires_at <= now():
        raise _link_expired("it was used or is older than 30 minutes")
    return reset


def _link_expired(reason: str) -> ApiError:
    return field_error("token", "expired", f"no longer works: {reason}")


def end_resets(session: Session, member_id: int) -> None:
    """Void a member's reset links."""
    session.execute(delete(PasswordReset).where(PasswordReset.member_id == member_id))


def delete_expired_resets(session: Session) -> None:
    """Delete expired links, skipping rows that another process is deleting."""
    free = select(PasswordReset.token_hash).where(PasswordReset.expires_at <= now()).with_for_update(skip_locked=True)
    session.execute(delete(PasswordReset).where(PasswordReset.token_hash.in_(free)))


ACCOUNT_INVITATION_KIND = "account_invitation"
ACCOUNT_INVITATION_VALID_FOR = timedelta(days=7)


def invite_owner(session: Session, account: Account) -> None:
    """Queue an email that invites the owner of a new account to choose a password."""
    expires_at = now() + ACCOUNT_INVITATION_VALID_FOR
    queue_email(
        session, account.email, None, kind=ACCOUNT_INVITATION_KIND, account_id=account.id, expires_at=expires_at
    )


def _write_account_invitation(session: Session, settings: Settings, email: QueuedEmail) -> Composed:
    """Write an email that invites the owner of an account that the operator created."""
    assert email.account_id is not None  # invite_owner() sets it.
    owner, public_url = first_owner(session, email.account_id), settings.public_url
    opening = f"{owner.account.name} has an account at {public_url}, and {owner.email} is its owner."
    if not settings.password_login:
        link = Link("Log in", f"{public_url}/login")
        return owner.email, Letter("Your account is ready", (f"{opening} Log in here:", link))
    return owner.email, Letter(
        "Your account is ready: choose a password",
        (
            f"{opening} Open this page to choose a password, then log in:",
            Link("Choose a password", _reset_link(session, settings, owner, email)),
            f"The link works once and is valid until {moment_text(email.expires_at)}. After that, request another "
            f"one at {public_url}/password/forgot.",
        ),
    )


CONFIRMATION_KIND = "email_confirmation"
CONFIRMATION_PATH = "/email/confirm"
KEYS_WORK_FOR = timedelta(days=1)
"""Time for which the keys of a new account work without a confirmed email address."""
CONFIRMATION_VALID_FOR = timedelta(days=3)
_PURPOSE = "confirmation of an email"


def queue_confirmation(session: Session, owner: Member) -> None:
    """Ask the owner of a new account to confirm their address. Without confirmation, its keys stop working in a day."""
    owner.account.confirm_by = now() + KEYS_WORK_FOR
    ask_member(session, owner)


def ask_member(session: Session, member: Member) -> None:
    """Queue an email with a confirmation link."""
    queue_email(session, member.email, None, kind=CONFIRMATION_KIND, account_id=member.account_id)


def get_confirmed(session: Session, token: str, secret: str) -> Member:
    """Return the member whose address a link confirms.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    signed = read_signed(token, secret, _PURPOSE, int(CONFIRMATION_VALID_FOR.total_seconds()))
    member_id, email = signed or (0, "")
    member = session.get(Member, member_id)
    if member is None or not is_same_mailbox(member.email, email):
        raise _link_expired("the address was changed or the link is older than 3 days")
    return member


def _write_confirmation(session: Session, settings: Settings, email: QueuedEmail) -> Composed | None:
    """Write a confirmation email, except to members who have confirmed already or changed their address."""
    members = find_members(session, email.recipient)
    member = next((candidate for candidate in members if candidate.account_id == email.account_id), None)
    if member is None or member.email_confirmed:
        return None
    # Signed, not stored: a link may be used repeatedly, and the address in it voids it when the address changes.
    token = sign([member.id, member.email], settings.secret_key, _PURPOSE)
    deadline = member.account.confirm_by
    stop = f" Otherwise, its API keys stop working on {moment_text(deadline)}." if deadline else ""
    return member.email, Letter(
        "Confirm your email address",
        (
            f"{member.email} is the email address of an account at {settings.public_url}. If this is your account, "
            f"open this page to confirm the address.{stop}",
            Link("Confirm the address", f"{settings.public_url}{CONFIRMATION_PATH}?token={token}"),
            f"The link is valid until {moment_text(now() + CONFIRMATION_VALID_FOR)}.",
            "If this is not your account, ignore this email.",
        ),
    )


CHANGE_KIND = "email_changed"
UNDO_FOR = timedelta(days=7)
"""Time in which a change of address can be undone."""
CHANGE_PATH = "/email/undo"


def record_change(session: Session, member: Member, before: str, *, was_confirmed: bool, by_key: bool) -> None:
    """Record a change of a member's address, so that it can be undone, and queue an email to the old address.

    Args:
        member: The member, with the new address. The account must be locked.
        before: The old address.
        was_confirmed: Whether the member had confirmed the old address. An unconfirmed address may belong to another
            person, who can claim it immediately.
        by_key: Whether an API key made the change; otherwise it was the member, with the password.
    """
    last = find_last_change(session, member.id)
    # Changes after a change by a key form a chain: undoing restores the address from before the key's change.
    if last is not None and last.by_key:
        if last.email_key == member.compared_email:
            # The member has the former address again, so nothing is left to undo.
            _end_changes(session, last)
            return
        before, was_confirmed = last.email, last.was_confirmed
    expires_at = now() + UNDO_FOR
    session.add(
        EmailChange(
            member_id=member.id,
            email=before,
            email_key=email_key(before),
            was_confirmed=was_confirmed,
            by_key=by_key,
            expires_at=expires_at,
        )
    )
    queue_email(session, before, None, kind=CHANGE_KIND, account_id=member.account_id, expires_at=expires_at)


def find_last_change(session: Session, member_id: int) -> EmailChange | None:
    """Return the last change of a member's address that can still be undone."""
    changes = select(EmailChange).where(EmailChange.member_id == member_id, EmailChange.expires_at > now())
    return session.scalar(changes.order_by(EmailChange.id.desc()).limit(1))


def get_change(session: Session, token: str, secret: str) -> EmailChange:
    """Return the change that a link undoes.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    change = session.scalar(
        select(EmailChange).join(EmailChangeLink).where(EmailChangeLink.token_hash == hash_token(token, secret))
    )
    if change is None or change.expires_at <= now():
        raise _link_expired("it was used or is older than 7 days")
    return change


def undo_change(session: Session, change: EmailChange, password_hash: str) -> None:
    """Restore a member's previous address, and revoke all access that an intruder may have gained by the change.

    If the member may manage keys, the account's keys are disabled; if the member is an owner, all sessions of the
    account end, else only the member's own. The old address receives a password reset link. Later changes are also
    undone, and their links stop working.

    Args:
        change: A change of a member whose account is locked.
        password_hash: Hash of a random password that is not stored.
    """
    member = session.get_one(Member, change.member_id)
    role = Role(member.role)
    set_email(session, member, change.email)
    confirm_email(member)
    # An intruder may know the current password, so a random one replaces it until the owner chooses another.
    member.password_hash = password_hash
    if member.codes_since is not None and member.codes_since >= change.expires_at - UNDO_FOR:
        switch_off(member)  # Otherwise, an intruder's two-factor codes would lock the member out.
    flush_email(session)
    end_resets(session, member.id)
    _end_changes(session, change)
    if role is Role.OWNER:
        session.execute(delete(Login).where(Login.account_id == member.account_id))
    else:
        end_other_sessions(session, member.id, None)
    if role.covers(Role.EDITOR):
        disable_keys(session, member.account_id)
    follow_first_owner(session, get_account(session, member.account_id))
    request_reset(session, change.email)


def _end_changes(session: Session, change: EmailChange) -> None:
    """Delete a change, all later changes, and earlier changes from the same address."""
    ended = or_(EmailChange.id >= change.id, EmailChange.email_key == change.email_key)
    session.execute(delete(EmailChange).where(EmailChange.member_id == change.member_id, ended))


def delete_expired_changes(session: Session) -> None:
    """Delete changes that can no longer be undone, skipping rows that another process is deleting."""
    free = select(EmailChange.id).where(EmailChange.expires_at <= now()).with_for_update(skip_locked=True)
    session.execute(delete(EmailChange).where(EmailChange.id.in_(free)))


def _write_change_notice(session: Session, settings: Settings, email: QueuedEmail) -> Composed | None:
    """Write an email about a changed address, unless the change was already undone."""
    change = session.scalar(
        select(EmailChange)
        .join(Member, Member.id == EmailChange.member_id)
        .where(Member.account_id == email.account_id, EmailChange.email_key == email_key(email.recipient))
        .order_by(EmailChange.id.desc())
        .limit(1)
    )
    if change is None:
        return None
    url, token_hash = _new_link(settings, CHANGE_PATH)
    session.add(EmailChangeLink(token_hash=token_hash, change_id=change.id))
    member = session.get_one(Member, change.member_id)
    by = " with an API key" if change.by_key else ""
    ended = (
        "logs out all members and disables the account's API keys"
        if Role(member.role) is Role.OWNER
        else "logs you out everywhere and disables the account's API keys if you can manage them"
    )
    return change.email, Letter(
        "Your email address was changed",
        (
            f"The email address of your account at {settings.public_url} was changed{by}, from {change.email} to "
            f"{member.email}. If you made this change, ignore this email.",
            "If you did not make it, open this page to undo the change:",
            Link("Undo the change", url),
            f"This restores your address, {ended}. You will then receive a link to choose a new password.",
            f"The link works once and is valid until {moment_text(change.expires_at)}.",
        ),
    )


WRITERS: Mapping[str, Writer] = {
    RESET_KIND: _write_reset,
    ACCOUNT_INVITATION_KIND: _write_account_invitation,
    CONFIRMATION_KIND: _write_confirmation,
    CHANGE_KIND: _write_change_notice,
}
"""Writers of the emails with links, by kind."""
