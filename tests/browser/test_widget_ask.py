"""Questions in the search box: a visitor asks, reads, copies, rates, and goes back to the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests

from tests.browser.test_box_page import Reader
from tests.browser.test_widget import Customer, Visitor
from tests.callers import PASSWORD, page
from tests.patience import PATIENCE_SECONDS, eventually
from tests.server import Server, running_server
from tests.services.asks.model_server import END, STREAM, ModelServer, event, run_model_server, sending, writing

pytestmark = pytest.mark.browser

QUESTION = "when does the lighthouse open"
LONG_ANSWER = (
    "It opens at **nine** [1].\n\n",
    "You need:\n- a ticket [2], `ticket --print`\n- a <b>coat</b> <img src=x onerror=alert(1)>\n\n",
    "```\nlighthouse --open <now>\n```\n",
    "See [our partner](https://evil.example/a) or https://evil.example/b [9].",
)
FOLLOW_UPS = ("lighthouse tickets", "tickets for the lighthouse", "lighthouse at nine", "does the lighthouse open")
_numbers = count()
BUTTON = "Ask AI answers from these pages. Check the sources."
UNANSWERED = "The pages do not answer this question. Results of the search:"
FAILED = "No answer is available at the moment. Results of the search:"
DOCUMENTS = (
    page(1, title="Opening hours", content="The lighthouse opens at nine.", url="/hours.html"),
    page(2, title="Tickets <b>", content="Tickets for the lighthouse. Does it open?", url="/tickets.html"),
)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with run_model_server() as running:
        yield running


@pytest.fixture(scope="module")
def asking_server(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"llm_url": model.url, "llm_model": "small", "llm_timeout": str(int(PATIENCE_SECONDS))}
    with running_server(tmp_path_factory.mktemp("service"), default_plan="pro", **settings) as running:
        yield running


@pytest.fixture
def museum(asking_server: Server) -> Customer:
    """A customer for one test, because visitors may ask an account only ten questions a minute."""
    customer = Customer(asking_server, f"asks-{next(_numbers)}@example.com")
    customer.send(*DOCUMENTS)
    customer.call("PUT", f"/sites/{customer.site_id}/search-settings", {"ask": True})
    return customer


class Asker(Visitor):
    """A visitor who asks."""

    def find_results(self, text: str = QUESTION) -> None:
        self.type(text)
        self.wait(lambda: self.shown(".ask") and "results" in self.told(), "the button did not appear")

    def ask(self, text: str = QUESTION) -> None:
        """Search, ask the same, and wait for the answer."""
        self.find_results(text)
        self.press_ask()
        self.wait(lambda: self.shown(".follow"), "the answer did not appear")

    def press_ask(self) -> None:
        self.inside(".ask")[0].click()

    def shown(self, css: str) -> list[Any]:
        return [found for found in self.inside(css) if found.is_displayed()]

    def answers(self) -> list[str]:
        return [found.text for found in self.inside(".text")]

    def heard(self) -> str:
        """Return the text of the live region."""
        return str(self.inside(".live")[-1].get_attribute("textContent"))

    def focused(self) -> Any:
        return self.driver.execute_script("return document.activeElement.shadowRoot?.activeElement")

    def follow_up(self, text: str) -> None:
        from selenium.webdriver.common.keys import Keys

        self.inside(".follow input")[0].click()
        for key in (*text, Keys.ENTER):
            self.press_key(key)

    def press_key(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(key).perform()

    def click_button(self, name: str) -> None:
        (found,) = [button for button in self.shown("button") if button.accessible_name == name]
        found.click()


@pytest.fixture
def asker(browser: Any, other_origin: tuple[str, Path], model: ModelServer) -> Asker:
    model.requests.clear()
    model.respond = writing("It opens ", "at nine [1].")
    return Asker(browser, *other_origin)


@pytest.fixture
def visitor(asker: Asker, museum: Customer) -> Asker:
    """A visitor with an open page."""
    asker.open(museum.base_url, museum.public_key)
    return asker


def make_gate(model: ModelServer, *texts: str) -> Callable[[], None]:
    """Let the model write its first text, and the others after the returned function is called."""
    gate = Event()

    def chunks() -> Iterator[bytes]:
        yield event(texts[0])
        gate.wait(PATIENCE_SECONDS)
        yield from map(event, texts[1:])
        yield END

    model.respond = lambda _: (200, STREAM, chunks())
    return gate.set


def report(museum: Customer) -> dict[str, Any]:
    body: dict[str, Any] = museum.http.get(
        f"{museum.base_url}/api/analytics/asks?site_id={museum.site_id}", timeout=30
    ).json()
    return body


def test_answer_streams_in_below_the_results_and_back_leads_to_them(visitor: Asker, model: ModelServer) -> None:
    finish = make_gate(model, "It opens at nine [1]. The second", " sentence is slow [2].")
    visitor.find_results()
    below = visitor.inside("#results")[0].rect
    assert visitor.inside(".ask")[0].rect["y"] + 1 >= below["y"] + below["height"], "results must come first"

    visitor.press_ask()
    assert visitor.inside("h2")[0].text == QUESTION
    assert visitor.focused() == visitor.inside("h2")[0]
    assert visitor.shown("[role=option], .ask") == []
    visitor.wait(lambda: visitor.answers() == ["It opens at nine1."], "the first sentence did not appear")
    assert visitor.heard() == "Searching the pages…", "an incomplete answer must not be announced"
    assert visitor.shown(".follow") == []
    finish()
    visitor.wait(lambda: visitor.shown(".follow"), "the answer was not completed")
    assert visitor.answers() == ["It opens at nine1. The second sentence is slow2."]
    assert visitor.heard() == "It opens at nine. The second sentence is slow."

    visitor.click_button("Back to results")
    assert visitor.focused() == visitor.inside(".ask")[0]
    assert visitor.shown("[role=option]")
    assert visitor.inside(".conversation") == []
    assert visitor.inside("input")[0].get_attribute("aria-expanded") == "true"


def test_text_of_the_model_is_shown_as_text_with_links_only_to_sources(visitor: Asker, model: ModelServer) -> None:
    model.respond = writing(*LONG_ANSWER)
    visitor.ask()

    (text,) = visitor.inside(".text")
    elements = {found.tag_name for found in visitor.inside(".text *")}
    assert elements == {"p", "ul", "li", "code", "pre", "a"}
    assert [found.text for found in visitor.inside(".text li")] == ["a ticket2, ticket --print", "a coat"]
    assert visitor.inside(".text pre")[0].text == "lighthouse --open <now>"
    assert "evil.example" not in text.get_attribute("innerHTML")
    cited = visitor.inside(".text a")
    assert [(link.text, link.accessible_name) for link in cited] == [("1", "1: Opening hours"), ("2", "2: Tickets <b>")]
    links = [link.get_attribute("href") for link in cited]
    assert links == [link.get_attribute("href") for link in visitor.inside(".found a")]
    assert all(link.startswith(visitor.base_url) for link in links)


def test_numbered_list_goes_on_after_another_list(visitor: Asker, model: ModelServer) -> None:
    model.respond = writing("Steps [1]:\n1. Open it\n   now.\n2. Choose [2]:\n   - a\n   - b\n3. Leave.\n\nIn 2026.")
    visitor.ask()

    shown = [(found.tag_name, found.get_attribute("start"), found.text) for found in visitor.inside(".text > *")]
    assert shown == [
        ("p", None, "Steps1:"), ("ol", "1", "Open it\nnow.\nChoose2:"), ("ul", None, "a\nb"), ("ol", "3", "Leave."),
        ("p", None, "In 2026."),
    ]  # fmt: skip


def test_markup_that_a_service_lets_through_is_still_text(visitor: Asker, model: ModelServer) -> None:
    """The box does not rely on the service's own cleaning."""
    body = {
        "sources": {"ask_id": "ask_1", "sources": [
            {"n": 1, "title": "<b>Bold</b>", "url": "javascript:alert(1)", "anchor": ""},
            {"n": 2, "title": "Hours", "url": "/hours.html", "anchor": "sunday"},
        ]},
        "text": {"text": "\u2028<img src=x onerror=alert(1)> [a](https://evil.example) [1][2][7]"},
        "done": {"answered": True, "ask_id": "ask_1"},
    }  # fmt: skip
    # As the service sends it: with comments, and with a line separator that JSON leaves as it is.
    stream = "".join(
        f": waiting\n\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n" for name, data in body.items()
    )
    replace_answer(visitor, stream)
    visitor.ask()

    assert visitor.answers() == ["<img src=x onerror=alert(1)> [a](https://evil.example)12"]
    cited = visitor.inside(".text .cite")
    assert [(link.tag_name, link.get_attribute("href")) for link in cited] == [
        ("div", None),
        ("a", f"{visitor.base_url}/hours.html#sunday"),
    ]
    assert visitor.inside("img") == []
    assert [found.text for found in visitor.inside(".found .title")] == ["<b>Bold</b>", "Hours"]


