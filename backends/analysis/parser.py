"""Parsing a query into words, phrases, and exclusions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Self

from backends.analysis.normalization import ANALYZER, EMOJI, UNSEGMENTED_RUN, compose, expand_symbols, fold, graphemes
from backends.text import (
    ABBREVIATION,
    MAX_JOINED_CHARS,
    MAX_PARTS,
    QUOTE_IN_WORD,
    WORD,
    forms_of,
    straight_quotes,
    word_parts,
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Consecutive words.

    Attributes:
        terms: Consecutive terms as in the index.
        words: Consecutive words as in a text; a run of an unspaced script is one word.
        joined: The words written with a hyphen, without it.
    """

    terms: tuple[str, ...]
    words: tuple[str, ...]
    joined: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse a text into a phrase.

        The index contains, for a run of an unspaced script, first its pairs and then its single characters. In a
        document, the first run of a phrase may be the end of a longer run, so only its single characters must precede
        the next word. The last run, if longer than one character, may be the beginning of a longer run, so only its
        pairs must follow the previous word. Runs in between are complete.
        """
        words: list[str] = []
        for piece, is_run in split_runs(compose(text)):
            words += [piece] if is_run else ANALYZER.analyze(expand_symbols(piece))
        terms: list[str] = []
        last = len(words) - 1
        for index, word in enumerate(words):
            if UNSEGMENTED_RUN.match(word) is None:
                terms.append(word)
                continue
            pieces = graphemes(word)
            pairs = [first + second for first, second in pairwise(pieces)]
            if index or not last:
                terms += pairs
            if index < last or not pairs:
                terms += pieces
        hyphenated = (word for word in text.split() if "-" in word.strip("-")) if "-" in text else ()
        return cls(tuple(terms), tuple(words), tuple(fold(form) for word in hyphenated for form in forms_of(word)[:1]))


def split_runs(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text at runs of unspaced scripts: ``in 東京`` -> ``("in ", False), ("東京", True)``."""
    offset = 0
    for match in UNSEGMENTED_RUN.finditer(text):
        if match.start() > offset:
            yield text[offset : match.start()], False
        yield match.group(), True
        offset = match.end()
    if offset < len(text):
        yield text[offset:], False


MAX_QUERY_TERMS = 48
"""Maximum number of words that are searched for; a longer query is reduced to its most selective words."""


