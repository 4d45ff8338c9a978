"""Snippets: the part of a long text with the most different matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from backends.embedded.results.matches import FoldedText, MatchTerms, find_matches_in_each
from backends.sections import Match
from backends.sentences import Span, is_prose

_WORD = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\u0e01-\u0e5b\u1000-\u109f\u1780-\u17dd]{1,2}|[^\\W_]+")
_CHARS_PER_WORD = 40
"""Maximum number of characters per word that is searched for a word's end."""

_USUAL_CHARS_PER_WORD = 6
_MANY_CHARS_PER_WORD = 2 * _USUAL_CHARS_PER_WORD
_SPACED = bytes(code if chr(code).isalnum() else 32 for code in range(128)) + bytes(128)
_NEAR_CHARS, _FAR_CHARS = 4_096, 16_384
"""Number of characters of a text that are searched at first, and if its beginning lacks words of the query."""

_EDGE_CHARS = 200
"""Number of characters around a part that are searched too, so that no match at its edge is cut."""

_MAX_STARTS = 200
"""Maximum number of matches tried as the start of a snippet."""

_MAX_NEIGHBORHOODS = 100
"""Maximum number of matches of the rarest words whose surroundings are searched."""

_MAX_COMPARED = 12
"""Maximum number of matches at which prose is looked for, and of matches in it."""
_PROSE_CHARS = 60
"""Number of characters before and after a fragment that show whether it is in prose."""

_LONG_QUERY_WORDS, _ENOUGH_WORDS = 16, 4
"""For queries with more words than the first number, a snippet with the second number of different words suffices."""


class SnippetGenerator:
    """Selects the part of a text to return.

    Args:
        match_terms: Terms that match in the text.
    """

    def __init__(self, match_terms: MatchTerms):
        self._match_terms = match_terms
        self._enough_words = (
            len(match_terms.numbers) if len(match_terms.numbers) <= _LONG_QUERY_WORDS else _ENOUGH_WORDS
        )

    def best_parts(self, texts: Sequence[str], words: int) -> list[tuple[list[Match], Span]]:
        """Return the matches in each text, and the part of about ``words`` words with the most different matches.

        A long text is searched from its beginning. If the words of the query (or enough words of a very long
        query) do not occur near each other there, the rest is searched only around the rarest words.
        """
        beginnings = [
            text if len(text) <= _NEAR_CHARS else text[: _word_end(text, _NEAR_CHARS - _EDGE_CHARS, _NEAR_CHARS)]
            for text in texts
        ]
        matches_by_text = find_matches_in_each(beginnings, self._match_terms)
        return [
            (matches, crop_window(text, matches, words))
            if text is beginning
            else self._best_part(text, len(beginning), matches, words)
            for text, beginning, matches in zip(texts, beginnings, matches_by_text, strict=True)
        ]

    def _best_part(self, text: str, reach: int, found_matches: list[Match], words: int) -> tuple[list[Match], Span]:
        """Return the best part of a text longer than its beginning.

        Args:
            reach: Length of the beginning.
            found_matches: Matches in the beginning.
        """
        best = _best_stretch(found_matches, words, text)
        if len(found_matches) <= _MAX_STARTS and not self._is_good_enough(best):
            best = self._better_stretch(text, reach, words, best, found_matches)
        start, end = _around(text, best, words)
        if end > reach:
            part = FoldedText(text, max(0, start - _EDGE_CHARS), end + _EDGE_CHARS)
            found_matches = part.in_text(part.find(self._match_terms))
        return found_matches, (start, end)

    def _is_good_enough(self, best: _Fragment | None) -> bool:
        """Whether no better snippet needs to be searched for."""
        return best is not None and best.different >= self._enough_words

    def _better_stretch(
        self, text: str, reach: int, words: int, best: _Fragment | None, found_matches: list[Match]
    ) -> _Fragment | None:
        """Return a snippet from the rest of a text if it has more different words, or as many but more matches.

        To contain more of the query's words than ``best``, it must contain one of the rarest ones. Far from the
        beginning, only words that have not occurred before are searched for.

        Args:
            found_matches: Matches in the beginning; words that are rare there are usually rare in the rest.
        """
        width = _width(words)
        counts = Counter(number for _, _, number in found_matches)
        rarest = sorted(self._match_terms.numbers, key=lambda number: (counts[number], number))
        anchors = rarest[: len(rarest) - (0 if best is None else best.different)]
        near = FoldedText(text, _word_end(text, reach - width - _EDGE_CHARS, reach - width), _FAR_CHARS)
        best, found_words = self._best_around(frozenset(anchors), near, words, best)
        missing = self._match_terms.numbers.difference(counts, found_words)
        if missing and len(text) > _FAR_CHARS and not self._is_good_enough(best):
            far = FoldedText(text, _word_end(text, _FAR_CHARS - width - _EDGE_CHARS, _FAR_CHARS - width))
            best, _ = self._best_around(missing, far, words, best)
        return best

    def _best_around(
        self, anchors: frozenset[int], text: FoldedText, words: int, best: _Fragment | None
    ) -> tuple[_Fragment | None, Set[int]]:
        """Search for a better snippet around the words ``anchors``.

        Returns the better of that snippet and ``best``, and the numbers of all words found nearby.
        """
        width, right = _width(words), -1
        found_matches = text.find(self._match_terms.only(anchors))
        found_words = {number for _, _, number in found_matches}
        for start, end, _ in found_matches[:_MAX_NEIGHBORHOODS]:
            if end <= right:
                continue
            right = end + width
            near = text.find(self._match_terms, max(0, start - width), right)
            found_words.update(number for _, _, number in near)
            fragment = _best_stretch(near, words)
            if fragment is not None and (best is None or fragment.quality > best.quality):
                ((first, last, _),) = text.in_text([(fragment.start, fragment.end, 0)])
                best = _Fragment(first, last, fragment.different, fragment.matches)
                if self._is_good_enough(best):
                    break
        return best, found_words


