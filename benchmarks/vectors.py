"""Cost of a large site's vectors in the database: creating, storing, and reading them.

    python -m benchmarks.vectors [--documents 200000] [--chunks 1] [--url postgresql+psycopg://…]

An embedder that returns vectors immediately replaces the model, so that only the service's own work is measured; see
``benchmarks/embedder.py`` for the model. The benchmark prints:

* the number of documents per second that the background work processes,
* the bytes of a vector on disk (SQLite only),
* the time to detect a changed document and store its vector,
* the median and the 99th percentile of the time that semantic ranking adds to a search: reading the vectors of a
  hundred hits and comparing them with the query,
* for comparison, the time to compare the query with all vectors of the site, which numpy keeps in memory.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import insert, select, update

from app.models import DocumentVector, Site, StoredDocument
from app.services.embedding.chunks import CHUNK_CHARACTERS
from app.services.embedding.stored_vectors import VectorReader, best_cosines
from app.services.embedding.vectorizer import Vectorizer
from app.services.search.mixed_order import MIXED_HITS
from app.storage.database import Database
from app.storage.machine_process import FileLocks
from benchmarks.analytics import prepare

SITE = 1
DIMENSIONS = 384
TEXT = "A page about gardens and the tools that people use in them every day of the year. " * 11
BATCH = 5_000
SEARCHES = 300


class InstantEmbedder:
    """Returns random vectors."""

    model = "instant"
    languages = frozenset({"en"})
    dimension = DIMENSIONS
    chunk_characters = CHUNK_CHARACTERS

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        return self.embed_documents([text], timeout_seconds)[0]

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        vectors = self._chance.standard_normal((len(texts), DIMENSIONS), np.float32)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--chunks", type=int, default=1, help="vectors of a document")
    parser.add_argument("--url", help="of a database that is emptied; a temporary SQLite file if not given")
    wishes = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.db"
        database = Database(wishes.url or f"sqlite:///{file}")
        embedder = InstantEmbedder()
        fill(database, wishes.documents, wishes.chunks)
        before = file.stat().st_size if file.exists() else 0
        vectorizer = Vectorizer(database, FileLocks(Path(folder)), embedder)
        made, seconds = timed(vectorizer.run)
        print(f"vectors of {made} documents made, {made / seconds:.0f} a second")
        if before:
            print(f"{(file.stat().st_size - before) / made:.0f} bytes a document on disk")
        change(database, wishes.documents)
        print(f"one document changed: {timed(vectorizer.run)[1] * 1e3:.0f} ms")
        compare(database, embedder, wishes.documents)


def timed(work: Callable[[], int]) -> tuple[int, float]:
    """Return the result of ``work``, and its duration in seconds."""
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def fill(database: Database, count: int, chunks: int) -> None:
    """Create a site with documents of about 900 characters per chunk, without vectors."""
    prepare(database)
    body = orjson.dumps({"title": "Garden tools", "content": TEXT * chunks})
    for start in range(0, count, BATCH):
        rows = [
            {"site_id": SITE, "id": f"page-{number}", "revision": 1 + number // 100, "changed_at": 0, "body": body}
            for number in range(start, min(start + BATCH, count))
        ]
        with database.write() as session:
            session.execute(insert(StoredDocument), rows)
    with database.write() as session:
        values = {"search_settings": {"semantic": True}, "revision": 1 + count // 100, "document_count": count}
        session.execute(update(Site).where(Site.id == SITE).values(**values))


def change(database: Database, count: int) -> None:
    """Change one of the documents."""
    with database.write() as session:
        revision = 2 + count // 100
        session.execute(update(Site).where(Site.id == SITE).values(revision=revision))
        session.execute(
            update(StoredDocument)
            .where(StoredDocument.site_id == SITE, StoredDocument.id == f"page-{count // 2}")
            .values(revision=revision)
        )


def compare(database: Database, embedder: InstantEmbedder, count: int) -> None:
    """Print the additional time of a mixed search, and of comparing all vectors."""
    with database.read() as session:
        rows = session.scalars(select(DocumentVector.vector).where(DocumentVector.site_id == SITE)).all()
    everything = np.frombuffer(b"".join(rows), np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    reader = VectorReader(database, embedder.model)
    chance = random.Random(7)
    hits: list[float] = []
    all_vectors: list[float] = []
    for _ in range(SEARCHES):
        query = embedder.embed_query("", 1)
        ids = [f"page-{number}" for number in chance.sample(range(count), MIXED_HITS)]
        started = time.perf_counter()
        found = reader.read(SITE, ids, DIMENSIONS)
        assert found is not None, "the database is slow"
        best_cosines(query, list(found.values()))
        hits.append(time.perf_counter() - started)
        started = time.perf_counter()
        np.argpartition(everything @ query, -MIXED_HITS)
        all_vectors.append(time.perf_counter() - started)
    for name, times in (
        ("the vectors of the hits", hits),
        (f"all vectors, {everything.nbytes / 1e6:.0f} MB", all_vectors),
    ):
        high = sorted(times)[len(times) * 99 // 100]
        print(f"{name}: {statistics.median(times) * 1e3:.2f} ms, p99 {high * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
