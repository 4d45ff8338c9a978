"""The demo: the product's own documentation, crawled without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from flask import Flask
from sqlalchemy import select

from app.commands.crawl import crawl_parts
from app.commands.demo import EMAIL, make_demo
from app.config import load_settings
from app.crawl.run.execution import execute
from app.crawl.run.state import RunControl
from app.crawl.sources import runs
from app.documentation import documentation_files
from app.models import Source, SourceRun, StoredDocument
from app.runtime import Runtime
from tests.callers import ApiClient
from tests.conftest import close_app, make_app, make_settings
from tests.crawl.run.conftest import FreeTurns
from tests.pages.people import Person

BASE_URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module", autouse=True)
def _no_waiting() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.commands.crawl.SharedTurns", lambda database: FreeTurns())
        yield


@dataclass(frozen=True)
class Demo:
    """An application with the demo, and the demo's output."""

    app: Flask
    part: Runtime
    text: str


def prepare(app: Flask) -> Demo:
    part: Runtime = app.extensions["runtime"]
    with app.app_context():
        return Demo(app, part, make_demo(part, BASE_URL))


@pytest.fixture(scope="module")
def read_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo, for tests that do not change it."""
    application = make_app(make_settings(tmp_path_factory.mktemp("demo")))
    yield prepare(application)
    close_app(application)


@pytest.fixture
def demo(app: Flask) -> Demo:
    """The demo, for tests that change it."""
    return prepare(app)


def documents(part: Runtime) -> dict[str, dict[str, object]]:
    with part.database.read() as session:
        bodies = session.scalars(select(StoredDocument.body).where(StoredDocument.body.is_not(None))).all()
    found = [orjson.loads(body) for body in bodies if body is not None]
    return {str(document["url"]): document for document in found}


def last_run(part: Runtime) -> SourceRun:
    with part.database.read() as session:
        return session.scalars(select(SourceRun).order_by(SourceRun.queued_at.desc()).limit(1)).one()


@pytest.mark.slow
def test_demo_site_contains_the_documentation_pages(read_demo: Demo) -> None:
    part, text = read_demo.part, read_demo.text

    found = documents(part)
    reference = {f"reference/{name}" for name in ("keys", "documents", "schemas")}
    assert set(found) >= {f"{BASE_URL}/docs/{name}" for name in [*documentation_files(), "reference", *reference]}
    assert f"its site has {len(found)} pages of the documentation" in text
    assert "Quotas apply to the account" in str(found[f"{BASE_URL}/docs/limits"]["content"])
    keys = str(found[f"{BASE_URL}/docs/reference/keys"]["content"])
    assert "/api/sites/{site_id}/keys/{key_id}/rotate" in keys
    assert "overlap_seconds" in keys
    assert "rate_limit_exceeded" not in keys
    assert "import requests" not in keys


def test_documentation_is_searchable_and_has_a_public_key(read_demo: Demo) -> None:
    part, text = read_demo.part, read_demo.text
    key = load_settings({"DATA_DIR": str(part.settings.data_path)}).docs_search_key
    assert key.startswith("svc_pub_")
    assert key in text
    (search_key,) = set(re.findall(r"svc_srch_\w+", text))

    def first(query: str, sections: int = 0) -> str:
        headers = {"Authorization": f"Bearer {search_key}"}
        wish = {"q": query, "sections": sections}
        answer = read_demo.app.test_client().get("/v1/search", query_string=wish, headers=headers).get_json()
        hit = answer["results"]["hits"][0]
        return str((hit["sections"][0] if sections else hit)["url"]).removeprefix(f"{BASE_URL}/docs/")

    assert first("createKey") == "reference/keys", "the name of an operation must find it"
    assert first("report a click") == "reference/clicks", "the description of an operation must find it"
    assert first("key_expired") == "errors"
    assert first("first search") == "start"
    assert first("k8s") == "deployment", "a synonym"
    assert first("limits") == "limits"
    assert first("pricing") == f"{BASE_URL}/plans"
    assert first("own template for a result", sections=1) == "search-box#your-own-template-for-a-result"


@pytest.mark.slow
def test_responses_of_the_tour_fit_a_screen(demo: Demo) -> None:
    text = demo.text
    readme = documentation_files()["readme"].read_text(encoding="utf-8")
    (key,) = re.findall(r"svc_prv_\w+", text)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    client = demo.app.test_client(use_cookies=False)

    (documents_sent,) = re.findall(r"/index/bulk\" .*?-d '(.*?)'\n", readme, re.DOTALL)
    assert client.post("/api/v1/index/bulk", headers=headers, data=documents_sent).get_json()["indexed"] == 2
    (path,) = re.findall(r'"\$BASE(/v1/search\?[^"]+)"', readme)
    answers = [client.get(path, headers=headers)]
    answers += [client.get(path, headers=headers) for path in re.findall(rf"curl '{BASE_URL}(/v1/search[^']+)'", text)]
    answers += [
        client.post("/v1/search", headers=headers, data=body)
        for body in re.findall(r"\$BASE/v1/search\" .*?-d '(.*?)'\n", readme, re.DOTALL)
    ]

    assert len(answers) == 3
    assert [answer.status_code for answer in answers] == [200] * 3
    assert max(len(answer.get_data()) for answer in answers) < 24 * 80
    typed, _, filtered = (answer.get_json()["results"]["hits"] for answer in answers)
    assert (typed[0]["id"], typed[0]["_formatted"]["title"]) == ("2", "<em>Getting</em> <em>here</em>")
    assert [hit["id"] for hit in filtered] == ["2", "1"]
    assert answers[2].get_json()["results"]["facetDistribution"]["section"] == {"visit": 2}


@pytest.mark.slow
def test_demo_site_is_open_to_agents_at_the_printed_url(read_demo: Demo) -> None:
    (path,) = re.findall(rf"For agents   {BASE_URL}(/mcp/svc_pub_\w+)", read_demo.text)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "quota"}},
    }

    result = read_demo.app.test_client().post(path, json=call).get_json()["result"]

    assert result["structuredContent"]["total"] > 0


def test_creating_the_demo_twice_changes_nothing_and_crawls_once(read_demo: Demo) -> None:
    part = read_demo.part
    before, run = documents(part), last_run(part).id
    with read_demo.app.app_context():
        second = make_demo(part, BASE_URL)

    assert second == read_demo.text
    assert documents(part) == before
    assert last_run(part).id == run


@pytest.mark.slow
def test_demo_on_another_port_crawls_again_and_uses_urls_with_that_port(demo: Demo) -> None:
    part = demo.part
    first = last_run(part).id
    with demo.app.app_context():
        make_demo(part, "http://127.0.0.1:8001")

    assert last_run(part).id != first
    assert {re.sub("/(docs|plans).*", "", url) for url in documents(part)} == {"http://127.0.0.1:8001"}


@pytest.mark.slow
def test_demo_access_to_this_machine_is_limited_to_its_own_source(demo: Demo) -> None:
    part = demo.part
    with part.database.write() as session:
        source = session.scalars(select(Source)).one()
        source.url, source.include = "http://127.0.0.1:9/metrics", []
        part_of_demo = source.id

    with part.database.write() as session:
        runs.request_run(session, session.get_one(Source, part_of_demo))
        claim = runs.claim_run(session)
    assert claim is not None
    with demo.app.app_context(), crawl_parts(part) as parts:
        execute(parts, claim, RunControl())

    assert last_run(part).error == {
        "code": "private_address", "message": "127.0.0.1 has an IP address that is not public.",
    }  # fmt: skip
    assert (part.settings.data_path / "demo.json").stat().st_mode & 0o777 == 0o600


def test_demo_has_a_month_of_example_searches_that_one_click_removes(demo: Demo) -> None:
    (password,) = re.findall(r"Log in with  \S+ and (\S+)", demo.text)
    (key,) = set(re.findall(r"svc_srch_\w+", demo.text))
    member = Person(demo.app)
    member.go("/login")
    member.press("Log in", email=EMAIL, password=password)
    api = ApiClient(demo.app, key)

    def analytics() -> dict[str, Any]:
        demo.part.events.flush()
        found: dict[str, Any] = member.client.get("/api/analytics?site_id=1").get_json()
        return found

    shown = analytics()
    assert shown["total_searches"] > 500
    assert len([day for day in shown["series"] if day["searches"]]) >= 27
    assert 0.3 < shown["click_through_rate"] < 0.8
    assert {"sharepoint", "salesforce"} <= {each["query"] for each in shown["zero_result_queries"]}
    assert len({day["searches"] for day in shown["series"]}) > 10, "days differ"
    api.get("/v1/search?q=a+real+search&session_id=visitor")
    assert analytics()["total_searches"] == shown["total_searches"] + 1

    member.go("/dashboard")
    assert "example searches" in member.page.text
    member.press("Remove the examples")

    assert "example searches were removed" in member.page.text
    assert "added a month of example searches" not in member.page.text
    left = analytics()
    assert left["total_searches"] == 1
    assert [each["query"] for each in left["top_queries"]] == ["a real search"]
    with demo.app.app_context():
        make_demo(demo.part, BASE_URL)
    assert analytics()["total_searches"] == 1, "removed results must not come back"
