"""The examples of the API document are the service's actual responses to one sequence of requests.

``make examples`` records the responses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import time_machine

import app.apidoc
from app.apidoc.example_requests import REQUESTS
from app.apidoc.examples import FILE, read_responses
from tests.apidoc.examples.story import BASE_URL, NOW, OPERATOR_TOKEN, Story, Told, without_tokens
from tests.conftest import close_app, make_app, make_settings
from tests.services.asks.model_server import run_model_server, writing


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Yield the responses of an installation without external servers, except one with a language model."""
    folder = tmp_path_factory.mktemp("story")
    local = {
        "search_url": "memory://",
        "database_url": f"sqlite:///{folder / 'service.db'}",
        "limits_url": "",
        "public_url": BASE_URL,
        "operator_token": OPERATOR_TOKEN,
        "llm_model": "small",
    }
    with run_model_server() as model:
        model.respond = writing(
            "On Thursdays, the museum is open from nine in the morning until nine in the evening [1]."
        )
        yield from _tell(folder, {**local, "llm_url": model.url})


def _tell(folder: Path, local: dict[str, str]) -> Iterator[Told]:
    installation = make_app(make_settings(folder, **local))
    with time_machine.travel(NOW, tick=False) as clock, pytest.MonkeyPatch.context() as patch:
        story = Story(installation, clock, patch)
        story.tell()
        answers = without_tokens(story.answers)
        yield answers
    close_app(installation)
    if os.environ.get("RECORD_EXAMPLES"):
        file = Path(app.apidoc.__file__).with_name(FILE)
        file.write_bytes(orjson.dumps(answers, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


@pytest.mark.parametrize("operation", REQUESTS)
def test_example_request_gets_the_recorded_response(told: Told, operation: str) -> None:
    if os.environ.get("RECORD_EXAMPLES"):
        pytest.skip("The answers are being recorded.")

    assert told[operation] == read_responses().get(operation), "if the change is intended, run `make examples`"


@pytest.mark.skipif("RECORD_EXAMPLES" in os.environ, reason="The answers are being recorded.")
def test_every_recorded_response_has_a_request() -> None:
    assert sorted(read_responses()) == sorted(REQUESTS)
