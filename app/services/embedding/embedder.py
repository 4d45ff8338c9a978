"""The interface of embedders, and a wrapper with metrics, a pause after failures, and a cache of query vectors."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from prometheus_client import Counter, Histogram

from app.clock import observe_calls
from backends.analysis.languages import detect_language
from backends.servers.waiting import waiting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbedderUnavailable(Exception):
    """The embedder is unavailable or too slow. The message is for the operator."""


class EmbedderRejected(EmbedderUnavailable):
    """The embedder permanently rejects one of the texts."""


class Embedder(Protocol):
    """Computes vectors of texts. Thread-safe; close it with the process.

    Attributes:
        model: Identity that is stored with vectors, since vectors of different models cannot be compared.
        languages: Supported languages as ISO 639-1 codes; ``None`` for all.
        dimension: Dimension of the latest vector; ``None`` before the first vector. A server may change it.
        chunk_characters: Number of characters that fit the tokens that the model considers.
    """

    @property
    def model(self) -> str: ...

    @property
    def languages(self) -> frozenset[str] | None: ...

    @property
    def dimension(self) -> int | None: ...

    @property
    def chunk_characters(self) -> int: ...

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """Compute the read-only vector of a query, of length 1.

        Raises:
            EmbedderUnavailable: The vector is not ready within the timeout.
        """
        ...

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """Compute the vectors of texts, each of length 1, as rows in the order of the texts. Queries take precedence.

        Raises:
            EmbedderRejected: The embedder rejects one of the texts.
            EmbedderUnavailable: The vectors are not complete within the timeout.
        """
        ...

    def close(self) -> None:
        """Release all resources. May be called repeatedly."""
        ...


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAUSE_SECONDS = 1.0
"""Seconds without queries after a failure, so that not every search waits for the embedder."""
MAX_CACHED_QUERIES = 256
"""Maximum number of cached query vectors, for further pages and other filters of the same search."""
OPERATIONS = ("embed_query", "embed_documents")
EMBEDDER_SECONDS = Histogram(
    "search_embedder_seconds",
    "Time that the embedder takes.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
EMBEDDER_FAILURES = Counter(
    "search_embedder_failures_total", "Operations for which the embedder was unavailable or too slow.", ["operation"]
)


def supports(embedder: Embedder, text: str, language: str | None) -> bool:
    """Whether an embedder supports the language of a text.

    Args:
        language: ISO 639-1 code; ``None`` to detect it.
    """
    return embedder.languages is None or (language or detect_language(text)) in embedder.languages


class GuardedEmbedder:
    """An :class:`Embedder` that adds metrics, a pause after failures, and a cache to another embedder."""

    def __init__(self, embedder: Embedder):
        self._embedder = embedder
        self._lock = threading.Lock()
        self._paused_until = 0.0
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        observe_calls(
            embedder,
            OPERATIONS,
            seconds=EMBEDDER_SECONDS.labels,
            failures={EmbedderUnavailable: EMBEDDER_FAILURES.labels},
        )

    @property
    def model(self) -> str:
        """Delegates to the wrapped embedder."""
        return self._embedder.model

    @property
    def languages(self) -> frozenset[str] | None:
        """Delegates to the wrapped embedder."""
        return self._embedder.languages

    @property
    def dimension(self) -> int | None:
        """Delegates to the wrapped embedder."""
        return self._embedder.dimension

    @property
    def chunk_characters(self) -> int:
        """Delegates to the wrapped embedder."""
        return self._embedder.chunk_characters

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """Return the vector of a query. During the pause after a failure, only cached vectors are returned."""
        with self._lock:
            cached = self._vectors.get(text)
            if cached is not None:
                self._vectors.move_to_end(text)
                return cached
            if time.monotonic() < self._paused_until:
                raise EmbedderUnavailable("the embedder failed a moment ago")
        try:
            with waiting():
                vector = self._embedder.embed_query(text, timeout_seconds)
        except EmbedderUnavailable:
            with self._lock:
                self._paused_until = time.monotonic() + PAUSE_SECONDS
            raise
        # Callers share the cached array.
        vector.setflags(write=False)
        with self._lock:
            self._vectors[text] = vector
            if len(self._vectors) > MAX_CACHED_QUERIES:
                self._vectors.popitem(last=False)
        return vector

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """Delegates to the wrapped embedder."""
        return self._embedder.embed_documents(texts, timeout_seconds)

    def close(self) -> None:
        """Delegates to the wrapped embedder."""
        self._embedder.close()
