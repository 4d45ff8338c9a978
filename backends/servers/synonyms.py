"""Which queries a change of synonyms affects, for search servers that take synonyms from the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backends.servers.tokenizer import query_parts, split_words
from backends.text import UNSPACED_RUN

Phrase = tuple[str, ...]
Groups = Sequence[Sequence[str]]


class SynonymChange:
    """The difference between two sets of synonyms.

    Args:
        before, after: Groups of words or phrases with the same meaning, as in
            :attr:`~backends.base.SearchSettings.synonyms`.
    """

    def __init__(self, before: Groups, after: Groups):
        old, new = _phrases(before), _phrases(after)
        changed = (
            cluster
            for cluster in _clusters([*old, *new])
            if [each for each in old if each & cluster] != [each for each in new if each & cluster]
        )
        self._words = frozenset(word for cluster in changed for phrase in cluster for word in phrase)

    def concerns(self, query: str) -> bool:
        """Whether the results of a query may differ after the change."""
        words = {word for part in query_parts(query) for word in part.words}
        runs = [word for word in words if UNSPACED_RUN.match(word)]
        return any(word in words or any(word in run for run in runs) for word in self._words)


def _phrases(groups: Groups) -> list[frozenset[Phrase]]:
    """The groups with at least two phrases, split into searched words."""
    split = (frozenset(tuple(split_words(phrase)) for phrase in group) - {()} for group in groups)
    return [group for group in split if len(group) > 1]


def _clusters(groups: Iterable[frozenset[Phrase]]) -> list[frozenset[Phrase]]:
    """Merge groups that share a phrase, because a change of one may affect the others."""
    clusters: list[frozenset[Phrase]] = []
    for group in groups:
        touched = [each for each in clusters if each & group]
        clusters = [each for each in clusters if not each & group]
        clusters.append(group.union(*touched))
    return clusters
