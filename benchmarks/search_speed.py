"""``/v1/search`` beside Typesense asked directly and SQLite FTS5 behind a bare Flask view.

    python -m benchmarks.search_speed PAGES.jsonl.gz --typesense http://127.0.0.1:8108 --typesense-key KEY

The same documents and queries, one keep-alive connection each, the three systems in turn for every query, so that
noise of the machine hits all alike. The service answers 20 hits with content and highlights, checks the key, counts
both request limits and the quota, and writes the event to disk; Typesense answers 20 hits with highlights on POST
/multi_search; FTS5 answers 20 hits with content and a highlighted snippet under the same gunicorn. An index whose many
segments are merged once nobody writes any more is measured after that. Printed: medians and 99th percentiles in
milliseconds, and the ratio of the others to the service (above 1: the service is faster); then the ratio for those
queries alone for which both answer as many hits.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import itertools
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from backends.embedded.index.generations import STATE_FILE
from backends.embedded.maintenance.vacuum import is_fragmented, segments_of
from tests.server import free_port, running_server

HITS = 20
FEWEST_ALIKE = 30
"""Queries of which a median says something."""
WORD = re.compile(r"[a-z]{4,14}")
FTS5_APP = Path(__file__).with_name("fts5_app.py")


@dataclass(frozen=True)
class Query:
    """One search; ``refined`` adds a filter, a sort and facets."""

    kind: str
    text: str
    refined: bool = False


@dataclass(frozen=True)
class System:
    """What is measured: a search, from sending the request to the last byte of its answer; and what it found."""

    search: Callable[[Query], bytes]
    count_hits: Callable[[Any], int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=150, help="of each kind")
    parser.add_argument("--typesense", help="address of a Typesense server without data")
    parser.add_argument("--typesense-key", default="")
    parser.add_argument("--workers", type=int, default=1)
    wishes = parser.parse_args()
    documents = list(itertools.islice(read(wishes.pages), wishes.documents))
    queries = make_queries(documents, wishes.queries)
    print(f"{len(documents)} documents, {sum(len(d['content']) for d in documents) / 1e6:.0f} MB of text")
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder) / "service", documents, wishes.workers) as ours,
        fts5(Path(folder), documents, wishes.workers) as theirs,
    ):
        systems: dict[str, System] = {"service": ours, "FTS5 + Flask": theirs}
        if wishes.typesense:
            systems["Typesense"] = typesense(wishes.typesense, wishes.typesense_key, documents)
        measure(systems, queries)


def read(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def make_queries(documents: list[dict[str, Any]], count: int) -> list[Query]:
    """Queries from words of the documents themselves, neither rare nor everywhere; always the same ones."""
    chance = random.Random(7)
    frequency: Counter[str] = Counter()
    for document in documents:
        frequency.update(set(WORD.findall(document["content"][:4000].lower())))
    usual = [w for w, n in sorted(frequency.items()) if 10 <= n <= len(documents) // 10]
    pairs = []
    while len(pairs) < count:
        words = sorted(set(WORD.findall(chance.choice(documents)["content"][:2000].lower())) & set(usual))
        if len(words) >= 2:
            pairs.append(" ".join(chance.sample(words, 2)))
    long = [w for w in usual if len(w) >= 6]
    queries = [Query("one word", chance.choice(usual)) for _ in range(count)]
    queries += [Query("two words", pair) for pair in pairs]
    queries += [Query("prefix", chance.choice(long)[:4]) for _ in range(count)]
    queries += [Query("typing error", misspell(chance.choice(long), chance)) for _ in range(count)]
    queries += [Query("filter, sort, facets", chance.choice(usual), refined=True) for _ in range(count)]
    return queries


def misspell(word: str, chance: random.Random) -> str:
    place = chance.randrange(2, len(word) - 1)
    return word[:place] + chance.choice("aeiourstln".replace(word[place], "")) + word[place + 1 :]


class Connection:
    """One kept-alive HTTP connection."""

    def __init__(self, url: str, headers: dict[str, str]):
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._headers = headers

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        try:
            response = self._send(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionResetError):
            # It was idle for longer than the server keeps it, while another system was filled.
            self._connection.close()
            response = self._send(method, path, body)
        answer = response.read()
        if response.status != 200:
            sys.exit(f"{method} {path}: {response.status} {answer[:300]!r}")
        return answer

    def _send(self, method: str, path: str, body: bytes | None) -> http.client.HTTPResponse:
        self._connection.request(method, path, body, self._headers)
        return self._connection.getresponse()


@contextmanager
def service(folder: Path, documents: list[dict[str, Any]], workers: int) -> Iterator[System]:
    with running_server(folder, workers=workers, default_plan="enterprise", max_bulk_body_bytes=10**9) as server:
        person = requests.Session()
        account = {"name": "Bench", "email": "bench@example.com", "password": "correct horse battery"}
        person.headers["X-CSRF-Token"] = person.post(f"{server.base_url}/register", json=account).json()["csrf_token"]
        server.set_plan(
            account["email"], "enterprise", requests_per_minute=10**8, requests_per_day=10**8, searches_per_day=10**8
        )
        site = person.post(f"{server.base_url}/sites", json={"name": "s", "url": "https://example.com"}).json()["site"]
        keys = f"{server.base_url}/api/sites/{site['id']}/keys"
        tokens = {
            kind: person.post(keys, json={"name": kind, "type": kind}).json()["api_key"]
            for kind in ("private", "search")
        }
        writer = Connection(
            server.base_url, {"Authorization": f"Bearer {tokens['private']}", "Content-Type": "application/json"}
        )
        started = time.perf_counter()
        for start in range(0, len(documents), 1000):
            batch = json.dumps({"documents": documents[start : start + 1000]}).encode()
            writer.call("POST", "/api/v1/index/bulk", batch)
        print(f"indexed by the service in {time.perf_counter() - started:.1f} s")
        while any(is_fragmented(segments_of(path.parent)) for path in folder.rglob(STATE_FILE)):
            time.sleep(1)
        reader = Connection(server.base_url, {"Authorization": f"Bearer {tokens['search']}"})

        def search(query: Query) -> bytes:
            path = f"/v1/search?q={quote(query.text)}&limit={HITS}&highlight=true"
            if query.refined:
                path += f"&filters={quote('pages > 2')}&sort=date:desc&facets=author,section"
            return reader.call("GET", path)

        yield System(search, lambda answer: len(answer["results"]["hits"]))


def typesense(url: str, key: str, documents: list[dict[str, Any]]) -> System:
    session = requests.Session()
    session.headers["X-TYPESENSE-API-KEY"] = key
    session.delete(f"{url}/collections/bench")
    fields = [
        {"name": "title", "type": "string"},
        {"name": "content", "type": "string"},
        {"name": "author", "type": "string", "facet": True},
        {"name": "section", "type": "string", "facet": True},
        {"name": "pages", "type": "int64"},
        {"name": "date_ts", "type": "int64"},
    ]
    session.post(f"{url}/collections", json={"name": "bench", "fields": fields}).raise_for_status()
    started = time.perf_counter()
    for start in range(0, len(documents), 250):
        lines = [{**d, "date_ts": int(d["date"].replace("-", ""))} for d in documents[start : start + 250]]
        body = "\n".join(json.dumps(line) for line in lines).encode()
        answer = session.post(f"{url}/collections/bench/documents/import?action=upsert", data=body)
        if '"success":false' in answer.text:
            sys.exit(answer.text[:500])
    print(f"indexed by Typesense in {time.perf_counter() - started:.1f} s")
    connection = Connection(url, {"X-TYPESENSE-API-KEY": key, "Content-Type": "application/json"})

    def search(query: Query) -> bytes:
        wish = {
            "collection": "bench", "q": query.text, "query_by": "title,content", "query_by_weights": "3,1",
            "per_page": HITS,
        }  # fmt: skip
        if query.refined:
            wish.update(filter_by="pages:>2", sort_by="date_ts:desc", facet_by="author,section")
        return connection.call("POST", "/multi_search", json.dumps({"searches": [wish]}).encode())

    return System(search, lambda answer: len(answer["results"][0]["hits"]))


@contextmanager
def fts5(folder: Path, documents: list[dict[str, Any]], workers: int) -> Iterator[System]:
    path = folder / "fts5.db"
    database = sqlite3.connect(path)
    database.execute(
        "CREATE VIRTUAL TABLE site USING fts5(id UNINDEXED, title, content, url UNINDEXED, author UNINDEXED, "
        "section UNINDEXED, pages UNINDEXED, date UNINDEXED, tokenize='porter unicode61', prefix='3 4')"
    )
    started = time.perf_counter()
    database.executemany(
        "INSERT INTO site VALUES (:id, :title, :content, :url, :author, :section, :pages, :date)", documents
    )
    database.commit()
    database.close()
    print(f"indexed by FTS5 in {time.perf_counter() - started:.1f} s")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", "python:benchmarks", "--keep-alive", "60",
         "--bind", f"127.0.0.1:{port}", "--workers", str(workers),
         "--threads", "8", "--log-level", "error", "benchmarks.fts5_app:app"],
        env={**os.environ, "FTS5_FILE": str(path)},
    )  # fmt: skip
    try:
        connection = Connection(f"http://127.0.0.1:{port}", {})
        for _ in range(100):
            try:
                connection.call("GET", "/search?q=a")
                break
            except (ConnectionError, http.client.HTTPException):
                connection = Connection(f"http://127.0.0.1:{port}", {})
                time.sleep(0.1)

        def search(query: Query) -> bytes:
            path = f"/search?q={quote(query.text)}" + ("&refined=1" if query.refined else "")
            return connection.call("GET", path)

        yield System(search, lambda answer: len(answer["hits"]))
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Measured:
    """What a query took, in milliseconds, and how many hits were in the answer; by system."""

    query: Query
    times: dict[str, float]
    hits: dict[str, int]


def measure(systems: dict[str, System], queries: list[Query]) -> None:
    for query in queries[:: max(1, len(queries) // 50)]:
        for system in systems.values():
            system.search(query)
    order = list(systems)
    measured: list[Measured] = []
    for query in queries:
        random.shuffle(order)
        one = Measured(query, {}, {})
        for name in order:
            started = time.perf_counter()
            answer = systems[name].search(query)
            one.times[name] = (time.perf_counter() - started) * 1000
            one.hits[name] = systems[name].count_hits(json.loads(answer))
        measured.append(one)
    show(list(systems), measured)


def show(systems: list[str], measured: list[Measured]) -> None:
    """Print the table."""
    print(
        f"{'':22}" + "".join(f"{name + ' p50/p99 ms, hits':>30}" for name in systems) + "   others / service (p50, p99)"
    )
    others = [name for name in systems if name != "service"]
    alike: list[str] = []
    for kind in dict.fromkeys(one.query.kind for one in measured):
        rows = [one for one in measured if one.query.kind == kind]
        line = f"{kind:22}"
        for name in systems:
            median, high = quantiles([one.times[name] for one in rows])
            line += f"{median:16.2f} /{high:7.2f}{statistics.mean(one.hits[name] for one in rows):5.1f}"
        print(line + "   " + "; ".join(f"{name} {ratios(rows, name)}" for name in others))
        for name in others:
            same = [one for one in rows if one.hits[name] == one.hits["service"]]
            if FEWEST_ALIKE <= len(same) < len(rows):
                alike.append(f"{kind}, {name}: {ratios(same, name)} ({len(same)} of {len(rows)} queries)")
    print("(the third number: hits of an answer on average; the fewer, the less there is to read and to mark)")
    if alike:
        print("\n".join(["only queries for which both answer as many hits:", *alike]))


def ratios(rows: list[Measured], name: str) -> str:
    """How many times as long as the service another system takes: of the medians, and of the 99th percentiles."""
    ours, theirs = (quantiles([one.times[system] for one in rows]) for system in ("service", name))
    return f"{theirs[0] / ours[0]:.2f}, {theirs[1] / ours[1]:.2f}"


def quantiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


if __name__ == "__main__":
    main()