def replace_answer(visitor: Visitor, stream: str) -> None:
    """Let the page receive this stream for its questions, whatever the service sends."""
    visitor.driver.execute_script(
        """const original = window.fetch, body = arguments[0];
        window.fetch = (url, options) => (String(url).endsWith("/v1/ask")
            ? Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }))
            : original(url, options));""",
        stream,
    )


def test_link_of_a_source_opens_its_page_and_reports_the_selection(visitor: Asker) -> None:
    visitor.ask()
    visitor.driver.execute_script(
        "document.addEventListener('site-search:select', (event) => sessionStorage.setItem('chosen', "
        "JSON.stringify([event.detail.hit.url, event.detail.position])))"
    )
    (visitor.folder / "hours.html").write_text("<!doctype html><title>Hours</title>")
    visitor.inside(".text a")[0].click()

    visitor.wait(lambda: visitor.driver.title == "Hours", "the page of the source did not open")
    chosen = json.loads(visitor.driver.execute_script("return sessionStorage.getItem('chosen')"))
    assert chosen == [DOCUMENTS[0]["url"], None]


def test_answer_can_be_copied_with_its_sources(visitor: Asker) -> None:
    visitor.driver.execute_script(
        """const write = navigator.clipboard.writeText.bind(navigator.clipboard);
        navigator.clipboard.writeText = (text) => write(text).then(() => { window.copied = text; });"""
    )
    visitor.ask()
    visitor.click_button("Copy")

    visitor.wait(lambda: visitor.heard() == "Copied", "the copy was not announced")
    copied = visitor.driver.execute_script("return window.copied")
    assert copied == f"It opens at nine [1].\n\n[1] Opening hours {DOCUMENTS[0]['url']}"


