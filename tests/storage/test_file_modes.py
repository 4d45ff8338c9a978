"""Checking which paths other users can access."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import load_settings
from app.storage.files import OpenPaths, find_open_paths, is_open
from tests.conftest import SECRET


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a folder with a subfolder and a file, all accessible to their owner only."""
    made = tmp_path / "data"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "file").write_text("secret")
    (made / "inner" / "file").chmod(0o600)
    (made / "inner").chmod(0o700)
    made.chmod(0o700)
    return made


def test_private_folder_has_no_open_paths(folder: Path) -> None:
    assert find_open_paths(folder) == OpenPaths((), ())
    assert not is_open(folder)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o711, 0o2770])
def test_folder_accessible_to_group_or_others_is_open(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    (folder / "inner").chmod(mode)

    assert find_open_paths(folder) == OpenPaths((folder, folder / "inner"), ())
    assert is_open(folder)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_file_readable_by_group_or_others_is_open(folder: Path, mode: int) -> None:
    file = folder / "inner" / "file"
    file.chmod(mode)

    assert find_open_paths(folder) == OpenPaths((), (file,))


def test_symbolic_link_to_a_public_file_is_not_open(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "public").write_text("for everybody")
    (folder / "link").symlink_to(tmp_path / "public")

    assert find_open_paths(folder) == OpenPaths((), ())


def test_created_data_directory_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "new"

    load_settings({"DATA_DIR": str(folder), "SECRET_KEY": SECRET})

    assert folder.stat().st_mode & 0o777 == 0o700
