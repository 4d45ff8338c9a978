"""Every backend method turns any server failure into the right error, in time and with our own message."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from backends.base import Document, SearchBackend
from backends.errors import BackendError, BackendMisconfigured, BackendUnavailable, IndexNotFound
from backends.filters import OneOf
from backends.query import SearchQuery, SearchSettings
from backends.registry import create_backend
from tests.backends.fakes.broken import WAYS, broken_server

KEY = "k3y-that-nobody-may-see"
REFUSALS = ("401", "403")
SHORT_SECONDS, LONG_SECONDS = 0.2, 20.0
"""Budgets in seconds: a short one that retries exhaust, and a long one to read a rejection even on a busy machine."""
DOCUMENT = Document("a", {"id": "a", "title": "t", "content": "c", "url": "/a"}, 1)
SOON = datetime.now(UTC) + timedelta(hours=1)

CALLS: dict[str, Callable[[SearchBackend], object]] = {
    "create_index": lambda b: b.create_index("site_1"),
    "delete_index": lambda b: b.delete_index("site_1"),
    "list_indexes": lambda b: b.list_indexes(),
    "upsert": lambda b: b.upsert("site_1", [DOCUMENT], {}),
    "delete": lambda b: b.delete("site_1", ["a"]),
    "search": lambda b: b.search("site_1", SearchQuery("word", facets=("author",))),
    "send_synonyms": lambda b: b.send_synonyms("site_1", SearchSettings(synonyms=(("word", "term"),))),
    "find_titles": lambda b: b.find_titles("site_1", "word", 8),
    "find_related": lambda b: b.find_related("site_1", OneOf("id", ("a",)), SearchQuery("*")),
    "count": lambda b: b.count("site_1"),
    "document_ids": lambda b: list(b.document_ids("site_1")),
    "check": lambda b: b.check(),
    "version": lambda b: b.version(),
    "index_bytes": lambda b: b.index_bytes(),
    "free_share": lambda b: b.free_share(),
    "issue_credential": lambda b: b.issue_credential("site_1", "holder", SOON),
    "revoke_credential": lambda b: b.revoke_credential("6f4b2a8c-0000-4000-8000-000000000000"),
}


def test_every_public_backend_method_is_covered() -> None:
    public = {name for name, _ in inspect.getmembers(SearchBackend, inspect.isfunction) if not name.startswith("_")}
    # These methods send no request to a server.
    assert public - {"close", "count_words", "outdated_indexes", "run_maintenance"} == set(CALLS)


WAITING = ("hangs", "drips")
CLUSTER_WAYS = ("refuses", "hangs", "resets", "garbage", "other JSON", "500 empty", "503", "401")
CASES = [
    *(("typesense", way, 1) for way in WAYS),
    *(pytest.param("meilisearch", way, 1, marks=[pytest.mark.slow] * (way in WAITING)) for way in WAYS),
    *(pytest.param("typesense", way, 3, marks=pytest.mark.slow) for way in CLUSTER_WAYS),
]


@pytest.mark.parametrize(("scheme", "way", "nodes"), CASES)
def test_broken_server_raises_backend_unavailable_in_time_without_leaking_details(
    scheme: str, way: str, nodes: int
) -> None:
    with broken_server(way) as one, broken_server(way) as two, broken_server(way) as three:
        hosts = ",".join(f"127.0.0.1:{port}" for port in (one, two, three)[:nodes])
        budget = LONG_SECONDS if way in REFUSALS else SHORT_SECONDS
        backend = create_backend(f"{scheme}://:{KEY}@{hosts}?timeout_seconds={budget}&connect_timeout_seconds={budget}")
        for name, call in CALLS.items():
            if scheme == "meilisearch" and name == "free_share":
                continue  # Meilisearch does not report it, so there is nothing to ask.
            began = time.monotonic()
            with pytest.raises(BackendError) as caught:
                call(backend)
            spent = time.monotonic() - began
            failure = f"{scheme} {name} on a server that says {way!r}"
            assert isinstance(caught.value, BackendUnavailable), f"{failure}: {caught.value!r}"
            assert not isinstance(caught.value, IndexNotFound)
            assert isinstance(caught.value, BackendMisconfigured) == (way in REFUSALS), f"{failure}: {caught.value!r}"
            assert spent < LONG_SECONDS / 2, f"{failure} took {spent:.1f} s"
            assert caught.value.retry_after > 0
            for secret in (KEY, "secret words", "http", "127.0.0.1"):
                assert secret not in str(caught.value)
            assert KEY not in "".join(traceback.format_exception(caught.value))
        assert KEY not in repr(backend)
        assert KEY not in backend.identity
        backend.close()