def _word_end(text: str, start: int, end: int) -> int:
    """``"one two three", 0, 9`` -> 8: the offset after the last space in a range, or else the end of the range."""
    start, end = max(0, start), max(0, end)
    return 1 + max(text.rfind(space, start, end) for space in " \n") or end


class _Fragment(NamedTuple):
    """A part of a text from one match to another, with the number of different words and of matches in it."""

    start: int
    end: int
    different: int
    matches: int

    @property
    def quality(self) -> tuple[int, int]:
        return self.different, self.matches


def crop_window(text: str, found_matches: list[Match], words: int) -> Span:
    """Return the part of a text with the most different matches; the first of equal parts.

    Args:
        found_matches: Matches in the text, in order.
        words: Approximate length of the part, in words.
    """
    return _around(text, _best_stretch(found_matches, words, text), words)


def _around(text: str, fragment: _Fragment | None, words: int) -> Span:
    """Return the part of about ``words`` words around a fragment, or at the beginning of the text."""
    words = max(1, words)
    start, anchor = (0, 0) if fragment is None else (fragment.start, fragment.end)
    reach = words * _MANY_CHARS_PER_WORD
    low, high = start - reach if start > reach else 0, anchor + reach
    window = text[low:high]
    # Splitting an ASCII text without its punctuation is much faster than matching its words.
    spaced = window.encode().translate(_SPACED) if window.isascii() else None
    if spaced is None:
        inside = _count(text, start, anchor)
    elif fragment is None:
        inside = 0
    else:
        inside = len(spaced[start - low : anchor - low].split())
    before = (words - inside) // 2 if words > inside else 0
    new_start, used = _back(text, start, before, None if spaced is None else spaced[: start - low])
    after = words - inside - used
    end, used_after = _forward(text, anchor, after, None if spaced is None else spaced[anchor - low :])
    missing = after - used_after
    if missing > 0 and new_start > 0 and fragment is not None and end >= len(text):
        new_start, _ = _back(text, new_start, missing, None)
    return new_start, end


