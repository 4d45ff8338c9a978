"""Emails on the wire: headers, and names that could break them."""

from __future__ import annotations

import email
import email.policy
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any

import pytest

from app.services.emails.letters import Draft, build_message, wire_address

SENDER = Address("Site Search", "search", "example.com")
DATE = datetime(2031, 5, 14, 12, 30, 15, tzinfo=UTC)


def build(subject: str = "Hello", to: str = "ann@example.org", unsubscribe_url: str = "") -> EmailMessage:
    draft = Draft(to, subject, "Grüße an 東京\n", "<p>Grüße an 東京</p>")
    return build_message(draft, SENDER, message_key="k" * 32, date=DATE, unsubscribe_url=unsubscribe_url)


def read(message: EmailMessage) -> Any:
    """Return the email as its recipient reads it."""
    return email.message_from_bytes(message.as_bytes().replace(b"\r\n", b"\n"), policy=email.policy.default)


def test_message_has_the_headers_of_an_automatic_email() -> None:
    found = read(build())

    assert found["From"] == "Site Search <search@example.com>"
    assert found["To"] == "ann@example.org"
    assert found["Date"].datetime == DATE
    assert found["Message-ID"] == f"<{'k' * 32}@example.com>"
    assert found["Auto-Submitted"] == "auto-generated"
    assert "List-Unsubscribe" not in found
    assert found.defects == []


def test_plain_and_html_bodies_round_trip_unchanged() -> None:
    found = read(build())

    assert found.get_content_type() == "multipart/alternative"
    assert found.get_body(("plain",)).get_content() == "Grüße an 東京\n"
    assert found.get_body(("html",)).get_content().strip() == "<p>Grüße an 東京</p>"
    assert build().as_bytes().isascii()
    assert max(map(len, build().as_bytes().splitlines())) < 100


@pytest.mark.parametrize(
    "subject",
    [
        "Treffer\r\nBcc: eve@example.com",
        "Treffer\nBcc: eve@example.com\n\nBuy now",
        "Treffer\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029Bcc: eve@example.com",
        "Treffer\x00\x07\tBcc: eve@example.com",
    ],
)
def test_subject_cannot_inject_another_header(subject: str) -> None:
    found = read(build(subject))

    assert "Bcc" not in found
    assert found["Subject"].startswith("Treffer Bcc: eve@example.com")
    assert found.get_body(("plain",)).get_content() == "Grüße an 東京\n"


@pytest.mark.parametrize("subject", ["Nichts gefunden: Straßenbahn " * 9, "検索結果がありません" * 20, "x" * 300, ""])
def test_any_subject_round_trips_unchanged(subject: str) -> None:
    message = build(subject)

    assert read(message)["Subject"] == subject.strip()
    assert message.as_bytes().isascii()
    assert max(map(len, message.as_bytes().splitlines())) <= 998


def test_email_domains_are_converted_to_lowercase_punycode() -> None:
    assert read(build(to="ann@bücher.example"))["To"] == "ann@xn--bcher-kva.example"
    assert wire_address("Ann.Lee+x@Example.ORG").addr_spec == "Ann.Lee+x@example.org"


def test_non_ascii_local_part_is_preserved() -> None:
    assert wire_address("jürgen@bücher.example").addr_spec == "jürgen@xn--bcher-kva.example"


ENCODED = ["=?utf-8?q?bo?=@example.com", "=?utf-8?q?bo=40example.org=2C?=@example.com", "=?utf-8?b?Ym8=?=@example.com"]


@pytest.mark.parametrize("address", ["", "ann", "ann@", "@a.example", "ann@a b.example", "a\nb@a.example", *ENCODED])
def test_invalid_email_addresses_are_rejected(address: str) -> None:
    with pytest.raises(ValueError, match="not a valid email address"):
        build(to=address)


def test_recurring_email_has_one_click_unsubscribe_headers() -> None:
    url = "https://search.example.com/digest/unsubscribe?token=" + "x" * 120

    message = build(unsubscribe_url=url)

    assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in message.as_bytes()
    assert read(message)["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_one_click_unsubscribe_header_is_sent_only_for_https_urls() -> None:
    message = build(unsubscribe_url="http://localhost:8000/digest/unsubscribe?token=x")

    assert "List-Unsubscribe" in message
    assert "List-Unsubscribe-Post" not in message