def test_feedback_is_stored_and_can_be_changed(visitor: Asker, museum: Customer) -> None:
    before = report(museum)
    visitor.ask()
    visitor.click_button("No")
    visitor.wait(lambda: visitor.heard() == "Thank you.", "the feedback was not confirmed")
    assert report(museum)["unhelpful"] == before["unhelpful"] + 1
    visitor.click_button("Yes")
    eventually(lambda: report(museum)["helpful"] == before["helpful"] + 1)
    assert report(museum)["unhelpful"] == before["unhelpful"]
    pressed = [button.accessible_name for button in visitor.inside("[aria-pressed=true]")]
    assert pressed == ["Yes"]


def test_follow_up_sends_at_most_three_earlier_questions(visitor: Asker, model: ModelServer) -> None:
    visitor.ask()
    for number, text in enumerate(FOLLOW_UPS, 2):
        visitor.follow_up(text)
        visitor.wait(
            lambda number=number: len(visitor.answers()) == number and visitor.shown(".follow"),
            "the answer did not appear",
        )
    assert [found.text for found in visitor.inside("h2")] == [QUESTION, *FOLLOW_UPS]
    assert visitor.focused().text == FOLLOW_UPS[-1]
    messages = model.requests[-1][1]["messages"]
    asked = [message["content"] for message in messages if message["role"] == "user"]
    assert asked[:-1] == list(FOLLOW_UPS[:3])
    assert {message["content"] for message in messages if message["role"] == "assistant"} == {"It opens at nine."}


