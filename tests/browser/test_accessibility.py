"""Every page passes axe, the standard accessibility checks, in light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyotp
import pytest

from tests.browser.people import Person
from tests.browser.stub import CLOSE as MARK_END
from tests.browser.stub import OPEN as MARK
from tests.browser.stub import SCRIPT_ELEMENT, page_with, running_stub
from tests.browser.test_widget import Customer, Visitor
from tests.browser.test_widget_engines import MEILISEARCH
from tests.browser.test_widget_results import FOUND, PLACE, SEARCH, Searcher
from tests.callers import PASSWORD
from tests.packages import install_packages
from tests.server import Server

pytestmark = pytest.mark.browser

LOOKS = [("light", 1200), ("dark", 360)]
OPEN = [
    "/",
    "/plans",
    "/login",
    "/register",
    "/password/forgot",
    "/docs",
    "/docs/search-box",
    "/docs/gateway",
    "/docs/reference",
    "/docs/reference/documents",
    "/nope",
]
MINE = [
    "/",
    "/plans",
    "/dashboard",
    "/api/collections",
    "/collections/create",
    "/api/collections/{collection}",
    "/api/collections/{collection}/keys",
    "/collections/{collection}/edit",
    "/collections/{collection}/try?q=lighthouse",
    "/sites",
    "/sites/create",
    "/sites/{site}",
    "/sites/{site}/edit",
    "/sites/{site}/documents",
    "/sites/{site}/documents?q=lighthouse",
    "/sites/{site}/documents?id=page-1",
    "/sites/{site}/import",
    "/sites/{site}/box",
    "/sites/{site}/search-settings",
    *(f"/sites/{{site}}/search-settings/{name}" for name in ("rules", "pinned", "ranking", "results", "advanced")),
    "/sites/{site}/try",
    "/sites/{site}/try?q=lighthouse",
    "/sites/{site}/try?q=zeppelin",
    *(f"/sites/{{site}}/sources/create?kind={kind}" for kind in ("website", "wordpress", "api")),
    "/sites/{site}/sources/{source}/edit",
    "/api/sites/{site}/sources",
    "/api/sites/{site}/sources/lookup?url=museum.example.com/nope",
    "/api/sites/{site}/sources/{source}",
    "/api/sites/{site}/sources/{source}/runs",
    "/api/sites/{site}/sources/{source}/runs/{run}",
    "/sites/{site}/import",
    "/api/sites/{site}/keys",
    "/api/analytics",
    "/api/analytics?site_id={site}",
    "/api/analytics?site_id={site}&list=zero_result_queries",
    "/api/analytics/query?site_id={site}&q=zeppelin",
    "/api/analytics/inbox?site_id={site}",
    "/sites/{site}/inbox/synonym?q=zeppelin+tour&synonyms=lighthouse",
    "/sites/{site}/inbox/pin?q=lighthouse",
    "/sites/{site}/inbox/pin?q=zeppelin&id=page-1",
    "/profile/edit",
    "/api/webhooks",
    "/docs/start",
    "/docs/reference/keys",
    "/nope",
]

VERSION = '<meta name="site-search:version" content="2.1">'
TOLD = {
    "notice": {"text": "Closed on Mondays", "url": "/closed"},
    "answer": {"text": "On Sundays we open at ten.", "id": "hours", "url": "/", "anchor": "sundays"},
}
SUGGESTED = [
    {"text": "opening hours", "kind": "query"},
    {"text": "Open day", "kind": "title", "url": "/day"},
]
HIT = {
    "breadcrumbs": ["Visit"],
    "date": "2024-05-01",
    "id": "hours",
    "title": "Opening hours",
    "url": "/",
    "version": "2.0",
    "sections": [
        {
            "anchor": anchor,
            "title": "Open at nine",
            "path": ["Summer"],
            "url": f"/#{anchor}",
            "_formatted": {"title": f"{MARK}Open{MARK_END} at nine", "content": f"We {MARK}open{MARK_END} at nine"},
        }
        for anchor in ("weekdays", "sundays")
    ],
}
"""A result with sections, of another version than the page with ``VERSION``."""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of axe-core's script."""
    folder = tmp_path_factory.mktemp("axe")
    install_packages(Path(__file__).with_name("package.json"), folder)
    return folder / "node_modules" / "axe-core" / "axe.min.js"


