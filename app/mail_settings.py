"""The meaning of the settings of mail: the server that SMTP_URL names, and the sender in MAIL_FROM."""

from __future__ import annotations

from dataclasses import dataclass, field
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any
from urllib.parse import unquote, urlsplit

_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A mail server.

    Attributes:
        tls: Whether the connection begins with TLS; otherwise STARTTLS is used if the server offers it.
        user: Empty: the server wants no password.
    """

    host: str
    port: int
    tls: bool
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_local(self) -> bool:
        """Tell whether it is reached without a network, on which others could listen or answer in its place."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def parse_smtp_url(url: str) -> SmtpServer:
    """The server that ``smtp://user:password@host:port`` or ``smtps://…`` names; user and password percent-encoded.

    Raises:
        ValueError: It is no such URL; the message says why, without the password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be smtp://user:password@host:port or smtps://…, with what is special percent-encoded")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("must have both a user and a password, or neither")
    if not (user + password).isascii():
        raise ValueError("must have an ASCII user and password: SMTP knows no others")
    return SmtpServer(host, port or _PORTS[parts.scheme], parts.scheme == "smtps", user, password)


def parse_sender(text: str) -> Address:
    """The address that mails come from: ``search@example.com`` or ``Site Search <search@example.com>``.

    Raises:
        ValueError: It is not one address.
    """
    message = EmailMessage(policy=policy.SMTP)
    try:
        message["From"] = text
    except ValueError as error:
        raise ValueError("must be one line") from error
    header: Any = message["From"]
    if header.defects or len(header.addresses) != 1:
        raise ValueError("must be one address, such as Site Search <search@example.com>")
    (address,) = header.addresses
    if not address.username or not address.domain or not address.addr_spec.isascii():
        raise ValueError("must be an ASCII address, such as Site Search <search@example.com>")
    return Address(address.display_name, address.username, address.domain)