def test_follow_up_and_its_answer_are_visible_unless_the_visitor_scrolls(visitor: Asker, model: ModelServer) -> None:
    model.respond = writing(*["The lighthouse opens at nine [1].\n\n"] * 20)
    visitor.ask()
    visitor.follow_up(FOLLOW_UPS[0])
    visitor.wait(lambda: len(visitor.answers()) == 2 and visitor.shown(".follow"), "the answer did not appear")
    question = visitor.inside("h2")[1]
    top = visitor.inside(".turns")[0].rect["y"]
    assert top <= question.rect["y"] < top + 40

    finish = make_gate(model, "It opens [1]. " * 50, "It closes [1]. " * 50)
    visitor.follow_up(FOLLOW_UPS[1])
    visitor.wait(lambda: len(visitor.answers()) == 3 and visitor.answers()[2], "the answer did not begin")
    visitor.driver.execute_script("arguments[0].scrollTop = 0", visitor.inside(".turns")[0])
    finish()
    visitor.wait(lambda: visitor.shown(".follow"), "the answer was not completed")
    assert visitor.driver.execute_script("return arguments[0].scrollTop", visitor.inside(".turns")[0]) == 0


def test_box_without_analytics_asks_unrecorded_and_offers_no_feedback(asker: Asker, museum: Customer) -> None:
    asker.open(museum.base_url, museum.public_key, analytics="false")
    asker.ask()
    assert report(museum)["questions"] == 0
    assert asker.answers() == ["It opens at nine1."]
    assert [button.accessible_name for button in asker.shown(".actions button")] == ["Copy"]


def test_view_works_with_the_keyboard_alone(visitor: Asker) -> None:
    from selenium.webdriver.common.keys import Keys

    visitor.find_results()
    visitor.press_key(Keys.TAB)
    assert visitor.focused().accessible_name == BUTTON
    visitor.press_key(Keys.ENTER)
    visitor.wait(lambda: visitor.shown(".follow"), "the answer did not appear")
    names = []
    while not names or visitor.focused().tag_name != "input":
        visitor.press_key(Keys.TAB)
        names.append(visitor.focused().accessible_name)
    assert names == ["1: Opening hours", "1 Opening hours", "Copy", "Yes", "No", "Ask a follow-up question"]
    visitor.press_key(Keys.ESCAPE)
    assert visitor.focused().accessible_name == BUTTON
    assert visitor.shown("[role=option]"), "the first Escape leads back to the results"
    visitor.press_key(Keys.ESCAPE)
    assert not visitor.inside(".panel")[0].is_displayed()


def test_enter_searches_and_typing_leads_back_to_the_results(visitor: Asker, model: ModelServer) -> None:
    from selenium.webdriver.common.keys import Keys

    visitor.ask()
    visitor.inside("input")[0].click()
    visitor.press_key("s")
    visitor.wait(lambda: visitor.shown("[role=option]"), "the results did not come back")
    assert visitor.inside(".conversation") == []
    visitor.press_key(Keys.BACKSPACE)
    visitor.wait(lambda: visitor.told() == "2 results", "the results did not appear")
    visitor.press_key(Keys.ENTER)
    visitor.wait(lambda: visitor.driver.title == "Tickets", "Enter did not open the first result")
    assert len(model.requests) == 1


