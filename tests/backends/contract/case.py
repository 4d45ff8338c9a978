"""A helper for one index of one backend, and sample documents of a shop."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from backends.base import Document, SearchBackend, SearchResult
from backends.filters import parse_filter
from backends.meilisearch.backend import MeilisearchBackend
from backends.query import FieldKind, SearchQuery, Synonyms
from backends.sections import SECTIONS, is_sections

S, N, B = FieldKind.STRING, FieldKind.NUMBER, FieldKind.BOOLEAN
SL, NL = FieldKind.STRING_LIST, FieldKind.NUMBER_LIST


def kind_of(value: Any) -> FieldKind:
    if isinstance(value, bool):
        return B
    if isinstance(value, str):
        return S
    if isinstance(value, int | float):
        return N
    return NL if value and all(isinstance(item, int | float) for item in value) else SL


def kinds_of(documents: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[FieldKind]]:
    standard = {"id", "title", "content", "url", "excerpt", "author", "date"}
    kinds: dict[str, frozenset[FieldKind]] = {}
    for document in documents:
        for name, value in document.items():
            if name not in standard and not (name == SECTIONS and is_sections(value)):
                kinds[name] = kinds.get(name, frozenset()) | {kind_of(value)}
    return kinds


def page(id: str, title: str = "", content: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": id, "title": title, "content": content, "url": f"/{uuid.uuid5(uuid.NAMESPACE_URL, id)}", **fields}


SHOP = (
    page(
        "lamp",
        "Desk lamp",
        "Light for reading",
        author="Ann",
        date="2024-03-01",
        price=20,
        brand="Acme",
        tags=["light", "home"],
        stock=True,
        sizes=[1, 2],
    ),
    page(
        "sofa",
        "Sofa",
        "Soft seat for reading",
        author="Bob",
        date="2024-03-01T12:00:00+02:00",
        price=300.5,
        brand="acme",
        tags=["seat", "home"],
        stock=False,
        note="",
    ),
    page(
        "shelf",
        "Book shelf",
        "Wood for reading",
        author="Ann",
        date="2023-12-31",
        price=120,
        brand="Börde",
        tags=[],
        stock=True,
        sizes=[10],
    ),
    page("chair", "Chair", "Wood to sit and reading", price="5", brand="Zebra"),
    page("stool", "Stool", "Steel, reading", date="2025-01-01T00:00:00Z", price=5, brand="acme co", code=7),
)
"""Sample documents: each contains ``reading``, ``price`` is a number or a string, and many fields are missing."""


def has_native_filters(backend: SearchBackend) -> bool:
    """Whether the engine reads ``SearchQuery.native_filter`` in its native syntax, not in the portable grammar."""
    return backend.name in ("typesense", "meilisearch")


def settle(backend: SearchBackend, index: str) -> None:
    """Wait until the engine has applied all earlier changes."""
    if isinstance(backend, MeilisearchBackend):
        backend._transport.await_earlier(index)


class Case:
    """One index of one backend, with short methods for the tests."""

    def __init__(self, backend: SearchBackend, index: str):
        self.backend = backend
        self.index = index
        self.kinds: dict[str, frozenset[FieldKind]] = {}
        self.clock = 1_700_000_000_000_000
        self.synonyms: Synonyms = ()

    def add(self, *documents: Mapping[str, Any]) -> None:
        for name, kinds in kinds_of(documents).items():
            self.kinds[name] = self.kinds.get(name, frozenset()) | kinds
        batch = []
        for fields in documents:
            self.clock += 1
            batch.append(Document.of(fields["id"], dict(fields), self.clock))
        self.backend.upsert(self.index, batch, self.kinds)

    def query(self, text: str, filters: str = "", **options: Any) -> SearchQuery:
        if filters and has_native_filters(self.backend):
            options["portable_filter"] = parse_filter(filters)
        elif filters:
            options["native_filter"] = filters
        return SearchQuery(text, kinds=self.kinds, **options)

    def search(self, text: str, filters: str = "", **options: Any) -> SearchResult:
        query = self.query(text, filters, **options)
        if query.settings.synonyms != self.synonyms:
            self.synonyms = query.settings.synonyms
            self.backend.send_synonyms(self.index, query.settings)
            settle(self.backend, self.index)
        return self.backend.search(self.index, query)

    def ids(self, text: str, filters: str = "", **options: Any) -> list[str]:
        return [hit.id for hit in self.search(text, filters, **options).hits]


@pytest.fixture(name="case")
def case_fixture(backend: SearchBackend) -> Iterator[Case]:
    index = f"t_{uuid.uuid4().hex}"
    backend.create_index(index)
    yield Case(backend, index)
    backend.delete_index(index)
