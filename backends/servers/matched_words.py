"""Finding out which words of a query a search matched, for servers that do not report it.

Usually the best hit shows it: if it contains every word as typed, all words matched. Otherwise one more request asks
for the best document that contains every word with typing errors allowed, and for which of the missing words any
document contains as typed. The corrections of the other words are then found in that best document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson
from rapidfuzz.distance import OSA
from rapidfuzz.process import extractOne

from backends.base import Matched, SearchResult
from backends.field_rules import ONE_ERROR_FROM, TWO_ERRORS_FROM, searched_fields
from backends.query import MATCH_ALL, SearchQuery
from backends.sections import SECTIONS, unpack
from backends.servers.synonyms import SynonymIndex
from backends.servers.tokenizer import (
    Fold,
    QueryPart,
    fold_word,
    has_signs,
    other_forms,
    query_parts,
    query_stop_words,
    spell_signs,
    split_words,
    without_stop_words,
)
from backends.standard_fields import TEXT_FIELDS
from backends.text import UNSPACED_RUN, WORD, in_case_of

MAX_CORRECTED_WORDS = 10
"""Maximum number of words of a query whose words may be mistyped; in a longer query, all words match as typed.

Correcting more words takes Typesense most of a second, and Meilisearch ignores further words altogether.
"""

_ASCII_WORD = re.compile("[a-z0-9]+")
_MAX_SEARCHED_CHARS = 100_000
"""Number of characters of a text that are searched here; the server is asked about words beyond them."""


def searched_document(source: str, packed_sections: str | None) -> dict[str, Any]:
    """Return a stored document with the titles of its sections as the text of the searched field ``sections``.

    Args:
        packed_sections: The sections, serialized by :func:`backends.sections.pack`; ``None`` if the hit has none.
    """
    titles = (section.title for section in unpack(packed_sections or "[]"))
    return {**orjson.loads(source), SECTIONS: "\n".join(titles)}


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query.

    Attributes:
        word: The word, folded.
        is_run: Whether it is a run of an unspaced script, which matches inside a longer run.
        is_open: Whether it matches longer words too, because it is the last word and may be unfinished.
        may_be_mistyped: Whether it also matches words with typing errors.
    """

    word: str
    is_run: bool
    is_open: bool
    may_be_mistyped: bool

    def matches(self, other: str) -> bool:
        """Whether a folded word matches this word."""
        return other.startswith(self.word) if self.is_open else other == self.word

    def occurs_in(self, lowered: str) -> bool:
        """Whether a lower-case text contains the word. May be false for a text that contains it with accents."""
        offset = lowered.find(self.word)
        if self.is_run:
            return offset >= 0
        while offset >= 0:
            end = offset + len(self.word)
            if not lowered[offset - 1 : offset].isalnum() and (self.is_open or not lowered[end : end + 1].isalnum()):
                return True
            offset = lowered.find(self.word, offset + 1)
        return False

    def errors_to(self, other: str) -> int:
        """Return the number of typing errors between this word and a folded word; more than :attr:`max_errors` if there
        are too many. If this word may be unfinished, it is compared with prefixes of the other.
        """
        size, max_errors = len(self.word), self.max_errors
        shapes = {other, *(other[: size + extra] for extra in range(-max_errors, max_errors + 1) if self.is_open)}
        return min(OSA.distance(self.word, shape, score_cutoff=max_errors) for shape in shapes)

    def similar_in(self, words: Iterable[str]) -> Iterator[str]:
        """Yield the folded words that match with typing errors; an error in the first letter counts as two."""
        first, second, size, max_errors = self.word[0], self.word[1], len(self.word), self.max_errors
        for word in words:
            begins = word[0] == first
            # If the first letter is wrong, one of the first two letters must be the typed one or swapped.
            if not begins and (max_errors < 2 or (word[0] != second and word[1:2] not in (first, second))):
                continue
            fits = size - max_errors <= len(word) and (self.is_open or len(word) <= size + max_errors)
            if fits and 0 < self.errors_to(word) + (not begins) <= max_errors:
                yield word

    @property
    def max_errors(self) -> int:
        """Number of typing errors that the word may have: 0, 1, or 2."""
        if not self.may_be_mistyped:
            return 0
        return 2 if len(self.word) >= TWO_ERRORS_FROM else 1


@dataclass(frozen=True, slots=True)
class WordLookup:
    """The server's information about the words of a query.

    Attributes:
        best: The best document with every word of the query, from :func:`searched_document`; ``None`` if there is
            none.
        exists_as_typed: For each requested word, whether a document contains it as typed.
    """

    best: Mapping[str, Any] | None
    exists_as_typed: Sequence[bool]