def test_screen_reader_gets_names_roles_and_a_live_region(visitor: Asker) -> None:
    visitor.find_results()
    (button,) = visitor.shown(".ask")
    node = accessible_tree(visitor, {"button"})
    # All of the visible text, for people who press buttons by voice.
    assert ("button", BUTTON, "") in node
    button.click()
    visitor.wait(lambda: visitor.shown(".follow"), "the answer did not appear")

    roles = {"region", "heading", "article", "link", "list", "button", "group", "textbox", "status", "listitem"}
    tree = [each for each in accessible_tree(visitor, roles) if each[:2] != ("listitem", "")]
    view = tree[tree.index(("region", "Ask", "")) :]
    assert view == [
        ("region", "Ask", ""),
        ("button", "Back to results", ""),
        ("article", "", ""),
        ("heading", QUESTION, ""),
        ("link", "1: Opening hours", "Opening hours"),
        ("heading", "Sources", ""),
        ("list", "", ""),
        ("link", "1 Opening hours", ""),
        ("button", "Copy", ""),
        ("group", "Helpful?", ""),
        ("button", "Yes", ""),
        ("button", "No", ""),
        ("textbox", "Ask a follow-up question", ""),
        ("button", "Ask", ""),
    ]
    assert visitor.inside(".live")[-1].aria_role == "status"
    assert visitor.heard() == "It opens at nine."


