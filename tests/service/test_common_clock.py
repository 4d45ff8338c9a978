"""Two machines share an installation, and the clock of one of them is an hour off."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import PROJECT, Server, running_server
from tests.service.clients import Customer, eventually, page, register, statuses
from tests.service.conftest import COMMON, PATIENT
from tests.service.stored import rows
from tests.services.crawling.websites import html, serving

pytestmark = pytest.mark.service

HOUR = 3600


@dataclass
class Machines:
    """Two of one installation.

    Attributes:
        ahead: Seconds by which the clock of the wrong one is ahead.
    """

    right: Server
    wrong: Server
    ahead: int
    customer: Customer


@pytest.fixture(scope="module", params=[HOUR, -HOUR], ids=["ahead", "behind"])
def machines(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres: PostgresServer,
    redis: RedisServer,
) -> Iterator[Machines]:
    ahead: int = request.param
    folder = tmp_path_factory.mktemp("clocks")
    (folder / "clock").write_text(str(ahead))
    shared: dict[str, str | int] = {
        "database_url": postgres.create_database(f"clock_{'ahead' if ahead > 0 else 'behind'}"),
        "limits_url": redis.url.removesuffix("/0") + ("/192" if ahead > 0 else "/193"),
        "search_url": f"tantivy://{folder / 'indexes'}",
        "crawl_private_addresses": "true",
        **COMMON,
        **PATIENT,
    }
    wrong_clock = {
        "application": "tests.service.shifted_clock:app",
        "clock_file": folder / "clock",
        "clock_of": "machine",
    }
    with ExitStack() as stack:
        right = stack.enter_context(running_server(folder / "right", workers=1, **shared))
        wrong = stack.enter_context(running_server(folder / "wrong", workers=1, crawl_runs=0, **shared, **wrong_clock))

        def has_noticed() -> None:
            assert f"this machine's clock is 3600 s {'ahead' if ahead > 0 else 'behind'}" in wrong.log

        eventually(has_noticed)
        customer = register([right, wrong], "ann@example.com", ("search", "private", "public"))
        right.set_plan(customer.email, "business", requests_per_minute="unlimited")
        assert customer.private.index(page(1)).status == 200
        yield Machines(right, wrong, ahead, customer)


def test_limits_are_exact_and_end_in_time(machines: Machines) -> None:
    customer = register([machines.right, machines.wrong], "limited@example.com")
    machines.right.set_plan(customer.email, "business", requests_per_minute=20)

    answers = [customer.search.search("page") for _ in range(30)]

    remaining = [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers]
    left = remaining[0] + 1
    assert left > 15
    assert remaining == [*range(left - 1, -1, -1), *[0] * (30 - left)], "no window begins anew in between"
    assert statuses(answers) == {200: left, 429: 30 - left}
    moment = time.time()
    for answer in answers:
        assert moment - 30 < int(answer.headers["X-RateLimit-Reset"]) <= moment + 61
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def test_the_quota_of_the_day_is_exact(machines: Machines) -> None:
    customer = register([machines.right, machines.wrong], "quota@example.com")
    machines.right.set_plan(customer.email, "business", searches_per_day=10)

    answers = [customer.search.search("page") for _ in range(20)]

    used = [answer.body["remaining_quota"]["used_today"] for answer in answers if answer.status == 200]
    assert used == list(range(1, 11))
    assert statuses(answers) == {200: 10, 429: 10}


def test_whoever_logged_in_at_one_is_known_at_the_other_and_keys_end_in_time(machines: Machines) -> None:
    customer = machines.customer
    for server in (machines.right, machines.wrong):
        answer = customer.session.call_at(server, "GET", "/dashboard")
        assert answer.status == 200, answer.body
    soon = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    made = customer.session.must(
        "POST", f"/api/sites/{customer.site_id}/keys", {"name": "soon", "type": "search", "expires_at": soon}
    )
    for server in (machines.right, machines.wrong):
        answer = customer.search.call_at(server, "GET", "/v1/search?q=page", Authorization=f"Bearer {made['api_key']}")
        assert answer.status == 200, answer.body


def test_a_click_may_be_reported_to_the_other_machine_and_is_told_in_the_right_minute(machines: Machines) -> None:
    customer = machines.customer
    for first, second in ((machines.right, machines.wrong), (machines.wrong, machines.right)):
        found = customer.search.call_at(first, "GET", "/v1/search?q=page").body["results"]
        click = {"query_id": found["query_id"], "id": "page-1", "position": 1}
        assert customer.search.call_at(second, "POST", "/api/v1/click", click).status == 200

    def clicks_are_there() -> None:
        times = [row.occurred_at / 1e6 for row in rows(machines.right, "SELECT occurred_at FROM search_clicks")]
        assert len(times) == 2
        assert all(abs(moment - time.time()) < 300 for moment in times)

    eventually(clicks_are_there)


@pytest.fixture
def _wrong_worker(machines: Machines) -> Iterator[None]:
    """A process of the wrong machine that crawls, beside the one that the right one starts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "flask", "--app", "tests.service.shifted_clock", "worker"],
        cwd=PROJECT, env=machines.wrong.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    yield
    process.terminate()
    process.wait(30)


@pytest.mark.usefixtures("_wrong_worker")
def test_no_machine_takes_a_run_that_the_other_one_works_on(machines: Machines) -> None:
    customer = machines.customer
    with serving() as website:
        website.pages = {f"/{n}": html(f"Page {n}") for n in range(15)}
        website.pages["/"] = html("Home", links=[f"/{n}" for n in range(15)])
        site = customer.session.must("POST", "/sites", {"name": "Crawled", "url": website.url})["site"]["id"]
        source = {"kind": "website", "url": website.address("/"), "schedule": "none"}
        customer.session.must("POST", f"/api/sites/{site}/sources", source)

        def is_finished() -> int:
            ((status, lapses),) = rows(machines.right, "SELECT status, lapses FROM source_runs")
            assert status == "finished"
            return lapses

        assert eventually(is_finished) == 0
        asked = [path for path, _ in website.asked if path[1:].isdigit()]
    assert sorted(asked) == sorted({f"/{n}" for n in range(15)})


def test_doctor_says_whose_clock_is_wrong(machines: Machines) -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import tests.service.shifted_clock; from app.commands.doctor import doctor; doctor()",
         "--json"],
        cwd=PROJECT, env=machines.wrong.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert told.returncode == 1
    clocks = [finding for finding in json.loads(told.stdout) if finding["topic"] == "clocks"]
    assert [finding["level"] for finding in clocks] == ["problem", "problem"]
    assert "The clock of the database is 3600.0 s from this machine's." in clocks[0]["message"]
    assert "NTP" in clocks[0]["remedy"]


def test_the_clock_is_used_again_once_it_is_right(machines: Machines, tmp_path: Path) -> None:
    file = Path(machines.wrong.environment["CLOCK_FILE"])
    file.write_text("0")
    try:

        def is_right_again() -> None:
            assert "this machine's clock is right again" in machines.wrong.log

        eventually(is_right_again)
        found = machines.customer.search.call_at(machines.wrong, "GET", "/v1/search?q=page")
        reset = int(found.headers["X-RateLimit-Reset"])
        assert abs(reset - time.time()) < 65
    finally:
        file.write_text(str(machines.ahead))
