"""What a request costs, in counts that are the same on every machine: the ledger that decides whether growth is wanted.

    .venv/bin/python -m benchmarks.calls [--write | --check]

Fixed requests over fixed documents (the project's documentation of November 2026, as pages of 4 KB and as 500 short
texts, both in ``benchmarks/ledger``), and a crawl of such pages, run in this process, on SQLite and the embedded
engine. Each row shows the mean of all its requests: calls of Python functions and of functions written in C, queries
of the engine, SQL statements, and steps of the counter store. ``--write`` stores the result in
``benchmarks/ledger/calls.json``; ``--check`` compares it with that file and fails if a count differs by more than 2
percent. So any growth is visible as a line in a diff.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import orjson
from sqlalchemy import event

from app.application import create_app
from app.counters import COUNTER_STORE_SECONDS
from app.operations import change
from app.operations.accounts import acting_for
from app.operations.keys import create_key
from app.operations.operator import create_account
from app.operations.search_settings import update_settings
from app.operations.sites import create_site
from app.runtime import Runtime
from app.services import collections
from app.services.access.callers import Caller
from app.storage.migrate import upgrade
from benchmarks.crawled_pages import make_crawl
from tests.conftest import make_settings

PARTS = ("part 1", "part 2", "part 3", "part 4")
"""Sites among which the short texts are split, for a collection."""
LEDGER = Path(__file__).parent / "ledger"
RESULT = LEDGER / "calls.json"
TOLERANCE = 0.02
ROUNDS = 3
SMALLEST = 3.0
"""Difference up to which a count may always vary, since a cache may expire during a run."""

QUERIES = (
    "search", "api key", "webhook", "crawl pages", "rate limit", "synonym", "documents", "index", "settings",
    "visitors", "quota", "engine", "password", "filters", "analytics", "backup", "languages", "titles", "serch",
    "documnt", "postgres redis", "search box", "public key", "learn from clicks", "delete site", "sitem", "highl",
    "typo toler",
)  # fmt: skip
"""Words, prefixes, and words with typos."""
RULES = {
    "rules": [
        {
            "id": "notice",
            "when": {"query": "webhook", "match": "words"},
            "do": {"notice": {"text": "News about webhooks."}},
            "enabled": True,
        },
        {
            "id": "boost",
            "when": {"query": "search", "match": "words"},
            "do": {"boost": {"filters": "section = docs", "rank": 2}},
            "enabled": True,
        },
    ],
    "synonyms": [["typo", "mistake"], ["crawler", "spider", "bot"]],
}


class Counts(NamedTuple):
    """Means of the requests of a row.

    Attributes:
        calls: Calls of Python functions and of functions written in C.
        engine: Queries of the embedded engine.
        sql: SQL statements.
        counters: Steps of the counter store.
    """

    calls: float
    engine: float
    sql: float
    counters: float


class Meter:
    """Counts what this thread does while a request runs."""

    def __init__(self, runtime: Runtime):
        self._calls = self._engine = self._sql = 0
        event.listen(runtime.database.engine, "before_cursor_execute", self._count_sql)

    def _count_sql(self, *_: object) -> None:
        self._sql += 1

    def _count_call(self, frame: FrameType, kind: str, argument: Any) -> None:
        if kind == "call":
            self._calls += 1
        elif kind == "c_call":
            self._calls += 1
            if argument.__name__ == "search" and type(argument.__self__).__name__ == "Searcher":
                self._engine += 1

    def count(self, request: Callable[[], object]) -> Counts:
        """Run a request and return its counts."""
        self._calls = self._engine = self._sql = 0
        steps = counter_steps()
        sys.setprofile(self._count_call)
        try:
            request()
        finally:
            sys.setprofile(None)
        return Counts(self._calls, self._engine, self._sql, counter_steps() - steps)


def counter_steps() -> float:
    """Return the number of steps of the counter store so far."""
    return sum(
        sample.value
        for metric in COUNTER_STORE_SECONDS.collect()
        for sample in metric.samples
        if sample.name.endswith("_count")
    )


def documents(name: str) -> list[dict[str, Any]]:
    """Read the documents of a file in the ledger."""
    lines = gzip.decompress((LEDGER / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return [orjson.loads(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    wishes = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # The order of sets decides how soon a loop ends.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.calls", *sys.argv[1:]])
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder))
    for name, counts in rows.items():
        calls, engine, sql, counters = counts
        print(f"{name:46} {calls:9,.0f} calls {engine:4.1f} engine {sql:5.1f} SQL {counters:4.1f} counters")
    found = {name: {unit: round(value, 2) for unit, value in counts._asdict().items()} for name, counts in rows.items()}
    if wishes.write:
        RESULT.write_text(json.dumps(found, indent=1) + "\n")
    elif wishes.check:
        problems = list(differences(json.loads(RESULT.read_text()), found))
        print("\n".join(problems) or "The ledger holds.")
        sys.exit(bool(problems))


def differences(expected: dict[str, dict[str, float]], found: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield a sentence for each count that differs by more than the tolerance."""
    if expected.keys() != found.keys():
        yield f"The rows differ: {sorted(expected.keys() ^ found.keys())}. Run with --write."
    for name in expected.keys() & found.keys():
        for unit, before in expected[name].items():
            after = found[name][unit]
            smallest = SMALLEST if unit == "calls" else 0.05
            if abs(after - before) > max(TOLERANCE * before, smallest):
                yield f"{name}: {before:,.1f} {unit} became {after:,.1f}. If that is decided, run with --write."


