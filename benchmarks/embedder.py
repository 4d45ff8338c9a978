"""MiniLM: the time of a query, alone and while documents are embedded, and the memory of its process."""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from app.services.embedding.embedder import EmbedderUnavailable, GuardedEmbedder
from app.services.embedding.local import MINILM, LocalEmbedder

PASSAGE = ("The harbor cruise leaves at noon and returns at four, with a guide who tells of the town. " * 10)[:900]
WAIT_SECONDS = 0.1
"""Seconds that a search waits for a vector."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        embedder = LocalEmbedder(Path(folder), MINILM)
        try:
            measure(embedder, arguments.documents)
        finally:
            embedder.close()


def measure(embedder: LocalEmbedder, documents: int) -> None:
    began = time.perf_counter()
    embedder.embed_query("first", 60)
    print(f"first query, with the start of the process: {time.perf_counter() - began:.2f} s")
    alone = [time_query(embedder, number) for number in range(500)]
    show("queries alone", alone)
    texts = [f"{number} {PASSAGE}" for number in range(documents)]
    bulk = threading.Thread(target=embed, args=(embedder, texts))
    bulk.start()
    beside = []
    while bulk.is_alive():
        beside.append(time_query(embedder, len(beside)))
        time.sleep(0.01)
    show("queries beside documents", beside)
    process = embedder._process._process
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    print(*(line for line in status if line.startswith(("VmRSS", "VmHWM"))), sep="\n")
    guarded = GuardedEmbedder(embedder)
    guarded.embed_query("kept", 60)
    began = time.perf_counter()
    for _ in range(1000):
        guarded.embed_query("kept", 1)
    print(f"a kept query: {1000 * (time.perf_counter() - began):.1f} µs")


def embed(embedder: LocalEmbedder, texts: list[str]) -> None:
    began = time.perf_counter()
    embedder.embed_documents(texts, 3600)
    seconds = time.perf_counter() - began
    print(f"{len(texts)} documents of 900 characters: {seconds:.1f} s, {1000 * seconds / len(texts):.0f} ms each")


def time_query(embedder: LocalEmbedder, number: int) -> float | None:
    """Return milliseconds, or ``None`` if it took longer than a search waits."""
    began = time.perf_counter()
    try:
        embedder.embed_query(f"how do I renew the passport of person {number}", WAIT_SECONDS)
    except EmbedderUnavailable:
        return None
    return 1000 * (time.perf_counter() - began)


def show(name: str, times: list[float | None]) -> None:
    answered = sorted(each for each in times if each is not None)
    p50, p99 = (answered[int(len(answered) * part)] for part in (0.5, 0.99))
    late = len(times) - len(answered)
    print(f"{name}: {len(times)}, p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {answered[-1]:.1f} ms, too late {late}")


if __name__ == "__main__":
    main()
