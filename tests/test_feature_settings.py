"""The settings SMTP_URL and MAIL_FROM."""

from __future__ import annotations

import pytest

from app.feature_settings import SmtpServer, parse_sender, parse_smtp_url


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example.com", SmtpServer("mail.example.com", 587, False)),
        ("smtps://mail.example.com", SmtpServer("mail.example.com", 465, True)),
        ("smtp://localhost:25/", SmtpServer("localhost", 25, False)),
        ("smtp://[::1]:25", SmtpServer("::1", 25, False)),
        (
            "smtps://ann%40example.com:p%40ss%2F%3A%25word@mail.example.com:2465",
            SmtpServer("mail.example.com", 2465, True, "ann@example.com", "p@ss/:%word"),
        ),
    ],
)
def test_smtp_url_is_parsed(url: str, server: SmtpServer) -> None:
    assert parse_smtp_url(url) == server


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://:25",
        "smtp://mail.example.com:mail",
        "smtp://mail.example.com:99999",
        "smtp://user:secret/word@mail.example.com",
        "smtp://user@mail.example.com",
        "smtp://:secret@mail.example.com",
        "smtp://user:s%C3%A9cret@mail.example.com",
        "smtp://mail.example.com/path",
        "smtp://mail.example.com?tls=no",
        "smtp://[::1",
    ],
)
def test_invalid_smtp_url_is_rejected_without_revealing_the_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as error:
        parse_smtp_url(url)

    assert "secret" not in str(error.value)


def test_smtp_server_repr_omits_the_password() -> None:
    assert "secret" not in repr(parse_smtp_url("smtp://user:secret@mail.example.com"))


@pytest.mark.parametrize(("host", "local"), [("localhost", True), ("127.0.0.1", True), ("mail.example.com", False)])
def test_smtp_server_is_local_only_on_loopback(host: str, local: bool) -> None:
    assert parse_smtp_url(f"smtp://{host}").is_local is local


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("search@example.com", "", "search@example.com"),
        ("Site Search <search@example.com>", "Site Search", "search@example.com"),
        ('"Search, Inc." <search@example.com>', "Search, Inc.", "search@example.com"),
        ("Büro <search@example.com>", "Büro", "search@example.com"),
    ],
)
def test_sender_is_an_email_address_with_an_optional_name(text: str, name: str, address: str) -> None:
    sender = parse_sender(text)

    assert (sender.display_name, sender.addr_spec) == (name, address)


@pytest.mark.parametrize(
    "text",
    [
        "search",
        "search@",
        "@example.com",
        "a@example.com, b@example.com",
        "Search search@example.com",
        "search@example.com\nBcc: eve@example.com",
        "büro@example.com",
        "<>",
    ],
)
def test_invalid_sender_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        parse_sender(text)
