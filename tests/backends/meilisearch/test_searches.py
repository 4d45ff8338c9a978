"""Search results of a real Meilisearch, recorded in ``recordings/meilisearch_searches.json``, and of the fake.

``RECORD_MEILISEARCH=1`` with ``MEILISEARCH_URL`` replaces the recording.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.meilisearch.backend import MeilisearchBackend
from backends.meilisearch.schema import index_settings
from backends.meilisearch.transport import MeilisearchTransport, RejectedByMeilisearch
from backends.registry import create_backend
from tests.backends.fakes.meilisearch import FakeMeilisearch

RECORDING = Path(__file__).parent.parent / "recordings" / "meilisearch_searches.json"
INDEX = "site_of_the_recording"

DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"_pk": "tickets", "title": "Tickets", "content": "Day tickets can be returned up to noon", "page": "a"},
    {"_pk": "boats", "title": "Boats", "content": "You can rent a boat at the pier", "page": "a", "note": ""},
    {"_pk": "pier", "title": "The pier", "content": "A walk along the pier, and a boat", "page": ["a", "b"]},
    {"_pk": "apple", "title": "Apple", "content": "Red and round", "page": "b", "note": "x"},
    {"_pk": "cherry", "title": "Cherry", "content": "Dark and round", "page": []},
    {"_pk": "hours", "title": "Opening hours", "content": "Open at nine"},
    {"_pk": "times", "title": "Other times", "content": "The opening hours of the harbour"},
    {"_pk": "commit", "title": "Commit", "content": "A documentation page"},
    {"_pk": "omit", "title": "Omit", "content": "A documentatoin page, mistyped"},
    {"_pk": "note", "title": "Note", "content": "A note book beside a laptop"},
    {
        "_pk": "signs", "title": "Signs",
        "content": "alpha€beta gamma\u00a0delta epsilon=zeta eta~theta iota-kappa lambda_mu",
    },
    {"_pk": "more", "title": "More signs", "content": "nu→xi omicron\u202fpi rho😀sigma tau²upsilon"},
)  # fmt: skip

STRATEGIES = ("last", "frequency", "all")
TEXTS = (
    "boat", "boat pier", "zebra boat", "boat zebra", "tickets refunded", "apple cherry", "apple cherry zebra",
    "round apple cherry", "opening hours", "hours opening", "boat -pier", "opn hours",
)  # fmt: skip
PHRASES = ('"opening hours"', '"hours opening"', '"zebra" boat', 'round "opening hours"')
WORDS = (
    "comit", "ommit", "docunentation", "documentation", "documen", "notebook", "lap top", "laptob", "beta", "alpha",
    "delta", "zeta", "theta", "kappa", "mu", "xi", "pi", "sigma", "upsilon", "tau2upsilon", "harbor",
)  # fmt: skip
FILTERS = (
    'note = ""', "note IS EMPTY", "page IS EMPTY", "page = a", "page IN [a, b]", "note EXISTS", "note != x",
    "nope = 1", "note CONTAINS x", "note ==", "_vectors EXISTS",
)  # fmt: skip


NEAR = 0.15
"""Largest difference between scores that count as equal."""


def searches() -> Iterator[dict[str, Any]]:
    """Yield single queries, and lists of queries to merge."""
    for text in TEXTS:
        yield from ({"q": text, "matchingStrategy": strategy} for strategy in STRATEGIES)
    yield from ({"q": text, "matchingStrategy": "frequency"} for text in PHRASES)
    yield from ({"q": word} for word in WORDS)
    yield from ({"q": "", "filter": [text]} for text in FILTERS)
    yield {"q": "", "distinct": "page"}
    yield {"merged": [{"q": "boat pier"}, {"q": "pier", "federationOptions": {"weight": 0.5}}]}
    yield {"merged": [{"q": "apple cherry"}, {"q": "cherry", "federationOptions": {"weight": 0.5}}]}


def found_by(backend: MeilisearchBackend, separators: list[str]) -> list[dict[str, Any]]:
    """Return each search with its results: IDs and scores, or an error code."""
    transport = backend._transport
    backend.delete_index(INDEX)
    settings = {
        **index_settings(5000), "separatorTokens": separators, "filterableAttributes": ["note", "page"],
        "rankingRules": ["words", "typo", "attribute", "exactness", "proximity"],
    }  # fmt: skip
    create = transport.change(INDEX, "POST", "/indexes", {"uid": INDEX, "primaryKey": "_pk"})
    configure = transport.change(INDEX, "PATCH", f"/indexes/{INDEX}/settings", settings)
    fill = transport.change(INDEX, "POST", f"/indexes/{INDEX}/documents", DOCUMENTS)
    transport.wait([create, configure, fill])
    results = [{**search, **_run(transport, search)} for search in searches()]
    backend.delete_index(INDEX)
    return results


def _run(transport: MeilisearchTransport, search: dict[str, Any]) -> dict[str, Any]:
    page = {"page": 1, "hitsPerPage": 20}
    shared = {"indexUid": INDEX, "attributesToRetrieve": ["_pk"], "showRankingScore": True}
    if "merged" in search:
        body: dict[str, Any] = {"federation": page, "queries": [{**shared, **query} for query in search["merged"]]}
    else:
        body = {"queries": [{**shared, **page, **search}]}
    try:
        answer = transport.ask("POST", "/multi-search", body)
    except RejectedByMeilisearch as error:
        return {"error": error.code}
    hits = (answer if "merged" in search else answer["results"][0])["hits"]
    scores = (hit.get("_federation", {}).get("weightedRankingScore", hit["_rankingScore"]) for hit in hits)
    return {"hits": {hit["_pk"]: round(score, 3) for hit, score in zip(hits, scores, strict=True)}}


def recording() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(RECORDING.read_text())
    return found


def write(found: dict[str, list[dict[str, Any]]]) -> None:
    """Write the recording, one line per search."""
    parts = (f'"{name}": [\n' + ",\n".join(map(json.dumps, each)) + "\n]" for name, each in found.items())
    RECORDING.write_text("{\n" + ",\n".join(parts) + "\n}\n")


SEPARATORS: dict[str, list[str]] = {"by default": [], "with separators": list("€=~→\u00a0\u202f")}


@pytest.mark.parametrize("name", SEPARATORS)
def test_fake_meilisearch_returns_the_recorded_hits_in_order(name: str) -> None:
    with FakeMeilisearch().running() as server:
        backend = create_backend(server.url)
        assert isinstance(backend, MeilisearchBackend)
        given = found_by(backend, SEPARATORS[name])
    for ours, theirs in zip(given, recording()[name], strict=True):
        search = {part: value for part, value in theirs.items() if part not in ("hits", "error")}
        assert ours.get("error") == theirs.get("error"), search
        mine, other = ours.get("hits", {}), theirs.get("hits", {})
        assert mine.keys() == other.keys(), search
        # The fake ignores word positions, which have a small weight in real scores.
        assert all(abs(mine[id] - score) < NEAR for id, score in other.items()), (search, mine, other)
        clear = [(left, right) for left in other for right in other if other[left] - other[right] > NEAR]
        assert all(mine[left] > mine[right] for left, right in clear), (search, mine, other)


@pytest.mark.live
@pytest.mark.parametrize("name", SEPARATORS)
def test_real_meilisearch_returns_the_recorded_hits(name: str) -> None:
    url = os.environ.get("MEILISEARCH_URL")
    if not url:
        pytest.skip("no MEILISEARCH_URL")
    backend = create_backend(url)
    assert isinstance(backend, MeilisearchBackend)
    found = found_by(backend, SEPARATORS[name])
    if os.environ.get("RECORD_MEILISEARCH"):
        write({**(recording() if RECORDING.exists() else {}), name: found})
    assert found == recording()[name]
