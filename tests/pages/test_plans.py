"""The plans page: public plans, a customer's own plan and usage, and the contact for upgrades."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from app.pages.plans import ROWS, contact_address
from app.plans import LIMIT_NAMES
from tests.callers import Tenant, page, register_tenant
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
    assert contact_address(contact) == address
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