Look = Callable[..., list[str]]


@pytest.fixture(params=LOOKS, ids=["light and wide", "dark and narrow"])
def look(browser: Any, axe: Path, request: pytest.FixtureRequest) -> Look:
    """Return axe's findings for the open page or a part of it, with everything unfolded."""
    scheme, width = request.param
    browser.set_script_timeout(120)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def find_violations(part: str = "html") -> list[str]:
        browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true;")
        browser.execute_script(axe.read_text())
        script = "axe.run(arguments[0], { resultTypes: ['violations'] }).then(arguments[1])"
        violations = browser.execute_async_script(script, part)["violations"]
        wrong = [f"{found['id']}: {node['target']}" for found in violations for node in found["nodes"]]
        across = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        return wrong + ([f"{across} px wider than the window"] if across > 0 else [])

    return find_violations


def test_every_page_passes_axe(server: Server, browser: Any, look: Look, tmp_path: Path) -> None:
    email = f"{tmp_path.name.strip('_')}@example.com"
    customer = Customer(server, email)
    source = customer.make_source("https://museum.example.com/")
    collection = customer.make_collection()
    for query in ("lighthouse", "zeppelin"):
        customer.search(query, "visitor")
    wrong: dict[str, list[str]] = {}
    ann = Person(browser, server.base_url)
    for path in OPEN:
        ann.go(path)
        wrong[path] = look()
    ann.go("/login")
    ann.fill(email=email, password=PASSWORD)
    ann.press("Log in")
    ann.sees("Dashboard")
    for template in MINE:
        path = template.format(
            site=customer.site_id, source=source["id"], run=source["last_run"]["id"], collection=collection
        )
        ann.go(path)
        wrong[f"{path}, logged in"] = look()
    ann.go(f"/sites/{customer.site_id}/try?q=lighthouse")
    ann.press("Hide")
    ann.sees("is hidden from the search")
    wrong["hidden"] = look()
    ann.go(f"/sites/{customer.site_id}/search-settings/pinned")
    ann.fill(**{"pinned.0.query": "lighthouse", "pinned.0.add": "page-2", "query": "lighthouse"})
    ann.press("Preview")
    ann.sees("With these settings")
    wrong["settings preview"] = look()
    assert {path: found for path, found in wrong.items() if found} == {}


def test_source_preview_form_error_and_crawl_report_pass_axe(
    server: Server, browser: Any, look: Look, tmp_path: Path, other_origin: tuple[str, Path]
) -> None:
    base_url, folder = other_origin
    folder.joinpath("index.html").write_text(
        "<title>Museum</title><main><p>Ships and lighthouses of the harbour.</p></main><a href=/gone.html>Gone</a>"
    )
    wrong: dict[str, list[str]] = {}
    kim = Person(browser, server.base_url)
    kim.register(f"kim-{tmp_path.name.strip('_')}@example.com")
    kim.add_site("Museum", base_url)
    kim.fill(url="https://example.org")
    kim.press("Preview the page")
    kim.sees("must be")
    wrong["mistake"] = look()
    kim.fill(url=base_url)
    kim.press("Preview the page")
    kim.sees("Preview of this page")
    wrong["preview"] = look()
    kim.press("Start")
    kim.sees("Source added")
    wrong["progress"] = look()
    kim.sees("1 page indexed. 1 dead link found.")
    wrong["report"] = look()
    assert {state: found for state, found in wrong.items() if found} == {}


