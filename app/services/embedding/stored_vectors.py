"""Stored vectors: a row of signed bytes for each document, and reading them for a search within a timeout."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.models import DocumentVector, StoredDocument
from app.services.embedding.chunks import MAX_CHUNKS
from app.storage.database import Database, is_unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCALE = 127
"""The largest signed byte, which represents 1."""

_STORE = """
INSERT INTO document_vectors (site_id, id, revision, model, vector)
SELECT site_id, id, revision, {0}, {0} FROM documents
WHERE site_id = {0} AND id = {0} AND revision = {0} AND body IS NOT NULL
ON CONFLICT (site_id, id) DO UPDATE
SET revision = excluded.revision, model = excluded.model, vector = excluded.vector
"""
"""SQL that stores vectors, but stores nothing if the document was changed or deleted in the meantime."""


MAX_BYTES = 12_288
"""Maximum size of a document's vectors. Reading and comparing them for 100 hits takes 8 ms; twice as much takes 15."""


def max_chunks(dimension: int) -> int:
    """Return the maximum number of chunks of a document, so that their vectors have at most :data:`MAX_BYTES`."""
    return min(MAX_CHUNKS, max(1, MAX_BYTES // dimension))


def model_of(model: str, dimension: int) -> str:
    """Return a model's identity in SQL. It includes the dimension, which a server may change under the same name."""
    return f"{prefix_of(model)}{dimension}"


def prefix_of(model: str) -> str:
    """Return the part of a model's identity in SQL before the dimension."""
    return f"chunks:{model}:"


def models_of(model: str, dimension: int) -> tuple[str, str]:
    """Return the two identities under which SQL stores vectors of this model and dimension.

    Rows from earlier releases have the second identity, and a single vector for the beginning of the document.
    These rows are used until they have been replaced.
    """
    return model_of(model, dimension), f"{model}:{dimension}"


def quantize(vectors: NDArray[np.float32]) -> bytes:
    """Encode the vectors of a document with one signed byte per dimension."""
    import numpy as np

    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    quantized: bytes = np.rint(units * SCALE).astype(np.int8).tobytes()
    return quantized


def cosines(query: NDArray[np.float32], vectors: bytes) -> list[float]:
    """Return the cosine between a query vector of length 1 and each of a document's vectors."""
    values: list[float] = _cosines(query, vectors).tolist()
    return values


def best_cosines(query: NDArray[np.float32], vectors: Sequence[bytes]) -> list[float]:
    """Return, for each document, the largest cosine between a query vector of length 1 and the document's vectors."""
    import numpy as np

    values = _cosines(query, b"".join(vectors))
    starts = np.cumsum([0, *(len(encoded) // len(query) for encoded in vectors[:-1])])
    best: list[float] = np.maximum.reduceat(values, starts).tolist()
    return best


def _cosines(query: NDArray[np.float32], vectors: bytes) -> NDArray[np.float32]:
    import numpy as np

    matrix = np.frombuffer(vectors, np.int8).reshape(-1, len(query)).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    values: NDArray[np.float32] = (matrix @ query) / np.maximum(lengths, 1e-9)
    return values


def read_vectors(session: Session, models: Sequence[str], site_id: int, ids: Sequence[str]) -> dict[str, bytes]:
    """Return documents' vectors of one of the models, by document ID, omitting documents without such vectors."""
    rows = session.execute(
        select(DocumentVector.id, DocumentVector.vector).where(
            DocumentVector.site_id == site_id, DocumentVector.id.in_(ids), DocumentVector.model.in_(models)
        )
    )
    return {row.id: row.vector for row in rows}


def pending_rows(session: Session, site_id: int, model: str, after: int, limit: int) -> list[tuple[int, str]]:
    """Return revision and ID of documents after a revision that have no current vector of a model, in order."""
    current = and_(
        DocumentVector.site_id == StoredDocument.site_id,
        DocumentVector.id == StoredDocument.id,
        DocumentVector.revision == StoredDocument.revision,
        DocumentVector.model == model,
    )
    rows = session.execute(
        select(StoredDocument.revision, StoredDocument.id)
        .outerjoin(DocumentVector, current)
        .where(
            StoredDocument.site_id == site_id,
            StoredDocument.revision > after,
            StoredDocument.body.is_not(None),
            DocumentVector.id.is_(None),
        )
        .order_by(StoredDocument.revision, StoredDocument.id)
        .limit(limit)
    )
    return [(row.revision, row.id) for row in rows]


def read_bodies(session: Session, site_id: int, ids: Sequence[str]) -> dict[tuple[int, str], bytes]:
    """Return the JSON of documents, by revision and ID."""
    rows = session.execute(
        select(StoredDocument.revision, StoredDocument.id, StoredDocument.body).where(
            StoredDocument.site_id == site_id, StoredDocument.id.in_(ids), StoredDocument.body.is_not(None)
        )
    )
    return {(row.revision, row.id): row.body for row in rows}


def store_vectors(session: Session, site_id: int, model: str, vectors: Mapping[tuple[int, str], bytes]) -> None:
    """Store vectors of documents, given by revision and ID."""
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    rows = [(model, vector, site_id, id, revision) for (revision, id), vector in vectors.items()]
    if rows:
        connection.exec_driver_sql(_STORE.format(mark), rows)


def remove_orphans(session: Session, site_id: int) -> None:
    """Remove the vectors of deleted documents."""
    document_exists = exists().where(
        StoredDocument.site_id == DocumentVector.site_id,
        StoredDocument.id == DocumentVector.id,
        StoredDocument.body.is_not(None),
    )
    session.execute(delete(DocumentVector).where(DocumentVector.site_id == site_id, ~document_exists))


def remove_vectors(session: Session, site_id: int, limit: int) -> bool:
    """Remove up to ``limit`` of a site's vectors. Returns whether there were any."""
    ids: Iterable[str] = session.scalars(
        select(DocumentVector.id)
        .where(DocumentVector.site_id == site_id)
        .order_by(DocumentVector.id)
        .limit(limit)
        .with_for_update()
    ).all()
    if not ids:
        return False
    session.execute(delete(DocumentVector).where(DocumentVector.site_id == site_id, DocumentVector.id.in_(ids)))
    return True


READ_SECONDS = 0.1
"""Seconds that a search waits for vectors. Reading a hundred takes 2 ms."""
PAUSE_SECONDS = 1.0
"""Seconds without reads after a timeout, so that not every search waits."""
MAX_CONCURRENT_READS = 8


class VectorReader:
    """Reads vectors of one model for searches."""

    def __init__(self, database: Database, model: str):
        self._database = database
        self._model = model
        # Reads have separate threads, since connecting to a database that hangs takes seconds to fail.
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_READS, thread_name_prefix="vectors")
        self._paused_until = 0.0

    def read(self, site_id: int, ids: Sequence[str], dimension: int) -> dict[str, bytes] | None:
        """Return stored vectors by document ID; ``None`` if the database is slow or unavailable.

        Args:
            dimension: Dimension of the vectors.
        """
        if time.monotonic() < self._paused_until:
            return None
        future = self._threads.submit(self._read, site_id, ids, dimension)
        try:
            return future.result(READ_SECONDS)
        except TimeoutError:
            future.cancel()
        except SQLAlchemyError as error:
            if not is_unavailable(error):
                raise
        self._paused_until = time.monotonic() + PAUSE_SECONDS
        return None

    def _read(self, site_id: int, ids: Sequence[str], dimension: int) -> dict[str, bytes]:
        with self._database.read() as session:
            return read_vectors(session, models_of(self._model, dimension), site_id, ids)
