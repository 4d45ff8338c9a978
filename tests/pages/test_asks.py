"""Questions to a language model on the pages: settings, plans, usage, and the operator's check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from tests.api.test_unanswered_questions import store
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.pages.operator.conftest import register_operator
from tests.pages.people import Person, filled
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_ok
from tests.services.asks.model_server import ModelServer, run_model_server, sending, writing

QUESTION = "When does the museum open?"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with run_model_server() as running:
        yield running


@pytest.fixture
def app(tmp_path: Path, model: ModelServer) -> Iterator[Flask]:
    """An installation whose operator has set up a language model."""
    settings = {"llm_url": model.url, "llm_model": "small", "llm_timeout": PATIENCE_SECONDS}
    application = make_app(make_settings(tmp_path, **settings))
    yield application
    close_app(application)


@pytest.fixture
def tenant(app: Flask) -> Tenant:
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1, title="Opening hours", content="The museum opens at nine."))
    return tenant


def results_page(tenant: Tenant) -> str:
    return f"/sites/{tenant.site_id}/search-settings/results"


def change(tenant: Tenant, **settings: Any) -> dict[str, Any]:
    return assert_ok(tenant.private.put(f"/sites/{tenant.site_id}/search-settings", json=settings))


def analytics_page(tenant: Tenant) -> str:
    return f"/api/analytics?site_id={tenant.site_id}"


def save(person: Person, tenant: Tenant, **changes: str) -> None:
    person.go(results_page(tenant))
    values = {**filled(person.page.one("form", id="settings")), **changes, "_method": "PATCH"}
    person.call("POST", results_page(tenant), data=values)


def banner(person: Person) -> str:
    return " ".join(found.text for found in person.page.all("div", class_="banner warn"))


class TestSettings:
    """The owner's settings."""

    def test_owner_turns_ask_on_with_instructions(self, person: Person, tenant: Tenant) -> None:
        tenant.set_plan("starter")
        save(person, tenant, ask="true", ask_instructions="Call us the House of Clocks.")
        assert person.response.status_code == 303

        person.go(results_page(tenant))
        card = person.page.one("section", aria_labelledby="ask-title")
        assert "checked" in card.one("input", id="ask").attributes
        assert card.one("textarea", id="ask_instructions").text == "Call us the House of Clocks."
        assert card.one("textarea", id="ask_instructions").attributes["maxlength"] == "500"
        assert "includes 20 questions a day" in card.text
        assert "no IP address, session, or key" in card.text
        links = [link.attributes["href"] for link in card.all("a")]
        assert links == [f"/sites/{tenant.site_id}/box", "/docs/ask#what-is-sent-where-and-what-is-stored"]
        assert "403 ask_disabled" in card.text
        assert banner(person) == ""

    def test_instructions_that_are_too_long_are_explained_beside_the_field(
        self, person: Person, tenant: Tenant
    ) -> None:
        save(person, tenant, ask="true", ask_instructions="x" * 501)

        assert person.response.status_code == 400
        assert "500" in person.page.one("div", id="ask_instructions-problem").text
        field = person.page.one("textarea", id="ask_instructions")
        assert field.attributes["aria-invalid"] == "true"
        assert field.attributes["aria-describedby"] == "ask_instructions-help ask_instructions-problem"

    def test_plan_without_questions_is_explained_and_warned_about(self, person: Person, tenant: Tenant) -> None:
        tenant.set_plan("free")
        person.go(results_page(tenant))
        assert "Your plan includes no questions" in person.page.one("p", id="ask-help").text
        assert banner(person) == ""

        save(person, tenant, ask="true")
        person.go(results_page(tenant))
        assert "Ask is on, but your plan includes no questions" in banner(person)
        assert change(tenant, ask=True)["warnings"] == [
            {"code": "ask_not_in_plan", "message": "The plan includes no questions, so they are not answered."}
        ]
        assert "warnings" not in change(tenant, ask=False)

    def test_missing_model_is_warned_about_only_where_ask_is_on(
        self, app: Flask, person: Person, tenant: Tenant
    ) -> None:
        app.extensions["runtime"].language_model = None
        person.go(results_page(tenant))
        assert not person.page.all("input", id="ask")

        (warning,) = change(tenant, ask=True)["warnings"]
        assert warning["code"] == "ask_unavailable"
        person.go(results_page(tenant))
        assert "the operator of this service hasn’t set up a language model" in banner(person)
        path = f"/sites/{tenant.site_id}/search-settings/preview"
        preview = assert_ok(tenant.private.post(path, json={"settings": {"ask": True}, "queries": ["museum"]}))
        assert preview["warnings"] == [warning]


