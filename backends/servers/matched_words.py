"""The words of a query that a search found, for servers that do not tell.

What is at hand says most of it: if the best hit has every word as typed, so it is. Otherwise the server is asked, in
one more request, for the best document that has every word with typing errors forgiven, and which of the words that
the hit lacks are in any document as typed. What the other ones were taken for stands in that best document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson
from rapidfuzz.distance import OSA

from backends.base import MATCH_ALL, Matched, SearchQuery
from backends.field_rules import ONE_ERROR_FROM, TWO_ERRORS_FROM, searched_fields
from backends.sections import SECTIONS, unpack
from backends.servers.tokenizer import Fold, QueryPart, fold_word, has_signs, spell_signs, split_words
from backends.standard_fields import TEXT_FIELDS
from backends.text import UNSPACED_RUN, WORD, in_case_of

FORGIVEN_WORDS = 10
"""Words of a query that may have typing errors; a longer one must have none.

Typesense's search for them takes it most of a second, and Meilisearch does not search further words at all.
"""

_ASCII_WORD = re.compile("[a-z0-9]+")
_MOST_READ = 100_000
"""Characters of a text that are looked through; for what stands behind them the server is asked."""


def searched_document(source: str, packed_sections: str | None) -> dict[str, Any]:
    """Return a stored document whose field ``sections`` is the text that is searched: the titles of its sections.

    Args:
        packed_sections: The sections as :func:`backends.sections.pack` makes them; ``None`` if the hit has none.
    """
    titles = (section.title for section in unpack(packed_sections or "[]"))
    return {**orjson.loads(source), SECTIONS: "\n".join(titles)}


@dataclass(frozen=True, slots=True)
class SoughtWord:
    """A word of a query.

    Attributes:
        word: Folded.
        is_run: Whether it is a run of letters without spaces, which matches inside a run.
        is_open: Whether longer words match, too: it is the last one, and may not be finished.
        may_be_mistyped: Whether it is forgiven typing errors.
    """

    word: str
    is_run: bool
    is_open: bool
    may_be_mistyped: bool

    def matches(self, found: str) -> bool:
        """Tell whether a folded word is this one."""
        return found.startswith(self.word) if self.is_open else found == self.word

    def stands_in(self, lowered: str) -> bool:
        """Tell whether a text in lower case has it; one with accents may have it nevertheless."""
        at = lowered.find(self.word)
        if self.is_run:
            return at >= 0
        while at >= 0:
            end = at + len(self.word)
            if not lowered[at - 1 : at].isalnum() and (self.is_open or not lowered[end : end + 1].isalnum()):
                return True
            at = lowered.find(self.word, at + 1)
        return False

    def errors_to(self, found: str) -> int:
        """With how many typing errors a folded word is this one, or begins with it if it is not finished."""
        size, most = len(self.word), self.forgiven
        shapes = {found, *(found[: size + more] for more in range(-most, most + 1) if self.is_open)}
        return min(OSA.distance(self.word, each, score_cutoff=most) for each in shapes)

    def similar_in(self, words: Iterable[str]) -> Iterator[str]:
        """The folded words that are this one with typing errors; one in the first letter counts as two."""
        first, second, size, most = self.word[0], self.word[1], len(self.word), self.forgiven
        for word in words:
            begins = word[0] == first
            # With an error in the first letter, one of the first two is where the other one was, or as typed.
            if not begins and (most < 2 or (word[0] != second and word[1:2] not in (first, second))):
                continue
            fits = size - most <= len(word) and (self.is_open or len(word) <= size + most)
            if fits and 0 < self.errors_to(word) + (not begins) <= most:
                yield word

    @property
    def forgiven(self) -> int:
        """The number of typing errors it is forgiven."""
        if not self.may_be_mistyped:
            return 0
        return 2 if len(self.word) >= TWO_ERRORS_FROM else 1


@dataclass(frozen=True, slots=True)
class AskedWords:
    """The words that a server was asked for.

    Attributes:
        best: The best document that has every word of the query, from :func:`searched_document`; ``None`` if there is
            none.
        known: For each word asked for, whether a document has it as typed.
    """

    best: Mapping[str, Any] | None
    known: Sequence[bool]


@dataclass(frozen=True, slots=True)
class WordSearch:
    """A query whose matches are looked into.

    Attributes:
        parts: Its words.
        fold: How they are folded.
    """

    query: SearchQuery
    parts: tuple[QueryPart, ...]
    fold: Fold = fold_word

    def matched(
        self,
        total: int,
        *,
        pinned: bool,
        best: Mapping[str, Any] | None,
        ask: Callable[[Sequence[SoughtWord]], AskedWords],
    ) -> tuple[Matched, str | None]:
        """The words that were found, and the query with those replaced that were not, if there are such.

        Args:
            total: Number of documents found.
            pinned: Whether pinned ones are among them.
            best: The document of the first hit that is not pinned, from :func:`searched_document`, if one is at hand.
            ask: Asks the server about the whole query, and about some of its words.
        """
        if self.query.text == MATCH_ALL:
            return Matched.ALL, None
        if not total:
            return Matched.SOME, None
        sought = self._sought()
        lacking = sought if best is None else self._lacking(sought, best)
        if not lacking:
            return Matched.ALL, None
        doubtful = [each for each in lacking if each.may_be_mistyped]
        asked = ask(doubtful)
        if asked.best is None:
            return Matched.ALL if pinned else Matched.SOME, None
        unknown = [each for each, known in zip(doubtful, asked.known, strict=True) if not known]
        replaced = dict(self._replacements(unknown, asked.best))
        if not replaced:
            return Matched.ALL, None

        def shown(match: re.Match[str]) -> str:
            word = replaced.get(self.fold(match[0]))
            return match[0] if word is None else in_case_of(match[0], word)

        return Matched.CORRECTED, WORD.sub(shown, self.query.text)

    def words_in(self, texts: Iterable[str]) -> set[str]:
        """The folded words of texts that stand for words of the query in another form than as typed or begun.

        They have typing errors, join words of the query or are parts of one, or are synonyms.
        """
        read = [self._read(text[:_MOST_READ]) for text in texts]
        there = set().union(*read)
        found: set[str] = set()
        for sought in self._sought():
            if sought.forgiven:
                found.update(sought.similar_in(there))
        typed = [part.words[0] for part in self.parts if len(part.words) == 1 and not (part.phrase or part.excluded)]
        found.update({"".join(typed[at : at + size]) for size in (2, 3) for at in range(len(typed) - size + 1)} & there)
        halves = {(word[:at], word[at:]) for word in set(typed) - there for at in range(1, len(word))}
        halves = {pair for pair in halves if there.issuperset(pair)}
        if halves:
            found.update(word for words in read for pair in pairwise(words) if pair in halves for word in pair)
        for phrase in self._synonyms():
            found.update(phrase if there.issuperset(phrase) else ())
        return found

    def _synonyms(self) -> Iterator[tuple[str, ...]]:
        """The phrases that mean the same as one of the query."""
        text = f" {' '.join(word for part in self.parts if not part.excluded for word in part.words)} "
        for group in self.query.settings.synonyms:
            phrases = [tuple(split_words(phrase)) for phrase in group]
            if any(f" {' '.join(phrase)} " in text for phrase in phrases if phrase):
                yield from phrases

    def _sought(self) -> list[SoughtWord]:
        parts = [part for part in self.parts if not part.excluded]
        forgiving = sum(len(part.words) for part in self.parts) <= FORGIVEN_WORDS
        found = {}
        for part in parts:
            for at, word in enumerate(part.words, 1):
                is_run = UNSPACED_RUN.match(word) is not None
                is_open = part is self.parts[-1] and at == len(part.words) and not part.phrase
                mistyped = forgiving and not (part.phrase or is_run) and len(word) >= ONE_ERROR_FROM
                found[word] = SoughtWord(word, is_run, is_open, mistyped)
        return list(found.values())

    def _texts(self, document: Mapping[str, Any]) -> Iterator[str]:
        fields = searched_fields(self.query)
        for name in (*fields, SECTIONS) if fields == TEXT_FIELDS else fields:
            text = document.get(name)
            if isinstance(text, str):
                yield text[:_MOST_READ]

    def has(self, sought: SoughtWord, document: Mapping[str, Any]) -> bool:
        """Tell whether a document has a word as typed."""
        return not self._lacking([sought], document)

    def _lacking(self, sought: Sequence[SoughtWord], document: Mapping[str, Any]) -> Sequence[SoughtWord]:
        """The words that a document does not have as typed."""
        for text in self._texts(document):
            lowered = text.lower()
            sought = [each for each in sought if not each.stands_in(lowered)]
            if sought and (not text.isascii() or has_signs(text)):
                words = set(self._words(text))
                sought = [each for each in sought if not any(map(each.matches, words))]
            if not sought:
                break
        return sought

    def _read(self, text: str) -> list[str]:
        if text.isascii() and not has_signs(text):
            return _ASCII_WORD.findall(text.lower())
        return list(self._words(text))

    def _words(self, text: str) -> Iterator[str]:
        return (self.fold(match[0]) for match in WORD.finditer(spell_signs(text)))

    def _replacements(self, unknown: Sequence[SoughtWord], document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """For words that exist nowhere, the most similar ones of a document, if they are so similar."""
        written: dict[str, str] = {}
        if unknown:
            for text in self._texts(document):
                for match in WORD.finditer(text):
                    written.setdefault(self.fold(match[0]), match[0].lower())
        for sought in unknown:
            errors, found = min(((sought.errors_to(word), word) for word in written), default=(0, ""))
            if found and 0 < errors <= sought.forgiven:
                yield sought.word, written[found]
