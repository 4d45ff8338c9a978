"""The webhook pages in a real browser: an owner's tasks, layout, and accessibility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.people import Person
from tests.browser.test_accessibility import Look, axe, look  # noqa: F401  # Fixtures.
from tests.browser.test_layout import PHONE, SCREEN, log_in, resize, wrong_of
from tests.browser.test_widget import Customer
from tests.server import Server

pytestmark = pytest.mark.browser

URL = "https://a-receiver-with-quite-a-long-name.invalid/hooks/of/the/site/search/with/a/long/path?and=parameters"


def test_owner_can_create_a_webhook_and_see_why_deliveries_fail(
    server: Server,
    browser: Any,
    look: Look,  # noqa: F811
    tmp_path: Path,
) -> None:
    email = f"hooks-{tmp_path.name.strip('_')}@example.com"
    customer = Customer(server, email)
    wrong: dict[str, list[str]] = {}
    ann = Person(browser, server.base_url)
    log_in(ann, email)
    ann.go("/api/webhooks")
    ann.fill(url="ftp://example.com/")
    ann.press("Create webhook")
    ann.sees("must be a web address, such as")
    wrong["mistake"] = look()
    ann.fill(url=URL)
    ann.press("Create webhook")
    ann.sees("It won’t be shown again.")
    assert ann.find("pre").text.startswith("whsec_")
    wrong["secret"] = look()
    requests.get(
        f"{server.base_url}/sites",
        headers={"Authorization": f"Bearer {customer.private_key}", "Origin": "https://shop.example"},
        timeout=30,
    )
    ann.press(URL, "main//a")

    def has_failed() -> bool:
        ann.driver.refresh()
        return "does not resolve." in ann.text

    ann.wait(has_failed, "the event was not sent")
    ann.sees("key.exposed")
    wrong["deliveries"] = look()
    for size in (PHONE, SCREEN):
        resize(browser, size)
        ann.driver.refresh()
        wrong[f"{size[0]} px"] = wrong_of(browser)
    ann.press("Send again")
    ann.sees("sent again within seconds")
    ann.press("Turn off")
    ann.sees("Webhook turned off")

    assert {state: found for state, found in wrong.items() if found} == {}