class TestSearchBox:
    """The preview of the search box."""

    def test_preview_has_the_button_where_visitors_can_ask(self, person: Person, tenant: Tenant) -> None:
        box = f"/sites/{tenant.site_id}/box"

        def preview() -> tuple[bool, str]:
            section = person.go(box).one("section", id="try-it")
            return json.loads(section.attributes["data-client-info"])["ask"], section.one("div", class_="seen").text

        asks, text = preview()
        assert not asks
        assert "Ask" not in text

        change(tenant, ask=True)
        asks, text = preview()
        assert asks
        assert "count toward your plan." in text
        restricted = {"name": "public", "expires_at": None, "allowed_origins": ["https://www.example.com"]}
        path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['public']['id']}"
        assert_ok(tenant.browser.put(path, json=restricted))
        assert "have no answer here, because the key is restricted to your own pages." in preview()[1]


class TestPlans:
    """Questions per day on the plans page and in the meters."""

    def test_cards_and_comparison_show_questions_where_a_model_answers_them(
        self, app: Flask, passer_by: Person
    ) -> None:
        text = passer_by.go("/plans").text
        assert "AI questions per day (Ask)" in text
        assert "What is an AI question?" in text
        cards = {
            card.one("h2").text: [tick.text for tick in card.one("ul").all("li")]
            for card in passer_by.page.all("li", class_="plan")
        }
        assert [any("AI question" in tick for tick in ticks) for ticks in cards.values()] == [
            False, True, True, True, True,
        ]  # fmt: skip
        assert "20 AI questions a day" in cards["Starter"]
        assert "Unlimited AI questions" in cards["Business"]

        app.extensions["runtime"].language_model = None
        assert "AI question" not in passer_by.go("/plans").text

    def test_questions_of_the_day_have_a_meter_and_a_to_do_item_at_the_limit(
        self, app: Flask, person: Person, tenant: Tenant
    ) -> None:
        tenant.set_plan("pro", asks_per_day=2)
        change(tenant, ask=True)
        for _ in range(2):
            assert_ok(tenant.search.post("/v1/ask", json={"q": QUESTION}))

        for path in ("/dashboard", "/plans"):
            person.go(path)
            (meter,) = [found for found in person.page.all("div", class_="meter") if "AI questions today" in found.text]
            assert meter.text.startswith("AI questions today 2 of 2 ")
            assert "questions are rejected until 00:00 UTC" in meter.text
        todos = [found.text for found in person.go("/dashboard").one("ul", class_="todos").all("li")]
        assert any(todo.startswith("AI questions today: 2 of 2.") for todo in todos)
        operator = register_operator(app, "olga@example.com")
        assert "AI questions today 2 of 2" in operator.go(f"/operator/accounts/{tenant.account_id}").text

        tenant.set_plan("free")
        assert "AI questions today" not in person.go("/plans").text


