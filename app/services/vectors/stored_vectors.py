"""Rows of vectors, as signed bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, select
from sqlalchemy.orm import Session

from app.models import DocumentVector, StoredDocument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCALE = 127
"""The largest number of a signed byte, which stands for 1."""

_STORE = """
INSERT INTO document_vectors (site_id, id, revision, model, vector)
SELECT site_id, id, revision, {0}, {0} FROM documents
WHERE site_id = {0} AND id = {0} AND revision = {0} AND body IS NOT NULL
ON CONFLICT (site_id, id) DO UPDATE
SET revision = excluded.revision, model = excluded.model, vector = excluded.vector
"""
"""Nothing is stored for a document that was changed or deleted meanwhile."""


def model_of(model: str, dimension: int) -> str:
    """Name the model of vectors: two of one name that make vectors of different dimensions are not the same."""
    return f"{model}:{dimension}"


def quantize(vector: NDArray[np.float32]) -> bytes:
    """A vector as one signed byte a dimension; its length does not count."""
    import numpy as np

    unit = vector / max(float(np.linalg.norm(vector)), 1e-9)
    quantized: bytes = np.rint(unit * SCALE).astype(np.int8).tobytes()
    return quantized


def cosines(query: NDArray[np.float32], vectors: Sequence[bytes]) -> list[float]:
    """Cosines between a query of length 1 and stored vectors of as many dimensions."""
    import numpy as np

    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.float32)
    lengths = np.linalg.norm(matrix, axis=1)
    found: list[float] = ((matrix @ query) / np.maximum(lengths, 1e-9)).tolist()
    return found


def read_vectors(session: Session, model: str, site_id: int, ids: Sequence[str]) -> dict[str, bytes]:
    """The vectors of those of some documents that have one of a model."""
    rows = session.execute(
        select(DocumentVector.id, DocumentVector.vector).where(
            DocumentVector.site_id == site_id, DocumentVector.id.in_(ids), DocumentVector.model == model
        )
    )
    return {row.id: row.vector for row in rows}


def pending_rows(session: Session, site_id: int, model: str, after: int, limit: int) -> list[tuple[int, str]]:
    """Revision and id of documents without a current vector of a model, of revisions after one, in this order."""
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
    """The documents with some ids, as JSON, by revision and id."""
    rows = session.execute(
        select(StoredDocument.revision, StoredDocument.id, StoredDocument.body).where(
            StoredDocument.site_id == site_id, StoredDocument.id.in_(ids), StoredDocument.body.is_not(None)
        )
    )
    return {(row.revision, row.id): row.body for row in rows}


def store_vectors(session: Session, site_id: int, model: str, made: Mapping[tuple[int, str], bytes]) -> None:
    """Keep the vectors of documents, by revision and id."""
    connection = session.connection()
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    rows = [(model, vector, site_id, id, revision) for (revision, id), vector in made.items()]
    if rows:
        connection.exec_driver_sql(_STORE.format(mark), rows)


def remove_orphans(session: Session, site_id: int) -> None:
    """Remove vectors of documents that are no more."""
    there = exists().where(
        StoredDocument.site_id == DocumentVector.site_id,
        StoredDocument.id == DocumentVector.id,
        StoredDocument.body.is_not(None),
    )
    session.execute(delete(DocumentVector).where(DocumentVector.site_id == site_id, ~there))


def remove_vectors(session: Session, site_id: int, limit: int) -> bool:
    """Remove some of a site's vectors; tells whether there were any."""
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
