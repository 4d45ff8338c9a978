"""Sending queued emails over SMTP."""

from __future__ import annotations

import logging
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import Backoff, Pauses, now
from app.config import Settings
from app.feature_settings import SmtpServer, parse_sender, parse_smtp_url
from app.models import QueuedEmail
from app.models.base import has_come
from app.services.emails.letters import Draft, Writer, build_message
from app.storage.database import Database
from app.wording import counted

TIMEOUT_SECONDS = 30.0
"""Seconds that the server may be silent."""
LONGEST_SECONDS = 120.0
"""Seconds that sending one email may take in total."""


class MailServerUnavailable(Exception):
    """The server cannot be reached or rejects this sender, so no email can be sent now."""


class EmailDeferred(Exception):
    """The server did not accept this email yet, or it is unknown whether it did."""


class EmailRejected(Exception):
    """The server will never accept this email."""


class SmtpConnection:
    """Connection to an SMTP server, opened with the first email and reopened after a failure.

    ``smtps://`` uses TLS from the first byte; ``smtp://`` uses it if the server offers STARTTLS. Certificates are
    checked, and passwords are sent over TLS only, unless the server is on this machine.

    Args:
        host_name: Name of this machine in EHLO.
    """

    def __init__(self, server: SmtpServer, host_name: str):
        self._server = server
        self._host_name = host_name
        self._smtp: smtplib.SMTP | None = None

    def send(self, message: EmailMessage) -> None:
        """Hand over an email.

        Raises:
            MailServerUnavailable, EmailDeferred, EmailRejected: The server did not accept the email, or not in time.
        """
        smtp = self.connect()
        sender, recipient = (message[name].addresses[0].addr_spec for name in ("From", "To"))
        try:
            with _deadline(smtp):
                smtp.send_message(message, sender, [recipient])
        except smtplib.SMTPRecipientsRefused as error:
            raise _rejection(*error.recipients[recipient]) from error
        except smtplib.SMTPSenderRefused as error:
            raise MailServerUnavailable(
                f"The server rejected the sender: {_format_response(error.smtp_code, error.smtp_error)}"
            ) from error
        except smtplib.SMTPDataError as error:
            raise _rejection(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPNotSupportedError as error:
            raise EmailRejected(str(error)) from error
        except OSError as error:
            # The state of the dialog is unknown, so the next email gets a new connection.
            self.close()
            raise EmailDeferred(f"The connection ended: {error}") from error

    def connect(self) -> smtplib.SMTP:
        """Connect, and log in if the URL contains a user.

        Raises:
            MailServerUnavailable: The connection or the login failed.
        """
        if self._smtp is None or self._smtp.sock is None:
            try:
                self._smtp = self._open()
            except OSError as error:
                raise MailServerUnavailable(_explained(error)) from error
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
                # RFC 3207: what the server offered before TLS must not be trusted.
                smtp.ehlo()
            if server.user:
                if not isinstance(smtp.sock, ssl.SSLSocket) and not server.is_local:
                    raise smtplib.SMTPException(
                        "the server does not offer STARTTLS, and passwords are only sent over TLS"
                    )
                smtp.login(server.user, server.password)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _tls_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        # A server on this machine rarely has a valid certificate, and the connection does not leave the machine.
        if self._server.is_local:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def close(self) -> None:
        """Close the connection, if it is open."""
        smtp, self._smtp = self._smtp, None
        if smtp is not None:
            # The server may have closed the connection already.
            with suppress(OSError):
                smtp.quit()
            smtp.close()


@contextmanager
def _deadline(smtp: smtplib.SMTP) -> Iterator[None]:
    """Close the connection if the block takes longer than :data:`LONGEST_SECONDS`."""
    connection = smtp.sock
    assert connection is not None

    def cut() -> None:
        with suppress(OSError):
            # Not the TLS socket's own method, which would first exchange messages with the server.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    timer = threading.Timer(LONGEST_SECONDS, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _rejection(code: int, words: bytes | str) -> EmailRejected | EmailDeferred:
    # RFC 5321: codes from 500 are permanent failures, codes from 400 temporary failures.
    return (EmailRejected if 500 <= code < 600 else EmailDeferred)(_format_response(code, words))


def _explained(error: OSError) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return _format_response(error.smtp_code, error.smtp_error)
    return str(error) or type(error).__name__


def _format_response(code: int, words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return f"{code} {' '.join(text.split())}"


CLAIM = timedelta(minutes=5)
"""Time for which a process claims an email; longer than SMTP may take. After that, another process sends it again."""
PAUSES = Pauses(10.0, 900.0)
"""Pauses before a failed email is sent again."""
AT_ONCE = 100
"""Maximum number of emails in one pass."""
_SERVER = 0

log = logging.getLogger(__name__)


class EmailSender:
    """Sends queued emails through one server.

    Args:
        settings: The server, the sender, and the base URL of links.
        writers: Writers by kind, for emails that are written when they are sent.
    """

    def __init__(self, database: Database, settings: Settings, writers: Mapping[str, Writer]):
        self._database = database
        self._settings = settings
        self._writers = writers
        self._away = Backoff()

    def connection(self) -> SmtpConnection:
        """Return an unopened connection to the server.

        Raises:
            ValueError: There is no server, or a setting is invalid.
        """
        return SmtpConnection(parse_smtp_url(self._settings.smtp_url), parse_sender(self._settings.mail_from).domain)

    def send_due(self, is_stopping: Callable[[], bool] = lambda: False) -> int:
        """Discard expired emails, then send due emails until none is left or the server fails.

        An email is handed over between claiming and deleting its row. If the process ends in between, or the server's
        last response is lost, another process sends it again with the same ``Message-ID``.

        Args:
            is_stopping: Returns whether to stop before the next email.

        Returns:
            Number of emails that the server accepted.
        """
        self._give_up()
        if not self._settings.smtp_url or (_SERVER in self._away and not self._away.due()):
            return 0
        sent_count, connection, sender = 0, self.connection(), parse_sender(self._settings.mail_from)
        try:
            for _ in range(AT_ONCE):
                email = None if is_stopping() else self._claim()
                if email is None:
                    break
                sent_count += self._send(connection, sender, email)
                # The server works again, so the next failure starts with the shortest pause.
                self._away.forget_all_but(())
        except MailServerUnavailable as error:
            self._away.record_failure(_SERVER)
            log.warning("emails are waiting: %s", error)
        finally:
            connection.close()
        return sent_count

    def _give_up(self) -> None:
        with self._database.read() as session:
            if session.scalar(select(QueuedEmail.id).where(QueuedEmail.expires_at <= now()).limit(1)) is None:
                return
        with self._database.write() as session:
            late = session.scalars(
                # Another process is discarding locked emails.
                select(QueuedEmail).where(QueuedEmail.expires_at <= now(), _is_free()).with_for_update(skip_locked=True)
            ).all()
            for email in late:
                session.delete(email)
        for email in late:
            tried = counted(email.attempts, "attempt")
            log.error("gave up %s after %s", _describe(email), tried)

    def _claim(self) -> QueuedEmail | None:
        with self._database.read() as session:
            # Reads do not queue behind other writers, and usually there is nothing to send.
            if session.scalar(select(QueuedEmail.id).where(_is_free()).limit(1)) is None:
                return None
        with self._database.write() as session:
            email = session.scalar(
                select(QueuedEmail)
                .where(_is_free(), QueuedEmail.expires_at > now())
                # Emails with short-lived links, such as password resets, come first.
                .order_by(QueuedEmail.expires_at, QueuedEmail.id)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            if email is not None:
                email.attempts += 1
                # The claim expires if this process dies.
                email.due_at = now() + CLAIM
        return email

    def _send(self, connection: SmtpConnection, sender: Address, email: QueuedEmail) -> bool:
        """Send an email. Return whether the server accepted it."""
        try:
            draft = self._write(email)
            if draft is not None:
                message = build_message(
                    draft,
                    sender,
                    message_key=email.message_key,
                    date=email.created_at,
                    unsubscribe_url=email.unsubscribe_url,
                )
                connection.send(message)
        except (MailServerUnavailable, EmailDeferred) as error:
            again_at = self._postpone(email)
            if isinstance(error, MailServerUnavailable):
                raise
            log.warning("%s was not accepted and is retried at %s: %s", _describe(email), again_at, error)
            return False
        except (EmailRejected, ValueError) as error:
            log.error("%s was rejected and is discarded: %s", _describe(email), error)
            self._finish(email)
            return False
        self._finish(email)
        return draft is not None

    def _write(self, email: QueuedEmail) -> Draft | None:
        writer = self._writers.get(email.kind)
        if writer is None:
            return Draft(email.recipient, email.subject, email.text, email.html)
        with self._database.write() as session:
            composed = writer(session, self._settings, email)
        if composed is None:
            return None
        recipient, letter = composed
        return Draft(recipient, letter.subject, letter.text, letter.html)

    def _postpone(self, email: QueuedEmail) -> datetime:
        again_at = now() + timedelta(seconds=PAUSES.after(email.attempts))
        with self._database.write() as session:
            session.execute(update(QueuedEmail).where(*_mine(email)).values(due_at=again_at))
        return again_at

    def _finish(self, email: QueuedEmail) -> None:
        with self._database.write() as session:
            session.execute(delete(QueuedEmail).where(*_mine(email)))


def count_late(session: Session, since: datetime) -> int:
    """Return the number of emails queued before ``since``."""
    return session.scalar(select(func.count()).select_from(QueuedEmail).where(QueuedEmail.created_at < since)) or 0


def _is_free() -> ColumnElement[bool]:
    """Return the condition that an email is due and not claimed."""
    return has_come(QueuedEmail.due_at, now(), timedelta(seconds=PAUSES.longest))


def _mine(email: QueuedEmail) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that no other process has claimed the email in the meantime."""
    # Each claim increments the attempts, so an equal number means that the claim is still this one.
    return QueuedEmail.id == email.id, QueuedEmail.attempts == email.attempts


def _describe(email: QueuedEmail) -> str:
    about = "" if email.account_id is None else f" to account {email.account_id}"
    return f"email {email.id} ({email.kind}{about})"
