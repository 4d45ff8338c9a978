"""MiniLM itself. Needs the extra ``minilm``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from app.runtime import MINILM_PACKAGES
from app.services.embedding.local import MINILM, LocalEmbedder
from tests.patience import PATIENCE_SECONDS

if any(find_spec(name) is None for name in MINILM_PACKAGES) and not os.environ.get("CI"):
    pytest.skip("the extra minilm is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEmbedder]:
    made = LocalEmbedder(tmp_path_factory.mktemp("data"), MINILM)
    yield made
    made.close()


def embed(embedder: LocalEmbedder, *texts: str) -> np.ndarray:
    return embedder.embed_documents(texts, PATIENCE_SECONDS)


def test_texts_with_the_same_meaning_are_closer_than_texts_sharing_words(embedder: LocalEmbedder) -> None:
    query = embedder.embed_query("how do I get my money back for something I bought", PATIENCE_SECONDS)
    documents = embed(embedder, "Refunds and returns of purchases", "How do I get to the money museum by bus")

    refunds, museum = documents @ query

    assert refunds > museum + 0.1
    assert np.linalg.norm(documents, axis=1) == pytest.approx([1, 1], abs=1e-5)


def test_similarities_match_the_published_model_card(embedder: LocalEmbedder) -> None:
    a, b, c = embed(embedder, "That is a happy person", "That is a happy dog", "Today is a sunny day")

    # The authors' model card says .695 and .257 at full precision.
    assert float(a @ b) == pytest.approx(0.695, abs=0.03)
    assert float(a @ c) == pytest.approx(0.257, abs=0.03)


def test_query_and_document_with_the_same_text_have_the_same_vector(embedder: LocalEmbedder) -> None:
    text = "opening hours of the library"

    assert (embedder.embed_query(text, PATIENCE_SECONDS) == embed(embedder, "another text", text)[1]).all()


def test_text_beyond_the_first_256_tokens_is_ignored(embedder: LocalEmbedder) -> None:
    beginning = "harbor " * 300
    one, other = embed(embedder, beginning + "cats", beginning + "steam engines")

    assert (one == other).all()


def test_any_text_has_a_vector_of_length_1(embedder: LocalEmbedder) -> None:
    vectors = embed(embedder, "", "\x00", "\ud800 alone", "日本語", "x" * 10_000, "👩‍👩‍👧")

    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0] * 6, abs=1e-5)


def test_minilm_process_loads_no_library_of_the_service(embedder: LocalEmbedder) -> None:
    embed(embedder, "it runs")
    libraries = Path(f"/proc/{embedder._process._process.pid}/maps").read_text()

    assert "onnxruntime" in libraries
    assert "tantivy" not in libraries
