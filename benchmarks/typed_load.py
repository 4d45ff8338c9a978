"""Load of visitors who type, on the service, Typesense (with and without ``use_cache``), and Meilisearch.

    python -m benchmarks.typed_load PAGES.jsonl.gz [--sites 1] [--clients 16] [--write-seconds 3] [--unique] \
        [--beside CHECKOUT] --typesense http://127.0.0.1:8108 --typesense-key KEY --meilisearch http://127.0.0.1:7700

Visitors of one or many sites type queries letter by letter. The service gets the requests that the search box sends
(``app/static/widget.js``). The box waits 220 ms after each letter, searches from the first letter on (``data-min``),
trims the text, and does not search twice for the same text. Each search is a ``POST /engine/indexes/…/search`` for 8
hits with highlights and three sections each, whose tags differ from page to page, beside a ``GET /engine/suggest`` for
4 suggestions. At 52 words a minute, the mean time between two letters is 238 ms (Dhakal et al., "Observations on Typing
from 136 Million Keystrokes", 2018), so a search follows about half of the letters, and always the last one. The other
servers are called directly, with one search of 8 hits with highlights.

Queries follow Zipf's law (``benchmarks/typed_queries.py``), with an exponent fitted to the published query counts of a
site's search box. They are one to three words of the documents. With ``--unique``, nothing repeats: each text is sent
once, as a whole. Every few seconds, a document of the next site is written.

The systems run in turn, in short rounds. Printed for each: searches per second, the median and the 99th percentile of
their times in milliseconds, and the CPU time of the server's processes per search, which other work on the machine
affects least. The last line shows the share of searches that repeat an earlier one of their site since its last write,
which is the highest hit rate of a cache that never returns stale results, and the hit rate of a cache of 8 MB in each
worker. ``--beside`` also runs the service of another checkout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from backends.embedded.index.generations import STATE_FILE
from backends.embedded.maintenance import is_fragmented, segments_of
from benchmarks.connections import Connection, Load, ask_at_once
from benchmarks.installations import Installation
from benchmarks.own_work import cpu_seconds
from benchmarks.queries import read
from benchmarks.search_speed import quantiles
from benchmarks.search_systems import SERVICE, meilisearch, typesense, with_day
from benchmarks.typed_queries import (
    DIFFERENT_QUERIES,
    SITE_QUERIES,
    UNIQUE_TEXTS,
    Typed,
    make_texts,
    make_typed,
    make_unique,
    repeated,
    zipf_exponent,
)
from tests.server import PROJECT, running_server

BOX_HITS = 8
BOX_FIELDS = ["id", "title", "url", "excerpt", "author", "date", "version", "breadcrumbs", "image", "section"]
WORKERS = 2
_LISTENING = "0A"
CACHE_BYTES = 8 * 2**20
MOST_PER_SECOND = 1_500
"""Number of texts for each second of a round, more than any system can search."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--documents", type=int, default=10_000, help="of all sites together")
    parser.add_argument("--sites", type=int, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write-seconds", type=float, default=3.0, help="between two writes; 0 for no writes")
    parser.add_argument("--unique", action="store_true", help="send each text once")
    parser.add_argument("--beside", type=Path, help="another checkout, whose service is measured, too")
    parser.add_argument("--typesense", help="address of a Typesense server without data")
    parser.add_argument("--typesense-key", default="")
    parser.add_argument("--meilisearch", help="address of a Meilisearch server without data")
    parser.add_argument("--meilisearch-key", default="")
    wishes = parser.parse_args()
    documents = list(itertools.islice(read(wishes.pages), wishes.documents))
    texts = make_texts(documents, UNIQUE_TEXTS if wishes.unique else DIFFERENT_QUERIES)
    print(f"exponent {zipf_exponent(SITE_QUERIES):.3f}, {len(texts)} different queries")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        systems = stack.enter_context(services(Path(folder) / "service", documents, wishes.sites, SERVICE))
        if wishes.beside:
            beside = services(Path(folder) / "beside", documents, wishes.sites, "beside", wishes.beside)
            systems += stack.enter_context(beside)
        if wishes.typesense:
            systems += typesense_systems(wishes.typesense, wishes.typesense_key, documents)
        if wishes.meilisearch:
            systems.append(meilisearch_system(wishes.meilisearch, wishes.meilisearch_key, documents))
        measure(systems, texts, wishes)


@dataclass(frozen=True)
class Measured:
    """A system to compare.

    Attributes:
        messages: Returns the requests for a typed text, the search first.
        write: Writes a document of a site.
        cpu: Returns the CPU seconds of its processes so far.
        spent: CPU milliseconds per search, by round.
        sent: Texts of the searches, by round.
    """

    name: str
    url: str
    messages: Callable[[Typed], list[bytes]]
    write: Callable[[int], None]
    cpu: Callable[[], float]
    loads: list[Load] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    sent: list[list[Typed]] = field(default_factory=list)


@contextmanager
def services(
    folder: Path, documents: list[dict[str, Any]], sites: int, name: str, checkout: Path = PROJECT
) -> Iterator[list[Measured]]:
    """Run the service of a checkout, with and without the suggestions that the box requests beside each search."""
    settings: dict[str, Any] = {"default_plan": "enterprise", "max_bulk_body_bytes": 10**9, "trusted_proxies": 1}
    with running_server(folder, workers=WORKERS, started=False, **settings) as server:
        server.checkout = checkout
        server.run_here("database", "upgrade")
        server.start()
        installation = Installation(server)
        share = len(documents) // sites
        for at in range(sites):
            installation.add_site(documents[at * share : at * share + 1])
        writer = Connection(
            server.base_url,
            {"Authorization": f"Bearer {installation.private_key}", "Content-Type": "application/json"},
        )

        def write(site: int, pages: list[dict[str, Any]]) -> None:
            body = json.dumps({"documents": pages}).encode()
            writer.call("POST", f"/api/v1/index/bulk?site_id={installation.sites[site].id}", body)

        for at in range(sites):
            for start in range(at * share, (at + 1) * share, 1000):
                write(at, documents[start : min(start + 1000, (at + 1) * share)])
        while any(is_fragmented(segments_of(path.parent)) for path in folder.rglob(STATE_FILE)):
            time.sleep(1)
        boxes = [Box(server.base_url, target.key) for target in installation.sites]

        def write_one(site: int) -> None:
            write(site, [{**documents[0], "id": "written", "url": "/written"}])

        def cpu() -> float:
            return sum(map(cpu_seconds, server.worker_pids()))

        def search(typed: Typed) -> list[bytes]:
            return [boxes[typed.site].search(typed)]

        def search_and_suggest(typed: Typed) -> list[bytes]:
            return [boxes[typed.site].search(typed), boxes[typed.site].suggest(typed)]

        yield [
            Measured(name, server.base_url, search, write_one, cpu),
            Measured(f"{name}, suggestions", server.base_url, search_and_suggest, write_one, cpu),
        ]


class Box:
    """Builds the requests of a site's search boxes. Each visitor has an address, a session, and tags of their own."""

    def __init__(self, url: str, search_key: str):
        headers = {"Authorization": f"Bearer {search_key}"}
        info = requests.get(f"{url}/v1/client-info", headers=headers, timeout=30).json()
        self._search_path = f"/engine/indexes/{info['index']}/search"
        self._url = url
        self._headers = {
            "Authorization": f"Bearer {info['engine_public_key']}", "Content-Type": "application/json",
            "X-Search-Channel": "box", "X-Search-Page": "/docs", "Meili-Include-Metadata": "true",
        }  # fmt: skip

    def search(self, typed: Typed) -> bytes:
        """Return the request of a search."""
        wish = {
            "q": typed.text, "limit": BOX_HITS, "offset": 0, "attributesToRetrieve": BOX_FIELDS,
            "attributesToHighlight": ["title", "content"], "attributesToCrop": ["content"], "cropLength": 28,
            "highlightPreTag": f"\ue000{typed.visitor:06x}", "highlightPostTag": f"\ue001{typed.visitor:06x}",
            "sections": 3,
        }  # fmt: skip
        return self._connection(typed).message("POST", self._search_path, json.dumps(wish).encode())

    def suggest(self, typed: Typed) -> bytes:
        """Return the request of suggestions."""
        return self._connection(typed).message("GET", f"/engine/suggest?limit=4&q={quote(typed.text)}")

    def _connection(self, typed: Typed) -> Connection:
        address = ".".join(map(str, (10, *typed.visitor.to_bytes(3, "big"))))
        session = f"visitor-{typed.visitor}"
        return Connection(self._url, {**self._headers, "X-Forwarded-For": address, "X-Search-Session": session})


def listener(url: str) -> int:
    """Return the ID of the process of this machine that listens on a URL's port."""
    port = f":{urlsplit(url).port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(port) and line[3] == _LISTENING}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended.
            if any(str(link.readlink()) in sockets for link in (process / "fd").iterdir()):
                return int(process.name)
    raise SystemExit(f"no process of this machine listens on {url}")


def typesense_systems(url: str, key: str, documents: list[dict[str, Any]]) -> list[Measured]:
    """Return Typesense without and with its cache of results. All sites share one collection."""
    connection = typesense(url, key, documents).connection
    writer = requests.Session()
    writer.headers["X-TYPESENSE-API-KEY"] = key

    def messages(typed: Typed, use_cache: bool) -> list[bytes]:
        wish = {
            "collection": "bench", "q": typed.text, "query_by": "title,content", "query_by_weights": "3,1",
            "per_page": BOX_HITS, "include_fields": ",".join(BOX_FIELDS), "highlight_fields": "title,content",
            "highlight_affix_num_tokens": 12,
        }  # fmt: skip
        path = "/multi_search?use_cache=true" if use_cache else "/multi_search"
        return [connection.message("POST", path, json.dumps({"searches": [wish]}).encode())]

    def write(site: int) -> None:
        page = {**with_day(documents[0]), "id": "written"}
        writer.post(f"{url}/collections/bench/documents?action=upsert", json=page, timeout=30).raise_for_status()

    cpu = partial(cpu_seconds, listener(url))
    return [
        Measured("Typesense", url, lambda typed: messages(typed, False), write, cpu),
        Measured("Typesense, use_cache", url, lambda typed: messages(typed, True), write, cpu),
    ]


def meilisearch_system(url: str, key: str, documents: list[dict[str, Any]]) -> Measured:
    """Return Meilisearch. All sites share one index."""
    connection = meilisearch(url, key, documents).connection
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    def messages(typed: Typed) -> list[bytes]:
        wish = {
            "q": typed.text, "limit": BOX_HITS, "attributesToRetrieve": BOX_FIELDS,
            "attributesToHighlight": ["title", "content"], "attributesToCrop": ["content"], "cropLength": 28,
        }  # fmt: skip
        return [connection.message("POST", "/indexes/bench/search", json.dumps(wish).encode())]

    def write(site: int) -> None:
        page = {**with_day(documents[0]), "id": "written"}
        requests.post(
            f"{url}/indexes/bench/documents?primaryKey=id", json=[page], headers=headers, timeout=30
        ).raise_for_status()

    return Measured("Meilisearch", url, messages, write, partial(cpu_seconds, listener(url)))


def measure(systems: Sequence[Measured], texts: Sequence[str], wishes: argparse.Namespace) -> None:
    """Measure the systems in turn, and print a line for each. Each server gets the same texts."""
    typed = {
        url: make_unique(texts) if wishes.unique else make_typed(texts, wishes.sites, wishes.clients)
        for url in {system.url for system in systems}
    }
    for _ in range(wishes.rounds):
        for system in systems:
            sent = list(itertools.islice(typed[system.url], int(MOST_PER_SECOND * wishes.seconds)))
            messages = [
                ("search" if at == 0 else "suggestions", message)
                for each in sent
                for at, message in enumerate(system.messages(each))
            ]
            before = system.cpu()
            with writing(system, wishes.sites, wishes.write_seconds):
                load = ask_at_once(system.url, messages, wishes.clients, wishes.seconds)
            searches = len(load.times["search"])
            if searches >= len(sent):
                raise SystemExit("there are too few texts for this time")
            system.spent.append((system.cpu() - before) / searches * 1000)
            system.loads.append(load)
            system.sent.append(sent[:searches])
    for system in systems:
        rate = statistics.median(len(load.times["search"]) / load.seconds for load in system.loads)
        median, high = quantiles([time for load in system.loads for time in load.times["search"]])
        print(
            f"{system.name:22}{rate:7.0f} searches/s   p50/p99 ms {median:7.2f} /{high:7.2f}   "
            f"CPU ms per search {statistics.median(system.spent):.2f}"
        )
    show_repeats(systems[0], wishes.write_seconds)


def show_repeats(system: Measured, write_seconds: float) -> None:
    """Print the share of searches that repeat an earlier search of their site since its last write.

    Also prints the hit rate of a cache in each worker that holds the most recent results, up to 8 MB.
    """
    connection = Connection(system.url, {})
    size = statistics.mean(len(connection.send(system.messages(each)[0])) for each in system.sent[-1][:100])
    limits = (math.inf, CACHE_BYTES / size)
    shares = [
        statistics.mean(
            repeated(sent, round(len(sent) * write_seconds / load.seconds) or len(sent), workers, limit)
            for sent, load in zip(system.sent, system.loads, strict=True)
        )
        for workers, limit in zip((1, WORKERS), limits, strict=True)
    ]
    print(f"repeated {shares[0]:.1%}, hit rate with {limits[1]:.0f} results in each worker {shares[1]:.1%}")


@contextmanager
def writing(system: Measured, sites: int, seconds: float) -> Iterator[None]:
    """Write a document every few seconds in the block, to one site after the other; 0 for no writes."""
    done = threading.Event()

    def write() -> None:
        for at in itertools.count():
            if done.wait(seconds or None):
                return
            system.write(at % sites)

    with ThreadPoolExecutor(1) as pool:
        writes = pool.submit(write)
        try:
            yield
        finally:
            done.set()
        writes.result()  # Raises the error of a failed write.


if __name__ == "__main__":
    main()