@dataclass(frozen=True, slots=True)
class WordSearch:
    """Finds out which words of one query a search matched.

    Attributes:
        parts: The query's words.
        fold: Folds a word.
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
        ask: Callable[[Sequence[QueryWord]], WordLookup],
    ) -> tuple[Matched, str | None]:
        """Return the match level of a search, and the corrected query if there is one.

        Args:
            total: Number of hits.
            pinned: Whether pinned documents are among the hits.
            best: The first hit that is not pinned, from :func:`searched_document`, if available.
            ask: Asks the server about the whole query and about some of its words.
        """
        if self.query.text == MATCH_ALL:
            return Matched.ALL, None
        if not total:
            return Matched.SOME, None
        query_words = self._query_words()
        lacking = query_words if best is None else self._lacking(query_words, best)
        if not lacking:
            return Matched.ALL, None
        doubtful = [query_word for query_word in lacking if query_word.may_be_mistyped]
        response = ask(doubtful)
        if response.best is None:
            return Matched.ALL if pinned else Matched.SOME, None
        unknown = [
            query_word for query_word, exists in zip(doubtful, response.exists_as_typed, strict=True) if not exists
        ]
        replaced = dict(self._replacements(unknown, response.best))
        if not replaced:
            return Matched.ALL, None
        return Matched.CORRECTED, self._corrected(replaced)

    def _corrected(self, replaced: Mapping[str, str]) -> str:
        """Return the query with some folded words replaced."""

        def corrected_word(match: re.Match[str]) -> str:
            word = replaced.get(self.fold(match[0]))
            return match[0] if word is None else in_case_of(match[0], word)

        return WORD.sub(corrected_word, self.query.text)

    def parts_with_synonyms(self, result: SearchResult) -> Sequence[QueryPart]:
        """Return the corrected words of the query if they have synonyms that its words as typed lack; otherwise ``()``.

        A server looks up the synonyms of words as typed, so it must search again for the synonyms of corrected words.
        A word that finds nothing may also be a mistyped synonym.

        Args:
            result: The result of the words as typed.
        """
        settings = self.query.settings
        if not settings.synonyms:
            return ()
        text = result.corrected_query if result.total else self._corrected(dict(self._similar_synonyms()))
        if text is None:
            return ()
        words = query_parts(text, self.fold)
        parts = without_stop_words(words, query_stop_words(words, settings))
        index = SynonymIndex.of(settings)
        return parts if set(index.synonyms_of(parts)) - set(index.synonyms_of(self.parts)) else ()

    def _similar_synonyms(self) -> Iterator[tuple[str, str]]:
        """Yield each word that may be a mistyped word of a synonym, with the most similar one."""
        by_letter = SynonymIndex.of(self.query.settings).words_by_letter
        for query_word in self._query_words():
            # Comparing tens of thousands of words would take a second, so the first letter must be right.
            words = by_letter.get(query_word.word[0], ())
            nearest = extractOne(query_word.word, words, scorer=OSA.distance, score_cutoff=query_word.max_errors)
            if nearest is not None and nearest[1]:
                yield query_word.word, nearest[0]

    def words_in(self, texts: Iterable[str]) -> set[str]:
        """Return the folded words of texts that match words of the query in another form than as typed or as a prefix.

        They contain typing errors, join words of the query, are parts of one, or are synonyms.
        """
        read = [self._read(text[:_MAX_SEARCHED_CHARS]) for text in texts]
        all_words = set().union(*read)
        matched_words: set[str] = set()
        for query_word in self._query_words():
            if query_word.max_errors:
                matched_words.update(query_word.similar_in(all_words))
        typed = [part.words[0] for part in self.parts if len(part.words) == 1 and not (part.phrase or part.excluded)]
        matched_words.update(
            {"".join(typed[offset : offset + size]) for size in (2, 3) for offset in range(len(typed) - size + 1)}
            & all_words
        )
        halves = {(word[:offset], word[offset:]) for word in set(typed) - all_words for offset in range(1, len(word))}
        halves = {pair for pair in halves if all_words.issuperset(pair)}
        if halves:
            matched_words.update(word for words in read for pair in pairwise(words) if pair in halves for word in pair)
        for phrase in SynonymIndex.of(self.query.settings).synonyms_of(self.parts):
            matched_words.update(phrase if all_words.issuperset(phrase) else ())
        return matched_words

    def _query_words(self) -> list[QueryWord]:
        parts = [part for part in self.parts if not part.excluded]
        may_correct = sum(len(part.words) for part in self.parts) <= MAX_CORRECTED_WORDS
        by_word = {}
        for part in parts:
            for index, word in enumerate(part.words, 1):
                is_run = UNSPACED_RUN.match(word) is not None
                is_open = part is self.parts[-1] and index == len(part.words) and not part.phrase
                mistyped = may_correct and not (part.phrase or is_run) and len(word) >= ONE_ERROR_FROM
                by_word[word] = QueryWord(word, is_run, is_open, mistyped)
        return list(by_word.values())

    def _texts(self, document: Mapping[str, Any]) -> Iterator[str]:
        fields = searched_fields(self.query)
        for name in (*fields, SECTIONS) if fields == TEXT_FIELDS else fields:
            text = document.get(name)
            if isinstance(text, str):
                yield text[:_MAX_SEARCHED_CHARS]

    def has(self, query_word: QueryWord, document: Mapping[str, Any]) -> bool:
        """Whether a document contains a word as typed."""
        return not self._lacking([query_word], document)

    def _lacking(self, query_words: Sequence[QueryWord], document: Mapping[str, Any]) -> Sequence[QueryWord]:
        """Return the words that a document does not contain as typed."""
        for text in self._texts(document):
            lowered = text.lower()
            query_words = [query_word for query_word in query_words if not query_word.occurs_in(lowered)]
            if query_words and (not text.isascii() or has_signs(text)):
                words = set(self._read(text))
                query_words = [query_word for query_word in query_words if not any(map(query_word.matches, words))]
            if query_words:
                forms = set(other_forms(text))
                query_words = [query_word for query_word in query_words if not any(map(query_word.matches, forms))]
            if not query_words:
                break
        return query_words

    def _read(self, text: str) -> list[str]:
        if text.isascii() and not has_signs(text):
            return _ASCII_WORD.findall(text.lower())
        return split_words(spell_signs(text), self.fold)

    def _replacements(self, unknown: Sequence[QueryWord], document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each unknown word with the most similar word of a document, unless even this has too many errors."""
        written: dict[str, str] = {}
        if unknown:
            for text in self._texts(document):
                for match in WORD.finditer(text):
                    written.setdefault(self.fold(match[0]), match[0].lower())
        for query_word in unknown:
            errors, nearest = min(((query_word.errors_to(word), word) for word in written), default=(0, ""))
            if nearest and 0 < errors <= query_word.max_errors:
                yield query_word.word, written[nearest]
