"""An embedder on a server: OpenAI's API or a compatible API."""

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
from urllib3.exceptions import HTTPError

from app.services.embedding.chunks import CHUNK_CHARACTERS
from app.services.embedding.embedder import EmbedderRejected, EmbedderUnavailable
from app.services.model_server import BearerKey, root_cause

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TEXTS_PER_REQUEST = 32
"""Texts per request, the limit of text-embeddings-inference."""
MAX_RESPONSE_BYTES = 8_388_608
REJECTIONS = frozenset({400, 413, 422})
"""Status codes with which servers reject texts, for example because they are too long."""
MAX_CONCURRENT_QUERIES = 4
QUERY_SECONDS = 5.0
"""Seconds that a query may take, even if its search stops waiting earlier, so that its connection can be reused."""
REQUEST_SECONDS = 30.0
"""Timeout in seconds of a request for documents."""


class RemoteEmbedder:
    """A client of an embedding server.

    Args:
        url: Full URL of the embeddings endpoint, such as ``https://api.openai.com/v1/embeddings``.
        model: Name of the model on the server.
        key: Bearer token; empty for none.

    Attributes:
        model: The model's name and a hash of the URL, because another server may use the same name for another model.
    """

    languages = None
    chunk_characters = CHUNK_CHARACTERS

    def __init__(self, url: str, model: str, key: str):
        self.model = f"{model[:200]}-{hashlib.sha256(f'{url} {model}'.encode()).hexdigest()[:12]}"
        self.dimension: int | None = None
        self._model = model
        self._url = url
        self._host = urlsplit(url).netloc
        self._session = requests.Session()
        self._session.auth = BearerKey(key)
        self._session.headers.update({"Accept-Encoding": "identity", "Content-Type": "application/json"})
        # The requests library has no timeout for DNS lookups or for responses that arrive byte by byte.
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_QUERIES, thread_name_prefix="embedder")

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """See :class:`~app.services.embedding.embedder.Embedder`."""
        deadline = time.monotonic() + max(timeout_seconds, QUERY_SECONDS)
        future = self._threads.submit(self._ask, [text], deadline)
        try:
            vector: NDArray[np.float32] = future.result(timeout_seconds)[0]
        except TimeoutError as error:
            # Only a waiting request is canceled. A running one continues, so that its connection can be reused.
            future.cancel()
            raise EmbedderUnavailable(f"{self._host} does not respond in time") from error
        return vector

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """See :class:`~app.services.embedding.embedder.Embedder`."""
        if not texts:
            return np.empty((0, 0), np.float32)
        deadline = time.monotonic() + timeout_seconds
        parts = [
            self._ask(texts[start : start + MAX_TEXTS_PER_REQUEST], min(deadline, time.monotonic() + REQUEST_SECONDS))
            for start in range(0, len(texts), MAX_TEXTS_PER_REQUEST)
        ]
        # The server changed its model between two requests.
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbedderUnavailable(f"{self._host} returns vectors of different dimensions")
        return np.concatenate(parts)

    def close(self) -> None:
        """Start no more requests, and close the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.close()

    def _ask(self, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        encodable = [text.encode(errors="replace").decode() for text in texts]  # Lone surrogates cannot be encoded.
        body = orjson.dumps({"model": self._model, "input": encodable, "encoding_format": "float"})
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise EmbedderUnavailable(f"{self._host} does not respond in time")
        try:
            # A redirect would send the key to another host.
            with self._session.post(
                self._url, data=body, timeout=seconds, allow_redirects=False, stream=True
            ) as response:
                content = b"".join(self._pieces(response, deadline))
                status = response.status_code
        except (requests.RequestException, HTTPError, OSError) as error:
            raise EmbedderUnavailable(f"{self._host} does not respond: {root_cause(error)}") from error
        if status in REJECTIONS:
            raise EmbedderRejected(f"{self._host} responds with status {status}")
        if status != 200:
            raise EmbedderUnavailable(f"{self._host} responds with status {status}")
        try:
            vectors = _read_vectors(orjson.loads(content), len(texts))
        except (ValueError, TypeError, LookupError) as error:
            raise EmbedderUnavailable(f"{self._host} did not respond in OpenAI's format: {error}") from error
        self.dimension = vectors.shape[1]
        return vectors

    def _pieces(self, response: requests.Response, deadline: float) -> Iterator[bytes]:
        size = 0
        # ``read1`` returns what has arrived, so that the deadline is checked while a response trickles in.
        while piece := response.raw.read1(65_536):
            size += len(piece)
            if size > MAX_RESPONSE_BYTES or time.monotonic() > deadline:
                raise EmbedderUnavailable(f"the response of {self._host} is too long or too slow")
            yield piece


def _read_vectors(response: Any, count: int) -> NDArray[np.float32]:
    """Read the vectors of a response, in the order of the texts.

    Raises:
        ValueError, TypeError, LookupError: The response is malformed, or has the wrong number of vectors.
    """
    embeddings = {dict(item).get("index", index): item["embedding"] for index, item in enumerate(response["data"])}
    if len(response["data"]) != count or embeddings.keys() != set(range(count)):
        raise ValueError("it does not contain one vector for each text")
    vectors = np.asarray([embeddings[index] for index in range(count)], dtype=np.float64)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError("its vectors are not lists of numbers")
    peaks = np.abs(vectors).max(axis=1, keepdims=True)
    if not (np.isfinite(peaks).all() and peaks.all()):
        raise ValueError("its vectors are zero or not finite")
    vectors /= peaks  # The squares of large numbers would overflow.
    unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
