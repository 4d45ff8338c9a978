"""CPU milliseconds of a suggestion, compared with a search for the same text: the work alone, and whole requests.

    python -m benchmarks.suggestions DOCUMENTS.jsonl.gz [--queries QUERIES.jsonl] [--documents 20000] [--typed 150]

The documents come from a set of ``benchmarks.relevance`` or from ``benchmarks.pages``. The site's frequent queries are
the queries of the set, or else titles. Texts are typed as people type them: beginnings of title words, of one to six
letters, and a whole word with the beginning of the next. For each text, the benchmark measures ``/v1/suggest`` with
eight suggestions, and ``/v1/search`` with 20 hits, with content and highlights and without highlights. *Work* is the
services' part of a request, after the checks of the request, key, and limits, in a thread of this process. *Request* is
the total of a worker process of the running service, from ``/proc``. The benchmark prints medians, and the cost of a
suggestion as a share of the cost of a search.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.config import load_settings
from app.models import QueryDay, Site
from app.runtime import create_runtime
from app.services.access.credentials import site_record
from app.services.search.encoding import encode_hits, encode_results, for_site
from app.services.search.suggestions import encode_suggestions
from app.web.responses import json_answer
from backends.query import Highlight, SearchQuery
from backends.text import normal_form
from benchmarks.connections import Connection
from benchmarks.own_work import cpu_seconds
from benchmarks.queries import HITS, read
from benchmarks.sites import make_site
from tests.server import Server, running_server

LIMIT = 8
REPEATED = 3
"""Number of rounds of requests, enough for CPU time that is counted in hundredths of a second."""

_WORD = re.compile(r"[^\W\d_]{4,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--typed", type=int, default=150, help="texts of each kind")
    wishes = parser.parse_args()
    documents = list(itertools.islice(read(wishes.pages), wishes.documents))
    titles = [str(document["title"]) for document in documents]
    frequent = titles
    if wishes.queries is not None:
        frequent = [json.loads(line)["text"] for line in wishes.queries.read_text(encoding="utf-8").splitlines()]
    typed = make_typed(titles, wishes.typed)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(
            Path(folder) / "service", workers=1, default_plan="enterprise", max_bulk_body_bytes=10**9
        ) as server,
    ):
        site_id, token = fill(server, documents)
        note_frequent(server, site_id, frequent)
        print(f"{len(documents)} documents; medians in ms of CPU, and the part of a search")
        measure_work(server, site_id, typed)
        measure_requests(server, token, typed)


def make_typed(titles: Sequence[str], count: int) -> dict[str, list[str]]:
    """Return partly typed texts by kind, the same in every run."""
    chance = random.Random(11)
    split = [words for words in (_WORD.findall(title.lower()) for title in titles) if words]
    several = [words for words in split if len(words) > 1]
    typed = {
        f"{letters} letter{'s' if letters > 1 else ''}": [
            chance.choice(chance.choice(split))[:letters] for _ in range(count)
        ]
        for letters in (1, 2, 3, 4, 6)
    }
    pairs = [chance.choice(several)[:2] for _ in range(count)]
    return {**typed, "two words": [f"{first} {second[:3]}" for first, second in pairs]}


def fill(server: Server, documents: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """Create a site with the documents, and return its ID and a search key."""
    site_id, tokens = make_site(server)
    headers = {"Authorization": f"Bearer {tokens['private']}", "Content-Type": "application/json"}
    writer = Connection(server.base_url, headers)
    for start in range(0, len(documents), 1000):
        writer.call("POST", "/api/v1/index/bulk", json.dumps({"documents": documents[start : start + 1000]}).encode())
    return site_id, tokens["search"]


def note_frequent(server: Server, site_id: int, texts: Sequence[str]) -> None:
    """Record today's searches of these texts, the first ones by the most visitors."""
    queries = list(dict.fromkeys(map(normal_form, texts)))[:5000]
    today = int(time.time() // 86_400)
    part = create_runtime(load_settings(server.environment), background=False)
    with part.database.write() as session:
        session.add_all(
            QueryDay(
                site_id=site_id, day=today, query=query, searches=9, zero_results=9, visitors=3 + len(queries) - at
            )
            for at, query in enumerate(queries)
        )
    part.database.dispose()


def measure_work(server: Server, site_id: int, typed: dict[str, list[str]]) -> None:
    """Measure the services' part, in this process."""
    part = create_runtime(load_settings(server.environment), background=False)
    with part.database.read() as session:
        row = session.get(Site, site_id)
        assert row is not None
        site = site_record(row)

    def suggest(text: str) -> None:
        json_answer(encode_suggestions(part.suggester.suggest(site, text, LIMIT)))

    def search(text: str, highlight: Highlight | None) -> None:
        query = for_site(SearchQuery(text, limit=HITS, highlight=highlight), site)
        timed = part.searcher.run(site, query)
        hits = encode_hits(timed.result.hits, part.searcher.new_budget())
        json_answer(encode_results(query, text, timed, hits, "", ()))

    works: tuple[Callable[[str], None], ...] = (
        suggest,
        lambda text: search(text, Highlight()),
        lambda text: search(text, None),
    )
    for kind, texts in typed.items():
        times: tuple[list[float], ...] = ([], [], [])
        for text in texts:
            for work, found in zip(works, times, strict=True):
                started = time.thread_time()
                work(text)
                found.append((time.thread_time() - started) * 1000)
        show(f"work, {kind}", [statistics.median(each) for each in times])
    part.engines.close()
    part.database.dispose()


def measure_requests(server: Server, token: str, typed: dict[str, list[str]]) -> None:
    """Measure whole requests over one connection."""
    reader = Connection(server.base_url, {"Authorization": f"Bearer {token}"})
    (worker,) = server.worker_pids()
    paths = (
        f"/v1/suggest?limit={LIMIT}&q=",
        f"/v1/search?limit={HITS}&highlight=true&q=",
        f"/v1/search?limit={HITS}&q=",
    )
    for kind, texts in typed.items():
        rounds: tuple[list[float], ...] = ([], [], [])
        for _ in range(REPEATED):
            for path, found in zip(paths, rounds, strict=True):
                before = cpu_seconds(worker)
                for text in texts:
                    reader.call("GET", path + quote(text))
                found.append((cpu_seconds(worker) - before) / len(texts) * 1000)
        show(f"request, {kind}", [statistics.median(each) for each in rounds])


def show(what: str, medians: Sequence[float]) -> None:
    """Print a line."""
    suggestion, highlighted, plain = medians
    print(
        f"{what:22} suggestion {suggestion:6.2f}   search {highlighted:6.2f} ({suggestion / highlighted:.2f})   "
        f"without highlights {plain:6.2f} ({suggestion / plain:.2f})",
        flush=True,
    )


if __name__ == "__main__":
    main()
