"""An embedder as services use it: timed, left alone after a failure, and with the vectors of the latest queries."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

from app.services.embedding.embedder import Embedder, EmbedderUnavailable
from app.timing import observe_calls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAUSE_SECONDS = 1.0
"""How long an embedder that failed a query is asked for none: searches do not wait for it again and again."""
MAX_KEPT_QUERIES = 256
"""Queries whose vectors are kept: of the next pages and other filters of a search."""
OPERATIONS = ("embed_query", "embed_documents")
EMBEDDER_SECONDS = Histogram(
    "search_embedder_seconds",
    "Time that the embedder takes.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
EMBEDDER_FAILURES = Counter(
    "search_embedder_failures_total", "Operations that the embedder could not do: away, or too slow.", ["operation"]
)


class GuardedEmbedder:
    """Guards another embedder, whose contract it has: :class:`~app.services.embedding.embedder.Embedder`."""

    def __init__(self, embedder: Embedder):
        self._embedder = embedder
        self._lock = threading.Lock()
        self._paused_until = 0.0
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        observe_calls(
            embedder,
            OPERATIONS,
            seconds=EMBEDDER_SECONDS.labels,
            failures=EMBEDDER_FAILURES.labels,
            failure=EmbedderUnavailable,
        )

    @property
    def model(self) -> str:
        """As of the embedder."""
        return self._embedder.model

    @property
    def languages(self) -> frozenset[str] | None:
        """As of the embedder."""
        return self._embedder.languages

    @property
    def dimension(self) -> int | None:
        """As of the embedder."""
        return self._embedder.dimension

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """The vector of a query. Fails at once for a while after a failure, unless the vector is known."""
        with self._lock:
            known = self._vectors.get(text)
            if known is not None:
                self._vectors.move_to_end(text)
                return known
            if time.monotonic() < self._paused_until:
                raise EmbedderUnavailable("the embedder failed a moment ago")
        try:
            vector = self._embedder.embed_query(text, timeout_seconds)
        except EmbedderUnavailable:
            with self._lock:
                self._paused_until = time.monotonic() + PAUSE_SECONDS
            raise
        vector.setflags(write=False)
        with self._lock:
            self._vectors[text] = vector
            if len(self._vectors) > MAX_KEPT_QUERIES:
                self._vectors.popitem(last=False)
        return vector

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """As of the embedder."""
        return self._embedder.embed_documents(texts, timeout_seconds)

    def close(self) -> None:
        """As of the embedder."""
        self._embedder.close()
