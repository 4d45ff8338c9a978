"""Cost of a query as a site grows, with the size of the index and the memory of the process that searches it.

    python -m benchmarks.growth PAGES.jsonl.gz [--sizes 1000,10000,100000,1000000] [--folder FOLDER]

The embedded engine runs in process, without HTTP. Documents are parts of real pages (see ``benchmarks/pages.py``), each
of about 500 characters, so that even a million of them differ. A new process searches each size with the same queries,
which consist of words of the first thousand documents, for 20 hits with highlights. The benchmark prints the median and
the 99th percentile of CPU milliseconds per query, the private (anonymous) memory of the process, and the size of the
index files that it maps.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index.disk import DiskStore
from backends.embedded.maintenance import is_fragmented, vacuum
from backends.query import FieldKind, Highlight, SearchQuery, SortKey
from backends.registry import create_backend
from benchmarks.queries import HITS, Query, make_queries, read

PART = 500
BATCH = 5_000
MERGE_SECONDS = 600
INDEX = "site_1"
KINDS = {"section": frozenset({FieldKind.STRING}), "pages": frozenset({FieldKind.NUMBER})}


@dataclass(frozen=True)
class Indexed:
    """Documents per CPU second of building an index, and its bytes on disk."""

    rate: float
    size: int


@dataclass(frozen=True)
class Searched:
    """CPU milliseconds (median, 99th percentile) by kind of query, and megabytes of memory."""

    times: dict[str, tuple[float, float]]
    own_memory: float
    mapped_memory: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--queries", type=int, default=100, help="of each kind")
    parser.add_argument("--folder", type=Path, help="where the indexes are made; a temporary folder if not given")
    wishes = parser.parse_args()
    sizes = [int(size) for size in wishes.sizes.split(",")]
    queries = make_queries(list(itertools.islice(parts(read(wishes.pages)), 1_000)), 2 * wishes.queries)
    kinds = list(dict.fromkeys(query.kind for query in queries))
    print(
        f"{'documents':>10} {'a CPU s':>8} {'on disk':>9} {'own':>7} {'mapped':>8}" + "".join(f"{k:>22}" for k in kinds)
    )
    with tempfile.TemporaryDirectory(dir=wishes.folder) as folder:
        for size in sizes:
            place = Path(folder) / str(size)
            made = in_a_process(index, wishes.pages, place, size)
            found = in_a_process(search, place, queries)
            line = f"{size:>10} {made.rate:>8.0f} {made.size / 1e6:>6.0f} MB"
            line += f" {found.own_memory:>4.0f} MB {found.mapped_memory:>5.0f} MB"
            print(line + "".join(f"{median:>14.2f} /{high:>6.2f}" for median, high in found.times.values()), flush=True)


def in_a_process(work: Any, *arguments: Any) -> Any:
    """Run ``work`` in a separate process, and return its result."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def parts(pages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Split pages at spaces into documents of about 500 characters."""
    for page in pages:
        text, start = page["content"], 0
        while start < len(text):
            end = text.find(" ", start + PART)
            end = len(text) if end < 0 else end
            yield {**page, "id": f"{page['id']}-{start}", "url": f"{page['url']}#{start}", "content": text[start:end]}
            start = end + 1


def index(pages: Path, folder: Path, size: int) -> Indexed:
    """Index ``size`` parts in batches, and wait until the segments are merged."""
    # Writes follow each other without a pause, so each waits for tantivy's merges after the one before it.
    engine = cast(TantivyBackend, create_backend(f"tantivy://{folder}?timeout={MERGE_SECONDS}"))
    engine.create_index(INDEX)
    spent = 0.0
    made = 0
    documents = itertools.islice(parts(read(pages)), size)
    while batch := [
        Document(part["id"], part, made + at) for at, part in enumerate(itertools.islice(documents, BATCH))
    ]:
        before = time.process_time()
        engine.upsert(INDEX, batch, KINDS)
        spent += time.process_time() - before
        made += len(batch)
    before = time.process_time()
    engine.close()
    vacuum(cast(DiskStore, engine.store), INDEX, is_fragmented)
    spent += time.process_time() - before
    if made < size:
        raise SystemExit(f"the pages have only {made} parts")
    return Indexed(made / spent, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def search(folder: Path, queries: list[Query]) -> Searched:
    """Run the queries. Every other one warms the process up, so that no measured word was queried before."""
    engine = create_backend(f"tantivy://{folder}")
    times: dict[str, list[float]] = {}
    for counts in (0, 1):
        for query in queries[counts::2]:
            wish = SearchQuery(
                text=query.text,
                limit=HITS,
                offset=0,
                native_filter="pages > 2" if query.refined else "",
                sort=(SortKey("date", descending=True),) if query.refined else (),
                facets=("author", "section") if query.refined else (),
                highlight=Highlight(),
                kinds=KINDS,
            )
            before = time.process_time()
            engine.search(INDEX, wish)
            if counts:
                times.setdefault(query.kind, []).append((time.process_time() - before) * 1000)
    memory = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    own, mapped = (int(memory[name].split()[0]) / 1000 for name in ("RssAnon", "RssFile"))
    return Searched({kind: (statistics.median(v), high(v)) for kind, v in times.items()}, own, mapped)


def high(values: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


if __name__ == "__main__":
    main()
