"""An in-memory index of documents, for tests of search results."""

from __future__ import annotations

from backends.registry import create_backend
from tests.backends.contract import Case


def index_of(*documents: dict[str, str]) -> Case:
    case = Case(create_backend("memory://"), "i")
    case.backend.create_index("i")
    case.add(*documents)
    return case
