"""Conversion of simple regular expressions for URLs to patterns in which ``*`` matches anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

MAX_PATTERNS = 50
"""Maximum number of patterns for one expression."""
MAX_GROUPS = 20
MAX_LENGTH = 2_048
"""Maximum number of characters in an expression or a pattern, equal to the limit for URLs."""
ANY = "*"

_GROUP = re.compile(r"\((\?P<(\w+)>|\?:)?")
_PLAIN = re.compile(r"[^\\()\[\]{}|.*+?^$]+(?![*+?{])")
"""Literal characters, except a last character that a quantifier repeats."""
_REPEAT = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\??")


class NotAPattern(ValueError):
    """The expression cannot be converted to patterns, or would result in too many."""


def expand(expression: str, variables: Mapping[str, Sequence[str]]) -> list[str]:
    """Return patterns for an expression: if it matches the beginning of a URL, the URL begins with a pattern.

    A dot without a quantifier counts as a literal dot, since few people escape the dots of a host. ``^`` and ``$`` are
    rejected.

    Args:
        variables: Values of named groups.

    Raises:
        NotAPattern: The expression cannot be converted to patterns, or would result in too many.
    """
    if len(expression) > MAX_LENGTH or expression.count("(") > MAX_GROUPS:
        raise NotAPattern
    patterns, end = _alternatives(expression, 0, variables)
    if end < len(expression):
        raise NotAPattern
    return list(dict.fromkeys(re.sub(r"\*{2,}", ANY, pattern) for pattern in patterns))


def _alternatives(text: str, place: int, variables: Mapping[str, Sequence[str]]) -> tuple[list[str], int]:
    """Return the patterns from a position to the end of its group, and the end position."""
    patterns, current = [], [""]
    while place < len(text) and text[place] != ")":
        if text[place] == "|":
            patterns += current
            current, place = [""], place + 1
            continue
        is_dot = text[place] == "."
        parts, place = _part(text, place, variables)
        repeat = _REPEAT.match(text, place)
        if repeat is not None:
            place = repeat.end()
            parts = [ANY] if is_dot and repeat[0] != "?" else _repeated(parts, repeat[0], is_last=place == len(text))
        if len(current) * len(parts) + len(patterns) > MAX_PATTERNS:
            raise NotAPattern
        current = [before + part for before, part in product(current, parts)]
        if max(map(len, current)) > MAX_LENGTH:
            raise NotAPattern
    return patterns + current, place


def _part(text: str, place: int, variables: Mapping[str, Sequence[str]]) -> tuple[list[str], int]:
    """Return the patterns of the element at a position, and the element's end position."""
    character = text[place]
    if character == "(":
        group = _GROUP.match(text, place)
        assert group is not None
        if text.startswith("?", group.end()):
            raise NotAPattern  # A lookaround, or flags.
        parts, place = _alternatives(text, group.end(), variables)
        if place == len(text):
            raise NotAPattern
        return list(variables.get(group[2] or "", parts)), place + 1
    if character == "\\":
        escaped = text[place + 1 : place + 2]
        if not escaped or escaped.isalnum() or escaped == ANY:
            raise NotAPattern  # A character class, or a literal star, which patterns cannot express.
        return [escaped], place + 2
    if character in "[*+?{^$":
        raise NotAPattern
    plain = _PLAIN.match(text, place)
    return ([character], place + 1) if plain is None else ([plain[0]], plain.end())


def _repeated(parts: list[str], repeat: str, *, is_last: bool) -> list[str]:
    if repeat[0] == "?":
        return ["", *parts]
    if is_last and repeat[0] in "*+":
        return ["" if repeat[0] == "*" else part for part in parts]  # A pattern also matches anything after its end.
    raise NotAPattern
