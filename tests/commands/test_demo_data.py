"""The demo: the product's own documentation, crawled without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson
import pytest
from flask import Flask
from sqlalchemy import select

from app.commands.crawl_parts import crawl_parts
from app.commands.demo_data import make_demo
from app.config import load_settings
from app.documentation import documentation_files
from app.models import Source, SourceRun, StoredDocument
from app.runtime import Runtime
from app.services.crawling.control import RunControl
from app.services.crawling.execution import execute
from app.services.sources import runs
from tests.services.crawling.conftest import FreeTurns

BASE_URL = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def _no_waiting(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("app.commands.crawl_parts.SharedTurns", lambda database: FreeTurns())
    with app.app_context():
        yield


def documents(part: Runtime) -> dict[str, dict[str, object]]:
    with part.database.read() as session:
        bodies = session.scalars(select(StoredDocument.body).where(StoredDocument.body.is_not(None))).all()
    found = [orjson.loads(body) for body in bodies if body is not None]
    return {str(document["url"]): document for document in found}


def last_run(part: Runtime) -> SourceRun:
    with part.database.read() as session:
        return session.scalars(select(SourceRun).order_by(SourceRun.queued_at.desc()).limit(1)).one()


def test_its_site_holds_the_pages_of_the_documentation(app: Flask) -> None:
    part: Runtime = app.extensions["runtime"]
    text = make_demo(part, BASE_URL)

    found = documents(part)
    reference = {f"reference/{name}" for name in ("keys", "documents", "schemas")}
    assert set(found) >= {f"{BASE_URL}/docs/{name}" for name in [*documentation_files(), "reference", *reference]}
    assert f"{len(found)} pages of the documentation were crawled" in text
    assert "Quotas belong to the account" in str(found[f"{BASE_URL}/docs/limits"]["content"])
    keys = str(found[f"{BASE_URL}/docs/reference/keys"]["content"])
    assert "/api/sites/{site_id}/keys/{key_id}/rotate" in keys
    assert "overlap_seconds" in keys
    assert "rate_limit_exceeded" not in keys
    assert "import requests" not in keys


def test_the_documentation_is_searched_with_its_public_key(app: Flask) -> None:
    part: Runtime = app.extensions["runtime"]
    text = make_demo(part, BASE_URL)
    key = load_settings({"DATA_DIR": str(part.settings.data_path)}).docs_search_key
    assert key.startswith("svc_pub_")
    assert key in text
    (search_key,) = set(re.findall(r"svc_srch_\w+", text))

    def first(query: str) -> str:
        headers = {"Authorization": f"Bearer {search_key}"}
        answer = app.test_client().get("/v1/search", query_string={"q": query}, headers=headers).get_json()
        return str(answer["results"]["hits"][0]["url"]).removeprefix(f"{BASE_URL}/docs/")

    assert first("createKey") == "reference/keys", "an operation by its name"
    assert first("report a click") == "reference/clicks", "an operation by what it does"
    assert first("key_expired") == "errors"
    assert first("first search") == "start"
    assert first("limits") == "limits"


def test_it_is_the_same_when_it_is_made_twice(app: Flask) -> None:
    part: Runtime = app.extensions["runtime"]
    first = make_demo(part, BASE_URL)
    before = documents(part)
    second = make_demo(part, BASE_URL)

    assert first == second
    assert documents(part) == before
    assert last_run(part).unchanged == len(before)


def test_at_another_port_its_pages_are_there(app: Flask) -> None:
    part: Runtime = app.extensions["runtime"]
    make_demo(part, BASE_URL)
    make_demo(part, "http://127.0.0.1:8001")

    assert {url.partition("/docs")[0] for url in documents(part)} == {"http://127.0.0.1:8001"}


def test_no_other_source_reaches_this_machine_by_it(app: Flask) -> None:
    part: Runtime = app.extensions["runtime"]
    make_demo(part, BASE_URL)
    with part.database.write() as session:
        source = session.scalars(select(Source)).one()
        source.url, source.include = "http://127.0.0.1:9/metrics", []
        part_of_demo = source.id

    with part.database.write() as session:
        runs.request_run(session, session.get_one(Source, part_of_demo))
        claim = runs.claim_run(session)
    assert claim is not None
    with crawl_parts(part) as parts:
        execute(parts, claim, RunControl())

    assert last_run(part).error == {
        "code": "private_address", "message": "127.0.0.1 is at an address that is not public.",
    }  # fmt: skip
    assert (part.settings.data_path / "demo.json").stat().st_mode & 0o777 == 0o600
