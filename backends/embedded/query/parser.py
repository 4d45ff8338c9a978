"""What a person typed, as words, phrases and things to leave out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from backends.embedded.analysis.normalization import ANALYZER, compose, pieces_of, spell_out
from backends.embedded.query.phrases import Phrase, split_runs
from backends.text.normalization import ABBREVIATION, QUOTE_IN_WORD, straight_quotes
from backends.text.tokenizer import WORD

MAX_UNITS = 48
"""Words of a query that are searched: of a longer one, those that tell most."""


class UnitKind(Enum):
    """What a unit is and so how it is looked up."""

    WORD = "word"
    COMPOUND = "compound"
    PAIR = "pair"
    CHARACTER = "character"


@dataclass(frozen=True, slots=True)
class Unit:
    """What must match as one.

    Attributes:
        terms: Index terms: one, or those of a compound (``node.js``, ``3.11.7``) in order.
        surface: As typed, lower-case, with accents.
        strict: A compound whose parts mean nothing elsewhere: a version, an address.
    """

    kind: UnitKind
    terms: tuple[str, ...]
    surface: str
    strict: bool = False

    @property
    def term(self) -> str:
        return self.terms[0]


@dataclass(slots=True)
class ParsedQuery:
    """A query taken apart.

    Attributes:
        units: What should match, in order.
        phrases: Quoted phrases; every one must match.
        excluded: Words and phrases after a minus; none may match.
        open_end: Whether the last unit is a word that may not be finished.
        breaks: Units before which something stood that is no unit: a phrase, a word to leave out, a quote.
    """

    units: list[Unit] = field(default_factory=list)
    phrases: list[Phrase] = field(default_factory=list)
    excluded: list[Phrase] = field(default_factory=list)
    open_end: bool = True
    breaks: set[int] = field(default_factory=set)

    @property
    def loose_compounds(self) -> list[Unit]:
        """The compounds whose parts mean something elsewhere, too."""
        return [unit for unit in self.units if unit.kind is UnitKind.COMPOUND and not unit.strict]

    @property
    def characters(self) -> list[str]:
        """Characters of runs longer than one; they add to the score only."""
        pairs = [unit.term for unit in self.units if unit.kind is UnitKind.PAIR]
        return list(dict.fromkeys(piece for pair in pairs for piece in pieces_of(pair)))

    @property
    def is_empty(self) -> bool:
        return not (self.units or self.phrases or self.excluded)

    def shorten(self, worth: Callable[[Unit], float]) -> None:
        """Keep :data:`MAX_UNITS` units if there are more: those worth most, in their order."""
        if len(self.units) <= MAX_UNITS:
            return
        worths = [worth(unit) for unit in self.units]
        kept = sorted(sorted(range(len(worths)), key=lambda at: -worths[at])[:MAX_UNITS])
        self.open_end = self.open_end and kept[-1] == len(self.units) - 1
        follows = {at + 1 for at in kept} - self.breaks
        self.breaks = {place for place, at in enumerate(kept) if at not in follows}
        self.units = [self.units[at] for at in kept]


_CHUNK = re.compile(
    rf'(?P<minus>-(?=["\w]))?(?:"(?P<quoted>(?:[^"]|{QUOTE_IN_WORD})*)"|(?P<plain>(?:[^\s"]|{QUOTE_IN_WORD})+|"))|\s+'
)
_TIGHT = re.compile(rf"[^\W_][._@][^\W_]|://|\d[.,:]\d|{ABBREVIATION}")
_STRICT = re.compile(r"\d[.,:]\w|\w[.,:]\d|@|://")


def parse_query(text: str, *, with_phrases: bool = True) -> ParsedQuery:
    """Take a query apart; any text is a query.

    Args:
        with_phrases: Whether quoted words are a phrase that must match, and not words like others.
    """
    parsed = ParsedQuery()
    after_space = True
    for match in _CHUNK.finditer(straight_quotes(text)):
        quoted, plain, minus = match["quoted"], match["plain"], match["minus"] is not None
        if quoted is None and plain is None:
            after_space = True
            continue
        excluded = minus and after_space
        after_space = False
        if quoted is not None or excluded:
            parsed.breaks.add(len(parsed.units))
        if quoted is not None and not excluded and not with_phrases:
            parsed.units.extend(units_of(quoted))
            parsed.breaks.add(len(parsed.units))
            parsed.open_end = False
        elif quoted is not None:
            phrase = Phrase.of(quoted)
            if phrase.terms:
                (parsed.excluded if excluded else parsed.phrases).append(phrase)
                parsed.open_end = False
        elif excluded:
            phrase = Phrase.of(plain)
            if phrase.terms:
                parsed.excluded.append(phrase)
        else:
            before = len(parsed.units)
            parsed.units.extend(_units(plain))
            if len(parsed.units) > before:
                parsed.open_end = True
    return parsed


def units_of(text: str) -> Iterator[Unit]:
    """The units of a text in which no sign has a meaning of its own."""
    for chunk in text.split():
        yield from _units(chunk)


def _units(chunk: str) -> Iterator[Unit]:
    for piece, is_run in split_runs(compose(chunk)):
        if is_run:
            parts = pieces_of(piece)
            if len(parts) == 1:
                yield Unit(UnitKind.CHARACTER, (parts[0].lower(),), parts[0])
            for left, right in pairwise(parts):
                pair = left + right
                yield Unit(UnitKind.PAIR, (pair,), pair)
            continue
        spelled = spell_out(piece)
        terms = tuple(ANALYZER.analyze(spelled))
        if len(terms) > 1 and _TIGHT.search(spelled):
            yield Unit(UnitKind.COMPOUND, terms[:MAX_UNITS], spelled.lower(), _STRICT.search(spelled) is not None)
        elif len(terms) == 1:
            yield Unit(UnitKind.WORD, terms, _surface(spelled))
        else:
            words = WORD.findall(spelled.lower())
            for term, surface in zip(terms, words if len(words) == len(terms) else terms, strict=True):
                yield Unit(UnitKind.WORD, (term,), surface)


def _surface(text: str) -> str:
    found = WORD.search(text)
    return found.group().lower() if found else text.lower()
