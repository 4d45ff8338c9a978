"""A site owner's first day, from registration to inviting a colleague. SCREENSHOTS is a folder for screenshots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.people import Person
from tests.callers import PASSWORD
from tests.server import Server, running_server

pytestmark = pytest.mark.browser

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOUND = (
    "filters",
    "synonyms",
    "widget",
    "sources",
    "languages",
    "quota",
    "webhook signing",
    "facets",
    "typo",
    "backup",
)
MISSED = ("glossery of terms zz", "zzprice list", "zzlogin page", "zzrefund", "zzmobile app")
SEARCHES = 300
LOOKS = [(width, scheme) for width in (360, 1280) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service with a plan that allows a day's searches within a minute."""
    folder = tmp_path_factory.mktemp("first-day")
    with running_server(folder, default_plan="business", crawl_private_addresses="true") as running:
        yield running


class Owner(Person):
    """A person making a manual searchable."""

    def look(self, name: str, path: str | None = None) -> None:
        """Take screenshots of a page, if SCREENSHOTS is set."""
        folder = os.environ.get("SCREENSHOTS")
        if not folder:
            return
        if path is not None:
            self.go(path)
        for width, scheme in LOOKS:
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            height = self._size(width, 900) and self.driver.execute_script("return document.body.scrollHeight")
            self._size(width, min(int(height), 3000))
            self.driver.save_screenshot(str(Path(folder) / f"{name}-{width}-{scheme}.png"))
        self._size(1280, 900)

    def _size(self, width: int, height: int) -> bool:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        return True

    def in_box(self, css: str) -> Sequence[Any]:
        script = "return [...(document.querySelector('#site-search').shadowRoot?.querySelectorAll(arguments[0]) ?? [])]"
        found: Sequence[Any] = self.driver.execute_script(script, css)
        return found


def write_manual(folder: Path) -> int:
    """Write the documentation of this service as a website. Returns the number of its pages."""
    from app.pages.docs import render_markdown

    pages = {file.stem: render_markdown(file.read_text(encoding="utf-8")) for file in sorted(DOCS.glob("*.md"))}
    links = "".join(f'<a href="/{name}.html">{page.headings[0].text}</a>' for name, page in pages.items())
    for name, page in pages.items():
        folder.joinpath(f"{name}.html").write_text(
            f"<!doctype html><title>{page.headings[0].text} - Manual</title><nav>{links}</nav><main>{page.html}</main>",
            encoding="utf-8",
        )
    home = f"<!doctype html><title>Home - Manual</title><main><h1>Manual</h1><p>How the search works.</p></main>{links}"
    folder.joinpath("index.html").write_text(home, encoding="utf-8")
    return len(pages) + 1


