"""The plans page: public plans, a customer's own plan and usage, and the contact for upgrades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from app.pages.layout import contact_url
from app.pages.plans import ROWS
from app.plans import LIMIT_NAMES
from tests.callers import Tenant, add_member, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.pages.people import Person, person_of


def cells(person: Person) -> dict[str, list[str]]:
    """Map each row's heading to its cells."""
    rows = person.page.one("tbody").all("tr")
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in rows}


def test_plans_page_is_public(app: Flask) -> None:
    person = Person(app)
    person.go("/plans")

    headings = [heading.text for heading in person.page.one("thead").all("th")]
    assert headings == ["free", "starter", "pro", "business", "enterprise"]
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

    assert "pro Your plan" in [heading.text for heading in person.page.one("thead").all("th")]
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
    ("contact", "said", "address"),
    [
        ("", "the operator of this service", ""),
        ("help@example.com", "help@example.com", "mailto:help@example.com"),
        ("https://example.com/help", "https://example.com/help", "https://example.com/help"),
        ("Ann, room 12", "Ann, room 12", ""),
        ("javascript:alert(1)", "javascript:alert(1)", ""),
    ],
)
def test_contact_for_plan_changes_is_shown(tmp_path: Path, contact: str, said: str, address: str) -> None:
    assert contact_url(contact) == address
    app = make_app(make_settings(tmp_path, operator_contact=contact))
    person = person_of(register_tenant(app, "ann@example.com"))

    shown = person.go("/plans")

    assert f"ask {said}" in shown.text
    assert (address in [link.attributes.get("href") for link in shown.all("a")]) == bool(address)
    close_app(app)


def test_closed_registration_shows_contact(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, registration=False, operator_contact="help@example.com"))

    shown = Person(app).go("/plans")

    assert "Registration is closed. To get an account, ask help@example.com." in shown.text
    close_app(app)


def test_dashboard_links_to_plans(tenant: Tenant) -> None:
    person = person_of(tenant)
    person.go("/dashboard")

    assert person.follow("Plan: pro").one("h1").text == "Plans and pricing"


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

    def test_prices_and_descriptions_are_on_the_plans_page_and_the_landing_page(self, app: Flask) -> None:
        person = Person(app)
        person.go("/plans")
        assert cells(person)["Price"] == ["–", "19 € a month"]
        assert cells(person)["Suited for"] == ["For <trying> it", "–"]
        assert "For prices, ask" not in person.page.text
        assert not person.page.all("a", string="Upgrade")

        shown = person.go("/").text
        assert "19 € a month" in shown
        assert "For <trying> it" in shown

    def test_owner_gets_an_upgrade_button_for_each_later_plan(self, app: Flask) -> None:
        tenant = register_tenant(app, "ann@example.com")
        person = person_of(tenant)
        person.go("/plans")
        (button,) = [link for link in person.page.all("a") if link.text == "Upgrade"]
        assert (
            button.attributes["href"]
            == f"https://pay.example/buy/club%20%26%20co?client_reference_id={tenant.account_id}"
        )

        tenant.set_plan("club & co")
        person.go("/plans")
        assert "Upgrade" not in [link.text for link in person.page.all("a")]

    def test_other_members_see_no_upgrade_button(self, app: Flask) -> None:
        tenant = register_tenant(app, "ann@example.com")
        editor = add_member(tenant, "bo@example.com", "editor")
        shown = editor.client.get("/plans", headers={"Accept": "text/html"}).text
        assert "Your usage" in shown
        assert ">Upgrade<" not in shown


def test_without_prices_the_page_names_the_operator(app: Flask) -> None:
    person = Person(app)
    shown = person.go("/plans").text
    assert "For prices, ask the operator of this service." in shown
    assert {"Price", "Suited for", "Change plan"}.isdisjoint(cells(person))
