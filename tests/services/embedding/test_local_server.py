"""The program of a model's process: it loads little, and verifies the model's files."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest

from app.services.embedding import local_server
from app.services.embedding.local_server import ModelFile, ModelFileError, find_model_file


def test_server_imports_no_module_of_the_service() -> None:
    tree = ast.parse(Path(local_server.__file__).read_text())
    modules = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }

    assert {name.partition(".")[0] for name in modules} & {"app", "backends", "schemas", ""} == set()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a model file; importing the package fails."""
    folder = tmp_path / "modelpackage"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError")
    (folder / "model.bin").write_bytes(b"weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_model_file_is_found_without_importing_its_package(package: Path) -> None:
    sha256 = hashlib.sha256(b"weights").hexdigest()

    assert find_model_file(ModelFile("modelpackage", "model.bin", sha256)) == package / "model.bin"


def test_model_file_with_another_checksum_is_rejected(package: Path) -> None:
    with pytest.raises(ModelFileError, match=r"model\.bin is not the file that was tested: its SHA-256 is"):
        find_model_file(ModelFile("modelpackage", "model.bin", "0" * 64))


def test_missing_model_file_or_package_is_reported(package: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        find_model_file(ModelFile("modelpackage", "gone.bin", "0" * 64))
    with pytest.raises(ModelFileError, match="the package nosuchpackage is not installed"):
        find_model_file(ModelFile("nosuchpackage", "model.bin", "0" * 64))