def test_site_owner_can_complete_the_first_day_from_registration_to_an_invitation(
    server: Server, browser: Any, other_origin: tuple[str, Path]
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    address, folder = other_origin
    count = write_manual(folder)
    ann = Owner(browser, server.base_url)

    # A site filled by a crawl.
    ann.register("first-day@example.com")
    ann.look("01-dashboard-empty")
    site = ann.add_site("Manual", address)
    ann.look("02-source-create")
    ann.press("Start")
    ann.sees("Source added")
    ann.look("03-source")

    def is_read() -> bool:
        ann.go(f"/api{site}/sources")
        return "Up to date" in ann.text

    ann.wait(is_read, "the manual was not crawled")
    ann.look("04-sources")
    ann.press("Overview", "a")
    ann.look("05-overview")
    pages = ann.find(f".facts a[href='{site}/documents']").text
    assert int(pages) > count / 2, f"{pages} of {count} pages"

    # The search box on a page of the site.
    ann.press("Search box", "a")
    ann.wait(lambda: ann.in_box("input"), "the preview did not appear")
    ann.look("06-box")
    home = folder / "index.html"
    home.write_text(home.read_text(encoding="utf-8") + ann.find("#try-code").text, encoding="utf-8")
    ann.driver.get(address)
    ann.wait(lambda: ann.in_box("input"), "the box did not appear")
    ann.driver.execute_script("arguments[0].focus()", ann.in_box("input")[0])
    ActionChains(ann.driver).send_keys("synonyms").perform()
    ann.wait(lambda: ann.in_box(".hit"), "the box found nothing")

    # Visitors search and click.
    site_id = site.rpartition("/")[2]
    token = ann.make_key(site, "Server", "private")
    calls = requests.Session()
    calls.headers["Authorization"] = f"Bearer {token}"
    for number in range(SEARCHES):
        query = MISSED[number % 5] if number % 6 == 5 else FOUND[number % 10]
        visitor = f"visitor-{number % 40}"
        found = calls.get(f"{server.base_url}/v1/search", params={"q": query, "session_id": visitor}, timeout=30)
        assert found.status_code == 200, found.text
        hits = found.json()["results"]["hits"]
        if hits and number % 2:
            click = {"query": query, "id": hits[0]["id"], "position": 1, "session_id": visitor}
            sent = calls.post(f"{server.base_url}/api/v1/click", json=click, timeout=30)
            assert sent.status_code == 200, sent.text

    def are_known() -> bool:
        ann.go(f"/api/analytics/inbox?site_id={site_id}")
        return all(query in ann.text for query in MISSED)

    ann.wait(are_known, "the queries without results did not appear")
    ann.look("07-inbox")
    ann.look("08-analytics", f"/api/analytics?site_id={site_id}")
    host = address.removeprefix("http://")
    ann.wait(lambda: ann.go(site) or f"Seen on {host}" in ann.text, "the page of the box was not reported")
    ann.sees("without finding what they wanted")
    ann.look("09-overview-todo")
    ann.look("10-dashboard", "/dashboard")

    # Five queries without results: a synonym, a pin, a rule, links, and an ignored query.
    ann.go(f"/sites/{site_id}/inbox/synonym?q=zzrefund&synonyms=quota")
    ann.press("Save")
    ann.sees("zzrefund")
    ann.go(f"{site}/search-settings#pinned-row-0")
    ann.sees("Pages that come first for exactly this search.")
    ann.fill(**{"pinned.0.query": MISSED[0], "pinned.0.add": "Gloss"})
    option = "#pinned\\.0\\.add-options option"
    ann.wait(lambda: ann.texts(option) or ann.driver.find_elements("css selector", option), "no title was suggested")
    title = ann.find(option).get_attribute("value")
    ann.fill(**{"pinned.0.add": title})
    ann.wait(lambda: ann.texts("[data-pages='pinned.0'] .check label"), "the page was not picked")
    ann.fill(query=MISSED[0])
    ann.wait(lambda: "With these settings" in ann.text, "the effect of the pin was not shown")
    ann.look("11-tune")
    ann.press("Save")
    ann.sees("Search settings saved")
    ann.press("Rules", "a")
    ann.fill(
        **{
            "rules.0.when.match": "contains",
            "rules.0.when.query": "zzprice",
            "rules.0.do.notice.text": "Prices are on our main site.",
        }
    )
    ann.press("Save")
    ann.sees("Search settings saved")
    ann.press("Results", "a")
    ann.fill(**{"no_results_links.0.text": "All pages", "no_results_links.0.url": "/"})
    ann.look("12-tune-rules")
    ann.press("Save")
    ann.sees("Search settings saved")
    answer = calls.get(f"{server.base_url}/v1/search", params={"q": "zzprice list"}, timeout=30).json()["results"]
    assert answer["notice"]["text"] == "Prices are on our main site."
    pinned = calls.get(f"{server.base_url}/v1/search", params={"q": MISSED[0]}, timeout=30).json()["results"]
    assert f"{pinned['hits'][0]['title']} · {pinned['hits'][0]['url']}" == title
    ann.go(f"/api/analytics/inbox?site_id={site_id}")
    ann.press("Ignore")
    ann.sees("ignored")
    ann.look("13-inbox-after")

    # A URL that was not crawled, and a colleague.
    ann.go(f"/api{site}/sources")
    ann.fill(url=f"{address}/nowhere.html")
    ann.press("Look up")
    ann.sees("No source has found this URL")
    ann.look("14-lookup")
    for name, path in (
        ("15-keys", f"/api{site}/keys"),
        ("16-try", f"{site}/try?q=synonyms"),
        ("17-pages", f"{site}/documents"),
        ("18-audit-log", "/api/audit-log"),
        ("19-sites", "/sites"),
    ):
        ann.look(name, path)
    ann.go("/api/members")
    ann.fill(email="bo@example.com")
    ann.press("Create invitation")
    ann.sees("/invitations/")
    ann.look("20-members")
    link = next(text for text in ann.texts("code") if "/invitations/" in text)
    ann.driver.delete_all_cookies()
    ann.driver.get(link)
    ann.fill(name="Bo", password=PASSWORD)
    ann.press("Join")
    ann.sees("You’re now a member of this account")
    ann.go(site)
    ann.sees("Pages indexed")
