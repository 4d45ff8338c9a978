"""New passwords by mail: a link that works once, for 30 minutes, and of which only a hash is stored.

A request only queues a mail to what somebody typed. Whether there is such an account is looked up when the mail is
sent, and the link is made then, so that a request does the same for every address, and takes alike.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EmailChange, Mail, Member, PasswordReset
from app.services.accounts.members import find_members, is_same_mailbox
from app.services.mail.letters import Letter, Link, LinkWriter, queue_mail
from app.tokens import hash_token
from app.wording import moment_text

KIND = "password_reset"
VALID_FOR = timedelta(minutes=30)
PAUSE = timedelta(minutes=10)
"""How long a mailbox is sent no further link, unless the last one has ended.

Requests are not counted by e-mail: then anybody could use up the requests of an address' owner.
"""


def request_reset(session: Session, email: str) -> None:
    """Queue a mail with a link to the member with this e-mail; nothing comes of it if nobody has."""
    queue_mail(session, email, "", "", "", kind=KIND, expires_at=now() + VALID_FOR)


class ResetWriter(LinkWriter):
    """Writes them; none if there is no such member, if a key gave them this e-mail and that can still be undone, or if
    they have a link that was asked for in the last ten minutes."""

    path = "/password/reset"

    def compose(self, session: Session, mail: Mail, token_hash: str, url: str) -> tuple[str, Letter] | None:
        found = find_members(session, mail.recipient)
        meant = [member for member in found if is_same_mailbox(member.email, mail.recipient)] or found[:1]
        members = find_owners_of(session, meant[0].email) if meant else []
        if not members or (mail.attempts == 1 and _has_fresh_link(session, members, mail.expires_at)):
            return None
        member = members[0]
        session.add(PasswordReset(token_hash=token_hash, member_id=member.id, expires_at=mail.expires_at))
        return member.email, Letter(
            "Choose a new password",
            (
                f"Somebody asked for a new password for your account at {self._public_url} ({member.email}). If that "
                "was you, open this page:",
                Link("Choose a new password", url),
                f"The link works once, until {moment_text(mail.expires_at)}: 30 minutes after it was asked for.",
                "If it was not you, ignore this mail. Your password stays as it is.",
            ),
        )


def find_owners_of(session: Session, email: str) -> list[Member]:
    """The members whom the mailbox of an e-mail makes known: not those to whom a key gave it, which can be undone."""
    return [
        member
        for member in find_members(session, email)
        if is_same_mailbox(member.email, email) and not _has_email_of_key(session, member.id)
    ]


def _has_email_of_key(session: Session, member_id: int) -> bool:
    changes = select(EmailChange.by_key).where(EmailChange.member_id == member_id, EmailChange.expires_at > now())
    return session.scalar(changes.order_by(EmailChange.id.desc()).limit(1)) is True


def _has_fresh_link(session: Session, members: list[Member], expires_at: datetime) -> bool:
    """Whether another mail has brought a link shortly before one that would expire then."""
    ids = [member.id for member in members]
    fresh = select(PasswordReset.token_hash).where(
        PasswordReset.member_id.in_(ids), PasswordReset.expires_at > expires_at - PAUSE
    )
    return session.scalar(fresh.limit(1)) is not None


def find_reset(session: Session, token: str, secret: str) -> PasswordReset | None:
    """The reset that a link's token stands for, if it still works."""
    if not 20 <= len(token) <= 100 or not token.isascii():
        return None
    reset = session.scalar(select(PasswordReset).where(PasswordReset.token_hash == hash_token(token, secret)))
    return None if reset is None or reset.expires_at <= now() else reset


def end_resets(session: Session, member_id: int) -> None:
    """End the links that a member was sent."""
    session.execute(delete(PasswordReset).where(PasswordReset.member_id == member_id))


def delete_expired_resets(session: Session) -> None:
    """Remove links that work no more, but those that somebody else is removing."""
    free = select(PasswordReset.token_hash).where(PasswordReset.expires_at <= now()).with_for_update(skip_locked=True)
    session.execute(delete(PasswordReset).where(PasswordReset.token_hash.in_(free)))
