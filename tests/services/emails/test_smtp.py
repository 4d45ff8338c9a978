"""Mail servers: TLS, passwords, and the three kinds of rejected emails."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from pathlib import Path

import pytest
import trustme

from app.feature_settings import SmtpServer
from app.services.emails import delivery
from app.services.emails.delivery import EmailDeferred, EmailRejected, MailServerUnavailable, SmtpConnection
from app.services.emails.letters import Draft, build_message
from tests.email_server import PASSWORD, USER, MailServer, mail_server
from tests.server import free_port


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA) -> ssl.SSLContext:
    """Certificate of a server on this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat servers as remote."""
    monkeypatch.setattr(SmtpServer, "is_local", False)


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch, authority: trustme.CA, tmp_path: Path) -> None:
    """Trust the certificate authority on this machine."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


@contextmanager
def connected(server: MailServer, *, tls: bool = False, user: str = "", password: str = "") -> Iterator[SmtpConnection]:
    connection = SmtpConnection(SmtpServer(server.host, server.port, tls, user, password), "search.example.com")
    try:
        yield connection
    finally:
        connection.close()


def letter(to: str = "ann@example.org") -> EmailMessage:
    draft = Draft(to, "Hello", "Grüße\n", "<p>Grüße</p>")
    date = datetime(2031, 5, 14, tzinfo=UTC)
    return build_message(draft, Address("", "search", "example.com"), message_key="k" * 32, date=date)


def test_emails_share_one_smtp_connection() -> None:
    with mail_server() as server, connected(server) as connection:
        connection.send(letter())
        first = connection.connect()
        connection.send(letter("bo@example.org"))

        assert connection.connect() is first

    assert [mail.to for mail in server.emails] == [["ann@example.org"], ["bo@example.org"]]
    assert server.emails[0].sender == "search@example.com"
    assert server.emails[0].text.strip() == "Grüße"


@pytest.mark.parametrize("way", ["smtps", "starttls"])
def test_email_is_sent_over_tls_with_a_trusted_certificate(
    way: str, certificate: ssl.SSLContext, remote: None, trusted: None
) -> None:
    offered = {"tls": certificate} if way == "smtps" else {"starttls": certificate}
    with (
        mail_server(**offered, wants_login=True, login_without_tls=way == "smtps") as server,
        connected(server, tls=way == "smtps", user=USER, password=PASSWORD) as connection,
    ):
        connection.send(letter())

    (mail,) = server.emails
    assert (mail.tls, mail.user) == (True, USER)


@pytest.mark.parametrize("way", ["smtps", "starttls"])
def test_untrusted_certificate_of_a_remote_server_is_rejected(
    way: str, certificate: ssl.SSLContext, remote: None
) -> None:
    offered = {"tls": certificate} if way == "smtps" else {"starttls": certificate}
    with (
        mail_server(**offered) as server,
        connected(server, tls=way == "smtps") as connection,
        pytest.raises(MailServerUnavailable, match="certificate verify failed"),
    ):
        connection.send(letter())

    assert server.emails == []


def test_untrusted_certificate_of_a_local_server_is_accepted(certificate: ssl.SSLContext) -> None:
    with mail_server(starttls=certificate) as server, connected(server) as connection:
        connection.send(letter())

    assert server.emails[0].tls


def test_password_is_not_sent_to_a_remote_server_without_tls(remote: None) -> None:
    with (
        mail_server(wants_login=True, login_without_tls=True) as server,
        connected(server, user=USER, password=PASSWORD) as connection,
        pytest.raises(MailServerUnavailable, match="passwords are only sent over TLS"),
    ):
        connection.send(letter())

    assert server.user == ""


def test_password_is_sent_to_a_local_server_without_tls() -> None:
    with (
        mail_server(wants_login=True, login_without_tls=True) as server,
        connected(server, user=USER, password=PASSWORD) as connection,
    ):
        connection.send(letter())

    assert server.emails[0].user == USER


def test_wrong_password_raises_mail_server_away() -> None:
    with (
        mail_server(wants_login=True, login_without_tls=True) as server,
        connected(server, user=USER, password="wrong") as connection,
        pytest.raises(MailServerUnavailable, match=r"^535 "),
    ):
        connection.send(letter())


def test_unreachable_mail_server_raises_mail_server_away() -> None:
    connection = SmtpConnection(SmtpServer("127.0.0.1", free_port(), False), "search.example.com")

    with pytest.raises(MailServerUnavailable, match="refused"):
        connection.send(letter())


@pytest.mark.parametrize(
    ("answer", "error"), [("550 5.1.1 No such user", EmailRejected), ("450 4.2.1 Try again later", EmailDeferred)]
)
def test_rejected_recipient_raises_by_status_and_the_connection_stays_usable(
    answer: str, error: type[Exception]
) -> None:
    with mail_server() as server, connected(server) as connection:
        server.rejections = {"ann@example.org": answer}
        with pytest.raises(error, match=answer):
            connection.send(letter())
        connection.send(letter("bo@example.org"))

    assert [mail.to for mail in server.emails] == [["bo@example.org"]]


@pytest.mark.parametrize(("answer", "error"), [("554 5.6.0 Spam", EmailRejected), ("451 4.3.0 Later", EmailDeferred)])
def test_rejected_message_raises_by_status(answer: str, error: type[Exception]) -> None:
    with mail_server() as server, connected(server) as connection:
        server.data_answer = answer
        with pytest.raises(error, match=answer):
            connection.send(letter())


def test_timeout_of_one_step_raises_email_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_SECONDS", 0.3)
    with mail_server() as server, connected(server) as connection:
        server.hangs = True
        with pytest.raises(EmailDeferred, match="timed out"):
            connection.send(letter())


def test_total_time_limit_closes_the_connection_and_raises_email_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "LONGEST_SECONDS", 0.3)
    with mail_server() as server, connected(server) as connection:
        server.hangs = True
        with pytest.raises(EmailDeferred, match="unexpectedly closed"):
            connection.send(letter())


def test_non_ascii_addresses_require_smtputf8_support() -> None:
    with mail_server() as server, connected(server) as connection:
        connection.send(letter("jürgen@bücher.example"))
    with (
        mail_server(utf8=False) as other,
        connected(other) as connection,
        pytest.raises(EmailRejected, match="SMTPUTF8"),
    ):
        connection.send(letter("jürgen@bücher.example"))

    assert server.emails[0].to == ["jürgen@xn--bcher-kva.example"]
    assert server.emails[0].message["To"] == "jürgen@xn--bcher-kva.example"
