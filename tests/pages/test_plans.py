"""The plans page: public plans, a customer's own plan and usage, and the contact for upgrades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from app.pages.plan_cards import split_price
from app.pages.plans import ROWS
from app.plans import LIMIT_NAMES
from tests.callers import Tenant, add_member, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.pages.markup import Element
from tests.pages.people import Person, person_of


def cells(person: Person) -> dict[str, list[str]]:
    """Map each row's heading to its cells."""
    rows = person.page.one("tbody").all("tr")
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in rows}


def cards(person: Person) -> dict[str, Element]:
    """Map each card's heading to the card."""
    plans = person.page.one("ul", class_="plans").children
    items = [item for item in plans if isinstance(item, Element)]
    return {heading.text: item for item in items for level in ("h2", "h3") for heading in item.all(level)}


def shown_price(card: Element) -> tuple[str, str]:
    """Return the price's text, and the part of it that is large."""
    return card.one("p", class_="price").text, " ".join(part.text for part in card.all("span", class_="amount"))


def test_plans_page_is_public(app: Flask) -> None:
    person = Person(app)
    person.go("/plans")

    headings = [heading.text for heading in person.page.one("thead").all("th")]
    assert headings == ["Free", "Starter", "Pro", "Business", "Enterprise"]
    assert cells(person)["Searches per day"] == ["100", "1,000", "10,000", "unlimited", "unlimited"]
    assert "Your usage" not in person.page.text
    assert "Create an account" in person.page.text


def test_every_plan_limit_has_a_row() -> None:
    assert {name for name, _ in ROWS} == set(LIMIT_NAMES)


def test_plans_page_shows_the_customers_plan_and_usage(tenant: Tenant) -> None:
    tenant.index(page(1), page(2))
    tenant.find("page")
    tenant.set_plan("pro")
    person = person_of(tenant)
    person.go("/plans")

    assert "Pro Your plan" in [heading.text for heading in person.page.one("thead").all("th")]
    assert [name for name, card in cards(person).items() if "Your plan" in card.text] == ["Pro Your plan"]
    meters = [meter.text for meter in person.page.all("div", class_="meter")]
    assert [meter.partition(" of ")[0] for meter in meters] == [
        "Searches today 1",
        "Indexed pages 2",
        "Sites 1",
        "API keys 3",
    ]
    assert "custom limits" not in person.page.text


def test_custom_limits_are_shown(tenant: Tenant) -> None:
    tenant.set_plan("pro", documents=77)
    person = person_of(tenant)

    shown = person.go("/plans").text

    assert "custom limits" in shown
    assert "Indexed pages 0 of 77" in shown


@pytest.mark.parametrize(
    ("contact", "text", "address"),
    [
        ("", "the operator of this service", ""),
        ("help@example.com", "help@example.com", "mailto:help@example.com"),
        ("https://example.com/help", "https://example.com/help", "https://example.com/help"),
        ("Ann, room 12", "Ann, room 12", ""),
    ],
)
def test_contact_for_plan_changes_is_shown(tmp_path: Path, contact: str, text: str, address: str) -> None:
    app = make_app(make_settings(tmp_path, operator_contact=contact))
    person = person_of(register_tenant(app, "ann@example.com"))

    page_shown = person.go("/plans")

    assert f"ask {text}" in page_shown.text
    links = [link.attributes["href"] for link in page_shown.all("a") if link.text == text]
    assert links == ([address] if address else [])
    close_app(app)


def test_closed_registration_shows_contact(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, registration=False, operator_contact="help@example.com"))

    shown = Person(app).go("/plans")

    assert "Registration is closed. To get an account, ask help@example.com." in shown.text
    close_app(app)


def test_dashboard_links_to_plans(tenant: Tenant) -> None:
    person = person_of(tenant)
    person.go("/dashboard")

    assert person.follow("Plan: Pro").one("h1").text == "Plans and pricing"
    assert person.page.one("header").one("a", href="/plans").text == "Plans"


PRICED = """
[free]
requests_per_minute = 60
requests_per_day = 10_000
searches_per_day = 100
documents = 1_000
keys = 5
sites = 1
description = "For <trying> it"

["club & co"]
price = "19 € a month"
recommended = true
requests_per_minute = 600
requests_per_day = "unlimited"
searches_per_day = "unlimited"
documents = "unlimited"
keys = "unlimited"
sites = "unlimited"
"""


