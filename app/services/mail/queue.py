"""The queue of mails: a row is written in the transaction that causes the mail, and goes when the mail is sent."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Mail

GIVEN_UP_AFTER = timedelta(days=1)


def queue_mail(
    session: Session,
    to: str,
    subject: str,
    text: str,
    html: str,
    *,
    kind: str,
    account_id: int | None = None,
    unsubscribe_url: str = "",
    expires_at: datetime | None = None,
) -> None:
    """Have a mail sent, if and when the transaction commits.

    :class:`app.services.mail.letters.Letter` makes both texts out of one.

    To be called where ``settings.sends_mail`` says that there is a mail server. Nothing is sent in this process's
    present work: a background job of any process sends it, and tries again for a day.

    Args:
        to: One e-mail address, as accounts have them.
        subject: Line breaks in it become spaces.
        kind: Names the mail in the log, such as ``invitation``.
        account_id: Whom it is about: it is not sent if the account is deleted meanwhile.
        unsubscribe_url: Where one request (RFC 8058) ends the series that the mail is of; empty if it is of none.
        expires_at: When it is given up; a day from now if not given. Of several mails, the first to expire goes first.
    """
    moment = now()
    session.add(
        Mail(
            account_id=account_id,
            kind=kind,
            recipient=to,
            subject=subject,
            text=text,
            html=html,
            unsubscribe_url=unsubscribe_url,
            message_key=secrets.token_hex(16),
            due_at=moment,
            expires_at=expires_at or moment + GIVEN_UP_AFTER,
            created_at=moment,
        )
    )
    session.flush()


def discard_mails(session: Session) -> None:
    """Forget what waits: in a copy of an installation, whose original sends it."""
    session.execute(delete(Mail))
