"""Where the ranking lives: all that these tests know of the engine's inside, so that a new name or place ends here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any
from unittest.mock import patch

from backends.base import Document
from backends.embedded import search
from backends.embedded.analysis import languages
from backends.embedded.index.snapshots import SnapshotCache
from backends.embedded.query import parser, relaxations, scoring, term_queries, terms, typos, variants
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.search import run_search
from backends.query import SearchQuery
from backends.registry import create_backend

Number = int | float

MODULES = (
    variants, term_queries, languages, terms, relaxations, scoring, parser, search, typos
)  # fmt: skip
"""Where numbers stand, outside of :class:`Ranking`, that decide what is found and in which order."""


@dataclass(frozen=True)
class Found:
    """Ids in order, and how many documents were found in all."""

    ids: tuple[str, ...]
    total: int


class Shelf:
    """An index in memory of some documents."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]):
        self._backend = create_backend("memory://")
        self._backend.create_index("shelf")
        entries = [Document.of(each["id"], each, changed_at) for changed_at, each in enumerate(documents)]
        self._backend.upsert("shelf", entries, {})

    def search(self, query: SearchQuery, ranking: Ranking = RANKING) -> Found:
        """Run one search, which knows nothing of those before: they may have been ranked by other numbers."""
        snapshot = copy(self._backend.store.snapshot("shelf"))
        snapshot._snapshot_cache = SnapshotCache(1000)
        result = run_search(snapshot, query, ranking)
        return Found(tuple(hit.id for hit in result.hits), result.total)

    def close(self) -> None:
        self._backend.close()


def ranking_numbers() -> dict[str, Number]:
    """Every number of :class:`Ranking`; ``fields.title`` for a member of a mapping."""
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
    """The engine's ranking but for one number, named as :func:`ranking_numbers` names it."""
    attribute, _, member = name.partition(".")
    changed = {**getattr(RANKING, attribute), member: value} if member else value
    return replace(RANKING, **{attribute: changed})


def constants() -> dict[str, Number]:
    """Every number that a module of :data:`MODULES` names, as ``typos.ONE_ERROR_FROM``."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, Number) and not isinstance(value, bool)
    }


@contextmanager
def with_constant(name: str, value: Number) -> Iterator[None]:
    """Another value for one of :func:`constants`."""
    module, _, attribute = name.partition(".")
    place = next(each for each in MODULES if each.__name__.endswith(f".{module}"))
    with patch.object(place, attribute, value):
        yield