class TestAnalytics:
    """The figures on the analytics page of a site."""

    def test_page_shows_figures_and_frequent_questions_without_an_answer(
        self, person: Person, tenant: Tenant, model: ModelServer
    ) -> None:
        tenant.set_plan("pro")
        change(tenant, ask=True)
        model.respond = writing("At nine [1].")
        for helpful in (True, True, False, None):
            ask_id = assert_ok(tenant.search.post("/v1/ask", json={"q": QUESTION}))["ask_id"]
            if helpful is not None:
                feedback = {"helpful": helpful, "reason": "It opens at <ten>."}
                assert_ok(tenant.search.post(f"/v1/ask/{ask_id}/feedback", json=feedback))
        model.respond = writing("NO ANSWER")
        for question in ("Is the museum <open> at night?", "Is there a museum shop?", "Is there a museum shop?"):
            assert_ok(tenant.search.post("/v1/ask", json={"q": question}))

        person.go(analytics_page(tenant))

        section = person.page.one("section", aria_labelledby="asks-title")
        figures = {found.one("dt").text: found.all("dd") for found in section.one("dl").all("div")}
        assert {name: [value.text for value in values] for name, values in figures.items()} == {
            "Questions": ["7"],
            "Answered": ["57.1%"],
            "Helpful answers": ["66.7%", "of 3 rated"],
        }
        rows = [[cell.text for cell in row.all("th") + row.all("td")][:2] for row in section.all("tbody")[0].all("tr")]
        assert rows == [["Is there a museum shop?", "2"], ["Is the museum <open> at night?", "1"]]
        (unhelpful,) = section.all("tbody")[1].all("tr")
        assert [cell.text for cell in unhelpful.all("th") + unhelpful.all("td")][:2] == [QUESTION, "It opens at <ten>."]
        export = next(link for link in person.page.all("a") if link.text == "Download CSV").attributes["href"]
        person.go(f"{analytics_page(tenant)}&channel=box")
        assert not person.page.all("section", aria_labelledby="asks-title")
        line = "unanswered_questions,Is there a museum shop?,2,,,"
        for text in (
            person.client.get(export).get_data(as_text=True),
            tenant.private.get(analytics_page(tenant), headers={"Accept": "text/csv"}).get_data(as_text=True),
        ):
            assert line in text.splitlines()
        one_channel = tenant.private.get(f"{analytics_page(tenant)}&channel=api", headers={"Accept": "text/csv"})
        assert "unanswered_questions" not in one_channel.get_data(as_text=True)

    def test_section_is_shown_only_where_questions_are_or_were_asked(self, person: Person, tenant: Tenant) -> None:
        tenant.set_plan("pro")
        assert "Visitors’ questions (Ask)" not in person.go(analytics_page(tenant)).text

        change(tenant, ask=True)
        assert "No questions in this period." in person.go(analytics_page(tenant)).text
        assert_ok(tenant.search.post("/v1/ask", json={"q": QUESTION}))
        change(tenant, ask=False)
        assert "Visitors’ questions (Ask)" in person.go(analytics_page(tenant)).text
        assert "Visitors’ questions (Ask)" not in person.go("/api/analytics").text


