"""Ranking of Meilisearch's hits: its scores multiplied by factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from backends.base import SearchQuery
from backends.meilisearch.query import CompiledQuery, attribute
from backends.servers.ranks import WINDOW, Ranks
from backends.servers.tokenizer import spell_signs, split_words

EXACT_TITLE: Final = 2.0
"""Factor for a page whose title equals the query.

Meilisearch's scores of pages with every word are between 0.6 and 1, so rank 1 alone would lift others above it. With
this factor, as in the embedded engine, rank 3 does not, and rank 5 does.
"""


Run = Callable[[Sequence[Mapping[str, Any]], SearchQuery], list[dict[str, Any]]]
"""Runs queries of a search."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page that a search requests.

    Attributes:
        offset: Number of hits to skip, not counting pinned hits.
        others: Filters that exclude hits shown already.
    """

    query: SearchQuery
    compiled: CompiledQuery
    ranks: Ranks
    offset: int
    others: tuple[str, ...]

    @property
    def is_ordered_here(self) -> bool:
        """Whether Meilisearch does not know the order of the hits, or which of them represent their groups."""
        return (not self.ranks.are_neutral and self.offset < WINDOW) or bool(
            self.compiled.distinct and self.compiled.has_lists
        )


@dataclass(frozen=True, slots=True)
class Order:
    """The ordered hits.

    Attributes:
        ids: Ids as sent, in order, as far as they have been read.
        total: Number of all hits or groups.
    """

    ids: Sequence[str]
    total: int


@dataclass(frozen=True, slots=True)
class Page:
    """The hits of a page, possibly with additional ones if some hits are pinned.

    Attributes:
        hits: Hits from Meilisearch, in order.
        total: Number of all hits or groups.
        counted: The result with the facets.
    """

    hits: Sequence[Mapping[str, Any]]
    total: int
    counted: Mapping[str, Any]


def columns(ranks: Ranks) -> list[str]:
    """The fields of hits that their order depends on."""
    return [*ranks.fields, "title"]


def in_order(hits: Sequence[Mapping[str, Any]], ranks: Ranks, compiled: CompiledQuery) -> list[Mapping[str, Any]]:
    """Sort the first :data:`~backends.servers.ranks.WINDOW` hits by score and rank."""
    if ranks.are_neutral:
        return list(hits)
    words = [word for part in compiled.typed if not part.excluded for word in part.words]

    def score(hit: Mapping[str, Any]) -> float:
        values = {name: hit[attribute(name)] for name in ranks.fields if attribute(name) in hit}
        is_title = split_words(spell_signs(str(hit.get("title", "")))) == words
        return float(hit["_rankingScore"]) * ranks.factor(values) * (EXACT_TITLE if is_title else 1.0)

    return [*sorted(hits[:WINDOW], key=score, reverse=True), *hits[WINDOW:]]
