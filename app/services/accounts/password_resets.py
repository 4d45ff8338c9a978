"""New passwords by mail: a link that works once, for 30 minutes, and of which only a hash is stored.

A request only queues a mail to what somebody typed. Whether there is such an account is looked up when the mail is
sent, and the link is made then, so that a request does the same for every address, and takes alike.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Mail, PasswordReset
from app.services.accounts.members import find_member
from app.services.mail.letters import Letter, Link
from app.services.mail.messages import Draft
from app.services.mail.queue import queue_mail
from app.storage.database import Database
from app.tokens import hash_token
from app.wording import moment_text

KIND = "password_reset"
VALID_FOR = timedelta(minutes=30)


def request_reset(session: Session, email: str) -> None:
    """Queue a mail with a link to the member with this e-mail; nothing comes of it if nobody has."""
    queue_mail(session, email, "", "", "", kind=KIND, expires_at=now() + VALID_FOR)


class ResetWriter:
    """Writes the mails.

    Args:
        public_url: Base URL of this service.
        secret: With which tokens are hashed.
    """

    def __init__(self, database: Database, public_url: str, secret: str):
        self._database = database
        self._public_url = public_url
        self._secret = secret

    def write(self, mail: Mail) -> Draft | None:
        """Make a link, and the mail that holds it; ``None`` if there is no such member."""
        token = secrets.token_urlsafe(32)
        with self._database.write() as session:
            member = find_member(session, mail.recipient)
            if member is None:
                return None
            session.add(
                PasswordReset(
                    token_hash=hash_token(token, self._secret), member_id=member.id, expires_at=mail.expires_at
                )
            )
        letter = Letter(
            "Choose a new password",
            (
                f"Somebody asked for a new password for your account at {self._public_url} ({member.email}). If that "
                "was you, open this page:",
                Link("Choose a new password", f"{self._public_url}/password/reset?token={token}"),
                f"The link works once, until {moment_text(mail.expires_at)}: 30 minutes after it was asked for.",
                "If it was not you, ignore this mail. Your password stays as it is.",
            ),
        )
        return Draft(member.email, letter.subject, letter.text, letter.html)


def find_reset(session: Session, token: str, secret: str) -> PasswordReset | None:
    """What a link's token stands for, if it still works."""
    if not 20 <= len(token) <= 100 or not token.isascii():
        return None
    reset = session.scalar(select(PasswordReset).where(PasswordReset.token_hash == hash_token(token, secret)))
    return None if reset is None or reset.expires_at <= now() else reset


def delete_expired_resets(session: Session) -> None:
    """Remove links that work no more, but those that somebody else is removing."""
    free = select(PasswordReset.token_hash).where(PasswordReset.expires_at <= now()).with_for_update(skip_locked=True)
    session.execute(delete(PasswordReset).where(PasswordReset.token_hash.in_(free)))
