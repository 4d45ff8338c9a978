"""Password resets by mail: a link that works once, for 30 minutes. Only its hash is stored.

A request only queues a mail to the address that was entered. The account is looked up, and the link created, when the
mail is sent. A request therefore behaves the same, and takes equally long, for every address, so it does not reveal
accounts.
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
"""Kind of the mails in the queue."""
VALID_FOR = timedelta(minutes=30)
"""Lifetime of a link."""
PAUSE = timedelta(minutes=10)
"""Minimum time between two links to the same mailbox, unless the last link has been used.

Requests are not limited by address; otherwise, an attacker could use up the limit of another person's address.
"""


def request_reset(session: Session, email: str) -> None:
    """Queue a mail with a reset link to the member with this address. Does nothing for unknown addresses."""
    queue_mail(session, email, "", "", "", kind=KIND, expires_at=now() + VALID_FOR)


class ResetWriter(LinkWriter):
    """Writes mails with reset links.

    Skips unknown addresses, addresses set by a key while the change can still be undone, and members who received a
    link in the last ten minutes.
    """

    path = "/password/reset"

    def compose(self, session: Session, mail: Mail, token_hash: str, url: str) -> tuple[str, Letter] | None:
        matches = find_members(session, mail.recipient)
        exact = [member for member in matches if is_same_mailbox(member.email, mail.recipient)] or matches[:1]
        members = find_owners_of(session, exact[0].email) if exact else []
        # Only the first attempt checks for a fresh link: a retry must not be suppressed by the link of an earlier
        # attempt.
        if not members or (mail.attempts == 1 and _has_fresh_link(session, members, mail.expires_at)):
            return None
        member = members[0]
        session.add(PasswordReset(token_hash=token_hash, member_id=member.id, expires_at=mail.expires_at))
        return member.email, Letter(
            "Choose a new password",
            (
                f"We received a request to reset the password of your account at {self._public_url} ({member.email}). "
                "If that was you, open this page:",
                Link("Choose a new password", url),
                f"The link works once and is valid until {moment_text(mail.expires_at)}, 30 minutes after the request.",
                "If you didn’t request this, ignore this mail; your password stays the same.",
            ),
        )


def find_owners_of(session: Session, email: str) -> list[Member]:
    """Return the members who can be identified by their control of this mailbox.

    Excludes members whose address was set by a key, because that can still be undone.
    """
    return [
        member
        for member in find_members(session, email)
        if is_same_mailbox(member.email, email) and not _has_email_of_key(session, member.id)
    ]


def _has_email_of_key(session: Session, member_id: int) -> bool:
    changes = select(EmailChange.by_key).where(EmailChange.member_id == member_id, EmailChange.expires_at > now())
    return session.scalar(changes.order_by(EmailChange.id.desc()).limit(1)) is True


def _has_fresh_link(session: Session, members: list[Member], expires_at: datetime) -> bool:
    """Whether a link was sent less than :data:`PAUSE` before a link with this expiry would be."""
    ids = [member.id for member in members]
    fresh = select(PasswordReset.token_hash).where(
        PasswordReset.member_id.in_(ids), PasswordReset.expires_at > expires_at - PAUSE
    )
    return session.scalar(fresh.limit(1)) is not None


def find_reset(session: Session, token: str, secret: str) -> PasswordReset | None:
    """Return the password reset that a link's token belongs to, if it is still valid."""
    if not 20 <= len(token) <= 100 or not token.isascii():
        return None
    reset = session.scalar(select(PasswordReset).where(PasswordReset.token_hash == hash_token(token, secret)))
    return None if reset is None or reset.expires_at <= now() else reset


def end_resets(session: Session, member_id: int) -> None:
    """Void a member's reset links."""
    session.execute(delete(PasswordReset).where(PasswordReset.member_id == member_id))


def delete_expired_resets(session: Session) -> None:
    """Delete expired links, skipping rows that another process is deleting."""
    free = select(PasswordReset.token_hash).where(PasswordReset.expires_at <= now()).with_for_update(skip_locked=True)
    session.execute(delete(PasswordReset).where(PasswordReset.token_hash.in_(free)))
