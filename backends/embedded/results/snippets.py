"""Snippets: the part of a long text that is shown, the one with the most different matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from functools import lru_cache
from typing import NamedTuple

from backends.embedded.results.matches import FoldedText, Match, MatchTerms, SearchedText

_WORD = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\u0e01-\u0e5b\u1000-\u109f\u1780-\u17dd]{1,2}|[^\\W_]+")
_CHARS_PER_WORD = 40
_USUAL_CHARS_PER_WORD = 6
_MANY_CHARS_PER_WORD = 2 * _USUAL_CHARS_PER_WORD
_SPACED = bytes(code if chr(code).isalnum() else 32 for code in range(128)) + bytes(128)
_LOOK, _FAR = 4_096, 16_384
"""So far a text is looked through at first, and so far for words that are not near each other there."""

_EDGE = 200
_MOST_LOOKED_AT = 200
"""Matches of a text that a stretch may begin with."""

_MOST_NEIGHBOURHOODS = 100
"""Matches of the rarest words whose surroundings are looked at."""

_MANY, _PLENTY = 16, 4
"""Of a query of more words than the first, a stretch with as many different ones as the second is good enough."""


class SnippetGenerator:
    """Finds the part of a text to show.

    Args:
        match_terms: What matches in it.
    """

    def __init__(self, match_terms: MatchTerms):
        self._match_terms = match_terms
        self._wanted = len(match_terms.numbers) if len(match_terms.numbers) <= _MANY else _PLENTY

    def best_part(self, searched: SearchedText, words: int) -> tuple[list[Match], tuple[int, int]]:
        """The part of a text, about ``words`` words long, with the most different matches, and the matches there.

        A long text is looked through from its beginning; where that is not enough to find every word of the query
        (of very many, some) near each other, only around the rarest words in the rest.
        """
        text = searched.text
        if len(text) <= _LOOK:
            found_matches = searched.all_matches(self._match_terms)
            return found_matches, crop_window(text, found_matches, words)
        reach = _word_end(text, _LOOK - _EDGE, _LOOK)
        beginning = searched.part(0, reach)
        found_matches = beginning.in_text(beginning.find(self._match_terms))
        best = _best_stretch(found_matches, words)
        if len(found_matches) <= _MOST_LOOKED_AT and not self._suffices(best):
            best = self._better_stretch(searched, reach, words, best, found_matches)
        start, end = _around(text, best, words)
        if end > reach:
            begin = max(0, start - _EDGE)
            part = searched.part(begin, end + _EDGE)
            found_matches = part.in_text(part.find(self._match_terms))
        return found_matches, (start, end)

    def _suffices(self, best: _Fragment | None) -> bool:
        """Tell whether a stretch need not be bettered."""
        return best is not None and best.different >= self._wanted

    def _better_stretch(
        self, searched: SearchedText, reach: int, words: int, best: _Fragment | None, found_matches: list[Match]
    ) -> _Fragment | None:
        """A stretch of the rest of a text with more different words, or with as many and more matches, if any.

        To have more of the query's words than ``best``, it must have one of the others than the most frequent ones.
        Far from the beginning, only words are looked for that were not seen before.

        Args:
            found_matches: Those of the beginning; what is rare there mostly is in the rest.
        """
        text, width = searched.text, _width(words)
        seen = Counter(number for _, _, number in found_matches)
        rarest = sorted(self._match_terms.numbers, key=lambda number: (seen[number], number))
        anchors = rarest[: len(rarest) - (0 if best is None else best.different)]
        near = searched.part(_word_end(text, reach - width - _EDGE, reach - width), _FAR)
        best, found = self._best_around(frozenset(anchors), near, words, best)
        missing = self._match_terms.numbers.difference(seen, found)
        if missing and len(text) > _FAR and not self._suffices(best):
            far = searched.part(_word_end(text, _FAR - width - _EDGE, _FAR - width))
            best, _ = self._best_around(missing, far, words, best)
        return best

    def _best_around(
        self, anchors: frozenset[int], text: FoldedText, words: int, best: _Fragment | None
    ) -> tuple[_Fragment | None, Set[int]]:
        """The best stretch with one of the query's words that are ``anchors``, if better, and all words found there."""
        width, right = _width(words), -1
        found_matches = text.find(self._match_terms.only(anchors))
        found = {number for _, _, number in found_matches}
        for start, end, _ in found_matches[:_MOST_NEIGHBOURHOODS]:
            if end <= right:
                continue
            right = end + width
            near = text.find(self._match_terms, max(0, start - width), right)
            found.update(number for _, _, number in near)
            fragment = _best_stretch(near, words)
            if fragment is not None and (best is None or fragment.boost > best.boost):
                ((first, last, _),) = text.in_text([(fragment.start, fragment.end, 0)])
                best = _Fragment(first, last, fragment.different, fragment.matches)
                if self._suffices(best):
                    break
        return best, found


