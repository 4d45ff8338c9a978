"""Systems that :mod:`benchmarks.search_speed` compares, with the same documents, over HTTP."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests

from backends.embedded.index.generations import STATE_FILE
from backends.embedded.maintenance import is_fragmented, segments_of
from benchmarks.connections import Connection
from benchmarks.queries import Query
from benchmarks.sites import make_site
from tests.server import Server, free_port, running_server

SERVICE = "service"
TYPESENSE_FIELDS: Sequence[dict[str, str | bool]] = (
    {"name": "title", "type": "string"},
    {"name": "content", "type": "string"},
    {"name": "author", "type": "string", "facet": True},
    {"name": "section", "type": "string", "facet": True},
    {"name": "pages", "type": "int64"},
    {"name": "date_ts", "type": "int64"},
)
"""Fields that Typesense indexes; it only stores the others."""

_FTS5_APP = "benchmarks.fts5_app:app"


@dataclass(frozen=True)
class System:
    """A search system to compare.

    Attributes:
        connection: Connection to the system, with the headers that it requires.
        message: Creates the request of a search, as :meth:`Connection.message` does.
        count_hits: Returns the number of hits in a decoded response.
    """

    name: str
    connection: Connection
    message: Callable[[Query], bytes]
    count_hits: Callable[[Any], int]

    def search(self, query: Query) -> bytes:
        """Send a query, and return the complete body of the response."""
        return self.connection.send(self.message(query))


@contextmanager
def service(folder: Path, documents: list[dict[str, Any]], workers: int) -> Iterator[tuple[System, Server]]:
    """Start the service with unreachable limits, and wait until its index is merged."""
    with running_server(folder, workers=workers, default_plan="enterprise", max_bulk_body_bytes=10**9) as server:
        _, tokens = make_site(server)
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

        def message(query: Query) -> bytes:
            path = f"/v1/search?q={quote(query.text)}&limit={query.hits}&highlight=true"
            if query.refined:
                path += f"&filters={quote('pages > 2')}&sort=date:desc&facets=author,section"
            return reader.message("GET", path)

        yield System(SERVICE, reader, message, lambda answer: len(answer["results"]["hits"])), server


def typesense(url: str, key: str, documents: list[dict[str, Any]]) -> System:
    """Fill an empty Typesense, searched with ``POST /multi_search`` and highlights."""
    session = requests.Session()
    session.headers["X-TYPESENSE-API-KEY"] = key
    session.delete(f"{url}/collections/bench")
    session.post(f"{url}/collections", json={"name": "bench", "fields": TYPESENSE_FIELDS}).raise_for_status()
    started = time.perf_counter()
    for start in range(0, len(documents), 250):
        lines = [with_day(d) for d in documents[start : start + 250]]
        body = "\n".join(json.dumps(line) for line in lines).encode()
        answer = session.post(f"{url}/collections/bench/documents/import?action=upsert", data=body)
        if '"success":false' in answer.text:
            sys.exit(answer.text[:500])
    print(f"indexed by Typesense in {time.perf_counter() - started:.1f} s")
    connection = Connection(url, {"X-TYPESENSE-API-KEY": key, "Content-Type": "application/json"})

    def message(query: Query) -> bytes:
        wish = {
            "collection": "bench", "q": query.text, "query_by": "title,content", "query_by_weights": "3,1",
            "per_page": query.hits,
        }  # fmt: skip
        if query.refined:
            wish.update(filter_by="pages:>2", sort_by="date_ts:desc", facet_by="author,section")
        return connection.message("POST", "/multi_search", json.dumps({"searches": [wish]}).encode())

    return System("Typesense", connection, message, lambda answer: len(answer["results"][0]["hits"]))


def meilisearch(url: str, key: str, documents: list[dict[str, Any]]) -> System:
    """Fill an empty Meilisearch, searched for the same fields, with highlights and cropped content."""
    session = requests.Session()
    if key:
        session.headers["Authorization"] = f"Bearer {key}"

    def done(response: requests.Response) -> str:
        response.raise_for_status()
        task = response.json()["taskUid"]
        while (state := session.get(f"{url}/tasks/{task}").json()["status"]) in ("enqueued", "processing"):
            time.sleep(0.05)
        return str(state)

    done(session.delete(f"{url}/indexes/bench"))
    settings = {
        "searchableAttributes": ["title", "content"],
        "filterableAttributes": ["author", "section", "pages"],
        "sortableAttributes": ["date_ts"],
    }
    started = time.perf_counter()
    states = {done(session.patch(f"{url}/indexes/bench/settings", json=settings))}
    for start in range(0, len(documents), 1000):
        lines = [with_day(d) for d in documents[start : start + 1000]]
        states.add(done(session.post(f"{url}/indexes/bench/documents?primaryKey=id", json=lines)))
    if states != {"succeeded"}:
        sys.exit(f"Meilisearch did not index the documents: {states}")
    print(f"indexed by Meilisearch in {time.perf_counter() - started:.1f} s")
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connection = Connection(url, headers)

    def message(query: Query) -> bytes:
        wish: dict[str, Any] = {
            "q": query.text, "limit": query.hits, "attributesToHighlight": ["title", "content"],
            "attributesToCrop": ["content:30"],
        }  # fmt: skip
        if query.refined:
            wish.update(filter="pages > 2", sort=["date_ts:desc"], facets=["author", "section"])
        return connection.message("POST", "/indexes/bench/search", json.dumps(wish).encode())

    return System("Meilisearch", connection, message, lambda answer: len(answer["hits"]))


@contextmanager
def fts5(folder: Path, documents: list[dict[str, Any]], workers: int) -> Iterator[System]:
    """SQLite FTS5 behind a bare Flask view (:mod:`benchmarks.fts5_app`), under the same gunicorn."""
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
         "--threads", "8", "--log-level", "error", _FTS5_APP],
        env={**os.environ, "FTS5_FILE": str(path)},
    )  # fmt: skip
    try:
        connection = Connection(f"http://127.0.0.1:{port}", {})
        for _ in range(100):
            try:
                connection.call("GET", "/search?q=a&limit=1")
                break
            except ConnectionError:
                time.sleep(0.1)

        def message(query: Query) -> bytes:
            path = f"/search?q={quote(query.text)}&limit={query.hits}" + ("&refined=1" if query.refined else "")
            return connection.message("GET", path)

        yield System("FTS5 + Flask", connection, message, lambda answer: len(answer["hits"]))
    finally:
        process.terminate()
        process.wait()


def with_day(document: dict[str, Any]) -> dict[str, Any]:
    """Add the date as a number to a document, for sorting."""
    return {**document, "date_ts": int(document["date"].replace("-", ""))}
