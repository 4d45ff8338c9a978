"""The setting determines the embedder."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import runtime
from app.config import ConfigurationError, load_settings
from app.runtime import create_embedder
from app.services.embedding.embedder import Embedder
from tests.patience import PATIENCE_SECONDS
from tests.services.embedding.embedding_server import run_server


def test_no_embedder_is_created_by_default(tmp_path: Path) -> None:
    assert create_embedder(load_settings({"DATA_DIR": str(tmp_path)})) is None


def test_embedder_url_is_called_with_the_configured_model_and_key(tmp_path: Path) -> None:
    with run_server() as server:
        environment = {"EMBEDDER": server.url, "EMBEDDER_MODEL": "small", "EMBEDDER_KEY": "a-key"}
        embedder = create_embedder(load_settings({"DATA_DIR": str(tmp_path), **environment}))
        assert embedder is not None
        embedder.embed_query("a query", PATIENCE_SECONDS)
        embedder.close()

    assert (embedder.model[:6], embedder.languages) == ("small-", None)
    ((headers, body),) = server.requests
    assert (headers["Authorization"], body["model"]) == ("Bearer a-key", "small")


def test_minilm_embedder_supports_only_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "MINILM_PACKAGES", ("numpy",))
    embedder = create_embedder(load_settings({"DATA_DIR": str(tmp_path), "EMBEDDER": "minilm"}))

    assert embedder is not None
    assert (embedder.model, embedder.languages) == ("all-MiniLM-L6-v2-int8-8199be6f", {"en"})


def test_fastembed_runs_a_multilingual_model_unless_another_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "FASTEMBED_PACKAGES", ("numpy",))

    def create(model: str) -> Embedder | None:
        settings = {"DATA_DIR": str(tmp_path), "EMBEDDER": "fastembed", "EMBEDDER_MODEL": model}
        return create_embedder(load_settings(settings))

    default, german = create(""), create("jinaai/jina-embeddings-v2-base-de")
    assert default is not None
    assert german is not None
    assert default.model == "fastembed-sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
    assert default.languages is not None
    assert default.languages >= {"en", "de", "vi", "ar", "hi", "no"}
    assert "eu" not in default.languages
    assert (german.languages, german.dimension) == ({"de", "en"}, 768)
    with pytest.raises(ConfigurationError, match="EMBEDDER_MODEL must be one of sentence-transformers/"):
        create("intfloat/other")


@pytest.mark.parametrize(
    ("embedder", "extra"),
    [("minilm", "minilm"), ("fastembed", "fastembed"), ("https://a.example/v1", "embeddings")],
)
def test_missing_extra_raises_configuration_error_at_startup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: str, extra: str
) -> None:
    for name in ("MINILM_PACKAGES", "FASTEMBED_PACKAGES", "REMOTE_PACKAGES"):
        monkeypatch.setattr(runtime, name, ("numpy", "no_such_package"))
    model = "small" if extra == "embeddings" else ""
    settings = load_settings({"DATA_DIR": str(tmp_path), "EMBEDDER": embedder, "EMBEDDER_MODEL": model})

    with pytest.raises(ConfigurationError, match=rf"requires the extra {extra}, .*: no_such_package cannot be found"):
        create_embedder(settings)