def create_collection(runtime: Runtime, owner: Caller, site_ids: list[int]) -> str:
    """Create a collection, and return a search key for it."""
    fields = {
        "name": "Collection",
        "sites": [{"site_id": site_id, "weight": 1.0, "filters": "", "label": ""} for site_id in site_ids],
    }
    collection = change(runtime, owner, collections.create_collection, runtime.engines.default.identity, fields)
    key = {"name": "search", "type": "search", "expires_at": None}
    return create_key(runtime, owner, collection.id, key, of_collection=True)[1]


def measure(folder: Path) -> dict[str, Counts]:
    """Run all requests, and return the counts of each row."""
    settings = make_settings(
        folder, search_url=f"tantivy://{folder / 'indexes'}", limits_url=f"sqlite:///{folder / 'counters.db'}",
        default_plan="enterprise", log_level="WARNING",
    )  # fmt: skip
    app = create_app(settings, background=False)
    runtime: Runtime = app.extensions["runtime"]
    upgrade(runtime.database)
    account = create_account(
        runtime, name="Ledger", email="ledger@example.com", password="a quiet reading room", plan=None
    )
    owner = acting_for(runtime, account)
    sites: dict[str, dict[str, str]] = {}
    site_ids: dict[str, int] = {}
    for name in ("short", "manuals", "rules", "written", "crawled", *PARTS):
        site = create_site(runtime, owner, {"name": name, "url": "https://example.com"})
        site_ids[name] = site.id
        sites[name] = {
            kind: create_key(runtime, owner, site.id, {"name": kind, "type": kind, "expires_at": None})[1]
            for kind in ("private", "search", "public")
        }
        if name == "rules":
            update_settings(runtime, owner, site.id, RULES)
    client = app.test_client(use_cookies=False)

    def send(site: str, kind: str, path: str, method: str = "GET", **options: Any) -> Any:
        response = client.open(path, method=method, headers={"Authorization": f"Bearer {sites[site][kind]}"}, **options)
        assert response.status_code == 200, (path, response.get_data(as_text=True)[:300])
        return response.get_json()

    short, manuals = documents("short"), documents("manuals")
    for site, batch in (("short", short), ("manuals", manuals), ("rules", manuals)):
        send(site, "private", "/api/v1/index/bulk", "POST", json={"documents": batch})
    for number, site in enumerate(PARTS):
        send(site, "private", "/api/v1/index/bulk", "POST", json={"documents": short[number :: len(PARTS)]})
    sites["collection"] = {"search": create_collection(runtime, owner, [site_ids[site] for site in PARTS])}
    infos = {site: send(site, "public", "/v1/client-info") for site in ("short", "manuals")}
    meter = Meter(runtime)
    rows: dict[str, Counts] = {}

    def row(name: str, request: Callable[[str], object], queries: tuple[str, ...] = QUERIES) -> None:
        for _ in range(2):  # Caches are warm, and constants are made.
            for query in queries:
                request(query)
        gc.collect()
        rounds = [[meter.count(lambda query=query: request(query)) for query in queries] for _ in range(ROUNDS)]
        # The least of several rounds: another thread, such as one that merges segments, may make a request wait.
        least = [min(counted) for counted in zip(*rounds, strict=True)]
        rows[name] = Counts(*(sum(values) / len(least) for values in zip(*least, strict=True)))

    def search(site: str, **parameters: Any) -> Callable[[str], object]:
        return lambda query: send(site, "search", "/v1/search", query_string={"q": query, **parameters})

    def gateway(site: str, **parameters: Any) -> Callable[[str], object]:
        body = {
            "limit": 8, "attributesToHighlight": ["title", "content"], "attributesToCrop": ["content"],
            "cropLength": 28, **parameters,
        }  # fmt: skip
        path = f"/engine/indexes/{infos[site]['index']}/search"

        def request(query: str) -> object:
            response = client.post(
                path, json={"q": query, **body}, headers={"Authorization": f"Bearer {infos[site]['engine_public_key']}"}
            )
            assert response.status_code == 200, response.get_json()
            return response.get_json()

        return request

    row("healthz", lambda query: client.get("/healthz"))
    row("search, limit=1", search("short", limit=1))
    row("search, 20 short texts", search("short"))
    row("search, 20 short texts, title and url", search("short", fields="title,url"))
    row("search, 20 short texts, highlights", search("short", highlight="true"))
    row("search, 20 pages of 4 KB, highlights", search("manuals", highlight="true"))
    row("search, 8 pages, sections and highlights", search("manuals", highlight="true", sections=3, limit=8))
    row("search, 20 pages, rules, synonyms, highlights", search("rules", highlight="true"))
    row("search, filter, facet, and sort", search("short", filters="price > 300", facets="section", sort="price:desc"))
    row("collection of 4 sites, limit=1", search("collection", limit=1))
    row("collection of 4 sites, 20 short texts, highlights", search("collection", highlight="true"))
    row("suggestions", lambda query: send("manuals", "search", "/v1/suggest", query_string={"q": query[:5]}))
    pages = tuple(document["id"] for document in manuals[::5])
    row("related pages", lambda id: send("manuals", "search", "/v1/related", query_string={"id": id}), pages)
    row("popular pages", lambda _: send("manuals", "search", "/v1/popular"), ("",) * 8)
    row("gateway, as the search box asks", gateway("manuals", sections=3, suggestions=4))
    numbers = iter(range(1_000_000))

    def write(count: int) -> Callable[[str], object]:
        def request(_: str) -> object:
            start = next(numbers)
            batch = [{**document, "id": f"{start}-{at}"} for at, document in enumerate(short[:count])]
            return send("written", "private", "/api/v1/index/bulk", "POST", json={"documents": batch})

        return request

    row("bulk, 1 short text", write(1), ("1",) * 8)
    row("bulk, 500 short texts", write(500), ("1", "2"))
    row("crawl, 20 new pages of 4 KB", make_crawl(runtime, owner, site_ids["crawled"], manuals), ("1", "2"))
    runtime.close()
    return rows


if __name__ == "__main__":
    main()
