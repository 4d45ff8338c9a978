"""The files of a model of fastembed on disk: MiniLM, from the packages of the extra ``minilm``."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.runtime import FASTEMBED_PACKAGES, MINILM_PACKAGES
from app.services.embedding.local import FASTEMBED_MODELS
from app.services.embedding.local_server import MODEL, TOKENIZER, find_model_file

needs_fastembed = pytest.mark.skipif(
    any(find_spec(name) is None for name in (*FASTEMBED_PACKAGES, *MINILM_PACKAGES)) and not os.environ.get("CI"),
    reason="the extras fastembed and minilm are not installed",
)

SMALL_MODEL = FASTEMBED_MODELS["sentence-transformers/all-MiniLM-L6-v2"]


def put_files(folder: Path, model_file: str = "model.onnx") -> None:
    """Put the model's files into a folder."""
    (folder / model_file).parent.mkdir(parents=True)
    (folder / model_file).symlink_to(find_model_file(MODEL))
    (folder / "tokenizer.json").symlink_to(find_model_file(TOKENIZER))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 256, "pad_token": "[PAD]"}))
    (folder / "config.json").write_text("{}")


def put_download(models: Path) -> None:
    """Put the model's files where fastembed stores a download."""
    repository = models / "models--Qdrant--all-MiniLM-L6-v2-onnx"
    put_files(repository / "snapshots" / "0123abcd")
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("0123abcd")
