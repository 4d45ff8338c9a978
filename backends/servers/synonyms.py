"""Telling which queries a change of synonyms concerns, and in which other words they would be searched.

The search servers take synonyms from the index. What other synonyms would find can be asked all the same: by queries
that have the synonyms in place of the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from backends.servers.tokenizer import query_parts, split_words
from backends.text import UNSPACED_RUN

Phrase = tuple[str, ...]
Groups = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of a query, or what must stay as it is written (``word`` is ``None``)."""

    word: str | None
    written: str


class SynonymChange:
    """The difference between two sets of synonyms.

    Args:
        before, after: Groups of words or phrases that mean the same, as in
            :attr:`~backends.base.SearchSettings.synonyms`.
    """

    def __init__(self, before: Groups, after: Groups):
        old, new = _phrases(before), _phrases(after)
        self._changed = [
            sorted(cluster)
            for cluster in _clusters([*old, *new])
            if [each for each in old if each & cluster] != [each for each in new if each & cluster]
        ]
        self._known = frozenset[Phrase]().union(*old)
        self._words = frozenset(word for cluster in self._changed for phrase in cluster for word in phrase)

    def concerns(self, query: str) -> bool:
        """Tell whether a query may find something else, or in another order, after the change."""
        words = {word for part in query_parts(query) for word in part.words}
        runs = [word for word in words if UNSPACED_RUN.match(word)]
        return any(word in words or any(word in run for run in runs) for word in self._words)

    def rewordings(self, query: str) -> Iterator[str]:
        """The query with words replaced by their synonyms, old and new, and with its first or last words left out.

        What has old synonyms is quoted, too, so that it matches literally. What differs least comes first. Engines
        leave words out from the ends, too, while they find little.
        """
        first = tuple(_tokens(query))
        seen, waiting = {first}, [first]
        for tokens in waiting:  # It grows meanwhile.
            for reworded in (*self._replace_one(tokens), tokens[:-1], tokens[1:]):
                if reworded and reworded not in seen:
                    seen.add(reworded)
                    waiting.append(reworded)
                    yield " ".join(token.written for token in reworded)

    def _replace_one(self, tokens: tuple[_Token, ...]) -> Iterator[tuple[_Token, ...]]:
        for start in range(len(tokens)):
            for cluster in self._changed:
                for phrase in cluster:
                    end = start + len(phrase)
                    if tuple(token.word for token in tokens[start:end]) == phrase:
                        for written in self._writings(cluster):
                            yield (*tokens[:start], _Token(None, written), *tokens[end:])
                    elif (run := _run_around(tokens[start], phrase)) is not None:
                        for written in self._writings(cluster):
                            replaced = run.replace(phrase[0], f" {written} ").strip()
                            yield (*tokens[:start], _Token(None, replaced), *tokens[start + 1 :])

    def _writings(self, cluster: Sequence[Phrase]) -> Iterator[str]:
        for phrase in cluster:
            yield " ".join(phrase)
            if phrase in self._known:
                yield _quoted(phrase)


def _phrases(groups: Groups) -> list[frozenset[Phrase]]:
    """The groups of at least two phrases, as they are searched."""
    split = (frozenset(tuple(split_words(phrase)) for phrase in group) - {()} for group in groups)
    return [group for group in split if len(group) > 1]


def _clusters(groups: Iterable[frozenset[Phrase]]) -> list[frozenset[Phrase]]:
    """Groups that share a phrase, put together: a change of one may change what the others do."""
    clusters: list[frozenset[Phrase]] = []
    for group in groups:
        touched = [each for each in clusters if each & group]
        clusters = [each for each in clusters if not each & group]
        clusters.append(group.union(*touched))
    return clusters


def _tokens(query: str) -> Iterator[_Token]:
    for part in query_parts(query):
        if part.phrase or part.excluded:
            yield _Token(None, ("-" if part.excluded else "") + _quoted(part.typed))
        else:
            yield from map(_Token, part.words, part.typed)


def _quoted(words: Sequence[str]) -> str:
    return f'"{" ".join(words)}"'


def _run_around(token: _Token, phrase: Phrase) -> str | None:
    """The word if it is a run without spaces that holds the phrase and more."""
    if token.word is None or len(phrase) > 1 or not UNSPACED_RUN.match(phrase[0]):
        return None
    return token.word if phrase[0] in token.word else None
