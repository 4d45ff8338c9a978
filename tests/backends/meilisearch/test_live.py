"""The contract on a real Meilisearch, if MEILISEARCH_URL is set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import requests

from backends.errors import BackendMisconfigured
from backends.meilisearch.backend import MeilisearchBackend
from backends.registry import create_backend
from tests.backends.contract import BackendContract, Case, case_fixture, page  # noqa: F401
from tests.backends.meilisearch.promises import MeilisearchPromises
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.live


@pytest.fixture
def backend() -> Iterator[MeilisearchBackend]:
    url = os.environ.get("MEILISEARCH_URL")
    if not url:
        pytest.skip("no MEILISEARCH_URL")
    backend = create_backend(url)
    assert isinstance(backend, MeilisearchBackend)
    yield backend
    backend.close()


class TestARealMeilisearch(MeilisearchPromises, BackendContract):
    pass


def test_credential_grants_access_only_to_its_own_index(backend: MeilisearchBackend) -> None:
    for index, text in (("site_1", "mine"), ("site_10", "theirs")):
        backend.delete_index(index)
        backend.create_index(index)
        Case(backend, index).add(page("d", text, text))
    credential = backend.issue_credential("site_1", "attacker", datetime.now(UTC) + timedelta(hours=1))
    node = backend._transport.url.nodes[0]
    for method, path, body in (
        ("POST", "/indexes/site_10/search", {"q": ""}),
        ("POST", "/multi-search", {"queries": [{"indexUid": "site_10"}]}),
        ("POST", "/multi-search", {"queries": [{"indexUid": "site_1"}, {"indexUid": "site_10"}]}),
        ("POST", "/multi-search", {"federation": {}, "queries": [{"indexUid": "site_1"}, {"indexUid": "site_10"}]}),
        ("POST", "/indexes/site_10/facet-search", {"facetName": "author"}),
        ("GET", "/indexes/site_1/../site_10/search", None),
        ("GET", "/indexes/site_1*/search", None),
        ("GET", "/indexes/site_10/documents", None),
        ("GET", "/indexes/site_1/documents", None),
        ("POST", "/indexes/site_10/documents", [{"_pk": "d", "title": "hacked"}]),
        ("DELETE", "/indexes/site_10", None),
        ("GET", "/indexes", None),
        ("GET", "/indexes/site_10", None),
        ("GET", "/indexes/site_10/stats", None),
        ("GET", "/indexes/site_10/settings", None),
        ("GET", "/keys", None),
        ("GET", "/tasks", None),
        ("GET", "/stats", None),
        ("POST", "/dumps", None),
        ("POST", "/snapshots", None),
        ("POST", "/swap-indexes", [{"indexes": ["site_1", "site_10"]}]),
        ("POST", "/keys", {"actions": ["*"], "indexes": ["*"], "expiresAt": None}),
    ):
        headers = {"Authorization": f"Bearer {credential.token}"}
        response = requests.request(method, node + path, json=body, headers=headers, timeout=PATIENCE_SECONDS)
        assert response.status_code in (400, 401, 403, 404), (method, path, response.status_code)
        assert "theirs" not in response.text
    mine = requests.post(
        f"{node}/indexes/site_1/search",
        json={"q": "mine"},
        timeout=PATIENCE_SECONDS,
        headers={"Authorization": f"Bearer {credential.token}"},
    )
    assert mine.json()["hits"][0]["title"] == "mine"
    assert backend.count("site_10") == 1
    backend.revoke_credential(credential.reference)
    for index in ("site_1", "site_10"):
        backend.delete_index(index)


def test_wrong_key_raises_backend_misconfigured(backend: MeilisearchBackend) -> None:
    host = backend._transport.url.nodes[0].removeprefix("http://")
    with pytest.raises(BackendMisconfigured):
        create_backend(f"meilisearch://:wrong@{host}").check()
