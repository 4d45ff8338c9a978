"""Lines of PDFs in Arabic script, in reading order.

A PDF places glyphs at positions on the page. PDFium returns the letters of such lines partly in reading order and
partly from left to right, word by word, so the positions of the glyphs decide here. This reverses the visual order of
the Unicode Bidirectional Algorithm (https://www.unicode.org/reports/tr9/) for the cases that occur in lines of text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from backends.text import normalized

SCRIPT = re.compile("[\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
"""Matches characters of Arabic and the other joined scripts that are written from right to left."""
_PRESENTATION_FORM = re.compile("[\ufb50-\ufdff\ufe70-\ufefc]+")
_OPENING, _CLOSING = "([{<«", ")]}>»"
_MIRRORED = str.maketrans(_OPENING + _CLOSING, _CLOSING + _OPENING)
MIN_SPACE = 0.2
"""Minimum width of a gap between words where PDFium reports a space, as a share of the height of the line."""
MIN_COLUMN_SPACE = 0.6
"""Minimum width of a gap where PDFium reports no space, such as between columns, as a share of the height of the line.
"""
ROUNDING = 0.1
"""Maximum difference between the positions of a glyph and of the space that PDFium adds after it."""
MAX_LINE_SHIFT = 0.4
"""Maximum vertical distance between the baselines of glyphs in one line, as a share of its height. Fonts shift vowel
signs and the letters below them."""

_RTL, _LTR, _NUMBER, _NEUTRAL = "R", "L", "N", " "
_LTR_PART = re.compile("[NL](?:[NL ]*[NL])?|.", re.DOTALL)
"""Matches, in a line's directions: a word with adjacent numbers, numbers with their separators, or any glyph."""
_NUMBERS = re.compile("N+|.", re.DOTALL)
_SEPARATORS = ".,:/\u066b\u066c"
"""Characters that are part of a number between digits."""


class Character(NamedTuple):
    """A character of a page.

    Attributes:
        x_min, x_max: Horizontal edges of its box.
        origin: Horizontal position at which its glyph is drawn. The characters of a glyph share it.
        baseline: Vertical position of its glyph.
        height: Height of its box; 0 for the spaces and line breaks that PDFium adds to the right of a glyph, at its
            origin.
    """

    text: str
    x_min: float
    x_max: float
    origin: float
    baseline: float
    height: float


class _Glyph(NamedTuple):
    """A glyph, or a space.

    Attributes:
        direction: ``R`` for letters from right to left, ``L`` for letters from left to right, ``N`` for digits,
            otherwise a space.
    """

    text: str
    x_min: float
    x_max: float
    origin: float
    direction: str
    center: float


def is_script(line: Sequence[Character]) -> bool:
    """Whether a line contains Arabic script."""
    return any(SCRIPT.match(character.text) for character in line)


def have_baseline(line: Sequence[Character]) -> bool:
    """Whether characters form one horizontal line, judging by their baselines."""
    drawn = [character for character in line if character.height or not character.text.isspace()]
    baselines = [character.baseline for character in drawn]
    return not drawn or max(baselines) - min(baselines) <= MAX_LINE_SHIFT * max(character.height for character in drawn)


def reading_order(line: Sequence[Character]) -> str:
    """Return the text of a horizontal line in the order in which it is read."""
    tokens = list(_tokens(_visual_order(line)))
    counts = {
        direction: sum(len(text) for text, token_direction in tokens if token_direction == direction)
        for direction in (_RTL, _LTR)
    }
    is_right_to_left = counts[_RTL] >= counts[_LTR]
    text = _join_right_to_left(tokens) if is_right_to_left else "".join(_join_left_to_right(tokens))
    text = " ".join(text.split())
    return _PRESENTATION_FORM.sub(lambda match: normalized("NFKC", match[0]), text)


