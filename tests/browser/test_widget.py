"""The search box on a tenant's page of another origin."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.people import Person
from tests.callers import PASSWORD, page
from tests.server import Server

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror=\"document.title='pwned'\">"


class Customer:
    """An account with a site and a few pages, created through the API."""

    def __init__(self, server: Server, email: str):
        self.base_url = server.base_url
        self.email = email
        self.http = requests.Session()
        self.http.headers["X-CSRF-Token"] = self.call(
            "POST", "/register", {"name": "Ann", "email": email, "password": PASSWORD}
        )["csrf_token"]
        self.site_id = self.call("POST", "/sites", {"name": "Museum", "url": "https://museum.example.com"})["site"][
            "id"
        ]
        self.public_key = self.make_key("public")
        self.private_key = self.make_key("private")
        documents = [
            page(1, title="Opening hours", content="The lighthouse opens at nine."),
            page(
                2,
                title=f"Lighthouse tickets {EVIL}",
                content=f"Tickets for the lighthouse. {EVIL}",
                url="/tickets.html",
            ),
        ]
        self.send(*documents)

    def send(self, *documents: dict[str, Any]) -> None:
        """Index documents."""
        sent = requests.post(
            f"{self.base_url}/api/v1/index/bulk",
            json={"documents": documents},
            headers={"Authorization": f"Bearer {self.private_key}"},
            timeout=30,
        )
        assert sent.status_code == 200, sent.text

    def make_key(self, kind: str) -> str:
        token: str = self.call("POST", f"/api/sites/{self.site_id}/keys", {"name": kind, "type": kind})["api_key"]
        return token

    def search(self, query: str, session_id: str) -> None:
        """Search with a server key, for one visitor."""
        found = requests.get(
            f"{self.base_url}/v1/search",
            {"q": query, "session_id": session_id},
            headers={"Authorization": f"Bearer {self.private_key}"},
            timeout=30,
        )
        assert found.status_code == 200, found.text

    def make_source(self, url: str) -> dict[str, Any]:
        made = self.call("POST", f"/api/sites/{self.site_id}/sources", {"kind": "website", "url": url})
        source: dict[str, Any] = made["source"]
        return source

    def make_collection(self) -> int:
        body = {"name": "Everything", "sites": [{"site_id": self.site_id, "label": "Museum"}]}
        return int(self.call("POST", "/api/collections", body)["collection"]["id"])

    def pause(self) -> None:
        self.call("PUT", f"/sites/{self.site_id}", {"active": False})

    def used_today(self) -> int:
        answer = requests.get(
            f"{self.base_url}/v1/client-info", headers={"Authorization": f"Bearer {self.public_key}"}, timeout=30
        )
        used: int = answer.json()["limits"]["used_today"]
        return used

    def searched(self) -> dict[str, int]:
        analytics = self.http.get(f"{self.base_url}/api/analytics", timeout=30).json()
        return {item["query"]: item["count"] for item in analytics["top_queries"]}

    def clicks(self) -> tuple[int, float]:
        """Return the number of clicks, and their average position."""
        analytics = self.http.get(f"{self.base_url}/api/analytics", timeout=30).json()
        return analytics["clicks"], analytics["average_click_position"]

    def call(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call the API in the owner's session."""
        answer = self.http.request(method, self.base_url + path, json=body, timeout=30)
        assert answer.ok, answer.text
        result: dict[str, Any] = answer.json()
        return result


class Visitor(Person):
    """A visitor of the tenant's page."""

    def __init__(self, driver: Any, origin: str, folder: Path):
        super().__init__(driver, origin)
        self.folder = folder

    def open(self, base_url: str, public_key: str, **attributes: str) -> None:
        """Open a page with the two HTML lines of the search box, and the strictest security policy that allows them."""
        policy = f"default-src 'none'; script-src {base_url}; connect-src {base_url}"
        data = "".join(f' data-{name}="{value}"' for name, value in attributes.items())
        (self.folder / "index.html").write_text(
            f"""<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">
            <meta http-equiv="Content-Security-Policy" content="{policy}"><title>Museum</title><h1>Museum</h1>
            <div id="site-search"></div>
            <script src="{base_url}/widget.js" data-key="{public_key}"{data} async></script></html>"""
        )
        (self.folder / "tickets.html").write_text("<!doctype html><title>Tickets</title><h1>Tickets</h1>")
        self.go("/index.html")
        self.wait(lambda: self.find("#site-search").shadow_root, "the box did not appear")

    def inside(self, css: str) -> Any:
        from selenium.webdriver.common.by import By

        return self.find("#site-search").shadow_root.find_elements(By.CSS_SELECTOR, css)

    def type(self, *keys: str) -> None:
        """Press keys in the box. A longer text is inserted in one step, as by an input method, so it is one search.

        Sending keys to the element would move the focus away and back each time.
        """
        from selenium.webdriver.common.action_chains import ActionChains

        box = self.inside("input")[0]
        if self.driver.execute_script("return arguments[0].getRootNode().activeElement !== arguments[0]", box):
            box.click()
        for is_text, group in groupby(keys, lambda key: len(key) > 1):
            if is_text:
                self.driver.execute_cdp_cmd("Input.insertText", {"text": "".join(group)})
            else:
                ActionChains(self.driver).send_keys(*group).perform()

    def told(self) -> str:
        return " ".join(found.text for found in self.inside(".status"))

    def titles(self) -> list[str]:
        return [found.text for found in self.inside(".title")]


