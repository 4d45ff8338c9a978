"""An embedder behind an address: OpenAI's API, or a server that speaks it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import orjson
import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from app.services.embedding.embedder import EmbedderRefused, EmbedderUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXTS_AT_ONCE = 32
"""Texts of one request; text-embeddings-inference takes no more."""
MAX_ANSWER_BYTES = 8_388_608
REFUSALS = frozenset({400, 413, 422})
"""Statuses that servers answer with to texts that are too long, or otherwise not to their liking."""
QUERIES_AT_ONCE = 4
QUERY_SECONDS = 5.0
"""How long a query goes on that nobody waits for any more: its connection is then there for the next one."""
REQUEST_SECONDS = 30.0
"""How long one request for documents may take."""


class _Bearer(AuthBase):
    """The key, or none; in neither case one from a ``.netrc``."""

    def __init__(self, key: str):
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class RemoteEmbedder:
    """Asks a server.

    Args:
        url: Full address of its embeddings, such as ``https://api.openai.com/v1/embeddings``.
        model: The model's name there.
        key: Bearer token; empty for none.

    Attributes:
        model: The model's name and a hash of the address: elsewhere, another may have the name.
    """

    languages = None

    def __init__(self, url: str, model: str, key: str):
        self.model = f"{model[:200]}-{hashlib.sha256(f'{url} {model}'.encode()).hexdigest()[:12]}"
        self.dimension: int | None = None
        self._model = model
        self._url = url
        self._host = urlsplit(url).netloc
        self._session = requests.Session()
        self._session.auth = _Bearer(key)
        self._session.headers.update({"Accept-Encoding": "identity", "Content-Type": "application/json"})
        # requests bounds neither the look-up of a name nor an answer that comes byte by byte.
        self._threads = ThreadPoolExecutor(QUERIES_AT_ONCE, thread_name_prefix="embedder")

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """As in :class:`~app.services.embedding.embedder.Embedder`."""
        deadline = time.monotonic() + max(timeout_seconds, QUERY_SECONDS)
        future = self._threads.submit(self._ask, [text], deadline)
        try:
            vector: NDArray[np.float32] = future.result(timeout_seconds)[0]
        except TimeoutError as error:
            future.cancel()
            raise EmbedderUnavailable(f"{self._host} does not answer in time") from error
        return vector

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """As in :class:`~app.services.embedding.embedder.Embedder`."""
        if not texts:
            return np.empty((0, 0), np.float32)
        deadline = time.monotonic() + timeout_seconds
        parts = [
            self._ask(texts[at : at + TEXTS_AT_ONCE], min(deadline, time.monotonic() + REQUEST_SECONDS))
            for at in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbedderUnavailable(f"{self._host} answers with vectors of different dimensions")
        return np.concatenate(parts)

    def close(self) -> None:
        """Begin nothing more, and close the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.close()

    def _ask(self, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        whole = [text.encode(errors="replace").decode() for text in texts]  # JSON has no halves of characters.
        body = orjson.dumps({"model": self._model, "input": whole, "encoding_format": "float"})
        left = deadline - time.monotonic()
        if left <= 0:
            raise EmbedderUnavailable(f"{self._host} does not answer in time")
        try:
            # A redirect would carry the key elsewhere.
            with self._session.post(self._url, data=body, timeout=left, allow_redirects=False, stream=True) as answer:
                content = b"".join(self._pieces(answer, deadline))
                status = answer.status_code
        except (requests.RequestException, HTTPError, OSError) as error:
            raise EmbedderUnavailable(f"{self._host} does not answer: {_innermost(error)}") from error
        if status in REFUSALS:
            raise EmbedderRefused(f"{self._host} answers with status {status}")
        if status != 200:
            raise EmbedderUnavailable(f"{self._host} answers with status {status}")
        try:
            vectors = _read_vectors(orjson.loads(content), len(texts))
        except (ValueError, TypeError, LookupError) as error:
            raise EmbedderUnavailable(f"{self._host} does not answer as OpenAI's API does: {error}") from error
        self.dimension = vectors.shape[1]
        return vectors

    def _pieces(self, answer: requests.Response, deadline: float) -> Iterator[bytes]:
        size = 0
        while piece := answer.raw.read1(65_536):
            size += len(piece)
            if size > MAX_ANSWER_BYTES or time.monotonic() > deadline:
                raise EmbedderUnavailable(f"the answer of {self._host} is too long, or comes too slowly")
            yield piece


def _innermost(error: BaseException) -> BaseException:
    """The error at the root of another: those around it tell the address, which may hold a secret."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def _read_vectors(said: Any, count: int) -> NDArray[np.float32]:
    """The vectors of an answer, in the order of the texts.

    Raises:
        ValueError, TypeError, LookupError: It is not one to as many texts.
    """
    placed = {dict(item).get("index", place): item["embedding"] for place, item in enumerate(said["data"])}
    if len(said["data"]) != count or placed.keys() != set(range(count)):
        raise ValueError("it has not one vector for each text")
    vectors = np.asarray([placed[place] for place in range(count)], dtype=np.float64)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError("its vectors are no lists of numbers")
    peaks = np.abs(vectors).max(axis=1, keepdims=True)
    if not (np.isfinite(peaks).all() and peaks.all()):
        raise ValueError("its vectors are zero or not finite")
    vectors /= peaks  # Squares of large numbers are infinite.
    unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
