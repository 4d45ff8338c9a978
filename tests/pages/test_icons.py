"""Icons of pages: one sprite, which has exactly the icons that the templates use."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

APP = Path(__file__).resolve().parents[2] / "app"
SPRITE = APP / "static" / "icons.svg"
ICONS = (
    "arrow-left-right", "braces", "chart-column", "circle-check", "file-text", "globe", "inbox", "layout-dashboard",
    "list-filter", "list-ordered", "message-square-text", "panel-top", "pin", "search", "sliders-horizontal",
    "split",
)  # fmt: skip
"""The icons in the sprite. After a change, run ``make icons``."""


def test_sprite_has_exactly_the_icons_that_pages_use(app: Flask) -> None:
    files = [*(APP / "templates").glob("*.html"), *(APP / "pages").rglob("*.py")]
    pages = "".join(file.read_text(encoding="utf-8") for file in files)

    assert [name for name in ICONS if f'"{name}"' not in pages] == []
    assert tuple(app.extensions["icons"]) == ICONS


def test_icon_is_hidden_from_screen_readers(app: Flask) -> None:
    icon = app.jinja_env.globals["icon"]("search")

    assert icon.startswith('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="')
    with pytest.raises(KeyError):
        app.jinja_env.globals["icon"]("no such icon")


def test_license_of_the_icons_is_in_the_sprite() -> None:
    text = SPRITE.read_text(encoding="utf-8")

    assert "ISC License" in text
    assert "The above copyright notice and this permission notice shall be included in all" in text
