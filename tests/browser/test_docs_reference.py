"""The API reference in a browser: samples with the reader's key, request forms, and pages without layout shifts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.people import Person
from tests.browser.test_widget import Customer
from tests.callers import PASSWORD
from tests.server import Server

pytestmark = pytest.mark.browser

DOCUMENTS = "/docs/reference/documents"


class Reader(Person):
    """A person reading the reference."""

    def log_in(self, email: str) -> None:
        self.go("/login")
        self.fill(email=email, password=PASSWORD)
        self.press("Log in")
        self.sees("Dashboard")

    def click(self, css: str) -> None:
        found = self.find(css)
        self.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", found)
        found.click()

    def sample(self, operation: str) -> str:
        """Return the visible sample."""
        section = f"section[aria-labelledby='operation-{operation}']"
        (shown,) = [text for text in self.texts(f"{section} .samples .code") if text]
        return shown

    def trial(self, operation: str) -> str:
        """Open the form of an operation. Returns its selector."""
        section = f"section[aria-labelledby='operation-{operation}'] .trial"
        self.click(f"{section} > summary")
        self.wait(lambda: self.texts(f"{section} form"), "the form did not appear")
        return section

    def send(self, trial: str) -> None:
        self.click(f"{trial} .actions button")

    def sees_answer(self, trial: str, words: str) -> None:
        self.wait(lambda: words in self.find(f"{trial} .status").text, f"{words!r} did not appear")

    def shifts(self) -> float:
        """Return the cumulative layout shift since the page loaded."""
        script = """
            const done = arguments[0];
            let moved = 0;
            new PerformanceObserver((list) => {
              for (const entry of list.getEntries()) moved += entry.value;
            }).observe({ type: "layout-shift", buffered: true });
            requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(moved), 0)));
        """
        return float(self.driver.execute_async_script(script))


@pytest.fixture
def reader(server: Server, browser: Any) -> Reader:
    browser.set_window_size(1200, 900)
    return Reader(browser, server.base_url)


def test_reader_can_create_a_key_and_call_the_api_from_the_reference(server: Server, reader: Reader) -> None:
    customer = Customer(server, "reference@example.com")
    reader.log_in("reference@example.com")
    reader.go(DOCUMENTS)
    assert "YOUR_KEY" in reader.sample("indexDocuments")
    reader.click("#docs-make")
    reader.sees("It is in the code below")
    first = reader.find("#docs-key").get_attribute("value")
    assert first.startswith("svc_prv_")
    assert f"Bearer {first}" in reader.sample("indexDocuments")
    assert f"'{server.base_url}/api/v1/index/bulk'" in reader.sample("indexDocuments")

    trial = reader.trial("indexDocuments")
    reader.send(trial)
    reader.sees_answer(trial, "200 OK in ")
    sent = json.loads(reader.find(f"{trial} [name='body']").get_attribute("value"))["documents"]
    assert f'"indexed": {len(sent)}' in reader.find(f"{trial} .answer pre").text
    assert "X-RateLimit-Remaining" in reader.find(f"{trial} .headers").text

    trial = reader.trial("deleteDocument")
    reader.send(trial)
    reader.driver.switch_to.alert.dismiss()
    assert reader.find(f"{trial} .status").text == ""
    reader.send(trial)
    reader.driver.switch_to.alert.accept()
    reader.sees_answer(trial, "200 OK in ")
    reader.send(trial)
    reader.driver.switch_to.alert.accept()
    reader.sees_answer(trial, "404 ")
    assert "document_not_found" in reader.find(f"{trial} .answer pre").text

    reader.go("/docs/reference/keys")
    assert reader.find("#docs-key").get_attribute("value") == first
    assert first in reader.sample("listKeys")
    assert f"/api/sites/{customer.site_id}/keys" in reader.sample("listKeys")
    trial = reader.trial("listKeys")
    assert reader.find(f"{trial} [name='path.site_id']").get_attribute("value") == str(customer.site_id)
    reader.send(trial)
    reader.sees_answer(trial, "200 OK in ")
    assert reader.find(f"{trial} .answer pre").text.count('"Trying out the documentation"') == 1

    reader.click("#docs-make")
    reader.wait(lambda: reader.find("#docs-key").get_attribute("value") != first, "no other key was requested")
    reader.send(trial)
    reader.wait(lambda: "in " in reader.find(f"{trial} .status").text, "no response arrived")
    assert reader.find(f"{trial} .answer pre").text.count('"Trying out the documentation"') == 1, (
        "the first key must be deleted"
    )
    reader.go("/docs/start")
    assert "KEY=svc_prv_" in reader.text
    assert "svc_prv_…" not in reader.find("article pre").text


def test_gateway_form_uses_an_engine_key_derived_from_the_readers_key(server: Server, reader: Reader) -> None:
    Customer(server, "gateway@example.com")
    reader.log_in("gateway@example.com")
    reader.go("/docs/reference/engine")
    reader.click("#docs-make")
    reader.sees("It is in the code below")
    trial = reader.trial("engineSearchByQuery")
    reader.find(f"{trial} [name='query.q']").send_keys("lighthouse")
    reader.send(trial)
    reader.sees_answer(trial, "200 OK in ")
    assert "Opening hours" in reader.find(f"{trial} .answer pre").text


def test_anonymous_reader_sees_errors_for_missing_and_invalid_keys(reader: Reader) -> None:
    reader.go(DOCUMENTS)
    trial = reader.trial("listDocuments")
    reader.send(trial)
    reader.sees_answer(trial, "Enter your key")
    reader.find("#docs-key").send_keys("svc_prv_nothing")
    assert "Bearer svc_prv_nothing" in reader.sample("listDocuments")
    reader.send(trial)
    reader.sees_answer(trial, "401 ")
    assert "invalid_api_key" in reader.find(f"{trial} .answer pre").text


def test_pasted_key_fills_in_its_site(server: Server, reader: Reader) -> None:
    customer = Customer(server, "pasted@example.com")
    reader.go("/docs/reference/keys")
    assert "/api/sites/YOUR_SITE/keys" in reader.sample("listKeys")
    reader.find("#docs-key").send_keys(customer.private_key + "\t")
    reader.sees("The key works; its site is museum.example.com.")
    assert f"/api/sites/{customer.site_id}/keys" in reader.sample("listKeys")
    reader.find("#docs-key").send_keys("x\t")
    reader.sees("The API key is invalid: it is incomplete or mistyped.")
    assert "/api/sites/YOUR_SITE/keys" in reader.sample("listKeys")


def test_selected_sample_language_persists_across_pages(reader: Reader) -> None:
    reader.go(DOCUMENTS)
    assert reader.sample("listDocuments").startswith("curl")
    reader.click("label[for='indexDocuments-python']")
    assert reader.sample("listDocuments").startswith("import requests")
    reader.go("/docs/reference/sites")
    assert reader.sample("listSites").startswith("import requests")


def test_samples_work_without_scripts_and_forms_are_hidden(reader: Reader) -> None:
    reader.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    reader.go(DOCUMENTS)
    assert reader.sample("listDocuments").startswith("curl")
    reader.click("label[for='listDocuments-php']")
    assert reader.sample("listDocuments").startswith("<?php")
    assert reader.sample("indexDocuments").startswith("curl")
    assert not any(reader.texts(".trial"))
    assert not reader.find("#docs-key").is_displayed()


@pytest.mark.parametrize("path", ["/docs", "/docs/start", "/docs/limits", "/docs/errors", "/docs/api", DOCUMENTS])
def test_reference_pages_have_no_layout_shift_or_overflow_on_a_small_phone(
    server: Server, browser: Any, path: str
) -> None:
    size = {"width": 320, "height": 640, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    reader = Reader(browser, server.base_url)
    reader.go(path)
    browser.execute_script("sessionStorage.setItem('docs-key', 'svc_prv_' + 'x'.repeat(40))")
    browser.execute_script("document.cookie = 'docs_language=php; path=/docs'")
    reader.go(path)
    assert reader.shifts() == 0
    assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/docs#operation-createKey", "/docs/reference#operation-createKey"),
        ("/docs#schema-Hit", "/docs/reference/schemas#schema-Hit"),
        ("/docs#group-keys", "/docs/reference/keys"),
        ("/docs#api-reference", "/docs/reference"),
        ("/docs#a-tour", "/docs/readme#a-tour"),
        ("/docs/api#errors", "/docs/errors"),
        ("/docs/content#php", "/docs/sync#php"),
    ],
)
def test_links_to_former_sections_redirect_to_their_new_location(reader: Reader, old: str, new: str) -> None:
    reader.go(old)
    reader.wait(lambda: reader.driver.current_url == reader.base_url + new, f"{old} stays where it is")