def _word_end(text: str, start: int, end: int) -> int:
    """The place after the last space between two places, or else the second."""
    start, end = max(0, start), max(0, end)
    return 1 + max(text.rfind(space, start, end) for space in " \n") or end


class _Fragment(NamedTuple):
    """A part of a text from one match to another, how many different words of the query match there, and how often."""

    start: int
    end: int
    different: int
    matches: int

    @property
    def boost(self) -> tuple[int, int]:
        return self.different, self.matches


def crop_window(text: str, found_matches: list[Match], words: int) -> tuple[int, int]:
    """The part of a text, about ``words`` words long, with the most different matches; the first of equals."""
    return _around(text, _best_stretch(found_matches, words), words)


def _around(text: str, fragment: _Fragment | None, words: int) -> tuple[int, int]:
    """About ``words`` words around a stretch, or the first ones."""
    words = max(1, words)
    start, anchor, budget_before, inside = 0, 0, 0, 0
    if fragment is not None:
        start, anchor = fragment.start, fragment.end
        inside = _count(text, start, anchor)
        budget_before = max(0, words - inside) // 2
    new_start, used = _back(text, start, budget_before)
    end, used_after = _forward(text, anchor, words - inside - used)
    missing = words - inside - used - used_after
    if missing > 0 and end >= len(text):
        new_start, _ = _back(text, new_start, missing)
    return new_start, end


def _best_stretch(found_matches: list[Match], words: int) -> _Fragment | None:
    """The stretch as long as ``words`` words mostly are, with the most different matches; then with the most."""
    width = _width(words)
    if found_matches and found_matches[-1][1] - found_matches[0][0] <= width:
        different = len({number for _, _, number in found_matches})
        return _Fragment(found_matches[0][0], found_matches[-1][1], different, len(found_matches) - 1)
    best, best_worth = None, (0, 0)
    seen: dict[int, int] = {}
    last, count = -1, len(found_matches)
    for at, (start, _, number) in enumerate(found_matches[:_MOST_LOOKED_AT]):
        while last + 1 < count and (last < at or found_matches[last + 1][1] - start <= width):
            last += 1
            added = found_matches[last][2]
            seen[added] = seen.get(added, 0) + 1
        boost = (len(seen), last - at)
        if boost > best_worth or best is None:
            best, best_worth = (start, found_matches[last][1]), boost
        seen[number] -= 1
        if not seen[number]:
            del seen[number]
    return None if best is None else _Fragment(*best, *best_worth)


def _width(words: int) -> int:
    """So many letters mostly have so many words."""
    return max(1, words) * _USUAL_CHARS_PER_WORD


def _count(text: str, start: int, end: int) -> int:
    part = text[start:end]
    return len(_spaced(part).split()) if part.isascii() else len(_WORD.findall(part))


def _spaced(text: str) -> bytes:
    """A text of ASCII with spaces for all that is in no word: splitting it is far quicker than matching words."""
    return text.encode("ascii").translate(_SPACED)


def _forward(text: str, start: int, words: int) -> tuple[int, int]:
    """The place after the next words, and how many there were."""
    if words <= 0:
        return start, 0
    limit = min(len(text), start + words * _CHARS_PER_WORD)
    part = text[start : min(limit, start + words * _MANY_CHARS_PER_WORD)]
    if part.isascii():
        spaced = _spaced(part)
        parts = spaced.split(None, words)
        if len(parts) > words:
            return start + len(spaced[: -len(parts[words])].rstrip()), words
    found = _so_many_words(words).match(text, start, limit)
    if found is None:
        return limit, _count(text, start, limit)
    end = found.end()
    return (end if limit < len(text) or _WORD.search(text, end) else limit), words


def _back(text: str, end: int, words: int) -> tuple[int, int]:
    """The place before the words before, and how many there were."""
    if words <= 0:
        return (0, 0) if end <= _EDGE and _WORD.search(text, 0, end) is None else (end, 0)
    part = text[max(0, end - words * _MANY_CHARS_PER_WORD) : end]
    if part.isascii():
        spaced = _spaced(part)
        parts = spaced.rsplit(None, words)
        if len(parts) > words:
            return end - len(spaced[len(parts[0]) :].lstrip()), words
    begin = end
    for chars_per_word in (_MANY_CHARS_PER_WORD, _CHARS_PER_WORD):
        begin = max(0, end - words * chars_per_word)
        reverse = text[begin:end][::-1]
        found = _so_many_words(words).match(reverse)
        # What ends where the part does may be the rest of a word.
        if found is not None and found.end() < len(reverse):
            start = end - found.end()
            return (0 if begin == 0 and _WORD.search(text, 0, start) is None else start), words
        if begin == 0:
            break
    return begin, min(words, _count(text, begin, end))


@lru_cache(maxsize=256)
def _so_many_words(count: int) -> re.Pattern[str]:
    """One match instead of one for each word: a third of the time. Nothing is given back to make up the number."""
    return re.compile(f"(?:[\\W_]*+(?>{_WORD.pattern})){{{count}}}")
