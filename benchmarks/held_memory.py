"""Private memory of a worker under a mixed load over many sites.

    python -m benchmarks.held_memory [--sites 1000] [--pages 200] [--minutes 60] [--documents PAGES.jsonl.gz]

The service runs with its defaults (SQLite, the embedded engine, two workers). Eight clients send requests continuously:
of 20 requests, 17 are searches with highlights, one is a search with 100 hits, one requests suggestions, and one writes
a document. Sites and words are random, so hardly any index is open when it is needed. At the end of each minute, the
clients send four bodies of 9 MB with 1,000 documents each, and searches that return 100 of these documents. For every
minute, and half a minute after the last one, the benchmark prints each worker's private memory in MB (without pages
shared with the master and without mapped files) and the number of responses so far.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from benchmarks.connections import Connection, ask_at_once
from benchmarks.installations import Installation, Pages, Target
from benchmarks.many_sites import fill
from benchmarks.search_speed import private_mb
from tests.server import running_server

WORKERS = 2
CLIENTS = 8
MESSAGES = 4000
LARGE_BODIES = 4
LARGE_DOCUMENTS, LARGE_CHARACTERS = 1000, 9000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=200, help="of each site")
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--documents", type=Path, help="JSON lines, gzipped")
    wishes = parser.parse_args()
    pages, chance = Pages(wishes.documents), random.Random(11)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "service", workers=WORKERS, default_plan="enterprise") as server,
    ):
        installation = Installation(server)
        fill(installation, pages, wishes.sites, wishes.pages)
        installation.restart()
        answered = 0

        def show(moment: str) -> None:
            held = ", ".join(str(private_mb(pid)) for pid in server.worker_pids())
            print(f"{moment:14} {held} MB, {answered} requests", flush=True)

        show("start")
        for minute in range(1, wishes.minutes + 1):
            began = time.monotonic()
            messages = [("", mixed(installation, pages, chance)) for _ in range(MESSAGES)]
            left = began + 50 - time.monotonic()
            answered += sum(map(len, ask_at_once(server.base_url, messages, CLIENTS, left).times.values()))
            answered += send_large(installation, pages, chance)
            time.sleep(max(0.0, began + 60 - time.monotonic()))
            show(f"minute {minute}")
        time.sleep(30)
        show("at rest")


def mixed(installation: Installation, pages: Pages, chance: random.Random) -> bytes:
    """Return a random request of the mixed load."""
    target = chance.choice(installation.sites)
    text = quote(pages.query(chance.choice(target.pages)))
    kind = chance.randrange(20)
    if kind == 0:
        document = {**chance.choice(target.pages), "id": str(chance.randrange(200))}
        return ask(installation, target, "POST", "/api/v1/index/bulk", json.dumps({"documents": [document]}).encode())
    if kind == 1:
        return ask(installation, target, "GET", f"/v1/suggest?q={text}")
    return ask(installation, target, "GET", f"/v1/search?q={text}&limit={100 if kind == 2 else 20}&highlight=true")


def send_large(installation: Installation, pages: Pages, chance: random.Random) -> int:
    """Send writes and reads of the maximum size. Returns the number of requests."""
    connection = Connection(installation.server.base_url, {})
    for target in installation.sites[:LARGE_BODIES]:
        words = " ".join(chance.choices(pages.words, k=LARGE_CHARACTERS // 6))
        documents = [
            {
                "id": f"large-{number}",
                "title": words[number : number + 40],
                "url": f"/large/{number}",
                "content": words[:LARGE_CHARACTERS],
            }
            for number in range(LARGE_DOCUMENTS)
        ]
        body = json.dumps({"documents": documents}).encode()
        connection.send(ask(installation, target, "POST", "/api/v1/index/bulk", body))
        connection.send(ask(installation, target, "GET", f"/v1/search?q={quote(words[:5])}&limit=100&highlight=true"))
    return 2 * LARGE_BODIES


def ask(installation: Installation, target: Target, method: str, path: str, body: bytes | None = None) -> bytes:
    """Return a request about a site."""
    key = target.key if body is None else installation.private_key
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    separator = "&" if "?" in path else "?"
    return Connection(installation.server.base_url, headers).message(
        method, f"{path}{separator}site_id={target.id}", body
    )


if __name__ == "__main__":
    main()
