"""The site's name is removed from page titles, and nothing else."""

from __future__ import annotations

import pytest

from app.crawl.run.page_documents import TitleRules, strip_title
from app.crawl.run.titles import shared_prefix, shared_suffix


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


@pytest.mark.parametrize(
    ("titles", "prefix"),
    [
        (["Harbor Portal | Cranes", "Harbor Portal | Boats", "Harbor Portal | Docks"], "Harbor Portal | "),
        (["Eigen: Matrix", "Eigen: Array", "Eigen: Map"], "Eigen: "),
        (["Acme » Docs » a", "Acme » Docs » b", "Acme » Blog » c"], "Acme » "),
        (["List (Java SE 17)", "List (Java SE 18)", "List (Java SE 19)"], ""),
        (["Harbor | Cranes", "Harbor | Boats"], ""),
        (["Acme | a", "Acme | b", "Acme | c", "d", "e", "f", "g"], ""),
        (["Harbor |", "Harbor | ", "Harbor |  "], ""),
        ([], ""),
    ],
)
def test_shared_prefix_is_detected_from_most_titles(titles: list[str], prefix: str) -> None:
    assert shared_prefix(titles) == prefix


def test_removing_prefix_and_suffix_never_empties_a_title() -> None:
    assert strip_title("Harbor | Acme", "", " | Acme") == "Harbor"
    assert strip_title("Acme | Harbor | Docs", "Acme | ", " | Docs") == "Harbor"
    assert strip_title("Acme | Docs", "Acme | ", " | Docs") == "Acme"
    assert strip_title("Acme", "", " | Acme") == "Acme"
    assert strip_title("| Acme", "", "| Acme") == "| Acme"
    assert strip_title("Acme | ", "Acme | ", "") == "Acme |"


def test_shared_title_yields_to_the_alternative_that_the_fewest_pages_have() -> None:
    counts = {hash(("Portal", "Logo")): 6, hash(("Portal", "Cranes")): 1, hash(("Portal", "Yard")): 1}
    rules = TitleRules(pages={"Portal": 6}, headings=counts)

    assert rules.document_title("Portal", "Logo\nCranes\nYard") == "Cranes"
    assert rules.document_title("Portal", "Logo") == "Portal"
    assert rules.document_title("Portal", None) == "Portal"
    assert rules.document_title("Boats", "Logo\nCranes") == "Boats"
