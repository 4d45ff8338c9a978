"""A mail server that stores received emails, and can be unavailable, slow, or reject emails."""

from __future__ import annotations

import asyncio
import email
import email.policy
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.server import free_port

USER, PASSWORD = "site search", "p@ss/word"


@dataclass
class Delivered:
    """An email that the server accepted.

    Attributes:
        to: The recipients of the envelope.
        message: The received message.
        tls: Whether the connection was encrypted.
        user: The logged-in user.
    """

    sender: str
    to: list[str]
    message: EmailMessage
    raw: bytes
    tls: bool
    user: str

    @property
    def text(self) -> str:
        """The plain-text part."""
        part = self.message.get_body(("plain",))
        assert part is not None
        return str(part.get_content())

    @property
    def html(self) -> str:
        """The HTML part."""
        part = self.message.get_body(("html",))
        assert part is not None
        return str(part.get_content())


@dataclass
class MailServer:
    """The received emails, and the server's behavior.

    Attributes:
        rejections: The response for each rejected recipient.
        data_answer: The response to a complete mail, which is stored only if the response begins with 250.
        hangs: Whether the server stores a complete mail but never responds.
    """

    host: str = "127.0.0.1"
    port: int = 0
    emails: list[Delivered] = field(default_factory=list)
    rejections: dict[str, str] = field(default_factory=dict)
    data_answer: str = "250 OK"
    hangs: bool = False
    attempts: int = 0
    user: str = ""

    @property
    def url(self) -> str:
        """The value for ``SMTP_URL``, without TLS and user."""
        return f"smtp://{self.host}:{self.port}"

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        self.attempts += 1
        if address in self.rejections:
            return self.rejections[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        content = envelope.original_content or b""
        if self.data_answer.startswith("250"):
            message = email.message_from_bytes(content.replace(b"\r\n", b"\n"), policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            tls = server.transport is not None and server.transport.get_extra_info("ssl_object") is not None
            self.emails.append(Delivered(str(envelope.mail_from), envelope.rcpt_tos, message, content, tls, self.user))
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        return self.data_answer

    def authenticate(self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        self.user = given.login.decode()
        known = (given.login, given.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=known, handled=False)


@contextmanager
def mail_server(
    *,
    tls: ssl.SSLContext | None = None,
    starttls: ssl.SSLContext | None = None,
    wants_login: bool = False,
    login_without_tls: bool = False,
    utf8: bool = True,
    port: int | None = None,
) -> Iterator[MailServer]:
    """Run a server on a free port.

    Args:
        tls: Context for TLS from the start of the connection.
        starttls: Context for STARTTLS.
        wants_login: Whether clients log in as :data:`USER`.
        login_without_tls: Whether passwords without STARTTLS, and emails without a password, are accepted.
        utf8: Whether non-ASCII email addresses are supported.
        port: A fixed port, such as the port of an earlier server.
    """
    made = MailServer(port=port or free_port())
    options: dict[str, Any] = {}
    if wants_login:
        # The library warns of a server that accepts unencrypted passwords.
        needs_tls = not login_without_tls
        options = {"authenticator": made.authenticate, "auth_required": needs_tls, "auth_require_tls": needs_tls}
    logging.getLogger("mail").setLevel(logging.ERROR)
    controller = Controller(
        made, made.host, made.port, ssl_context=tls, tls_context=starttls, enable_SMTPUTF8=utf8, **options
    )
    controller.start()
    try:
        yield made
    finally:
        controller.stop()


def mail_settings(server: MailServer) -> dict[str, str]:
    """Return settings of an installation that sends its emails to ``server``."""
    return {
        "smtp_url": server.url,
        "mail_from": "Site Search <search@example.com>",
        "public_url": "https://search.example.com",
        "operator_contact": "help@example.com",
    }
