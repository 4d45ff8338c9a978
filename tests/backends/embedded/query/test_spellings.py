"""Words in other spellings than they were typed: they count as the word itself."""

from __future__ import annotations

import pytest

from backends.base import Matched
from backends.query import Highlight
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

NAMES = ("C#", "F#", "G# major", "A# minor", "C++ templates", "g++ compiler", "Notepad++", "Notepad", "Vitamin C")


def found(titles: tuple[str, ...], text: str) -> list[str]:
    """Titles of the hits that have every word of a query, with highlights as ``<em>``."""
    result = index_of(*(page(str(at), title) for at, title in enumerate(titles))).search(text, highlight=Highlight())
    assert (result.matched, result.corrected_query) == (Matched.ALL if result.hits else Matched.SOME, None)
    return [(hit.formatted or {})["title"] for hit in result.hits]


@pytest.mark.parametrize(("text", "titles"), [
    ("C#", ["<em>C#</em>"]), ("F#", ["<em>F#</em>"]), ("C++", ["<em>C++</em> templates"]),
    ("g++", ["<em>g++</em> compiler"]), ("c++ templates", ["<em>C++</em> <em>templates</em>"]),
    ("notepad++", ["<em>Notepad++</em>", "<em>Notepad</em>"]), ("Q#", []),
])  # fmt: skip
def test_names_with_signs_are_not_typing_errors_of_each_other(text: str, titles: list[str]) -> None:
    assert found(NAMES, text) == titles


def test_names_with_signs_are_found_spelled_out() -> None:
    assert found(("CSharp guide", "FSharp"), "C#") == ["<em>CSharp</em> guide"]
    assert found(("C# guide", "F#"), "csharp") == ["<em>C#</em> guide"]
