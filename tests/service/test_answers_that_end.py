"""Answers that the language model is writing when the service stops or a visitor leaves."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests

from app.services.asks.slots import MAX_OF_ACCOUNT
from tests.callers import page
from tests.patience import PATIENCE_SECONDS, eventually
from tests.server import Server, running_server
from tests.service.clients import Customer, register
from tests.services.asks.model_server import END, STREAM, ModelServer, Response, event, run_model_server

pytestmark = pytest.mark.service

QUESTION = "When does the museum open on Sundays?"
SILENT, STALLED, TRICKLING, FINISHING = "silent", "stalled", "trickling", "finishing"
"""What the model does: it sends nothing, stops writing, sends a word now and then, or ends its answer when it may."""


@pytest.fixture
def finish() -> threading.Event:
    return threading.Event()


@pytest.fixture
def model(finish: threading.Event) -> Iterator[ModelServer]:
    with run_model_server() as running:

        def chunks(behavior: str) -> Iterator[bytes]:
            yield event("It opens at ten [1]. ") + event("And ")
            if behavior == STALLED:
                running.released.wait()
            for number in itertools.count() if behavior == TRICKLING else ():
                if running.released.wait(0.5):
                    return
                yield event(f"{number} ")
            finish.wait()
            yield END

        def respond(body: dict[str, Any]) -> Response:
            behaviors = (SILENT, STALLED, TRICKLING, FINISHING)
            behavior = next(each for each in behaviors if f"named {each}" in body["messages"][0]["content"])
            if behavior == SILENT:
                running.released.wait()
            return 200, STREAM, chunks(behavior)

        running.respond = respond
        yield running


@pytest.fixture
def server(tmp_path: Path, model: ModelServer) -> Iterator[Server]:
    settings = {"llm_url": model.url, "llm_model": "small", "llm_timeout": 120, "default_plan": "enterprise"}
    with running_server(tmp_path / "service", workers=1, **settings) as running:
        yield running


def make_museum(server: Server, behavior: str) -> Customer:
    customer = register([server], f"{behavior}@example.com")
    customer.private.index(page(id="hours", title="Opening hours", content="On Sundays, the museum opens at ten."))
    settings = {"ask": True, "ask_instructions": f"You are named {behavior}."}
    customer.session.must("PUT", f"/sites/{customer.site_id}/search-settings", settings)
    return customer


def ask(server: Server, customer: Customer, *, stream: bool = True) -> requests.Response:
    return requests.post(
        f"{server.base_url}/v1/ask",
        json={"q": QUESTION, "stream": stream},
        headers={"Authorization": f"Bearer {customer.tokens['search']}"},
        stream=stream,
        timeout=PATIENCE_SECONDS,
    )


def last_event(response: requests.Response) -> tuple[str, str]:
    """Return the name and the error code of the last event."""
    name, data = response.content.decode().removesuffix("\n\n").rpartition("\n\n")[2].split("\n")
    return name.removeprefix("event: "), orjson.loads(data.removeprefix("data: ")).get("error", "")


@pytest.mark.parametrize("how", ["stop", "reload"])
def test_answers_are_finished_or_end_with_an_error_when_the_workers_stop(
    server: Server, model: ModelServer, finish: threading.Event, how: str
) -> None:
    behaviors = (SILENT, STALLED, TRICKLING, FINISHING)
    museums = [make_museum(server, behavior) for behavior in behaviors]
    (worker,) = server.worker_pids()
    with ThreadPoolExecutor(5) as visitors:
        whole = visitors.submit(ask, server, museums[0], stream=False)
        streams = [ask(server, museum) for museum in museums]
        for _ in range(5):
            assert model.arrived.acquire(timeout=PATIENCE_SECONDS)
        endings = [visitors.submit(last_event, response) for response in streams]

        if how == "reload":
            os.kill(server.pid, 1)
            eventually(lambda: worker not in server.worker_pids()[:1] or len(server.worker_pids()) > 1)
            finish.set()
            assert [ending.result() for ending in endings] == [("error", "ask_unavailable")] * 3 + [("done", "")]
            eventually(lambda: worker not in server.worker_pids())
        else:
            stopping = visitors.submit(server.stop)
            finish.set()
            assert [ending.result() for ending in endings] == [("error", "ask_unavailable")] * 3 + [("done", "")]
            assert stopping.result() == 0
        assert (whole.result().status_code, whole.result().json()["error"]) == (503, "ask_unavailable")


@pytest.mark.parametrize("stream", [True, False])
def test_visitors_who_leave_free_their_slots(server: Server, model: ModelServer, stream: bool) -> None:
    museum = make_museum(server, SILENT)
    target = server.base_url.removeprefix("http://").split(":")
    body = orjson.dumps({"q": QUESTION, "stream": stream})
    head = (
        f"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {museum.tokens['search']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with ExitStack() as stack:
        for _ in range(MAX_OF_ACCOUNT):
            visitor = stack.enter_context(socket.create_connection((target[0], int(target[1]))))
            visitor.sendall(head.encode() + body)
            assert model.arrived.acquire(timeout=PATIENCE_SECONDS)
        assert ask(server, museum).status_code == 503

    def is_free() -> bool:
        with ask(server, museum) as response:
            return response.status_code == 200

    eventually(is_free)


def test_killed_worker_cuts_its_streams_which_count_and_the_next_worker_answers(
    server: Server, model: ModelServer, finish: threading.Event
) -> None:
    museum = make_museum(server, FINISHING)
    server.set_plan(museum.email, "enterprise", asks_per_day=MAX_OF_ACCOUNT + 1)
    (worker,) = server.worker_pids()
    streams = [ask(server, museum) for _ in range(MAX_OF_ACCOUNT)]
    for _ in streams:
        assert model.arrived.acquire(timeout=PATIENCE_SECONDS)

    os.kill(worker, signal.SIGKILL)

    for stream in streams:
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            _ = stream.content
    finish.set()
    assert ask(server, museum, stream=False).json()["answered"]
    assert ask(server, museum).status_code == 429
