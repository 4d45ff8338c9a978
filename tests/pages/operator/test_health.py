"""The health page shows problems with remedies, queues, failed crawls, and engines, but no texts of pages."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from sqlalchemy import update

from app.clock import now
from app.models import EngineTask, Site, SourceRun
from app.operations import machine_checks
from app.operations.diagnosis import SLOW_TOPICS
from backends.errors import BackendUnavailable
from tests.callers import Tenant, page
from tests.crawl.sources.rows import add_source
from tests.pages.operator.test_accounts import HOSTILE
from tests.pages.people import Person
from tests.shared_servers import counters_away

HEALTH = "/operator/health"


def rows(person: Person, caption: str) -> dict[str, list[str]]:
    """Map the heading of each row of a table to its cells."""
    table = next(table for table in person.page.all("table") if table.one("caption").text.startswith(caption))
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")}


def test_healthy_installation(app: Flask, operator: Person) -> None:
    app.extensions["runtime"].health.check()
    operator.go(HEALTH)

    checks = rows(operator, "Checks")
    assert {"Disk", "Counters", "Engine", "Runs", "Tasks", "Events", "Charges"} <= checks.keys()
    assert not {topic.capitalize() for topic in SLOW_TOPICS} & checks.keys()
    assert {state for state, _ in checks.values()} == {"OK"}
    assert rows(operator, "Result")["Database"][0] == "OK"
    assert rows(operator, "Queues")["Crawls waiting"] == ["0", "–"]
    assert "No recent crawl has failed" in operator.page.text


def test_problems_come_first_with_their_remedy(operator: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "NO_SPACE", 2**62)
    operator.go(HEALTH)

    first = next(iter(rows(operator, "Checks").items()))
    assert first[0] == "Disk"
    assert first[1][0] == "Problem"
    assert "Free disk space now" in first[1][1]


def test_unavailable_engine_is_a_problem_and_does_not_break_the_page(
    app: Flask, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = app.extensions["runtime"]

    def fail() -> None:
        raise BackendUnavailable("no answer")

    monkeypatch.setattr(runtime.engines.default, "check", fail)
    runtime.health.check()
    operator.go(HEALTH)

    assert "no answer" in rows(operator, "Checks")["Engine"][1]
    assert rows(operator, "Result")["Engine"][0].startswith("Failing since")


def test_unavailable_counter_store_is_a_problem_and_does_not_break_the_page(app: Flask, operator: Person) -> None:
    with counters_away(app):
        assert operator.call("GET", HEALTH).status_code == 200

    assert rows(operator, "Checks")["Counters"][0] == "Problem"


def test_queues_count_waiting_and_failing_work(app: Flask, operator: Person, tenant: Tenant) -> None:
    tenant.index(page(1))
    with app.extensions["runtime"].database.write() as session:
        session.execute(update(Site).values(revision=Site.revision + 1, indexing_error=f"secret {HOSTILE}"))
        for attempts in (0, 3):
            session.add(
                EngineTask(
                    engine="x", action="delete_index", subject="x", attempts=attempts, due_at=now(), created_at=now()
                )
            )
    operator.go(HEALTH)

    queues = rows(operator, "Queues")
    assert queues["Engine tasks"] == ["2", "1"]
    assert queues["Indexes behind their documents"] == ["1", "1"]
    assert "secret" not in operator.page.text


def test_failed_crawls_show_their_reason_but_no_message(app: Flask, operator: Person, tenant: Tenant) -> None:
    tenant.browser.put("/profile", json={"name": HOSTILE})
    source = add_source(app, tenant)
    run = SourceRun(
        id="run_1",
        source_id=source.id,
        status="failed",
        queued_at=now(),
        waiting_since=now(),
        finished_at=now() - timedelta(minutes=1),
        error={"code": "site_unreachable", "message": "secret text of a page"},
    )
    with app.extensions["runtime"].database.write() as session:
        session.add(run)
    operator.go(HEALTH)

    (cells,) = rows(operator, "The latest failed").values()
    assert cells[2] == "site unreachable"
    assert HOSTILE in operator.page.text
    assert HOSTILE not in operator.response.get_data(as_text=True)
    assert "secret" not in operator.page.text