@pytest.fixture
def visitor(browser: Any, other_origin: tuple[str, Path]) -> Visitor:
    return Visitor(browser, *other_origin)


def test_visitor_finds_a_page_by_keyboard_and_the_search_is_counted_once(server: Server, visitor: Visitor) -> None:
    from selenium.webdriver.common.keys import Keys

    customer = Customer(server, "finds@example.com")
    visitor.open(customer.base_url, customer.public_key, placeholder="Find it")
    box = visitor.inside("input")[0]
    assert box.get_attribute("placeholder") == "Find it"
    assert box.get_attribute("aria-expanded") == "false"

    visitor.type(*"lighthose")
    visitor.wait(
        lambda: visitor.told() == "Showing results for “lighthouse”: 2 results", "the corrected results did not appear"
    )
    assert box.get_attribute("aria-expanded") == "true"
    assert [found.text.lower() for found in visitor.inside("mark")] == ["lighthouse"] * len(visitor.inside("mark"))
    assert visitor.inside("mark")
    assert f"Lighthouse tickets {EVIL}" in visitor.titles()
    assert not visitor.inside("img")
    assert visitor.driver.title == "Museum"

    visitor.wait(lambda: customer.searched() == {"lighthose": 1}, f"the search was not logged: {customer.searched()}")
    assert customer.used_today() == 1

    assert box.get_attribute("aria-activedescendant") == "hit-0", "the first result must be selected"
    position = visitor.titles().index(f"Lighthouse tickets {EVIL}")
    visitor.type(*[Keys.ARROW_DOWN] * position)
    assert box.get_attribute("aria-activedescendant") == f"hit-{position}"
    assert visitor.inside(f"#hit-{position}")[0].get_attribute("aria-selected") == "true"
    visitor.type(Keys.ENTER)
    visitor.wait(lambda: visitor.driver.title == "Tickets", "the selected result did not open")
    assert customer.searched() == {"lighthose": 1}
    assert customer.used_today() == 1


def test_selecting_a_result_at_once_logs_the_search_and_click_before_leaving(server: Server, visitor: Visitor) -> None:
    customer = Customer(server, "leaves@example.com")
    visitor.open(customer.base_url, customer.public_key)
    visitor.type("tickets")
    visitor.wait(lambda: visitor.titles(), "the results did not appear")
    visitor.inside(".hit")[0].click()
    visitor.wait(lambda: visitor.driver.title == "Tickets", "the selected result did not open")
    visitor.wait(lambda: customer.searched() == {"tickets": 1}, "the search was not logged")
    visitor.wait(lambda: customer.clicks() == (1, 1.0), "the click was not counted")
    assert customer.used_today() == 1


def test_escape_closes_the_results_and_arrow_down_reopens_them(server: Server, visitor: Visitor) -> None:
    from selenium.webdriver.common.keys import Keys

    customer = Customer(server, "keys@example.com")
    visitor.open(customer.base_url, customer.public_key, lang="de")
    visitor.type("lighthouse")
    visitor.wait(lambda: visitor.told() == "2 Treffer", "the results did not appear")
    visitor.type(Keys.ESCAPE)
    assert not visitor.inside(".panel")[0].is_displayed()
    assert visitor.inside("input")[0].get_attribute("value") == "lighthouse"
    visitor.type(Keys.ARROW_DOWN)
    assert visitor.inside(".panel")[0].is_displayed()


def test_search_without_results_shows_a_message(server: Server, visitor: Visitor) -> None:
    customer = Customer(server, "nothing@example.com")
    visitor.open(customer.base_url, customer.public_key)
    visitor.type("<b>zeppelin")
    visitor.wait(lambda: visitor.told() == "Nothing matches “<b>zeppelin”.", "the message did not appear")


def test_exhausted_search_quota_shows_a_message(server: Server, visitor: Visitor) -> None:
    customer = Customer(server, "spent@example.com")
    server.set_plan("spent@example.com", "pro", searches_per_day=1)
    visitor.open(customer.base_url, customer.public_key)
    visitor.type("lighthouse")
    visitor.wait(lambda: visitor.told() == "2 results", "the results did not appear")
    visitor.inside("input")[0].clear()
    visitor.type("hours")
    visitor.wait(lambda: visitor.told().startswith("Search is busy at the moment"), "the message did not appear")
    assert customer.used_today() == 1


def test_paused_site_shows_a_message(server: Server, visitor: Visitor) -> None:
    customer = Customer(server, "paused@example.com")
    visitor.open(customer.base_url, customer.public_key)
    customer.pause()
    visitor.type("lighthouse")
    visitor.wait(lambda: visitor.told() == "Search is turned off.", "the message did not appear")


def test_invalidated_engine_key_is_renewed(server: Server, visitor: Visitor) -> None:
    customer = Customer(server, "renew@example.com")
    visitor.open(customer.base_url, customer.public_key)
    visitor.type("hours")
    visitor.wait(lambda: visitor.told() == "1 result", "the results did not appear")
    customer.pause()
    customer.call("PUT", f"/sites/{customer.site_id}", {"active": True})
    visitor.inside("input")[0].clear()
    visitor.type("tickets")
    visitor.wait(lambda: visitor.told() == "1 result" and "tickets" in visitor.titles()[0], "the key was not renewed")
