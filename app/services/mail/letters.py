"""Mails: their text and HTML, their queue, and mails that are written when they are sent."""

from __future__ import annotations

import secrets
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import format_datetime
from typing import Any, ClassVar

from ada_url import idna_to_ascii
from markupsafe import Markup
from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Mail
from app.storage.database import Database
from app.tokens import hash_token

_COLUMNS = 72
_STYLE = "font-family: sans-serif; line-height: 1.5; max-width: 38em"


@dataclass(frozen=True, slots=True)
class Link:
    """An address to open, on a line of its own."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list below a heading."""

    title: str
    items: Sequence[str]


Block = str | Link | Listing
"""A paragraph, a link, or a list."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail's subject and what it says."""

    subject: str
    blocks: Sequence[Block]

    @property
    def text(self) -> str:
        """As plain text; links are on lines of their own, since some programs break long ones."""
        return "\n\n".join(map(_as_text, self.blocks)) + "\n"

    @property
    def html(self) -> str:
        """As an HTML document that loads nothing."""
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


@dataclass(frozen=True, slots=True)
class Draft:
    """A mail's text, and its addressee."""

    recipient: str
    subject: str
    text: str
    html: str


class _Policy(EmailPolicy):
    """The standard one, which would hide a long address in encoded words that no program of a mail reads."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        if name.lower() == "list-unsubscribe":
            return f"{name}: {value}{self.linesep}".encode("ascii")
        return super().fold_binary(name, value)


_POLICY = _Policy(linesep=SMTP.linesep)


def wire_address(email: str) -> Address:
    """An address with its domain in ASCII, which every server understands.

    Raises:
        ValueError: It is no address.
    """
    local, _, domain = email.rpartition("@")
    ascii_domain = idna_to_ascii(domain).decode("ascii")
    # The standard library writes an address that looks like an encoded word decoded: as another, or as several.
    if not local or not ascii_domain or not email.isprintable() or " " in email or "=?" in email:
        raise ValueError("no e-mail address")
    return Address(username=local, domain=ascii_domain)


def build_message(
    draft: Draft, sender: Address, *, message_key: str, date: datetime, unsubscribe_url: str = ""
) -> EmailMessage:
    """The mail with all its headers.

    Args:
        message_key: Makes its ``Message-ID``.
        unsubscribe_url: Where one POST request ends the series that it is of (RFC 8058).

    Raises:
        ValueError: The recipient is none.
    """
    message = EmailMessage(policy=_POLICY)
    message["From"] = sender
    message["To"] = wire_address(draft.recipient)
    message["Subject"] = one_line(draft.subject)
    message["Date"] = format_datetime(date)
    message["Message-ID"] = f"<{message_key}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    if unsubscribe_url:
        message["List-Unsubscribe"] = f"<{unsubscribe_url}>"
        if unsubscribe_url.startswith("https:"):
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(draft.text, cte="quoted-printable")
    message.add_alternative(draft.html, subtype="html", cte="quoted-printable")
    return message


def one_line(text: str) -> str:
    """``text`` with white space of every kind as single spaces, and without other control characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


class LinkWriter(ABC):
    """Writes the mails.

    Args:
        public_url: Base URL of this service.
        secret: With which tokens are hashed.
    """

    path: ClassVar[str]
    """Of the page that the link opens."""

    def __init__(self, database: Database, public_url: str, secret: str):
        self._database = database
        self._public_url = public_url
        self._secret = secret

    def write(self, mail: Mail) -> Draft | None:
        """Make a link, and the mail that holds it; ``None`` if there is nothing to send any more."""
        token = secrets.token_urlsafe(32)
        url = f"{self._public_url}{self.path}?token={token}"
        with self._database.write() as session:
            written = self.compose(session, mail, hash_token(token, self._secret), url)
        if written is None:
            return None
        recipient, letter = written
        return Draft(recipient, letter.subject, letter.text, letter.html)

    @abstractmethod
    def compose(self, session: Session, mail: Mail, token_hash: str, url: str) -> tuple[str, Letter] | None:
        """Keep the link's hash and say to whom what is written; ``None`` if there is nothing to send any more."""
