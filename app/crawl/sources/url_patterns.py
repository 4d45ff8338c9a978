"""Regular expressions for addresses, as far as they are no more than patterns in which ``*`` stands for anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

MAX_PATTERNS = 50
"""Patterns that one expression may stand for."""
MAX_GROUPS = 20
MAX_LENGTH = 2_048
"""Characters of an expression, and of a pattern: as many as an address may have."""
ANY = "*"

_GROUP = re.compile(r"\((\?P<(\w+)>|\?:)?")
_PLAIN = re.compile(r"[^\\()\[\]{}|.*+?^$]+(?![*+?{])")
"""Characters that mean themselves, up to one that is repeated."""
_REPEAT = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\??")


class NoPattern(ValueError):
    """The expression says more than patterns can, or stands for too many of them."""


def expand(expression: str, variables: Mapping[str, Sequence[str]]) -> list[str]:
    """The patterns of which an address begins with one if the expression matches its beginning.

    A dot that is not repeated is taken as one: hardly anybody escapes those of a host. ``^`` and ``$`` are refused.

    Args:
        variables: Values of named groups.

    Raises:
        NoPattern: There are none, or too many.
    """
    if len(expression) > MAX_LENGTH or expression.count("(") > MAX_GROUPS:
        raise NoPattern
    found, end = _alternatives(expression, 0, variables)
    if end < len(expression):
        raise NoPattern
    return list(dict.fromkeys(re.sub(r"\*{2,}", ANY, pattern) for pattern in found))


def _alternatives(text: str, place: int, variables: Mapping[str, Sequence[str]]) -> tuple[list[str], int]:
    """The patterns from a place on to the end of its group, and where that is."""
    found, current = [], [""]
    while place < len(text) and text[place] != ")":
        if text[place] == "|":
            found += current
            current, place = [""], place + 1
            continue
        is_dot = text[place] == "."
        parts, place = _part(text, place, variables)
        repeat = _REPEAT.match(text, place)
        if repeat is not None:
            place = repeat.end()
            parts = [ANY] if is_dot and repeat[0] != "?" else _repeated(parts, repeat[0], is_last=place == len(text))
        if len(current) * len(parts) + len(found) > MAX_PATTERNS:
            raise NoPattern
        current = [before + part for before, part in product(current, parts)]
        if max(map(len, current)) > MAX_LENGTH:
            raise NoPattern
    return found + current, place


def _part(text: str, place: int, variables: Mapping[str, Sequence[str]]) -> tuple[list[str], int]:
    """The patterns of what stands at a place, and where that ends."""
    character = text[place]
    if character == "(":
        group = _GROUP.match(text, place)
        assert group is not None
        if text.startswith("?", group.end()):
            raise NoPattern  # What stands before or behind, or flags.
        parts, place = _alternatives(text, group.end(), variables)
        if place == len(text):
            raise NoPattern
        return list(variables.get(group[2] or "", parts)), place + 1
    if character == "\\":
        escaped = text[place + 1 : place + 2]
        if not escaped or escaped.isalnum() or escaped == ANY:
            raise NoPattern  # A class of characters, or a star.
        return [escaped], place + 2
    if character in "[*+?{^$":
        raise NoPattern
    plain = _PLAIN.match(text, place)
    return ([character], place + 1) if plain is None else ([plain[0]], plain.end())


def _repeated(parts: list[str], repeat: str, *, is_last: bool) -> list[str]:
    if repeat[0] == "?":
        return ["", *parts]
    if is_last and repeat[0] in "*+":
        return ["" if repeat[0] == "*" else part for part in parts]  # What follows may be anything.
    raise NoPattern
