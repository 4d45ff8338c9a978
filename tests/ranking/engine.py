"""Access to the ranking's internals, the only module to adapt when they are renamed or moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any
from unittest.mock import patch

from backends.analysis import compounds, languages, parser
from backends.base import Document
from backends.embedded import search
from backends.embedded.index.snapshots import SnapshotCache
from backends.embedded.query import (
    relaxations,
    reranking,
    scoring,
    spellings,
    synonyms,
    term_queries,
    terms,
    typos,
    variants,
)
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.search import run_search
from backends.query import SearchQuery
from backends.registry import create_backend

Number = int | float

MODULES = (
    compounds, variants, term_queries, languages, synonyms, terms, relaxations, reranking, scoring, parser, search,
    spellings, typos,
)  # fmt: skip
"""Modules with constants, outside of :class:`Ranking`, that affect matching and ranking."""


@dataclass(frozen=True)
class Found:
    """IDs of hits in order, and the total number of hits."""

    ids: tuple[str, ...]
    total: int


class Shelf:
    """An in-memory index of some documents."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]):
        self._backend = create_backend("memory://")
        self._backend.create_index("shelf")
        entries = [Document.of(each["id"], each, changed_at) for changed_at, each in enumerate(documents)]
        self._backend.upsert("shelf", entries, {})

    def search(self, query: SearchQuery, ranking: Ranking = RANKING) -> Found:
        """Run one search without caches of earlier searches, which may have used another ranking."""
        snapshot = copy(self._backend.store.snapshot("shelf"))
        snapshot._snapshot_cache = SnapshotCache(1000)
        result = run_search(snapshot, query, ranking)
        return Found(tuple(hit.id for hit in result.hits), result.total)

    def close(self) -> None:
        self._backend.close()


def ranking_numbers() -> dict[str, Number]:
    """Return every number of :class:`Ranking`; members of mappings are named like ``fields.title``."""
    found: dict[str, Number] = {}
    for each in fields(Ranking):
        value = getattr(RANKING, each.name)
        found |= (
            {f"{each.name}.{member}": number for member, number in value.items()}
            if isinstance(value, Mapping)
            else {each.name: value}
        )
    return found


def with_number(name: str, value: Number) -> Ranking:
    """Return the engine's ranking with one number replaced, by its name in :func:`ranking_numbers`."""
    attribute, _, member = name.partition(".")
    changed = {**getattr(RANKING, attribute), member: value} if member else value
    return replace(RANKING, **{attribute: changed})


def constants() -> dict[str, Number]:
    """Return every numeric constant of :data:`MODULES` by names like ``typos.ONE_ERROR_FROM``."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, Number) and not isinstance(value, bool)
    }


@contextmanager
def with_constant(name: str, value: Number) -> Iterator[None]:
    """Replace one of :func:`constants` within the block."""
    module, _, attribute = name.partition(".")
    place = next(each for each in MODULES if each.__name__.endswith(f".{module}"))
    with patch.object(place, attribute, value):
        yield
