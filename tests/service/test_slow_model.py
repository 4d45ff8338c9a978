"""A hundred visitors wait for a language model that does not answer: searches go on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from app.services.asks.slots import MAX_OF_ACCOUNT
from tests.callers import page
from tests.patience import PATIENCE_SECONDS
from tests.server import Server, running_server
from tests.service.clients import Customer, register
from tests.services.asks.model_server import ModelServer, run_model_server

pytestmark = pytest.mark.service

VISITORS = 100
QUESTION = "When does the museum open on Sundays?"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with run_model_server() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path, model: ModelServer) -> Iterator[Server]:
    settings = {"llm_url": model.url, "llm_model": "small", "llm_timeout": 120, "default_plan": "enterprise"}
    with running_server(tmp_path / "service", workers=1, **settings) as running:
        yield running


@pytest.fixture
def museum(server: Server) -> Customer:
    customer = register([server], "ann@example.com")
    document = page(id="hours", title="Opening hours", content="On Sundays, the museum opens at ten.")
    customer.private.must("POST", "/api/v1/index/bulk", {"documents": [document]})
    customer.session.must("PUT", f"/sites/{customer.site_id}/search-settings", {"ask": True})
    return customer


def ask(server: Server, customer: Customer, visitor: int) -> requests.Response:
    return requests.post(
        f"{server.base_url}/v1/ask",
        json={"q": QUESTION, "stream": True, "session_id": f"visitor-{visitor}"},
        headers={"Authorization": f"Bearer {customer.tokens['search']}"},
        stream=True,
        timeout=PATIENCE_SECONDS,
    )


def test_searches_go_on_while_a_hundred_visitors_wait(server: Server, museum: Customer, model: ModelServer) -> None:
    model.hang()
    with ThreadPoolExecutor(VISITORS) as visitors:
        responses = list(visitors.map(lambda number: ask(server, museum, number), range(VISITORS)))
    statuses = [response.status_code for response in responses]

    assert (statuses.count(200), statuses.count(503)) == (MAX_OF_ACCOUNT, VISITORS - MAX_OF_ACCOUNT)
    waiting = [response for response in responses if response.status_code == 200]
    for _ in range(50):
        assert museum.search.must("GET", "/v1/search?q=museum")["results"]["estimatedTotalHits"] == 1
    # Their first events arrived although the model has sent nothing.
    for response in waiting:
        assert next(response.iter_lines()) == b"event: sources"
    model.released.set()  # Otherwise the server would wait for the model before it stops.