class TestPrices:
    """Prices, descriptions, and the Upgrade button."""

    @pytest.fixture
    def app(self, tmp_path: Path) -> Iterator[Flask]:
        file = tmp_path / "plans.toml"
        file.write_text(PRICED)
        upgrade_url = "https://pay.example/buy/{plan}?client_reference_id={account}"
        made = make_app(make_settings(tmp_path, plans_file=str(file), default_plan="free", upgrade_url=upgrade_url))
        yield made
        close_app(made)

    @pytest.mark.parametrize("path", ["/", "/plans"])
    def test_prices_and_descriptions_are_on_cards(self, app: Flask, path: str) -> None:
        person = Person(app)
        person.go(path)
        free, club = cards(person).values()

        assert list(cards(person)) == ["Free", "Club & co Recommended"]
        assert (shown_price(free), shown_price(club)) == (("Free", ""), ("19 € a month", "19 €"))
        assert free.one("p", class_="suited").text == "For <trying> it"
        assert club.one("p", class_="suited").text == ""
        assert [tick.text for tick in free.one("ul").all("li")] == [
            "100 searches a day",
            "1,000 pages",
            "1 site",
            "5 API keys",
            "60 requests a minute",
        ]
        assert club.one("ul").all("li")[0].text == "Unlimited searches"

    def test_recommended_plan_is_emphasized(self, app: Flask) -> None:
        person = Person(app)
        person.go("/plans")
        free, club = cards(person).values()

        assert "recommended" not in free.attributes["class"]
        assert "recommended" in club.attributes["class"]
        buttons = [card.one("a").attributes["class"] for card in (free, club)]
        assert buttons == ["button second", "button"]

    def test_visitor_can_create_an_account_from_each_card(self, app: Flask) -> None:
        person = Person(app)
        person.go("/plans")
        buttons = [card.one("a") for card in cards(person).values()]

        assert [(button.text, button.attributes["href"]) for button in buttons] == 2 * [
            ("Create an account", "/register")
        ]

    def test_owner_gets_an_upgrade_button_for_each_later_plan(self, app: Flask) -> None:
        tenant = register_tenant(app, "ann@example.com")
        person = person_of(tenant)
        person.go("/plans")
        (button,) = [link for link in person.page.all("a") if link.text == "Upgrade"]
        assert (
            button.attributes["href"]
            == f"https://pay.example/buy/club%20%26%20co?client_reference_id={tenant.account_id}"
        )
        assert button.attributes["aria-label"] == "Upgrade to Club & co"

        tenant.set_plan("club & co")
        person.go("/plans")
        assert "Upgrade" not in [link.text for link in person.page.all("a")]

    def test_other_members_see_no_upgrade_button(self, app: Flask) -> None:
        tenant = register_tenant(app, "ann@example.com")
        editor = add_member(tenant, "bo@example.com", "editor")
        shown = editor.client.get("/plans", headers={"Accept": "text/html"}).text
        assert "Your usage" in shown
        assert ">Upgrade<" not in shown


@pytest.mark.parametrize(
    ("contact", "address"),
    [
        ("help@example.com", "mailto:help@example.com?subject=Plan%20Pro"),
        ("https://example.com/help", "https://example.com/help"),
        ("Ann, room 12", ""),
        ("", ""),
    ],
)
def test_plan_without_a_price_links_to_the_contact(tmp_path: Path, contact: str, address: str) -> None:
    app = make_app(make_settings(tmp_path, operator_contact=contact, default_plan="free"))
    person = Person(app)
    person.go("/plans")
    card = cards(person)["Pro"]

    assert shown_price(card) == ("On request", "")
    links = [(link.text, link.attributes["href"]) for link in card.all("a")]
    assert links == ([("Ask us", address)] if address else [])
    assert shown_price(cards(person)["Free"]) == ("Free", "")
    close_app(app)


def test_plan_of_new_accounts_is_not_free_while_registration_is_closed(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, registration=False))
    person = Person(app)
    person.go("/plans")

    assert {shown_price(card)[0] for card in cards(person).values()} == {"On request"}
    assert person.page.one("ul", class_="plans").all("a") == []
    close_app(app)


def test_owner_can_ask_only_for_later_plans(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, operator_contact="help@example.com"))
    tenant = register_tenant(app, "ann@example.com")
    tenant.set_plan("pro")
    person = person_of(tenant)
    person.go("/plans")

    assert [name for name, card in cards(person).items() if card.all("a")] == ["Business", "Enterprise"]
    close_app(app)


@pytest.mark.parametrize(
    ("price", "parts"),
    [
        ("19 € a month", ("", "19 €", "a month")),
        ("$19/month", ("", "$19", "/month")),
        ("from 1,200.50 EUR / year", ("from", "1,200.50 EUR", "/ year")),
        ("CHF 19 per month", ("", "CHF 19", "per month")),
        ("US$19", ("", "US$19", "")),
        ("199 kr i måneden", ("", "199 kr", "i måneden")),
        ("1 200 € a year", ("", "1 200 €", "a year")),
        ("Free", ("", "Free", "")),
        ("19 a month", ("", "19 a month", "")),
        ("By agreement, billed once a year", ("", "", "By agreement, billed once a year")),
    ],
)
def test_amount_of_a_price_is_large(price: str, parts: tuple[str, str, str]) -> None:
    assert split_price(price) == parts
