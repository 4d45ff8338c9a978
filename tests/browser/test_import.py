"""The import form in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.people import Person
from tests.browser.test_layout import log_in
from tests.browser.test_widget import Customer
from tests.server import Server

pytestmark = pytest.mark.browser


def test_import_form_proposes_the_format_and_asks_for_the_url_before_sending(
    server: Server, browser: Any, tmp_path: Path
) -> None:
    email = f"import-{tmp_path.name.strip('_')}@example.com"
    customer = Customer(server, email)
    ann = Person(browser, server.base_url)
    log_in(ann, email)
    ann.go(f"/sites/{customer.site_id}/import")
    page = tmp_path / "Opening-hours.MD"
    page.write_text("# Opening hours\n\nOpen from 9 to 5.\n")

    ann.find("#file").send_keys(str(page))
    assert ann.find("#format").get_attribute("value") == "file"
    ann.find("form.card button").click()
    assert browser.execute_script("return document.activeElement.name") == "url"
    assert browser.execute_script("return document.querySelector('#file').files.length") == 1
    ann.fill(url="/hours")
    ann.press("Import")
    ann.sees("1 page imported")


def test_import_form_does_not_replace_a_format_that_was_chosen(server: Server, browser: Any, tmp_path: Path) -> None:
    email = f"format-{tmp_path.name.strip('_')}@example.com"
    customer = Customer(server, email)
    ann = Person(browser, server.base_url)
    log_in(ann, email)
    ann.go(f"/sites/{customer.site_id}/import")
    (tmp_path / "records.json").write_text("[]")
    (tmp_path / "pages.csv").write_text("id,title,content,url\n")

    browser.execute_script("document.querySelector('#format').value = 'algolia'")
    ann.find("#file").send_keys(str(tmp_path / "records.json"))
    assert ann.find("#format").get_attribute("value") == "algolia"
    browser.execute_script("document.querySelector('#format').value = ''")
    ann.find("#file").send_keys(str(tmp_path / "pages.csv"))
    assert ann.find("#format").get_attribute("value") == "csv"
