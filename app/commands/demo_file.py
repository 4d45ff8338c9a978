"""The record of the demo: its account, site, source, password, and keys, in DATA_DIR/demo.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson


def demo_file(folder: Path) -> Path:
    """The place where it is kept."""
    return folder / "demo.json"


def read_demo(folder: Path) -> dict[str, Any] | None:
    """The record of the demo; ``None`` if the installation has none."""
    path = demo_file(folder)
    if not path.exists():
        return None
    kept: dict[str, Any] = orjson.loads(path.read_bytes())
    return kept
