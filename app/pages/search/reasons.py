"""Explanations of hits as sentences, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.wording import counted

_KINDS = {
    "exact": "as typed",
    "stem": "another form of “{}”",
    "prefix": "which begins with “{}”",
    "typo": "much like “{}”",
    "synonym": "a synonym of “{}”",
    "joined": "written together for “{}”",
    "split": "written apart for “{}”",
}
"""How a word is found, by the kind of its variant."""
_HAS_ALL = "All words of the search are in it."
_DEMANDED = {"all_terms": _HAS_ALL, "any_term": "Some words of the search are in it."}
MAX_WORDS = 20
_NEUTRAL = 0.005
"""Shares that are nearer to 1 change nothing that anybody sees."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons for the place of a hit.

    Attributes:
        score: Rounded; empty where there is none.
        factors: Name and share of each signal that changes the score.
    """

    sentences: Sequence[str]
    score: str
    factors: Sequence[tuple[str, str]]


def show_reasons(explanation: Mapping[str, Any] | None) -> Reasons | None:
    """An explanation (``_explain`` of a hit) as people read it; ``None`` if there is none."""
    if not explanation:
        return None
    score = explanation.get("score")
    factors = [
        (str(signal["name"]).replace("_", " "), f"{signal['share']:.2f}")
        for signal in explanation.get("signals", ())
        if abs(signal["share"] - 1) > _NEUTRAL
    ]
    sentences = list(_sentences(explanation))
    if not sentences and score is None:
        return None
    return Reasons(sentences, "" if score is None else f"{score:.2f}", [] if score is None else factors)


def _sentences(explanation: Mapping[str, Any]) -> Iterator[str]:
    if explanation.get("pinned"):
        yield "It is pinned for this search."
    demanded = _DEMANDED.get(explanation.get("relaxation", ""))
    # Where one word is enough, those that have all of them are told by a signal.
    if any(signal["name"] == "all_terms" and signal["share"] > 1 for signal in explanation.get("signals", ())):
        yield _HAS_ALL
    elif demanded is not None:
        yield demanded
    for word in explanation.get("words", ())[:MAX_WORDS]:
        yield f"“{word['variant']}” in the {word['field']}, {_KINDS[word['kind']].format(word['word'])}."
    if explanation.get("rank"):
        yield f"Its rank is {explanation['rank']:+g}."
    moved = explanation.get("clicks", {}).get("moved_up", 0)
    if moved:
        yield f"Clicks moved it {'up' if moved > 0 else 'down'} by {counted(abs(moved), 'place')}."
    if explanation.get("limits"):
        yield explanation["limits"]