def _visual_order(line: Sequence[Character]) -> list[_Glyph]:
    """Return the glyphs and the spaces between them, from left to right."""
    height = max(character.height for character in line)
    breaks = sorted(character.origin for character in line if not character.height and character.text.isspace())
    drawn = [character for character in line if character.height or not character.text.isspace()]
    groups = [list(characters) for _, characters in groupby(drawn, key=attrgetter("origin"))]
    origins = [characters[0].origin for characters in groups]
    # PDFium reverses the characters of a glyph if it reverses the glyphs around it.
    reversals = [len(origins) == 1 or origins[0] > origins[1], *(before > after for before, after in pairwise(origins))]
    glyphs = [_glyph(group, is_reversed=reversal) for group, reversal in zip(groups, reversals, strict=True)]
    glyphs.sort(key=attrgetter("center"))
    ordered = glyphs[:1]
    for glyph, following in pairwise(glyphs):
        gap = following.x_min - glyph.x_max
        index = bisect_left(breaks, glyph.origin - ROUNDING)
        is_break = index < len(breaks) and breaks[index] < following.origin - ROUNDING
        if gap >= (MIN_SPACE if is_break else MIN_COLUMN_SPACE) * height:
            ordered.append(_Glyph(" ", glyph.x_max, following.x_min, glyph.x_max, _NEUTRAL, glyph.x_max))
        ordered.append(following)
    return ordered


def _glyph(characters: list[Character], *, is_reversed: bool) -> _Glyph:
    """Join the characters of a glyph in reading order, vowel signs after their letters.

    Args:
        is_reversed: Whether characters from right to left are reversed, unless they have boxes of their own.
    """
    text, x_min, x_max, origin, _, _ = characters[0]
    direction = _direction(text)
    if len(characters) > 1:
        is_right_to_left = direction == _RTL
        in_order = sorted(characters[:: -1 if is_reversed and is_right_to_left else 1], key=attrgetter("x_min"))
        if is_right_to_left and in_order[0].x_min < in_order[-1].x_min:
            in_order.reverse()
        in_order.sort(key=lambda character: unicodedata.combining(character.text) > 0)
        text = "".join(character.text for character in in_order)
        x_min, x_max = (
            min(character.x_min for character in characters),
            max(character.x_max for character in characters),
        )
    return _Glyph(text, x_min, x_max, origin, direction, (x_min + x_max) / 2)


@lru_cache(maxsize=1_024)
def _direction(character: str) -> str:
    kind = unicodedata.bidirectional(character)
    return {"R": _RTL, "AL": _RTL, "NSM": _RTL, "L": _LTR, "EN": _NUMBER, "AN": _NUMBER}.get(kind, _NEUTRAL)


def _tokens(glyphs: Sequence[_Glyph]) -> Iterator[tuple[str, str]]:
    """Iterate over texts with one direction, from left to right: words with numbers beside them, numbers, glyphs."""
    texts = [glyph.text for glyph in glyphs]
    kinds = "".join(glyph.direction for glyph in glyphs)
    kinds = "".join(
        _NUMBER if text in _SEPARATORS and kinds[index - 1 : index] == kinds[index + 1 : index + 2] == _NUMBER else kind
        for index, (text, kind) in enumerate(zip(texts, kinds, strict=True))
    )
    for match in _LTR_PART.finditer(kinds):
        start, end = match.span()
        if end - start == 1 or _LTR in match[0]:
            yield "".join(texts[start:end]), _LTR if _LTR in match[0] else match[0]
        else:
            # Numbers that are not beside words follow each other like words.
            for number in _NUMBERS.finditer(kinds, start, end):
                yield "".join(texts[number.start() : number.end()]), number[0][0]


def _join_left_to_right(tokens: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a line's texts from left to right, but the words of each right-to-left part in reading order."""
    for is_left, run in groupby(tokens, key=lambda token: token[1] == _LTR):
        run_tokens = list(run)
        rtl_indexes = [index for index, (_, direction) in enumerate(run_tokens) if direction == _RTL]
        first, last = (0, 0) if is_left or not rtl_indexes else (rtl_indexes[0], rtl_indexes[-1] + 1)
        yield "".join(text for text, _ in run_tokens[:first])
        yield _join_right_to_left(run_tokens[first:last])
        yield "".join(text for text, _ in run_tokens[last:])


def _join_right_to_left(tokens: Sequence[tuple[str, str]]) -> str:
    """Join texts from right to left. Mirror brackets, unless more of them form pairs without mirroring."""
    plain = [text for text, _ in reversed(tokens)]
    mirrored = [text.translate(_MIRRORED) if direction == _NEUTRAL else text for text, direction in reversed(tokens)]
    return "".join(max((mirrored, plain), key=_count_pairs))


def _count_pairs(texts: Iterable[str]) -> int:
    """``["(", "a", ")", ")"] -> 1``: brackets that are closed after they are opened."""
    count = depth = 0
    for text in texts:
        if text in _OPENING:
            depth += 1
        elif text in _CLOSING and depth:
            depth -= 1
            count += 1
    return count
