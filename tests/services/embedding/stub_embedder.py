"""An embedder with configured synonyms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.services.embedding.embedder import EmbedderRejected, EmbedderUnavailable
from app.services.embedding.vectorizer import PROBE

CONCEPTS = ({"refund", "refunded", "money", "reimbursement"}, {"dog", "dogs", "animals", "pets"}, {"train", "railway"})


class StubEmbedder:
    """One dimension for each of :data:`CONCEPTS`, and one for everything else.

    Attributes:
        is_away: Whether it is unavailable.
        is_misconfigured: Whether it rejects every text.
        rejected: It rejects texts with this word.
        failing: It fails for texts with this word.
        asked: The document texts that it embedded, without the availability probes.
        spare: Number of additional, meaningless dimensions.
    """

    languages: frozenset[str] | None = frozenset({"en"})
    chunk_characters = 900

    def __init__(self, model: str = "stub"):
        self.model = model
        self.dimension: int | None = None
        self.is_away = False
        self.is_misconfigured = False
        self.spare = 0
        self.rejected = ""
        self.failing = ""
        self.asked: list[str] = []

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        return self._embed([text])[0]

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        self.asked += [text for text in texts if text != PROBE]
        return self._embed(texts)

    def close(self) -> None:
        pass

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.is_away or any(self.failing and self.failing in text for text in texts):
            raise EmbedderUnavailable("away")
        if self.is_misconfigured or any(self.rejected and self.rejected in text for text in texts):
            raise EmbedderRejected("refused")
        self.dimension = len(CONCEPTS) + 1 + self.spare
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            words = set(text.lower().replace("?", " ").replace(".", " ").split())
            vectors[row, : len(CONCEPTS) + 1] = [*(len(words & concept) for concept in CONCEPTS), 0.1]
        lengths: NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / lengths
        return unit