def accessible_tree(visitor: Visitor, roles: set[str]) -> list[tuple[str, str, str]]:
    """Return roles, names, and descriptions in the browser's accessibility tree, in the order of reading."""
    nodes = visitor.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    by_id = {node["nodeId"]: node for node in nodes}

    def walk(node: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
        role = node.get("role", {}).get("value", "")
        if not node["ignored"] and role in roles:
            values = (node.get(name, {}).get("value", "") for name in ("name", "description"))
            yield (role, *values)  # type: ignore[misc]
        for child in node["childIds"]:
            if child in by_id:
                yield from walk(by_id[child])

    return list(walk(nodes[0]))


@pytest.mark.parametrize(
    ("respond", "sentence"),
    [
        (writing("NO ANSWER"), UNANSWERED),
        (sending(b"busy", status=429, headers={"Retry-After": "3"}), FAILED),
        (sending(event("It opens at nine [1]. And")), FAILED),
    ],
)
def test_question_without_an_answer_shows_the_results_with_one_sentence(
    visitor: Asker, model: ModelServer, respond: Any, sentence: str
) -> None:
    model.respond = respond
    visitor.find_results()
    visitor.press_ask()

    visitor.wait(
        lambda: [found.text for found in visitor.shown(".notice")] == [sentence], "the sentence did not appear"
    )
    assert visitor.told() == "2 results"
    assert len(visitor.shown("[role=option]")) == 2
    assert visitor.heard() == sentence
    assert visitor.focused().aria_role == "combobox"
    visitor.press_key("s")
    visitor.wait(lambda: not visitor.shown(".notice"), "the sentence must leave with the next keystroke")


def test_stream_that_ends_too_early_counts_as_a_failure(visitor: Asker) -> None:
    replace_answer(visitor, 'event: sources\ndata: {"ask_id": "ask_1", "sources": []}\n\nevent: text\ndata: {"te')
    visitor.find_results()
    visitor.press_ask()
    visitor.wait(lambda: [found.text for found in visitor.shown(".notice")] == [FAILED], "the sentence did not appear")


def test_follow_up_without_an_answer_becomes_a_search(visitor: Asker, model: ModelServer) -> None:
    visitor.ask()
    model.respond = writing("NO ANSWER")
    visitor.follow_up("tickets")

    visitor.wait(lambda: visitor.shown(".notice"), "the sentence did not appear")
    assert visitor.inside("input")[0].get_attribute("value") == "tickets"
    visitor.wait(lambda: visitor.titles() == ["Tickets <b>"], "the results did not appear")


def test_leaving_the_view_cancels_the_question(visitor: Asker, model: ModelServer) -> None:
    from selenium.webdriver.common.keys import Keys

    for leave in (
        lambda: visitor.click_button("Back to results"),
        lambda: visitor.press_key(Keys.ESCAPE),
        lambda: visitor.find("h1").click(),
    ):
        is_closed = Event()

        def chunks(is_closed: Event = is_closed) -> Iterator[bytes]:
            try:
                while True:
                    yield event("word [1]. ")
                    is_closed.wait(0.05)
            finally:
                is_closed.set()

        model.respond = lambda _, chunks=chunks: (200, STREAM, chunks())
        visitor.driver.refresh()
        visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
        visitor.find_results()
        visitor.press_ask()
        visitor.wait(lambda: visitor.answers() != [""], "the answer did not begin")
        leave()
        assert visitor.inside(".conversation") == []
        visitor.wait(is_closed.is_set, "the model goes on")
    assert visitor.shown(".notice") == []


@pytest.mark.parametrize("reason", ["the owner", "the operator"])
def test_box_is_as_before_where_questions_are_off(
    browser: Any, other_origin: tuple[str, Path], asking_server: Server, museum: Customer, server: Server, reason: str
) -> None:
    if reason == "the owner":
        customer = Customer(asking_server, f"off-{next(_numbers)}@example.com")
    else:
        customer = Customer(server, "none@example.com")
        customer.call("PUT", f"/sites/{customer.site_id}/search-settings", {"ask": True})
    visitor = Asker(browser, *other_origin)
    visitor.open(customer.base_url, customer.public_key)
    visitor.type("lighthouse")
    visitor.wait(lambda: visitor.told() == "2 results", "the results did not appear")

    assert visitor.inside(".ask") == []
    loaded = visitor.driver.execute_script("return performance.getEntriesByType('resource').map(({ name }) => name)")
    assert not any("widget-ask" in name for name in loaded)
    info = requests.get(
        f"{customer.base_url}/v1/client-info", headers={"Authorization": f"Bearer {customer.public_key}"}, timeout=30
    )
    assert info.json()["ask"] is False


@pytest.mark.parametrize(
    ("lang", "ask", "direction"), [("de", "Fragen", "ltr"), ("ar", "اسأل", "rtl"), ("nb", "Spør", "ltr")]
)
def test_view_is_in_the_language_of_the_box(
    asker: Asker, museum: Customer, lang: str, ask: str, direction: str
) -> None:
    asker.open(museum.base_url, museum.public_key, lang=lang)
    asker.type(QUESTION)
    asker.wait(lambda: asker.shown(".ask"), "the button did not appear")
    assert asker.inside(".ask")[0].accessible_name.startswith(f"{ask} ")
    asker.press_ask()
    asker.wait(lambda: asker.shown(".follow"), "the answer did not appear")
    (view,) = asker.inside(".conversation")
    assert view.value_of_css_property("direction") == direction


def test_dialog_shows_the_answer_and_escape_leads_back_step_by_step(asker: Asker, museum: Customer) -> None:
    from selenium.webdriver.common.keys import Keys

    asker.open(museum.base_url, museum.public_key, mode="modal")
    asker.inside(".open")[0].click()
    asker.ask()
    asker.press_key(Keys.ESCAPE)
    assert asker.focused() == asker.inside(".ask")[0]
    assert asker.inside("dialog")[0].is_displayed()
    asker.press_key(Keys.ESCAPE)
    assert not asker.inside("dialog")[0].is_displayed()


def test_owner_sees_the_button_in_the_preview_and_asks_unrecorded(
    browser: Any, museum: Customer, model: ModelServer
) -> None:
    model.respond = writing("It opens at nine [1].")
    reader = Reader(browser, museum.base_url)
    reader.go("/login")
    reader.fill(email=museum.email, password=PASSWORD)
    reader.press("Log in")
    reader.sees("Dashboard")
    reader.go(f"/sites/{museum.site_id}/box")
    reader.wait(lambda: [found.is_displayed() for found in reader.in_box(".ask")] == [True], "no button appeared")

    reader.search(QUESTION)
    reader.wait(lambda: len(reader.titles()) == 2, "the results did not appear")
    reader.in_box(".ask")[0].click()
    reader.wait(
        lambda: [found.text for found in reader.in_box(".text")] == ["It opens at nine1."], "no answer appeared"
    )
    assert report(museum)["questions"] == 0
