"""The sprite of icons consists of unmodified Lucide icons. WRITE_ICONS=1 rebuilds it (``make icons``)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.npm.conftest import Packages
from tests.pages.test_icons import ICONS, SPRITE


def build_sprite(package: Path) -> str:
    """Return the sprite of the icons in :data:`ICONS`, with the license of the package ``lucide-static``."""
    license_text = (package / "LICENSE").read_text(encoding="utf-8").strip()
    symbols = "".join(
        f'<symbol id="{name}" viewBox="0 0 24 24">{_shapes(package / "icons" / f"{name}.svg")}</symbol>\n'
        for name in ICONS
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg">\n<!--\n{license_text}\n-->\n{symbols}</svg>\n'


def _shapes(file: Path) -> str:
    _, _, inside = file.read_text(encoding="utf-8").partition("<svg")
    inside = inside.partition(">")[2].rpartition("</svg>")[0]
    return re.sub(r"\s+", " ", inside).replace("> <", "><").replace(" />", "/>").strip()


def test_sprite_is_built_from_the_package(packages: Packages) -> None:
    built = build_sprite(packages.folder / "node_modules" / "lucide-static")
    if os.environ.get("WRITE_ICONS"):
        SPRITE.write_text(built, encoding="utf-8")

    assert SPRITE.read_text(encoding="utf-8") == built