class TermKind(Enum):
    """Kind of a term, which determines how it is looked up."""

    WORD = "word"
    COMPOUND = "compound"
    BIGRAM = "pair"
    UNIGRAM = "character"


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A word, or another part of a query that matches as a unit.

    Attributes:
        terms: The index term, or the terms of a compound (``node.js``, ``3.11.7``) in order.
        surface: The text as typed, in lower case, with accents.
        strict: Whether it is a compound whose parts mean nothing on their own: a version or an email address.
        joined: The written word that it is a part of, without separators (``email`` for the parts of ``e-mail``), or
            that it is another spelling of.
        parts: The parts of a word written as one (``HideForPlayer``), or ``()``.
    """

    kind: TermKind
    terms: tuple[str, ...]
    surface: str
    strict: bool = False
    joined: str = ""
    parts: tuple[str, ...] = ()

    @property
    def term(self) -> str:
        return self.terms[0]


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query.

    Attributes:
        query_terms: Terms that should match, in order.
        phrases: Quoted phrases; all must match.
        excluded: Words and phrases after a minus; none may match.
        last_term_is_prefix: Whether the last term may be an unfinished word.
        adjacency_breaks: Indexes of terms that follow something other than a term: a phrase, an exclusion, a quote.
    """

    query_terms: tuple[QueryTerm, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    last_term_is_prefix: bool = True
    adjacency_breaks: frozenset[int] = frozenset()

    @property
    def loose_compounds(self) -> list[QueryTerm]:
        """Compounds whose parts also mean something on their own: ``node.js``, but not ``3.11.7``."""
        return [
            query_term
            for query_term in self.query_terms
            if query_term.kind is TermKind.COMPOUND and not query_term.strict
        ]

    @property
    def characters(self) -> list[str]:
        """Single characters of the runs longer than one character; they contribute only to the score."""
        pairs = [query_term.term for query_term in self.query_terms if query_term.kind is TermKind.BIGRAM]
        return list(dict.fromkeys(piece for pair in pairs for piece in graphemes(pair)))

    @property
    def is_empty(self) -> bool:
        return not (self.query_terms or self.phrases or self.excluded)

    def shortened(self, selectivity: Callable[[QueryTerm], float]) -> ParsedQuery:
        """Return a copy with only the :data:`MAX_QUERY_TERMS` most selective terms, in their original order."""
        count = len(self.query_terms)
        if count <= MAX_QUERY_TERMS:
            return self
        values = [selectivity(query_term) for query_term in self.query_terms]
        selected = sorted(sorted(range(count), key=lambda index: -values[index])[:MAX_QUERY_TERMS])
        follows = {index + 1 for index in selected} - self.adjacency_breaks
        return replace(
            self,
            query_terms=tuple(self.query_terms[index] for index in selected),
            last_term_is_prefix=self.last_term_is_prefix and selected[-1] == count - 1,
            adjacency_breaks=frozenset(new for new, index in enumerate(selected) if index not in follows),
        )


_CHUNK = re.compile(
    rf'(?P<minus>-(?=["\w]))?(?:"(?P<quoted>(?:[^"]|{QUOTE_IN_WORD})*)"|(?P<plain>(?:[^\s"]|{QUOTE_IN_WORD})+|"))|\s+'
)
_TIGHT = re.compile(
    rf"[^\W_][._@][^\W_]|://|\d[.,:]\d|{ABBREVIATION}|(?<![^\W_][-/])\b\d{{1,4}}[-/]\d{{1,2}}[-/]\d{{1,4}}(?![-/]?[^\W_])"
)
_STRICT = re.compile(r"\d[.,:]\w|\w[.,:]\d|@|://")


_KANA_BETWEEN = re.compile("(?<=[\u4e00-\u9fff々])[\u3041-\u3096](?=[\u4e00-\u9fff々]|[せする])")


def parse_query(text: str, *, with_phrases: bool = True) -> ParsedQuery:
    """Parse a query; every text is valid.

    Args:
        with_phrases: Whether quoted words form a phrase that must match, rather than ordinary words.
    """
    terms: list[QueryTerm] = []
    phrases: list[Phrase] = []
    exclusions: list[Phrase] = []
    breaks: set[int] = set()
    last_term_is_prefix = after_space = True
    if not text.isascii() and EMOJI.search(text) is not None:
        # Beside words, an emoji is decoration.
        plain_text = EMOJI.sub(" ", text)
        text = plain_text if WORD.search(plain_text) else text
    for match in _CHUNK.finditer(straight_quotes(text)):
        quoted, plain, minus = match["quoted"], match["plain"], match["minus"] is not None
        if quoted is None and plain is None:
            after_space = True
            continue
        excluded = minus and after_space
        after_space = False
        if quoted is not None or excluded:
            breaks.add(len(terms))
        if quoted is not None and not excluded and not with_phrases:
            terms.extend(query_terms_of(quoted))
            breaks.add(len(terms))
            last_term_is_prefix = False
        elif quoted is not None:
            phrase = Phrase.of(quoted)
            if phrase.terms:
                (exclusions if excluded else phrases).append(phrase)
                last_term_is_prefix = False
        elif excluded:
            phrase = Phrase.of(plain)
            if phrase.terms:
                exclusions.append(phrase)
        else:
            before = len(terms)
            terms.extend(_query_terms(plain))
            if len(terms) > before:
                last_term_is_prefix = True
    return ParsedQuery(tuple(terms), tuple(phrases), tuple(exclusions), last_term_is_prefix, frozenset(breaks))


def query_terms_of(text: str) -> Iterator[QueryTerm]:
    """Yield the terms of a text without query syntax."""
    for chunk in text.split():
        yield from _query_terms(chunk)


def _without_endings(run: str) -> dict[int, str]:
    """``"申し込み"`` -> ``{0: "申込", 1: "申込", 2: "申込"}``: pairs without verb endings, by index."""
    pairs: dict[int, str] = {}
    for match in _KANA_BETWEEN.finditer(run):
        first, second = run[match.start() - 1] + run[match.end()], match.start() - 1
        pairs |= dict.fromkeys((second, second + 1), first)
        if match.end() + 1 == len(run) - 1:
            pairs.setdefault(second + 2, first)
    return pairs


def _query_terms(chunk: str) -> Iterator[QueryTerm]:
    for piece, is_run in split_runs(compose(chunk)):
        if is_run:
            parts = graphemes(piece)
            if len(parts) == 1:
                yield QueryTerm(TermKind.UNIGRAM, (parts[0].lower(),), parts[0])
            without_endings = _without_endings(piece)
            for index, (first, second) in enumerate(pairwise(parts)):
                pair = first + second
                yield QueryTerm(TermKind.BIGRAM, (pair,), pair, joined=without_endings.get(index, ""))
            continue
        spelled = expand_symbols(piece)
        terms = tuple(ANALYZER.analyze(spelled))
        if len(terms) > 1 and _TIGHT.search(spelled):
            # A compound counts as one term, so its own parts need a limit, too.
            yield QueryTerm(
                TermKind.COMPOUND, terms[:MAX_QUERY_TERMS], spelled.lower(), _STRICT.search(spelled) is not None
            )
        elif len(terms) == 1:
            surface = WORD.search(spelled)
            parts = word_parts(surface[0]) if surface and not surface[0].islower() else []
            yield QueryTerm(
                TermKind.WORD,
                terms,
                (surface[0] if surface else spelled).lower(),
                parts=tuple(map(fold, parts)) if 1 < len(parts) <= MAX_PARTS else (),
                joined="dotnet" if terms == ("net",) else "",  # Many people type .NET without its dot.
            )
        else:
            words = WORD.findall(spelled.lower())
            joined = "".join(terms) if len(spelled) <= MAX_JOINED_CHARS else ""
            for term, surface in zip(terms, words if len(words) == len(terms) else terms, strict=True):
                yield QueryTerm(TermKind.WORD, (term,), surface, joined=joined)
