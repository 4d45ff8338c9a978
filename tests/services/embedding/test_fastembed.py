"""Models of fastembed, with real files on disk. Needs the extras ``fastembed`` and ``minilm``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.local import DEFAULT_MODEL, FASTEMBED_MODELS, LocalEmbedder
from app.services.embedding.local_server import ModelFileError, load_fastembed, manual_folder
from tests.patience import PATIENCE_SECONDS, eventually
from tests.services.embedding.fastembed_files import SMALL_MODEL, needs_fastembed, put_download, put_files

pytestmark = needs_fastembed


@pytest.fixture
def embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEmbedder]:
    """An embedder on a machine without internet access."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    made = LocalEmbedder(tmp_path, SMALL_MODEL)
    yield made
    made.close()


def put_by_hand(models: Path) -> None:
    put_files(models / "all-MiniLM-L6-v2")


@pytest.mark.parametrize("put", [put_by_hand, put_download])
def test_model_in_the_data_folder_computes_vectors(
    embedder: LocalEmbedder, tmp_path: Path, put: Callable[[Path], None]
) -> None:
    put(tmp_path / "models")

    a, b, c = embedder.embed_documents(
        ["That is a happy person", "That is a happy dog", "Today is a sunny day"], PATIENCE_SECONDS
    )

    # The authors' model card says .695 and .257 at full precision.
    assert (float(a @ b), float(a @ c)) == pytest.approx((0.695, 0.257), abs=0.03)
    assert (embedder.embed_query("That is a happy dog", PATIENCE_SECONDS) == b).all()
    assert embedder.languages == {"en"}


def test_any_text_has_a_vector_of_length_1(embedder: LocalEmbedder, tmp_path: Path) -> None:
    put_by_hand(tmp_path / "models")

    vectors = embedder.embed_documents(["", "\x00", "\ud800 alone", "日本語", "x" * 10_000], PATIENCE_SECONDS)

    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0] * 5, abs=1e-5)


def test_process_loads_no_library_of_the_service(embedder: LocalEmbedder, tmp_path: Path) -> None:
    put_by_hand(tmp_path / "models")
    embedder.embed_query("it runs", PATIENCE_SECONDS)
    libraries = Path(f"/proc/{embedder._process._process.pid}/maps").read_text()

    assert "onnxruntime" in libraries
    assert "tantivy" not in libraries


def test_model_that_cannot_be_downloaded_is_reported_and_not_retried_immediately(
    embedder: LocalEmbedder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def has_failed() -> bool:
        with pytest.raises(EmbedderUnavailable) as raised:
            embedder.embed_query("a query", 0.05)
        return "ended with an error" in str(raised.value)

    eventually(has_failed)

    errors = capfd.readouterr().err
    assert "The model of EMBEDDER cannot be loaded: Could not load model" in errors
    assert errors.count("cannot be loaded") == 1
    assert (tmp_path / "models").is_dir()


def test_missing_files_of_a_model_put_by_hand_are_listed(tmp_path: Path) -> None:
    put_by_hand(tmp_path / "models")
    (tmp_path / "models/all-MiniLM-L6-v2/model.onnx").unlink()
    (tmp_path / "models/all-MiniLM-L6-v2/tokenizer.json").unlink()

    with pytest.raises(ModelFileError, match=r"all-MiniLM-L6-v2 does not contain tokenizer\.json, model\.onnx$"):
        load_fastembed(SMALL_MODEL.name, tmp_path)


def test_files_of_another_model_are_rejected(tmp_path: Path) -> None:
    name = "jinaai/jina-embeddings-v2-base-es"
    put_files(manual_folder(name, tmp_path), "onnx/model.onnx")

    with pytest.raises(ModelFileError, match="its vectors have 384 dimensions instead of 768"):
        load_fastembed(name, tmp_path)


def test_models_are_among_those_of_fastembed() -> None:
    from fastembed import TextEmbedding

    listed = {model["model"]: model for model in TextEmbedding.list_supported_models()}

    assert {name: listed[name]["dim"] for name in FASTEMBED_MODELS} == {
        name: model.dimension for name, model in FASTEMBED_MODELS.items()
    }
    assert all("Prefixes for queries/documents: necessary" not in listed[n]["description"] for n in FASTEMBED_MODELS)
    assert "Multilingual" in listed[DEFAULT_MODEL]["description"]
