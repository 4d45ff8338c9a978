"""Explanations of hits as sentences, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.wording import counted, number

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
_PHRASES = {
    True: "It has the words in quotes next to each other, so it comes before all results that do not.",
    False: "It does not have the words in quotes next to each other, so it comes after all results that do.",
}
MAX_WORDS = 20
_NEUTRAL = 0.005
"""Shares that are nearer to 1 change nothing that anybody sees."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons for the place of a hit.

    Attributes:
        score: Rounded, by words and ranks; empty where there is none.
        is_whole: Whether hits are ordered by this score alone.
        factors: Name and share of each signal that changes the score.
    """

    sentences: Sequence[str]
    score: str
    factors: Sequence[tuple[str, str]]
    is_whole: bool


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
    return Reasons(
        sentences,
        "" if score is None else f"{score:.2f}",
        [] if score is None else factors,
        "meaning" not in explanation,
    )


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
    if explanation.get("beyond_ranks"):
        yield "It stands behind the results that ranks put in order."
    if "has_phrase" in explanation:
        yield _PHRASES[explanation["has_phrase"]]
    if "preferred_over" in explanation:
        yield f"It replaces “{explanation['preferred_over']}”, which matches better but is not the preferred page."
    if "meaning" in explanation:
        yield from _meaning(explanation["meaning"])
    if "clicks" in explanation:
        yield _clicks(explanation["clicks"])
    if explanation.get("limits"):
        yield explanation["limits"]


def _meaning(meaning: Mapping[str, Any]) -> Iterator[str]:
    yield f"By words alone, it would be result {number(meaning['place_by_words'])}."
    if meaning["cosine"] is None:
        yield "Its meaning is not known yet, and counts like the average of the other results."
    else:
        yield f"Its meaning is {meaning['cosine']:.2f} like that of the search; 1 is the same."
    yield f"Words and meaning together score {meaning['score']:.3f}, and results are ordered by that."


def _clicks(clicks: Mapping[str, Any]) -> str:
    moved, gain = clicks["moved_up"], f"{clicks['gain']:.1f}"
    if moved > 0:
        return f"Clicks moved it up by {counted(moved, 'place')}: its own are worth {gain}."
    return f"Clicks on other results moved it down by {counted(-moved, 'place')}: its own are worth {gain}."
