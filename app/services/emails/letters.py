"""Emails: their content as text and HTML, their queue, and their headers. This is the entrance to email.

``delivery.py`` sends the queue over SMTP, ``notices.py`` writes emails about events, and
``app/operations/digests.py`` the weekly digest.
"""

from __future__ import annotations

import secrets
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import format_datetime
from typing import Any

from ada_url import idna_to_ascii
from markupsafe import Markup
from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.clock import now
from app.config import Settings
from app.models import QueuedEmail

_COLUMNS = 72
"""Maximum number of characters per line of text."""
_STYLE = "font-family: sans-serif; line-height: 1.5; max-width: 38em"


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a separate line."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list with a heading."""

    title: str
    items: Sequence[str]


Block = str | Link | Listing
"""A paragraph, a link, or a list."""


@dataclass(frozen=True, slots=True)
class Letter:
    """An email's subject and content."""

    subject: str
    blocks: Sequence[Block]

    @property
    def text(self) -> str:
        """The content as plain text. Links are on separate lines, because some programs break long lines."""
        return "\n\n".join(map(_as_text, self.blocks)) + "\n"

    @property
    def html(self) -> str:
        """The content as an HTML document that loads nothing."""
        body = Markup("\n").join(map(_as_html, self.blocks))
        return Markup(
            '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{}</title></head>\n'
            '<body style="{}">\n{}\n</body>\n</html>\n'
        ).format(self.subject, _STYLE, body)


def _as_text(block: Block) -> str:
    match block:
        case Link(text, url):
            return f"{_wrapped(text)}:\n{url}"
        case Listing(title, items):
            return "\n".join([_wrapped(title), *(_wrapped(item, "- ", "  ") for item in items)])
        case _:
            return _wrapped(block)


def _wrapped(text: str, first: str = "", other: str = "") -> str:
    return textwrap.fill(
        text, _COLUMNS, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )


def _as_html(block: Block) -> Markup:
    match block:
        case Link(text, url):
            return Markup('<p><a href="{}">{}</a></p>').format(url, text)
        case Listing(title, items):
            lines = Markup("\n").join(Markup("<li>{}</li>").format(item) for item in items)
            return Markup("<p>{}</p>\n<ul>\n{}\n</ul>").format(title, lines)
        case _:
            return Markup("<p>{}</p>").format(block)


GIVEN_UP_AFTER = timedelta(days=1)
"""Default time after which an unsent email is discarded."""


def queue_email(
    session: Session,
    to: str,
    letter: Letter | None,
    *,
    kind: str,
    account_id: int | None = None,
    unsubscribe_url: str = "",
    expires_at: datetime | None = None,
) -> None:
    """Queue an email, which is sent if and when the transaction commits.

    Call this only where ``settings.sends_email`` is true. A background job sends the email, and retries for a day.

    Args:
        to: The recipient's email address, as stored with accounts.
        letter: The content, or ``None`` for a kind of email that a writer composes when it is sent.
        kind: Name of the email in the log, such as ``invitation``.
        account_id: The account that the email is about. The email is not sent if the account is deleted meanwhile.
        unsubscribe_url: URL for one-click unsubscribing (RFC 8058); empty for emails without a subscription.
        expires_at: Time after which the email is discarded; by default a day. The next to expire is sent first.
    """
    moment = now()
    session.add(
        QueuedEmail(
            account_id=account_id,
            kind=kind,
            recipient=to,
            subject=letter.subject if letter else "",
            text=letter.text if letter else "",
            html=letter.html if letter else "",
            unsubscribe_url=unsubscribe_url,
            message_key=secrets.token_hex(16),
            due_at=moment,
            expires_at=expires_at or moment + GIVEN_UP_AFTER,
            created_at=moment,
        )
    )
    session.flush()


def discard_queued_emails(session: Session) -> None:
    """Delete all queued emails. Used in a copy of an installation, because the original sends them."""
    session.execute(delete(QueuedEmail))


@dataclass(frozen=True, slots=True)
class Draft:
    """An email's recipient and content."""

    recipient: str
    subject: str
    text: str
    html: str


Composed = tuple[str, Letter]
"""A recipient, and the letter for them."""

Writer = Callable[[Session, Settings, QueuedEmail], Composed | None]
"""Function that composes an email when it is sent; it returns ``None`` if there is nothing left to send."""


class _Policy(EmailPolicy):
    """The standard policy, but it does not encode long URLs, which mail programs could not read."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        if name.lower() == "list-unsubscribe":
            return f"{name}: {value}{self.linesep}".encode("ascii")
        return super().fold_binary(name, value)


_POLICY = _Policy(linesep=SMTP.linesep)


def wire_address(email: str) -> Address:
    """Return an address with its domain in ASCII, which every server understands.

    Raises:
        ValueError: The address is not valid.
    """
    local, _, domain = email.rpartition("@")
    ascii_domain = idna_to_ascii(domain).decode("ascii")
    # The standard library decodes an address that looks like an encoded word, which may yield other addresses.
    if not local or not ascii_domain or not email.isprintable() or " " in email or "=?" in email:
        raise ValueError("not a valid email address")
    return Address(username=local, domain=ascii_domain)


def build_message(
    draft: Draft, sender: Address, *, message_key: str, date: datetime, unsubscribe_url: str = ""
) -> EmailMessage:
    """Build an email with all its headers.

    Args:
        message_key: Unique part of the ``Message-ID``.
        unsubscribe_url: URL for one-click unsubscribing (RFC 8058).

    Raises:
        ValueError: The recipient is not a valid address.
    """
    message = EmailMessage(policy=_POLICY)
    message["From"] = sender
    message["To"] = wire_address(draft.recipient)
    message["Subject"] = one_line(draft.subject)
    message["Date"] = format_datetime(date)
    message["Message-ID"] = f"<{message_key}@{sender.domain}>"
    # Suppresses automatic replies (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    if unsubscribe_url:
        message["List-Unsubscribe"] = f"<{unsubscribe_url}>"
        # RFC 8058 requires HTTPS for one-click unsubscribing.
        if unsubscribe_url.startswith("https:"):
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(draft.text, cte="quoted-printable")
    message.add_alternative(draft.html, subtype="html", cte="quoted-printable")
    return message


def one_line(text: str) -> str:
    """Replace each run of whitespace and control characters in ``text`` with one space."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
