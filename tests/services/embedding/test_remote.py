"""A remote embedder: it uses OpenAI's API, and rejects invalid responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.services.embedding import remote
from app.services.embedding.embedder import EmbedderRejected, EmbedderUnavailable
from app.services.embedding.remote import RemoteEmbedder
from tests.patience import PATIENCE_SECONDS, eventually
from tests.services.embedding.embedding_server import (
    EmbeddingServer,
    answering,
    failing,
    items,
    run_server,
    vector,
)

KEY = "sk-a-key-of-the-operator"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with run_server() as running:
        yield running


@pytest.fixture
def embedder(server: EmbeddingServer) -> Iterator[RemoteEmbedder]:
    made = RemoteEmbedder(server.url, "text-embedding-3-small", KEY)
    yield made
    made.close()


def unit(text: str) -> Any:
    return pytest.approx(np.array(vector(text)) / np.linalg.norm(vector(text)), abs=1e-6)


def rejection(embedder: RemoteEmbedder) -> str:
    """Return the message of a failure, which is the same for a query and for documents."""
    with pytest.raises(EmbedderUnavailable) as query:
        embedder.embed_query("a query", PATIENCE_SECONDS)
    with pytest.raises(EmbedderUnavailable) as documents:
        embedder.embed_documents(["a query"], PATIENCE_SECONDS)
    assert str(query.value) == str(documents.value)
    return str(query.value)


def test_query_is_sent_in_the_format_of_openai(embedder: RemoteEmbedder, server: EmbeddingServer) -> None:
    found = embedder.embed_query("four", PATIENCE_SECONDS)

    assert (found.dtype, found.tolist()) == (np.float32, unit("four"))
    ((headers, body),) = server.requests
    assert body == {"model": "text-embedding-3-small", "input": ["four"], "encoding_format": "float"}
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"


def test_no_authorization_header_is_sent_without_a_key(
    server: EmbeddingServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login somebody password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    embedder = RemoteEmbedder(server.url, "m", "")

    embedder.embed_query("four", PATIENCE_SECONDS)
    embedder.close()

    assert "Authorization" not in server.requests[0][0]


def test_documents_are_sent_in_batches_of_32(embedder: RemoteEmbedder, server: EmbeddingServer) -> None:
    texts = ["x" * length for length in range(1, 71)]

    found = embedder.embed_documents(texts, PATIENCE_SECONDS)

    assert [row.tolist() for row in found] == [unit(text) for text in texts]
    assert [len(body["input"]) for _, body in server.requests] == [32, 32, 6]
    assert len(embedder.embed_documents([], PATIENCE_SECONDS)) == 0
    assert len(server.requests) == 3


def test_vectors_are_accepted_in_any_order_or_without_indexes(
    embedder: RemoteEmbedder, server: EmbeddingServer
) -> None:
    for data in (lambda texts: items(texts)[::-1], lambda texts: [{"embedding": vector(text)} for text in texts]):
        server.reply = answering(data)
        assert [row.tolist() for row in embedder.embed_documents(["a", "four"], PATIENCE_SECONDS)] == [
            unit("a"),
            unit("four"),
        ]


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 413, 429, 500, 503])
def test_error_status_is_reported_without_the_key_and_not_retried_or_redirected(
    embedder: RemoteEmbedder, server: EmbeddingServer, status: int
) -> None:
    server.reply = failing(status, {"Location": server.url + "/elsewhere", "Retry-After": "100"})

    assert rejection(embedder).endswith(f"responds with status {status}")
    assert KEY not in rejection(embedder)
    assert len(server.requests) == 4


@pytest.mark.parametrize(("status", "is_refused"), [(400, True), (413, True), (422, True), (429, False), (500, False)])
def test_rejected_texts_are_distinguished_from_an_unavailable_server(
    embedder: RemoteEmbedder, server: EmbeddingServer, status: int, is_refused: bool
) -> None:
    server.reply = failing(status, {})

    with pytest.raises(EmbedderUnavailable) as rejection:
        embedder.embed_documents(["a query"], PATIENCE_SECONDS)

    assert isinstance(rejection.value, EmbedderRejected) is is_refused


def test_model_identity_differs_by_server_url_and_model_name() -> None:
    models = {
        RemoteEmbedder(url, name, "").model
        for url in ("https://a.example.com/v1/embeddings", "https://b.example.com/v1/embeddings")
        for name in ("small", "x" * 300, "x" * 301)
    }

    assert len(models) == 6
    assert max(map(len, models)) <= 255


BAD_DATA = {
    "none": None,
    "too few": [],
    "too many": items(["a", "b"]),
    "one place twice": [{"index": 1, "embedding": [1.0]}],
    "no vector": [{"index": 0}],
    "no list": [{"index": 0, "embedding": 1.0}],
    "base64": [{"index": 0, "embedding": "AAAA"}],
    "empty": [{"index": 0, "embedding": []}],
    "null": [{"index": 0, "embedding": [1.0, None]}],
    "nested": [{"index": 0, "embedding": [[1.0]]}],
    "zero": [{"index": 0, "embedding": [0.0, 0.0]}],
    "unhashable place": [{"index": [], "embedding": [1.0]}],
    "strings": ["a"],
}


@pytest.mark.parametrize("data", BAD_DATA.values(), ids=BAD_DATA)
def test_response_without_one_vector_per_text_is_rejected(
    embedder: RemoteEmbedder, server: EmbeddingServer, data: Any
) -> None:
    server.reply = answering(lambda _: data)

    assert "did not respond in OpenAI's format" in rejection(embedder)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'"text"',
        b'{"data": [{"embedding": [NaN]}]}',
        b'{"data": [{"embedding": [1e999]}]}',
    ],
)
def test_malformed_response_is_rejected(embedder: RemoteEmbedder, server: EmbeddingServer, body: bytes) -> None:
    server.reply = lambda _: (200, {}, iter([body] if body else []))

    assert "did not respond in OpenAI's format" in rejection(embedder)


def test_vectors_of_any_magnitude_are_normalized_to_length_1(embedder: RemoteEmbedder, server: EmbeddingServer) -> None:
    for size in (1e-300, 1e308):
        server.reply = answering(lambda _, size=size: [{"embedding": [size, size]}])
        assert embedder.embed_query("a", PATIENCE_SECONDS).tolist() == pytest.approx([0.5**0.5] * 2)


def test_vectors_of_different_dimensions_are_rejected(embedder: RemoteEmbedder, server: EmbeddingServer) -> None:
    server.reply = answering(lambda texts: [{"embedding": [1.0] * (at + 1)} for at, _ in enumerate(texts)])
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_documents(["a", "b"], PATIENCE_SECONDS)

    server.reply = answering(lambda texts: [{"embedding": [1.0] * len(texts)} for _ in texts])
    with pytest.raises(EmbedderUnavailable, match="different dimensions"):
        embedder.embed_documents(["a"] * 33, PATIENCE_SECONDS)


def test_response_above_the_size_limit_is_rejected(
    embedder: RemoteEmbedder, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MAX_RESPONSE_BYTES", 50)

    assert "too long" in rejection(embedder)


def test_connection_failure_is_reported_without_the_query_string(server: EmbeddingServer) -> None:
    with run_server() as gone:
        pass
    embedder = RemoteEmbedder(gone.url + "?secret=1", "m", KEY)

    said = rejection(embedder)
    embedder.close()

    assert "Connection refused" in said
    assert "secret" not in said


def test_slow_embedding_server_times_out_and_pending_queries_are_limited(
    embedder: RemoteEmbedder, server: EmbeddingServer
) -> None:
    goes_on = threading.Event()

    def drip(_: Any) -> Any:
        def pieces() -> Iterator[bytes]:
            yield b"{"
            goes_on.wait(PATIENCE_SECONDS)
            yield json.dumps({"data": items(["a query"])}).encode()[1:]

        return 200, {}, pieces()

    server.reply = drip
    for _ in range(
        remote.MAX_CONCURRENT_QUERIES + 1
    ):  # Also if the maximum number of queries is running without a caller.
        with pytest.raises(EmbedderUnavailable, match="not respond in time"):
            embedder.embed_query("a query", 0.05)
    eventually(lambda: len(server.requests) == remote.MAX_CONCURRENT_QUERIES)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_documents(["a query"], 0.05)

    goes_on.set()
    assert embedder.embed_query("a query", PATIENCE_SECONDS).tolist() == unit("a query")


def test_lone_surrogates_are_replaced_before_sending(embedder: RemoteEmbedder, server: EmbeddingServer) -> None:
    embedder.embed_query("half of \ud83d a character", PATIENCE_SECONDS)

    assert server.requests[0][1]["input"] == ["half of ? a character"]
