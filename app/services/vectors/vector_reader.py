"""Reading vectors for searches, which wait for a database only so long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy.exc import SQLAlchemyError

from app.services.vectors.stored_vectors import model_of, read_vectors
from app.storage.database import Database, is_unavailable

READ_SECONDS = 0.1
"""How long a search waits for vectors. Reading a hundred takes 2 ms."""
PAUSE_SECONDS = 1.0
"""How long none are read after that was too long: searches do not wait again and again."""
READS_AT_ONCE = 8


class VectorReader:
    """Reads vectors of one model."""

    def __init__(self, database: Database, model: str):
        self._database = database
        self._model = model
        # A connection to a database that hangs, or is opened to it, takes seconds to fail.
        self._threads = ThreadPoolExecutor(READS_AT_ONCE, thread_name_prefix="vectors")
        self._paused_until = 0.0

    def read(self, site_id: int, ids: Sequence[str], dimension: int) -> dict[str, bytes] | None:
        """The vectors of those of some documents that have one; ``None`` while the database is away, or slow.

        Args:
            dimension: Numbers of a vector.
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
            return read_vectors(session, model_of(self._model, dimension), site_id, ids)
