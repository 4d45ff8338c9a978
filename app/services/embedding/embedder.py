"""The contract of an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbedderUnavailable(Exception):
    """The embedder cannot answer now: it is away, or too slow. The message says why, for the operator."""


class EmbedderRefused(EmbedderUnavailable):
    """The embedder will never answer this: one of the texts is not to its liking."""


class Embedder(Protocol):
    """Makes vectors of texts. Threads may share it; to be closed with the process.

    Attributes:
        model: Identity that is stored beside vectors: those of different models cannot be compared.
        languages: Languages that it knows, as ISO 639-1 codes; ``None`` for all.
        dimension: Numbers of its latest vector; ``None`` before the first one. A server may change it.
    """

    @property
    def model(self) -> str: ...

    @property
    def languages(self) -> frozenset[str] | None: ...

    @property
    def dimension(self) -> int | None: ...

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """The vector of a query, of length 1; not to be written to.

        Raises:
            EmbedderUnavailable: There is none within the time.
        """
        ...

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """The vectors of texts, each of length 1, as rows in their order. Queries come first.

        Raises:
            EmbedderRefused: One of the texts is refused.
            EmbedderUnavailable: They are not complete within the time.
        """
        ...

    def close(self) -> None:
        """Give back what it holds. Harmless if repeated."""
        ...