def _best_stretch(found_matches: list[Match], words: int, text: str | None = None) -> _Fragment | None:
    """Return the fragment of about ``words`` words with the most different words, then with the most matches.

    Args:
        text: The text of the matches. With it, prose comes before code and tables with as many different words.
    """
    width = (words if words > 0 else 1) * _USUAL_CHARS_PER_WORD
    if found_matches and found_matches[-1][1] - found_matches[0][0] <= width:
        different = len({number for _, _, number in found_matches})
        return _Fragment(found_matches[0][0], found_matches[-1][1], different, len(found_matches) - 1)
    best, best_value = None, (0, 0)
    counts = dict.fromkeys([number for _, _, number in found_matches], 0)
    different = 0
    last, count = -1, len(found_matches)
    for index, (start, _, number) in enumerate(found_matches[:_MAX_STARTS]):
        while last + 1 < count and (last < index or found_matches[last + 1][1] - start <= width):
            last += 1
            added = found_matches[last][2]
            different += not counts[added]
            counts[added] += 1
        quality = (different, last - index)
        if quality > best_value or best is None:
            best, best_value = (start, found_matches[last][1]), quality
        counts[number] -= 1
        different -= not counts[number]
    if best is None:
        return None
    fragment = _Fragment(*best, *best_value)
    if text is None or is_prose(text[max(0, best[0] - _PROSE_CHARS) : best[1] + _PROSE_CHARS]):
        return fragment
    return _find_prose(found_matches, width, text, best_value[0]) or fragment


def _find_prose(found_matches: list[Match], width: int, text: str, different: int) -> _Fragment | None:
    """Return the first fragment in prose with this number of different words."""
    for index, (start, _, _) in enumerate(found_matches[:_MAX_COMPARED]):
        near = [match for match in found_matches[index : index + _MAX_COMPARED] if match[1] - start <= width]
        if near and len({number for _, _, number in near}) == different:
            end = near[-1][1]
            if is_prose(text[max(0, start - _PROSE_CHARS) : end + _PROSE_CHARS]):
                return _Fragment(start, end, different, len(near) - 1)
    return None


def _width(words: int) -> int:
    """Return the usual number of characters in this many words."""
    return max(1, words) * _USUAL_CHARS_PER_WORD


def _count(text: str, start: int, end: int) -> int:
    part = text[start:end]
    return len(part.encode().translate(_SPACED).split()) if part.isascii() else len(_WORD.findall(part))


def _forward(text: str, start: int, words: int, spaced: bytes | None) -> tuple[int, int]:
    """Return the position after the next words, and their number.

    Args:
        spaced: The next characters with spaces in place of punctuation; ``None`` if they are not all ASCII.
    """
    if words <= 0:
        return start, 0
    if spaced is not None:
        parts = spaced.split(None, words)
        if len(parts) > words:
            return start + len(spaced[: -len(parts[words])].rstrip()), words
        if start + len(spaced) == len(text):
            return len(text), len(parts)
    limit = min(len(text), start + words * _CHARS_PER_WORD)
    match = _words_pattern(words).match(text, start, limit)
    if match is None:
        return limit, _count(text, start, limit)
    end = match.end()
    return (end if limit < len(text) or _WORD.search(text, end) else limit), words


def _back(text: str, end: int, words: int, spaced: bytes | None) -> tuple[int, int]:
    """Return the position before the previous words, and their number; ``spaced`` are the previous characters."""
    if words <= 0:
        return (0, 0) if end <= _EDGE_CHARS and _WORD.search(text, 0, end) is None else (end, 0)
    if spaced is not None:
        parts = spaced.rsplit(None, words)
        if len(parts) > words:
            return end - len(spaced[len(parts[0]) :].lstrip()), words
        if len(spaced) == end:
            return 0, len(parts)
    begin = end
    for chars_per_word in (_MANY_CHARS_PER_WORD, _CHARS_PER_WORD):
        begin = max(0, end - words * chars_per_word)
        reverse = text[begin:end][::-1]
        match = _words_pattern(words).match(reverse)
        # A match that reaches the edge of the part may be the rest of a longer word.
        if match is not None and match.end() < len(reverse):
            start = end - match.end()
            return (0 if begin == 0 and _WORD.search(text, 0, start) is None else start), words
        if begin == 0:
            break
    return begin, min(words, _count(text, begin, end))


@lru_cache(maxsize=256)
def _words_pattern(count: int) -> re.Pattern[str]:
    """Matches all words at once, in a third of the time of matching each; possessive, so that it never backtracks."""
    return re.compile(f"(?:[\\W_]*+(?>{_WORD.pattern})){{{count}}}")
