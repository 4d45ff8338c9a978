"""Changed e-mails: the old address is told, with a link that undoes the change for a week.

Whoever undoes a change shows that they have the mailbox that was the member's. So the password goes with it, which
somebody else may have set, and with it the sessions and keys with which they may have done it.

An address that a key has set is nobody's until the change can no longer be undone: it is sent no link to a new
password, and changing it again leads back to the address before. Else who found a key would have the account with it.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EmailChange, EmailChangeLink, Mail, Member
from app.models import Session as Login
from app.services.access.keys import disable_keys
from app.services.access.roles import Role
from app.services.access.sessions import end_other_sessions
from app.services.accounts.members import confirm_email, email_key, flush_email, follow_first_owner, set_email
from app.services.accounts.one_time_codes import switch_off
from app.services.accounts.password_resets import end_resets, request_reset
from app.services.mail.letters import Letter, Link
from app.services.mail.link_writer import LinkWriter
from app.services.mail.queue import queue_mail
from app.services.sites import get_account
from app.tokens import hash_token
from app.wording import moment_text

KIND = "email_changed"
UNDO_FOR = timedelta(days=7)
PATH = "/email/undo"


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
    queue_mail(session, before, "", "", "", kind=KIND, account_id=member.account_id, expires_at=expires_at)


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

    path = PATH

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
