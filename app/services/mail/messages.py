"""Mails as they go over the wire: headers and both texts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import format_datetime
from typing import Any

from ada_url import idna_to_ascii


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
