"""The contract and attacks on direct access, on a real Typesense."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

import backends.servers.sending
from backends.errors import BackendUnavailable
from backends.query import MATCH_ALL, SearchQuery
from backends.registry import create_backend
from backends.typesense.backend import TypesenseBackend
from tests.backends.contract import BackendContract, Case, MatchingContract, case_fixture, page  # noqa: F401
from tests.backends.live_servers import await_healthy, live_typesense_url, missing, typesense_binary, typesense_cluster
from tests.backends.typesense.promises import TypesensePromises, in_an_hour
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with live_typesense_url(tmp_path_factory.mktemp("typesense")) as url:
        yield url


@pytest.fixture
def backend(url: str) -> Iterator[TypesenseBackend]:
    backend = create_backend(url)
    assert isinstance(backend, TypesenseBackend)
    yield backend
    backend.close()


class TestARealTypesense(TypesensePromises, MatchingContract, BackendContract):
    pass


@pytest.mark.parametrize("piece", [10_000, 30_011, 1_000_000_000])
def test_body_that_arrives_in_pieces_keeps_every_character(
    backend: TypesenseBackend, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends.servers.sending, "_PIECE", piece)
    text, name = "— " * 5000, "site_pieces"
    backend.create_index(name)
    case = Case(backend, name)
    case.add(*(page(str(number), content=text) for number in range(200)))
    hits = [*case.search(MATCH_ALL, limit=100).hits, *case.search(MATCH_ALL, limit=100, offset=100).hits]
    backend.delete_index(name)
    assert len(hits) == 200
    assert {hit.document["content"] for hit in hits} == {text}


class Attacker:
    """A customer who has the key of one site and can send any HTTP request."""

    def __init__(self, backend: TypesenseBackend, own: str, victim: str):
        self.node = backend._transport.url.nodes[0]
        self.own, self.victim = own, victim
        self.credential = backend.issue_credential(own, "attacker", in_an_hour())

    def send(self, method: str, path: str, **options: object) -> requests.Response:
        headers = {"X-TYPESENSE-API-KEY": self.credential.token}
        return requests.request(method, self.node + path, headers=headers, timeout=PATIENCE_SECONDS, **options)


@pytest.fixture
def attacker(backend: TypesenseBackend) -> Iterator[Attacker]:
    own, victim = "site_1", "site_10"
    for index, text in ((own, "mine"), (victim, "theirs secret")):
        backend.delete_index(index)
        backend.create_index(index)
        Case(backend, index).add(page("d", text, text))
    attacker = Attacker(backend, own, victim)
    yield attacker
    backend.revoke_credential(attacker.credential.reference)
    for index in (own, victim):
        backend.delete_index(index)


def search_of(collection: str, **more: object) -> dict[str, object]:
    return {"collection": collection, "q": "*", "query_by": "title,content", **more}


ATTACKS = (
    ("a search of the other index", "POST", "/multi_search", {"searches": ["victim"]}),
    ("both indexes in one request", "POST", "/multi_search", {"searches": ["own", "victim"]}),
    ("the other index in the query string", "POST", "/multi_search?collection=site_10", {"searches": ["own"]}),
    ("the other index twice", "POST", "/multi_search?collection=site_1&collection=site_10", {"searches": ["own"]}),
    ("the other index encoded", "POST", "/multi_search?collection=site%5F10", {"searches": ["own"]}),
    ("a list of indexes", "POST", "/multi_search?collection=site_1,site_10", {"searches": ["own"]}),
    ("a pattern", "POST", "/multi_search?collection=site_.*", {"searches": ["own"]}),
    ("no index", "POST", "/multi_search?collection=site_10", {"searches": ["none"]}),
    ("GET of the other index", "GET", "/collections/site_10/documents/search?q=*&query_by=title", None),
    (
        "GET of an own path and another parameter",
        "GET",
        "/collections/site_1/documents/search?q=*&query_by=title&collection=site_10",
        None,
    ),
    ("a path that goes up", "GET", "/collections/site_1/../site_10/documents/search?q=*&query_by=title", None),
    ("an encoded path", "GET", "/collections/site_1%2F..%2Fsite_10/documents/search?q=*&query_by=title", None),
    ("another prefix of the name", "GET", "/collections/site_1x/documents/search?q=*&query_by=title", None),
    ("a preset", "POST", "/multi_search?preset=any", {"searches": ["victim"]}),
    ("the cache", "POST", "/multi_search?use_cache=true&collection=site_10", {"searches": ["own"]}),
    ("a document", "GET", "/collections/site_10/documents/d", None),
    ("an own document", "GET", "/collections/site_1/documents/d", None),
    ("an export", "GET", "/collections/site_10/documents/export", None),
    ("an own export", "GET", "/collections/site_1/documents/export", None),
    ("a write", "POST", "/collections/site_10/documents?action=upsert", {"id": "d", "title": "hacked"}),
    ("an import", "POST", "/collections/site_10/documents/import?action=upsert", {"id": "d", "title": "hacked"}),
    ("a deletion", "DELETE", "/collections/site_10/documents/d", None),
    ("a deletion by filter", "DELETE", "/collections/site_10/documents?filter_by=id:=d", None),
    ("a drop", "DELETE", "/collections/site_10", None),
    ("a schema change", "PATCH", "/collections/site_10", {"fields": []}),
    ("the collection", "GET", "/collections/site_10", None),
    ("the list of collections", "GET", "/collections", None),
    ("a new collection", "POST", "/collections", {"name": "x", "fields": []}),
    ("the keys", "GET", "/keys", None),
    ("a new key", "POST", "/keys", {"description": "x", "actions": ["*"], "collections": ["*"]}),
    ("a key's deletion", "DELETE", "/keys/0", None),
    ("aliases", "GET", "/aliases", None),
    ("an alias to the other index", "PUT", "/aliases/site_1", {"collection_name": "site_10"}),
    ("synonyms", "GET", "/collections/site_10/synonyms", None),
    ("overrides", "GET", "/collections/site_10/overrides", None),
    ("presets", "GET", "/presets", None),
    ("metrics", "GET", "/metrics.json", None),
    ("statistics", "GET", "/stats.json", None),
    ("debug", "GET", "/debug", None),
    ("status", "GET", "/status", None),
    ("configuration", "POST", "/config", {"log-slow-requests-time-ms": 1}),
    ("a snapshot", "POST", "/operations/snapshot?snapshot_path=/tmp/x", None),
    ("a vote", "POST", "/operations/vote", None),
)


@pytest.mark.parametrize(("what", "method", "path", "body"), ATTACKS, ids=[attack[0] for attack in ATTACKS])
def test_credential_grants_access_only_to_its_own_index(
    attacker: Attacker, backend: TypesenseBackend, what: str, method: str, path: str, body: dict[str, object] | None
) -> None:
    searches = {"own": search_of("site_1"), "victim": search_of("site_10"), "none": {"q": "*", "query_by": "title"}}
    if body and "searches" in body:
        body = {"searches": [searches[str(name)] for name in body["searches"]]}
    response = attacker.send(method, path, json=body)
    assert "theirs" not in response.text, what
    assert response.status_code in (200, 400, 401, 404), what
    if response.status_code == 200:
        results = response.json().get("results", [response.json()])
        assert all(each.get("request_params", {}).get("collection_name", "site_1") == "site_1" for each in results)
    assert backend.search("site_10", SearchQuery(MATCH_ALL)).hits[0].document["title"] == "theirs secret"
    assert backend.count("site_10") == 1


def test_filter_of_a_direct_search_stays_within_its_index(attacker: Attacker) -> None:
    for filter_by in ("id:=d) || (id:=d", "$site_10(title:=theirs)", "title:=theirs || title:!=x"):
        path = f"/multi_search?filter_by={quote(filter_by)}"
        assert "theirs" not in attacker.send("POST", path, json={"searches": [search_of("site_1")]}).text


def test_tampered_credential_is_rejected(attacker: Attacker) -> None:
    import base64

    plain = base64.b64decode(attacker.credential.token).decode()
    for changed in (plain.replace("site_1", "site_10"), plain[:48] + "{}", plain.replace('"limit', '"unlimit')):
        token = base64.b64encode(changed.encode()).decode()
        response = requests.post(
            f"{attacker.node}/multi_search",
            json={"searches": [search_of("site_10")]},
            timeout=PATIENCE_SECONDS,
            headers={"X-TYPESENSE-API-KEY": token},
        )
        assert response.status_code == 401


def test_too_many_searches_in_one_request_are_rejected(attacker: Attacker) -> None:
    body = {"searches": [search_of("site_1")] * 11}
    assert attacker.send("POST", "/multi_search", json=body).status_code == 400


def test_revoked_credential_stays_revoked_when_its_index_is_recreated(
    attacker: Attacker, backend: TypesenseBackend
) -> None:
    backend.revoke_credential(attacker.credential.reference)
    backend.delete_index("site_1")
    backend.create_index("site_1")
    response = attacker.send("POST", "/multi_search", json={"searches": [search_of("site_1")]})
    assert response.status_code == 401


def test_check_fails_after_a_crash_until_every_document_is_loaded(tmp_path: Path) -> None:
    if os.environ.get("TYPESENSE_URL") or typesense_binary() is None:
        missing("a node of our own is needed")
    from tests.backends.live_servers import KEY

    with typesense_cluster(tmp_path, 1) as (node,):
        backend = create_backend(f"typesense://:{KEY}@{node.host}")
        backend.create_index("site_1")
        words = " ".join(f"word{number}" for number in range(300))
        for batch in range(8):
            Case(backend, "site_1").add(*(page(f"{batch}-{n}", "t", words) for n in range(500)))
        node.kill()
        node.start()
        refusals, deadline = 0, time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                backend.check()
            except BackendUnavailable:
                refusals += 1
            else:
                break
        assert backend.count("site_1") == 4000
        assert refusals > 0
        await_healthy([node])
