"""Colors meet WCAG contrast in light and dark mode: 4.5 for text, 3 for control edges and chart bars."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLE = (Path(__file__).resolve().parents[2] / "app" / "static" / "style.css").read_text()
WIDGET = (Path(__file__).resolve().parents[2] / "app" / "static" / "widget.js").read_text()

TEXT = [
    ("text", "ground"),
    ("text", "card"),
    ("text", "tint"),
    ("text", "line"),
    ("text", "mark"),
    ("text", "good-tint"),
    ("text", "bad-tint"),
    ("soft", "ground"),
    ("soft", "card"),
    ("accent", "ground"),
    ("accent", "card"),
    ("accent", "bad-tint"),
    ("accent", "mark"),
    ("accent-strong", "mark"),
    ("accent-strong", "tint"),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("good", "good-tint"),
    ("warn", "warn-tint"),
    ("warn", "card"),
    ("bad", "bad-tint"),
    ("bad", "card"),
    ("bad", "ground"),
    ("card", "bad"),
]
EDGES = [("edge", "ground"), ("edge", "card"), ("bar", "card"), ("bar-empty", "card")]
DESIGNER = (Path(__file__).resolve().parents[2] / "app" / "static" / "try-widget.js").read_text()
BOX = [
    ("text", "ground"),
    ("text", "chosen"),
    ("text", "mark"),
    ("soft", "ground"),
    ("accent", "ground"),
    ("accent", "chosen"),
    ("accent", "mark"),
]


def _palettes(text: str) -> list[dict[str, str]]:
    """Return the light and dark palettes; the dark one inherits unlisted colors."""
    blocks = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})", block)) for block in re.findall(r"\{([^{}]*)\}", text)]
    light, dark = [block for block in blocks if "ground" in block][:2]
    return [light, {**light, **dark}]


def _box_palettes() -> list[dict[str, str]]:
    """Return the search box's light and dark palettes."""
    pairs = re.findall(r'\b([a-z]+): \["(#[0-9a-f]{3,6})", "(#[0-9a-f]{3,6})"\]', WIDGET)
    return [{name: colors[which] for name, *colors in pairs} for which in (0, 1)]


def _luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(digit * 2 for digit in color[1:])
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2 contrast ratio of two colors."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_formula_matches_wcag() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", _palettes(STYLE), ids=["light", "dark"])
def test_page_colors_have_sufficient_contrast(palette: dict[str, str]) -> None:
    for pairs, least in ((TEXT, 4.5), (EDGES, 3)):
        weak = {pair: round(contrast(*(palette[name] for name in pair)), 2) for pair in pairs}
        assert {pair: found for pair, found in weak.items() if found < least} == {}


@pytest.mark.parametrize("palette", _box_palettes(), ids=["light", "dark"])
def test_search_box_colors_have_sufficient_contrast(palette: dict[str, str]) -> None:
    weak = {pair: round(contrast(*(palette[name] for name in pair)), 2) for pair in BOX}
    assert {pair: found for pair, found in weak.items() if found < 4.5} == {}
    assert contrast(palette["line"], palette["ground"]) >= 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_color_presets_of_the_search_box_have_sufficient_contrast(theme: int) -> None:
    presets = re.findall(r"^    (\w+): \{ accent: \[(.+?)\], chosen: \[(.+?)\] \},$", DESIGNER, re.MULTILINE)
    assert [name for name, *_ in presets] == ["indigo", "ruby"]  # The third one is the box's own palette.
    for name, accents, backgrounds in presets:
        accent, chosen = (re.findall("#[0-9a-f]{6}", pair)[theme] for pair in (accents, backgrounds))
        palette = {**_box_palettes()[theme], "accent": accent, "chosen": chosen}
        weak = {pair: round(contrast(*(palette[part] for part in pair)), 2) for pair in BOX}
        assert {pair: found for pair, found in weak.items() if found < 4.5} == {}, name
