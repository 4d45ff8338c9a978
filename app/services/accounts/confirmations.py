"""Confirmation of an e-mail: a link in a mail to it, good for three days and as long as the e-mail is the member's.

It is signed and not stored: opened twice, it does the same. The mail is written when it is sent, so that no link
stands in SQL. The keys of an account that somebody registered stop a day later unless its owner has opened the link.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from app.clock import now
from app.models import Mail, Member
from app.services.accounts.members import find_members, is_same_mailbox
from app.services.mail.letters import Letter, Link
from app.services.mail.messages import Draft
from app.services.mail.queue import queue_mail
from app.storage.database import Database
from app.tokens import read_signed, sign
from app.wording import moment_text

KIND = "email_confirmation"
PATH = "/email/confirm"
KEYS_WORK_FOR = timedelta(days=1)
VALID_FOR = timedelta(days=3)
_PURPOSE = "confirmation of an e-mail"


def ask_registrant(session: Session, owner: Member) -> None:
    """Ask who registered an account for a confirmation; its keys stop a day from now without one."""
    owner.account.confirm_by = now() + KEYS_WORK_FOR
    ask_member(session, owner)


def ask_member(session: Session, member: Member) -> None:
    """Queue a mail with a link."""
    queue_mail(session, member.email, "", "", "", kind=KIND, account_id=member.account_id)


def find_confirmed(session: Session, token: str, secret: str) -> Member | None:
    """The member whose e-mail a link confirms, if it still does."""
    signed = read_signed(token, secret, _PURPOSE, int(VALID_FOR.total_seconds()))
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
                Link("Confirm the address", f"{self._public_url}{PATH}?token={token}"),
                f"The link works until {moment_text(now() + VALID_FOR)}.",
                "If the account is not yours, ignore this mail.",
            ),
        )
        return Draft(member.email, letter.subject, letter.text, letter.html)