def test_two_factor_setup_and_login_pass_axe(server: Server, browser: Any, look: Look, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    email = f"kay-{tmp_path.name.strip('_')}@example.com"
    kay = Person(browser, server.base_url)
    kay.register(email)
    kay.go("/profile/edit")
    kay.find("#codes-current_password").send_keys(PASSWORD)
    kay.press("Set up two-factor authentication")
    kay.sees("First code")
    wrong["setting up"] = look()
    app = pyotp.parse_uri(kay.find("a[href^='otpauth:']").get_attribute("href"))
    assert isinstance(app, pyotp.TOTP)
    kay.fill(code="000000")
    kay.press("Turn on two-factor authentication")
    kay.sees("Please correct this")
    wrong["mistake"] = look()
    kay.fill(code=app.now())
    kay.press("Turn on two-factor authentication")
    kay.sees("Two-factor authentication is on.")
    wrong["recovery codes"] = look()
    recovery = kay.find("pre").text.split()
    kay.go("/profile/edit")
    wrong["profile"] = look()
    browser.delete_all_cookies()
    kay.go("/login")
    kay.fill(email=email, password=PASSWORD)
    kay.press("Log in")
    kay.sees("Enter your code")
    wrong["second step"] = look()
    kay.fill(code=recovery[0])
    kay.press("Log in")
    kay.sees("Dashboard")
    kay.go("/profile/edit")
    kay.press("End all other sessions")
    kay.sees("All your other sessions have ended.")
    server.flask("account", "operator", email)
    for path in ("/operator", "/operator/health", "/operator/charts"):
        kay.go(path)
        wrong[path] = look()
    kay.go("/operator")
    kay.go(kay.find("tbody a").get_attribute("href").removeprefix(server.base_url))
    kay.sees("Plan and own limits")
    wrong["account for operators"] = look()
    assert {state: found for state, found in wrong.items() if found} == {}


@pytest.mark.parametrize("mode", ["inline", "modal"])
@pytest.mark.parametrize("attributes", ['lang="en"', 'lang="ar" dir="rtl"'], ids=["left to right", "right to left"])
def test_search_box_passes_axe(browser: Any, look: Look, tmp_path: Path, mode: str, attributes: str) -> None:
    from selenium.webdriver.common.keys import Keys

    with running_stub() as stub:
        stub.policy = ""  # axe is not one of the page's own scripts.
        visitor = Visitor(browser, stub.base_url, tmp_path)
        stub.info = {
            "engine_host": f"{stub.base_url}/engine", "engine_public_key": "engine", "index": "site_7", "ask": True,
        }  # fmt: skip
        stub.answers["/engine/indexes/site_7/search"] = [
            (200, {**MEILISEARCH, **TOLD, "suggestions": SUGGESTED, "hits": [HIT, *MEILISEARCH["hits"]]})
        ]
        script = SCRIPT_ELEMENT.replace("async", f'data-mode="{mode}" data-theme="auto" data-recent="true" async')
        stub.page = page_with(script, attributes=attributes, body=VERSION)
        visitor.go("/")
        visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
        wrong = {"before": look("#site-search")}
        if mode == "modal":
            visitor.inside("button.open")[0].click()
        visitor.type("open")
        visitor.wait(lambda: visitor.titles() and visitor.inside(".ask"), "the results did not appear")
        wrong["results"] = look("#site-search")
        visitor.type(Keys.ARROW_UP)
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "suggestion-0"
        wrong["suggestion"] = look("#site-search")
        visitor.type(Keys.ENTER, *[Keys.BACKSPACE] * len("opening hours"))
        visitor.wait(lambda: visitor.inside("#recent-0"), "the typed text was not restored")
        wrong["recent searches"] = look("#site-search")
        assert {state: found for state, found in wrong.items() if found} == {}


@pytest.mark.parametrize("place", ["", PLACE], ids=["over the page", "in the page"])
def test_full_view_of_results_passes_axe(browser: Any, look: Look, tmp_path: Path, place: str) -> None:
    with running_stub() as stub:
        stub.info = {"engine_host": f"{stub.base_url}/engine", "engine_public_key": "engine", "index": "site_7"}
        stub.answers[SEARCH] = [(200, {**FOUND, **TOLD, "hits": [HIT, *FOUND["hits"]]})]
        stub.policy = ""  # The page's policy does not allow axe's script.
        script = SCRIPT_ELEMENT.replace("async", 'data-theme="auto" async')
        stub.page = page_with(script, body=f"{VERSION}<main><h1>Museum</h1>{place}</main>")
        visitor = Searcher(browser, stub.base_url, tmp_path)
        visitor.go("/?q=page&f.section=help")
        visitor.finds("30 results (20 of 30)")
        for unfold in visitor.seen(".unfold"):
            if unfold.is_displayed():
                unfold.click()
        assert look("#all" if place else "#site-search") == []
