"""A connection to the mail server, and the three ways in which sending a mail fails."""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage

from app.mail_settings import SmtpServer

TIMEOUT_SECONDS = 30.0
"""How long the server may be silent."""
LONGEST_SECONDS = 120.0
"""How long it may take for one mail, whatever it says meanwhile."""


class MailServerAway(Exception):
    """The server cannot be reached, or takes no mail of this installation: no mail can be sent now."""


class MailDeferred(Exception):
    """The server did not take this mail for now, or it is not known whether it did."""


class MailRefused(Exception):
    """The server will never take this mail."""


class SmtpConnection:
    """Connects with the first mail, and again after a failure.

    TLS is used from the first byte with ``smtps://``, and with ``smtp://`` if the server offers STARTTLS. Certificates
    are checked, and passwords sent over TLS only, unless the server is on this machine.

    Args:
        host_name: How this side introduces itself.
    """

    def __init__(self, server: SmtpServer, host_name: str):
        self._server = server
        self._host_name = host_name
        self._smtp: smtplib.SMTP | None = None

    def send(self, message: EmailMessage) -> None:
        """Hand over a mail.

        Raises:
            MailServerAway, MailDeferred, MailRefused: The server has not taken it, or did not say so in time.
        """
        smtp = self.connect()
        sender, recipient = (message[name].addresses[0].addr_spec for name in ("From", "To"))
        try:
            with _deadline(smtp):
                smtp.send_message(message, sender, [recipient])
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(*error.recipients[recipient]) from error
        except smtplib.SMTPSenderRefused as error:
            raise MailServerAway(f"The sender was refused: {_told(error.smtp_code, error.smtp_error)}") from error
        except smtplib.SMTPDataError as error:
            raise _refusal(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPNotSupportedError as error:
            raise MailRefused(str(error)) from error
        except OSError as error:
            self.close()
            raise MailDeferred(f"The connection ended: {error}") from error

    def connect(self) -> smtplib.SMTP:
        """Be connected and, if there is a user, logged in.

        Raises:
            MailServerAway: It cannot be.
        """
        if self._smtp is None or self._smtp.sock is None:
            try:
                self._smtp = self._open()
            except OSError as error:
                raise MailServerAway(_explained(error)) from error
        return self._smtp

    def _open(self) -> smtplib.SMTP:
        server, context = self._server, self._tls_context()
        smtp: smtplib.SMTP
        if server.tls:
            smtp = smtplib.SMTP_SSL(server.host, server.port, self._host_name, timeout=TIMEOUT_SECONDS, context=context)
        else:
            smtp = smtplib.SMTP(server.host, server.port, self._host_name, timeout=TIMEOUT_SECONDS)
        try:
            smtp.ehlo_or_helo_if_needed()
            if not server.tls and smtp.has_extn("starttls"):
                smtp.starttls(context=context)
                smtp.ehlo()
            if server.user:
                if not isinstance(smtp.sock, ssl.SSLSocket) and not server.is_local:
                    raise smtplib.SMTPException("it offers no STARTTLS, and passwords are only sent over TLS")
                smtp.login(server.user, server.password)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _tls_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._server.is_local:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def close(self) -> None:
        """End the connection, if there is one."""
        smtp, self._smtp = self._smtp, None
        if smtp is not None:
            with suppress(OSError):
                smtp.quit()
            smtp.close()


@contextmanager
def _deadline(smtp: smtplib.SMTP) -> Iterator[None]:
    """Cut the connection if the block takes too long."""
    connection = smtp.sock
    assert connection is not None

    def cut() -> None:
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    timer = threading.Timer(LONGEST_SECONDS, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _refusal(code: int, words: bytes | str) -> MailRefused | MailDeferred:
    return (MailRefused if 500 <= code < 600 else MailDeferred)(_told(code, words))


def _explained(error: OSError) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return _told(error.smtp_code, error.smtp_error)
    return str(error) or type(error).__name__


def _told(code: int, words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return f"{code} {' '.join(text.split())}"
