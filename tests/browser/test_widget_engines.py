"""The search box with engines that browsers reach directly, and with failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.pages.search_box import SCRIPT
from tests.browser.stub import CLOSE, OPEN, Stub, page_with, running_stub
from tests.browser.test_widget import Visitor

pytestmark = pytest.mark.browser

MEILISEARCH = {
    "hits": [
        {"title": "Opening hours", "url": "/hours", "excerpt": "When",
         "_formatted": {"title": "Opening hours", "content": f"We {OPEN}open{CLOSE} at <nine>"}},
        {"title": "", "url": "javascript:alert(1)", "excerpt": "", "_formatted": {"title": "", "content": "plain"}},
    ],
    "estimatedTotalHits": 7,
}  # fmt: skip
TYPESENSE = {
    "results": [{
        "found": 1,
        "hits": [{"document": {"title": "Opening hours", "url": "/hours", "content": "We open"},
                  "highlight": {"content": {"snippet": f"We {OPEN}open{CLOSE}"}}}],
    }],
}  # fmt: skip


@pytest.fixture
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        running.info = {"engine_host": running.base_url, "engine_public_key": "one.two.three", "index": "site_1_1"}
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    visitor = Visitor(browser, stub.base_url, tmp_path)
    visitor.go("/")
    visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
    return visitor


def test_meilisearch_is_queried_with_its_own_api(stub: Stub, visitor: Visitor) -> None:
    stub.answers["/indexes/site_1_1/search"] = [(200, MEILISEARCH)]
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == "7 results", "the results did not appear")
    assert visitor.titles() == ["Opening hours", "javascript:alert(1)"]
    assert [found.text for found in visitor.inside("mark")] == ["open"]
    assert [found.text for found in visitor.inside(".snippet")] == ["We open at <nine>", "plain"]
    assert [found.tag_name for found in visitor.inside(".hit")] == ["a", "div"], "a script URL must not become a link"
    ((_, authorization, body),) = [sent for sent in stub.sent if sent[0] == "/indexes/site_1_1/search"]
    assert authorization == "Bearer one.two.three"
    assert (body["q"], body["limit"]) == ("open", 8)


def test_typesense_is_queried_with_its_own_api(stub: Stub, visitor: Visitor) -> None:
    stub.info["engine_public_key"] = "c2NvcGVk=="
    stub.answers["/multi_search"] = [(200, TYPESENSE)]
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == "1 result", "the results did not appear")
    assert [found.text for found in visitor.inside("mark")] == ["open"]
    ((_, address, body),) = [sent for sent in stub.sent if sent[0] == "/multi_search"]
    assert address == "/multi_search?x-typesense-api-key=c2NvcGVk%3D%3D"
    assert (body["searches"][0]["collection"], body["searches"][0]["q"]) == ("site_1_1", "open")


MODULES = """<script type="module" src="/widget.js" data-key="svc_pub_test" data-placeholder="One"></script>
<script type="module" src="/widget.js" data-key="svc_pub_test" data-placeholder="Two" data-target="#other"></script>
<script data-key="svc_pub_unrelated" nonce="page">/* somebody else's */</script>"""


def test_box_can_be_loaded_as_a_module_and_more_than_once(stub: Stub, visitor: Visitor) -> None:
    stub.page = page_with(MODULES)
    stub.answers["/indexes/site_1_1/search"] = [(200, MEILISEARCH)]
    visitor.go("/")
    for selector, placeholder in (("#other", "Two"), ("#site-search", "One")):
        visitor.wait(lambda selector=selector: visitor.find(selector).shadow_root, "the box did not appear")
        box = visitor.find(selector).shadow_root.find_element("css selector", "input")
        assert box.get_attribute("placeholder") == placeholder
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == "7 results", "the results did not appear")


@pytest.mark.parametrize("kind", ["imported", "copied"])
def test_box_without_access_to_its_key_logs_how_to_load_it(stub: Stub, visitor: Visitor, kind: str) -> None:
    copied = SCRIPT.read_text().replace("</script>", "")
    own_text = copied if kind == "copied" else 'import("/widget.js")'
    stub.page = page_with(f'<script data-key="svc_pub_test" nonce="page">{own_text}</script>')
    visitor.driver.get_log("browser")
    visitor.go("/")
    messages: list[str] = []

    def is_logged() -> bool:
        messages.extend(entry["message"] for entry in visitor.driver.get_log("browser"))
        return any("Site search: load the box with" in message for message in messages)

    visitor.wait(is_logged, f"the message was not logged: {messages}")
    assert len(messages) == 1, "the box must log one message"


def test_typed_query_is_reported_as_one_search_and_the_final_query_is_logged(stub: Stub, visitor: Visitor) -> None:
    stub.answers["/indexes/site_1_1/search"] = [(200, MEILISEARCH)]
    for text in ("o", "pe", "n"):
        before = len(stub.bodies("/indexes/site_1_1/search"))
        visitor.type(text)
        visitor.wait(
            lambda before=before: len(stub.bodies("/indexes/site_1_1/search")) > before, "the box did not search"
        )
    visitor.wait(lambda: stub.bodies("/v1/report-usage"), "the usage was not reported")
    assert stub.bodies("/v1/report-usage") == [{"operation": "search", "count": 1, "index": "site_1_1"}]
    (logged,) = stub.bodies("/api/v1/search-log")
    assert (logged["query"], logged["results_count"]) == ("open", 7)
    assert logged["session_id"]
    assert logged["timestamp"].endswith("Z")
    visitor.inside(".wipe")[0].click()
    for text in ("tickets", "x"):
        before = len(stub.bodies("/indexes/site_1_1/search"))
        visitor.type(text)
        visitor.wait(
            lambda before=before: len(stub.bodies("/indexes/site_1_1/search")) > before, "the box did not search"
        )
    visitor.wait(lambda: len(stub.bodies("/v1/report-usage")) == 2, "the other query was not reported")
    assert [body["count"] for body in stub.bodies("/v1/report-usage")] == [1, 1]
    assert [body["query"] for body in stub.bodies("/api/v1/search-log")] == ["open", "ticketsx"]


def test_invalidated_engine_key_is_renewed_only_once_per_search(stub: Stub, visitor: Visitor) -> None:
    stub.answers["/indexes/site_1_1/search"] = [(403, {}), (200, MEILISEARCH)]
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == "7 results", "the results did not appear")
    assert len(stub.bodies("/v1/client-info")) == 2
    stub.answers["/indexes/site_1_1/search"] = [(403, {})]
    visitor.type("s")
    visitor.wait(lambda: visitor.told() == "Search is not available.", "the message did not appear")
    assert len(stub.bodies("/v1/client-info")) == 3


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "Search is busy at the moment. Please try again later."), (503, "Search cannot be reached at the moment.")],
)
def test_failure_message_is_shown_and_the_next_search_retries(
    stub: Stub, visitor: Visitor, status: int, words: str
) -> None:
    stub.answers["/indexes/site_1_1/search"] = [(status, {}), (200, MEILISEARCH)]
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == words, "the message did not appear")
    visitor.type("s")
    visitor.wait(lambda: visitor.told() == "7 results", "the box did not try again")


def test_failed_usage_report_is_sent_again_with_its_own_id(stub: Stub, visitor: Visitor) -> None:
    stub.answers["/indexes/site_1_1/search"] = [(200, MEILISEARCH)]
    stub.answers["/v1/report-usage"] = [(503, {}), (200, {"success": True})]
    visitor.type("open")
    visitor.wait(lambda: len(stub.bodies("/v1/report-usage")) == 1, "the usage was not reported")
    visitor.inside(".wipe")[0].click()
    visitor.type("hours")
    visitor.wait(lambda: len(stub.bodies("/v1/report-usage")) == 3, "the report was not repeated")
    assert [body["count"] for body in stub.bodies("/v1/report-usage")] == [1, 1, 1]
    reports = [headers for path, headers in stub.headers if path == "/v1/report-usage"]
    ids = [headers["Idempotency-Key"] for headers in reports if "Idempotency-Key" in headers]
    assert len(ids) == 3
    assert ids[0] in ids[1:]
    assert len(set(ids)) == 2
