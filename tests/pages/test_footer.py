"""The footer of all pages: the service's pages, and the operator's links and contact."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from app.pages.layout import contact_url
from tests.conftest import close_app, make_app, make_settings
from tests.pages.people import Person

LINKS = {
    "Status": "https://status.example/",
    "Privacy": "https://example.com/privacy?lang=en",
    "Terms": "/docs/security",
    "Imprint": "http://example.com/imprint",
}


def footer_of(app: Flask, path: str = "/") -> tuple[str, dict[str, str]]:
    """Return the footer's text, and its links by their texts."""
    footer = Person(app).go(path).one("footer")
    return footer.text, {link.text: link.attributes["href"] for link in footer.all("a")}


def test_footer_without_settings_has_only_the_services_own_pages(app: Flask) -> None:
    text, links = footer_of(app)

    assert links == {"Documentation": "/docs", "Plans": "/plans", "OpenAPI": "/openapi.json"}
    assert text == "Documentation Plans OpenAPI"


@pytest.mark.parametrize("path", ["/", "/plans", "/docs", "/login", "/nope"])
def test_footer_has_the_operators_links_on_every_page(tmp_path: Path, path: str) -> None:
    settings = {f"{text.lower()}_url": url for text, url in LINKS.items()}
    app = make_app(make_settings(tmp_path, **settings, operator_contact="help@example.com"))

    _, links = footer_of(app, path)

    assert list(links.items())[3:] == [*LINKS.items(), ("Contact", "mailto:help@example.com")]
    close_app(app)


def test_single_link_leaves_the_others_absent(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, privacy_url="/docs/security"))

    _, links = footer_of(app)

    assert list(links) == ["Documentation", "Plans", "OpenAPI", "Privacy"]
    close_app(app)


def test_contact_that_is_not_an_address_is_text(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, operator_contact="Ann <room 12>"))

    text, links = footer_of(app)

    assert text.endswith("Contact: Ann <room 12>")
    assert "Contact" not in links
    close_app(app)


@pytest.mark.parametrize(
    ("contact", "url"),
    [
        ("", ""),
        ("help@example.com", "mailto:help@example.com"),
        ("a+b?subject=x@example.com", "mailto:a%2Bb%3Fsubject%3Dx@example.com"),
        ("https://example.com/help", "https://example.com/help"),
        ("Ann, room 12", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_contact_url(contact: str, url: str) -> None:
    assert contact_url(contact) == url