class TestInbox:
    """Questions without an answer, with remedies."""

    @pytest.fixture(autouse=True)
    def unanswered(self, tenant: Tenant) -> None:
        tenant.set_plan("pro")
        tenant.index(page(2, title="House rules"))
        for question, answered in [("Is a dog allowed?", False), (QUESTION, True), ("Is parking free?", False)]:
            store(tenant, question, answered=answered)
        change(tenant, ask=True)

    def test_pinning_a_page_answers_the_question_from_it(
        self, person: Person, tenant: Tenant, model: ModelServer
    ) -> None:
        person.go(f"/api/analytics/inbox?site_id={tenant.site_id}")
        rows = [row.text for row in person.page.one("ol", class_="rows inbox").all("li")]
        assert rows[0].startswith(
            "is a dog allowed? No answer 1 visitor asked this, but no page answers it (1 question)."
        )
        assert "As a search, it finds nothing." in rows[0]
        assert len(rows) == 2
        person.follow("is a dog allowed?")
        assert "Asked as a question 1 time since" in person.page.text
        person.go(f"/api/analytics/query?site_id={tenant.site_id}&q={QUESTION}")
        assert "Asked as a question" not in person.page.text
        person.go(f"/api/analytics/inbox?site_id={tenant.site_id}")

        person.follow("Pin a page")
        person.go(person.page.one("form", role="search").attributes["action"] + "?q=is a dog allowed?&find=rules")
        person.follow("Pin")
        person.press("Save")
        assert "Page pinned. “is a dog allowed?” now finds 1 page." in person.page.text
        assert len(person.page.one("ol", class_="rows inbox").all("li")) == 1

        assert_ok(tenant.search.post("/v1/ask", json={"q": "Is a dog allowed?"}))
        assert 'title="House rules"' in model.requests[-1][1]["messages"][-1]["content"]

    def test_synonym_is_saved_with_a_notice_until_the_question_is_answered(
        self, person: Person, tenant: Tenant
    ) -> None:
        person.go(f"/sites/{tenant.site_id}/inbox/synonym?q=is a dog allowed?&word=dog&synonyms=rules")
        person.press("Save")
        assert "It stays in the inbox until a visitor asks again and gets an answer" in person.page.text

    def test_long_question_offers_synonyms_for_its_weighty_words(self, person: Person, tenant: Tenant) -> None:
        person.go(f"/sites/{tenant.site_id}/inbox/synonym?q=is there {'x' * 90} at the museum?")

        options = [option.attributes["value"] for option in person.page.one("select", id="word").all("option")]
        assert options == ["x" * 90, "museum"]
        assert "selected" in person.page.one("select", id="word").all("option")[0].attributes

    def test_question_can_be_ignored_and_is_a_to_do_item(self, person: Person, tenant: Tenant) -> None:
        todo = "asked “is a dog allowed?” (1 visitor), “is parking free?” (1 visitor), but no page answers them."
        assert todo in person.go("/dashboard").one("ul", class_="todos").text

        person.go(f"/api/analytics/inbox?site_id={tenant.site_id}")
        person.press("Ignore")
        assert "“is a dog allowed?” is ignored." in person.page.text
        person.press("Undo")
        assert "“is a dog allowed?” is no longer ignored." in person.page.text


class TestOperator:
    """The check of the model on the health page."""

    def test_accounts_are_listed_with_their_questions_of_the_month(self, app: Flask, tenant: Tenant) -> None:
        tenant.set_plan("pro")
        change(tenant, ask=True)
        for _ in range(2):
            assert_ok(tenant.search.post("/v1/ask", json={"q": QUESTION}))
        operator = register_operator(app, "olga@example.com")

        rows = operator.go("/operator?q=ann@example.com").one("tbody").all("tr")
        cells = {cell.attributes["data-label"]: cell.text for cell in rows[0].all("td")}
        assert cells["AI questions this month"] == "2"

        app.extensions["runtime"].language_model = None
        assert "AI questions" not in operator.go("/operator").text

    def test_model_is_asked_only_when_the_operator_presses_the_button(self, app: Flask, model: ModelServer) -> None:
        operator = register_operator(app, "olga@example.com")
        operator.go("/operator/health")
        assert model.requests == []

        form = next(form for form in operator.page.all("form") if form.attributes["action"].endswith("/model"))
        operator.call("POST", form.attributes["action"], data=filled(form))
        assert operator.response.status_code == 200
        assert len(model.requests) == 1
        assert "small at 127.0.0.1" in operator.page.all("tbody")[0].all("tr")[0].text

        model.respond = sending(b"no", status=401)
        operator.call("POST", form.attributes["action"], data=filled(form))
        first = operator.page.all("tbody")[0].all("tr")[0]
        assert first.text.startswith("Language modelProblem")
        assert "LLM_KEY" in first.text

        app.extensions["runtime"].language_model = None
        assert "Check the language model" not in operator.go("/operator/health").text
