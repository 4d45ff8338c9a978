"""Confirmed e-mail addresses: confirming the first address of a member, and changing it."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EmailChange, EmailChangeLink, Mail, Member
from app.models import Session as Login
from app.services.access.keys import disable_keys
from app.services.access.rights import Role
from app.services.access.sessions import end_other_sessions
from app.services.accounts.members import (
    confirm_email,
    email_key,
    find_members,
    flush_email,
    follow_first_owner,
    is_same_mailbox,
    set_email,
)
from app.services.accounts.one_time_codes import switch_off
from app.services.accounts.password_resets import end_resets, request_reset
from app.services.mail.letters import Draft, Letter, Link, LinkWriter, queue_mail
from app.services.sites import get_account
from app.storage.database import Database
from app.tokens import hash_token, read_signed, sign
from app.wording import moment_text

CONFIRMATION_KIND = "email_confirmation"
CONFIRMATION_PATH = "/email/confirm"
KEYS_WORK_FOR = timedelta(days=1)
CONFIRMATION_VALID_FOR = timedelta(days=3)
_PURPOSE = "confirmation of an e-mail"


def ask_registrant(session: Session, owner: Member) -> None:
    """Ask who registered an account for a confirmation; its keys stop a day from now without one."""
    owner.account.confirm_by = now() + KEYS_WORK_FOR
    ask_member(session, owner)


def ask_member(session: Session, member: Member) -> None:
    """Queue a mail with a link."""
    queue_mail(session, member.email, "", "", "", kind=CONFIRMATION_KIND, account_id=member.account_id)


def find_confirmed(session: Session, token: str, secret: str) -> Member | None:
    """The member whose e-mail a link confirms, if it still does."""
    signed = read_signed(token, secret, _PURPOSE, int(CONFIRMATION_VALID_FOR.total_seconds()))
    if signed is None:
        return None
    member_id, email = signed
    member = session.get(Member, member_id)
    return member if member is not None and is_same_mailbox(member.email, email) else None


class ConfirmationWriter:
    """Writes the mails, but none to whom has confirmed already, or has another e-mail by now.

    Args:
        public_url: Base URL of this service.
        secret: With which links are signed.
    """

    def __init__(self, database: Database, public_url: str, secret: str):
        self._database = database
        self._public_url = public_url
        self._secret = secret

    def write(self, mail: Mail) -> Draft | None:
        """Write a mail; ``None`` if there is nothing to send any more."""
        with self._database.read() as session:
            members = find_members(session, mail.recipient)
            member = next((found for found in members if found.account_id == mail.account_id), None)
        if member is None or member.email_confirmed:
            return None
        token = sign([member.id, member.email], self._secret, _PURPOSE)
        deadline = member.account.confirm_by
        stop = f" Without that, its API keys stop on {moment_text(deadline)}." if deadline else ""
        letter = Letter(
            "Confirm your e-mail address",
            (
                f"{member.email} is the e-mail address of an account at {self._public_url}. If the account is yours, "
                f"open this page and confirm the address.{stop}",
                Link("Confirm the address", f"{self._public_url}{CONFIRMATION_PATH}?token={token}"),
                f"The link works until {moment_text(now() + CONFIRMATION_VALID_FOR)}.",
                "If the account is not yours, ignore this mail.",
            ),
        )
        return Draft(member.email, letter.subject, letter.text, letter.html)


CHANGE_KIND = "email_changed"
UNDO_FOR = timedelta(days=7)
CHANGE_PATH = "/email/undo"


def note_change(session: Session, member: Member, before: str, *, was_confirmed: bool, by_key: bool) -> None:
    """Make a change of a member's e-mail one that can be undone, and queue the mail that tells the old address.

    Args:
        member: With the new e-mail, in an account that is locked.
        before: The e-mail until now.
        was_confirmed: Whether the member had confirmed that e-mail. Without that anybody may have typed it, and others
            can take it at once.
        by_key: Whether an API key changed it; else it was the member, who knew the password.
    """
    last = find_last_change(session, member.id)
    if last is not None and last.by_key:
        if last.email_key == member.compared_email:
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
    queue_mail(session, before, "", "", "", kind=CHANGE_KIND, account_id=member.account_id, expires_at=expires_at)


def find_last_change(session: Session, member_id: int) -> EmailChange | None:
    """The last change of a member's e-mail, if it can be undone."""
    changes = select(EmailChange).where(EmailChange.member_id == member_id, EmailChange.expires_at > now())
    return session.scalar(changes.order_by(EmailChange.id.desc()).limit(1))


def find_change(session: Session, token: str, secret: str) -> EmailChange | None:
    """The change that a link undoes, if it still does."""
    if not 20 <= len(token) <= 100 or not token.isascii():
        return None
    change = session.scalar(
        select(EmailChange).join(EmailChangeLink).where(EmailChangeLink.token_hash == hash_token(token, secret))
    )
    return None if change is None or change.expires_at <= now() else change


def undo_change(session: Session, change: EmailChange, password_hash: str) -> None:
    """Give a member the e-mail back that they had before a change, and end whatever may have changed it.

    Sessions and keys of the whole account end if the member may manage keys; else only the member's own sessions. A
    link to a new password is sent. Later changes are undone with it: their links end.

    Args:
        change: One of a member whose account is locked.
        password_hash: Of a password that nobody knows.
    """
    member = session.get_one(Member, change.member_id)
    role = Role(member.role)
    set_email(session, member, change.email)
    confirm_email(member)
    member.password_hash = password_hash
    if member.codes_since is not None and member.codes_since >= change.expires_at - UNDO_FOR:
        switch_off(member)  # Else whoever changed the e-mail would keep the member out with codes of their own.
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
    """End a change, those after it, and those before it that lead back to the same e-mail."""
    ended = or_(EmailChange.id >= change.id, EmailChange.email_key == change.email_key)
    session.execute(delete(EmailChange).where(EmailChange.member_id == change.member_id, ended))


def delete_expired_changes(session: Session) -> None:
    """Remove changes that can no longer be undone, but those that somebody else is removing."""
    free = select(EmailChange.id).where(EmailChange.expires_at <= now()).with_for_update(skip_locked=True)
    session.execute(delete(EmailChange).where(EmailChange.id.in_(free)))


class NoticeWriter(LinkWriter):
    """Writes the mails, but none about a change that was undone already."""

    path = CHANGE_PATH

    def compose(self, session: Session, mail: Mail, token_hash: str, url: str) -> tuple[str, Letter] | None:
        change = session.scalar(
            select(EmailChange)
            .join(Member, Member.id == EmailChange.member_id)
            .where(Member.account_id == mail.account_id, EmailChange.email_key == email_key(mail.recipient))
            .order_by(EmailChange.id.desc())
            .limit(1)
        )
        if change is None:
            return None
        session.add(EmailChangeLink(token_hash=token_hash, change_id=change.id))
        member = session.get_one(Member, change.member_id)
        by = " with an API key" if change.by_key else ""
        ended = (
            "logs everybody out, and disables the account's API keys"
            if Role(member.role) is Role.OWNER
            else "logs you out everywhere, and disables the account's API keys if you may manage them"
        )
        return change.email, Letter(
            "Your e-mail address was changed",
            (
                f"The e-mail address of your account at {self._public_url} was changed{by}, from {change.email} to "
                f"{member.email}. If that was you, ignore this mail.",
                "If it was not you, open this page and undo the change:",
                Link("Undo the change", url),
                f"That gives you your address back, {ended}. You are then sent a link with which you choose a new "
                "password.",
                f"The link works once, until {moment_text(change.expires_at)}.",
            ),
        )
