"""The fake Typesense responds like the real server in every recorded exchange."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator
from hashlib import sha256

import pytest
import requests

from tests.backends.fakes.typesense import FakeTypesense
from tests.backends.recorded import assert_agrees, recordings
from tests.patience import PATIENCE_SECONDS

NOT_READY = ("58", "59", "60", "61")
"""Exchanges recorded while the server was starting or had run out of time."""


@pytest.fixture
def server() -> Iterator[FakeTypesense]:
    with FakeTypesense().running() as fake:
        yield fake


def scoped(parent: str) -> str:
    params = json.dumps({"collection": "site_1", "expires_at": 4102444799})
    digest = base64.b64encode(hmac.new(parent.encode(), params.encode(), sha256).digest()).decode()
    return base64.b64encode(f"{digest}{parent[:4]}{params}".encode()).decode()


def test_fake_typesense_responds_like_every_recorded_exchange(server: FakeTypesense) -> None:
    parent = ""
    for each in recordings("typesense"):
        if each["name"].startswith(NOT_READY):
            continue
        key = server.key if each["key"] else ""
        if "scoped_key" in each["name"]:
            key = scoped(parent)
        elif "search_key" in each["name"]:
            key = parent
        elif "bad_key" in each["name"]:
            key = "wrong"
        body = each["body"]
        if isinstance(body, dict) and each["status"] == 201 and each["path"] == "/keys":
            body = {**body, "value": each["answer"]["value"]}
            parent = body["value"]
        data = body if isinstance(body, str) else json.dumps(body) if body is not None else None
        response = requests.request(
            each["method"],
            f"http://{server.hosts[0]}{each['path']}",
            headers={"X-TYPESENSE-API-KEY": key} if key else {},
            data=data.encode() if data is not None else None,
            timeout=PATIENCE_SECONDS,
        )
        assert response.status_code == each["status"], each["name"]
        if isinstance(each["answer"], str):
            given = [json.loads(line) for line in response.text.splitlines()]
            wanted = [json.loads(line) for line in each["answer"].splitlines()]
            assert_agrees(given, wanted, each["name"])
        else:
            assert_agrees(response.json(), each["answer"], each["name"])
