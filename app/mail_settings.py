"""Parsing and checking mail settings, such as the server in SMTP_URL and the sender in MAIL_FROM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.headerregistry import Address
from urllib.parse import unquote, urlsplit

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?P<local>{_ATOM}(?:\.{_ATOM})*)@(?P<domain>{_LABEL}(?:\.{_LABEL})*)")
_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A mail server.

    Attributes:
        tls: Whether the connection begins with TLS; otherwise, STARTTLS is used if the server offers it.
        user: Empty if the server needs no login.
    """

    host: str
    port: int
    tls: bool
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, where no attacker on a network can listen or impersonate it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def parse_smtp_url(url: str) -> SmtpServer:
    """Parse ``smtp://user:password@host:port`` or ``smtps://…``; user and password are percent-encoded.

    Raises:
        ValueError: The URL is invalid. The message explains it, without the password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be smtp://user:password@host:port or smtps://…, with special characters percent-encoded")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("must have both a user and a password, or neither")
    if not (user + password).isascii():
        raise ValueError("must have an ASCII user and password, as SMTP requires")
    return SmtpServer(host, port or _PORTS[parts.scheme], parts.scheme == "smtps", user, password)


def parse_sender(text: str) -> Address:
    """Parse the sender of mails: ``search@example.com`` or ``Site Search <search@example.com>``.

    Raises:
        ValueError: ``text`` is not a single address.
    """
    name, bracket, rest = text.strip().partition("<")
    if not bracket:
        name, rest = "", f"{name}>"
    name = name.strip()
    match = _ADDRESS.fullmatch(rest.removesuffix(">")) if rest.endswith(">") else None
    if match is None or not name.isprintable() or "@" in name:
        raise ValueError("must be one ASCII address, such as Site Search <search@example.com>")
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        name = name[1:-1]
    return Address(name, match["local"], match["domain"])


def mail_problems(smtp_url: str, mail_from: str, public_url: str, operator_contact: str) -> Iterator[str]:
    """Yield a sentence for each problem of the mail settings."""
    for name, value, parse in (("SMTP_URL", smtp_url, parse_smtp_url), ("MAIL_FROM", mail_from, parse_sender)):
        try:
            if value:
                parse(value)
        except ValueError as error:
            yield f"{name} {error}."
    if smtp_url and not mail_from:
        yield "SMTP_URL requires MAIL_FROM: e-mails need a sender."
    if smtp_url and not public_url:
        yield "SMTP_URL requires PUBLIC_URL: e-mails contain links to this service."
    if not operator_contact.isprintable():
        yield "OPERATOR_CONTACT must be one line."
