"""The site's name is removed from page titles, and nothing else."""

from __future__ import annotations

import pytest

from app.crawl.run.titles import shared_suffix, strip_suffix


@pytest.mark.parametrize(
    ("titles", "suffix"),
    [
        (
            ["os — Python documentation", "csv — Python documentation", "re — Python documentation"],
            " — Python documentation",
        ),
        (["a | Docs | Acme", "b | Docs | Acme", "c | Blog | Acme"], " | Acme"),
        (["a - b - Acme", "c - b - Acme", "d - b - Acme"], " - b - Acme"),
        (["Eigen: Matrix", "Eigen: Array", "Eigen: Map"], ""),
        (["Acme | a", "Acme | b", "Acme | c", "Acme"], ""),
        (["List (Java SE 17)", "Map (Java SE 17)", "Set (Java SE 17)"], " (Java SE 17)"),
        (["a | Acme", "b | Acme"], ""),
        (["a | Acme", "a | Acme", "a | Acme"], ""),
        (["Harbor", "Boats", "Islands"], ""),
        (["well-known", "ill-known", "un-known"], ""),
        (["a | Acme", "b | Acme", "c | Acme", "d", "e", "f", "g"], ""),
        ([], ""),
    ],
)
def test_shared_suffix_is_detected_from_most_titles(titles: list[str], suffix: str) -> None:
    assert shared_suffix(titles) == suffix


def test_removing_the_suffix_never_empties_a_title() -> None:
    assert strip_suffix("Harbor | Acme", " | Acme") == "Harbor"
    assert strip_suffix("Acme", " | Acme") == "Acme"
    assert strip_suffix(" | Acme", " | Acme") == " | Acme"
