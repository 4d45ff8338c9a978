"""Splitting, matching, and ranking of words in the fake Typesense, as far as the adapter relies on 0.24."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Document = dict[str, Any]
_QUERY = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


_FOLDED = re.compile("[\x80-\u0137\u0139-\u0149\u014c-\u017f\u0218-\u021b\ufb00-\ufb04\ufb06\uff21-\uff5a]")
_LETTERS = str.maketrans({
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i",
    "·": "", "ʼ": "",
})  # fmt: skip


def fold(word: str) -> str:
    """Fold case and accents of some Latin letters; as in the server, other and decomposed letters stay unchanged."""
    return "".join(map(_fold_letter, word))


def _fold_letter(letter: str) -> str:
    if not letter.isascii() and not _FOLDED.match(letter):
        return letter
    bare = "".join(c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
    return bare.lower().translate(_LETTERS)


def surface_words(text: str, separators: Sequence[str]) -> list[str]:
    """Return the words of a text as written, without marks that are not separators."""
    for separator in separators:
        text = text.replace(separator, " ")
    found = ("".join(c for c in word if c.isalnum() or not c.isascii()) for word in text.split())
    return [word for word in found if word]


def tokens(text: str, separators: Sequence[str], fold: Callable[[str], str] = fold) -> list[str]:
    """Return folded words; the server compares only their first 100 bytes."""
    return list(_tokens(text, tuple(separators), fold))


@lru_cache(maxsize=4096)
def _tokens(text: str, separators: Sequence[str], fold: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(fold(word)[:100] for word in surface_words(text, separators))


def distance(left: str, right: str) -> int:
    """Return the edit distance of two words; a swap of two neighbors counts as one edit."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row, older = row, [i], before
        for j, b in enumerate(right, 1):
            best = min(row[j - 1] + 1, previous[j] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, older[j - 2] + 1)
            row.append(best)
        before = previous
    return row[-1]


@dataclass(frozen=True)
class Need:
    """A word or a phrase of a query."""

    words: tuple[str, ...]
    excluded: bool = False
    last: bool = False
    quoted: bool = False


def parse_query(
    text: str, separators: Sequence[str], fold: Callable[[str], str] = fold, *, prefix: bool = True
) -> list[Need]:
    needs: list[Need] = []
    for minus, phrase, plain in _QUERY.findall(text):
        words = tokens(phrase or plain, separators, fold)
        if phrase:
            needs.append(Need(tuple(words), bool(minus), quoted=True))
        else:
            needs += [Need((word,), bool(minus)) for word in words]
    if prefix and needs and not (needs[-1].excluded or needs[-1].quoted):
        needs[-1] = Need(needs[-1].words, last=True)
    return needs


@dataclass(frozen=True)
class Wishes:
    """The search parameters that determine which words match."""

    fields: tuple[str, ...]
    weights: tuple[int, ...]
    typos: tuple[int, ...]
    exact_first: bool
    min_1: int
    min_2: int
    drop_threshold: int


def _match_word(need: Need, words: Sequence[str], typos: int, wishes: Wishes) -> tuple[int, str] | None:
    """Return the lowest cost of a match in a field and the matched word: 0 exact, 1 prefix, 2 and more typos."""
    (wanted,) = need.words
    allowed = min(typos, 0 if len(wanted) < wishes.min_1 else 1 if len(wanted) < wishes.min_2 else 2)
    best: tuple[int, str] | None = None
    if wanted in words:
        return 0, wanted
    if need.quoted:
        return None
    for word in dict.fromkeys(words):
        cost = None
        if need.last and word.startswith(wanted):
            cost = 1
        elif allowed and len(word) >= len(wanted) - allowed and (need.last or len(word) <= len(wanted) + allowed):
            shapes = [word, *([word[: len(wanted) + d] for d in (-1, 0, 1)] if need.last else [])]
            edits = min(distance(wanted, shape) for shape in shapes)
            cost = 1 + edits if edits <= allowed else None
        if cost is not None and (best is None or cost < best[0]):
            best = cost, word
    return best


def _has_phrase(phrase: Sequence[str], words: Sequence[str]) -> bool:
    return any(list(words[at : at + len(phrase)]) == list(phrase) for at in range(len(words) - len(phrase) + 1))


def match(
    document: Mapping[str, Sequence[str]], needs: Sequence[Need], wishes: Wishes
) -> tuple[tuple[int, ...], dict[str, list[str]]] | None:
    """Return a score (higher is better) and the matched words of each field, or ``None`` without a match."""
    cost, best_weight, exact = 0, 0, 0
    found: dict[str, list[str]] = {}
    for need in needs:
        least: int | None = None
        for name, weight, typos in zip(wishes.fields, wishes.weights, wishes.typos, strict=True):
            words = document.get(name, ())
            if len(need.words) > 1:
                hit = (0, " ".join(need.words)) if _has_phrase(need.words, words) else None
            else:
                hit = _match_word(need, words, typos, wishes)
            if hit is None:
                continue
            found.setdefault(name, []).extend(hit[1].split(" "))
            best_weight = max(best_weight, weight)
            exact = max(exact, int(wishes.exact_first and list(words) == [n.words[0] for n in needs]))
            least = hit[0] if least is None else min(least, hit[0])
        if need.excluded:
            if least == 0:
                return None
            continue
        if least is None:
            return None
        cost += least
    return (sum(not n.excluded for n in needs), -cost, exact, best_weight), found


def class_of(score: tuple[int, ...]) -> int:
    """Convert a score of :func:`match` to one number below 2**63, whose highest bits are the words, as in Typesense."""
    words, cost, exact, weight = score if len(score) == 4 else (0, 0, 0, 0)
    return (words << 59) + ((255 + cost) << 16) + (exact << 8) + weight


def candidates(needs: Sequence[Need]) -> list[list[Need]]:
    """Return the query, then the query with words dropped from its right end and from its left end."""
    kept = [need for need in needs if not need.excluded]
    excluded = [need for need in needs if need.excluded]
    shorter = [kept[:n] for n in range(len(kept) - 1, 0, -1)] + [kept[-n:] for n in range(len(kept) - 1, 0, -1)]
    return [list(needs), *([*part, *excluded] for part in shorter)]
