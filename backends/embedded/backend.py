"""The embedded engine: tantivy in this process, on disk or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from backends.base import Document, FieldKinds, SearchBackend, SearchQuery, SearchResult, TakeHit, TitleMatch
from backends.embedded.engine_errors import engine_errors
from backends.embedded.index.disk import DiskStore
from backends.embedded.index.documents import searched_characters
from backends.embedded.index.memory import MemoryStore
from backends.embedded.index.rebuild import stored_ids
from backends.embedded.index.store import Store
from backends.embedded.maintenance.scheduler import MergeScheduler
from backends.embedded.query.conditions import compile_condition
from backends.embedded.query.titles import find_titles
from backends.embedded.search import run_search
from backends.identity import engine_identity

OPEN_INDEXES = 200
"""Default number of indexes that a process keeps open."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Default number of seconds that a write waits for another write of the same index."""


class TantivyBackend(SearchBackend):
    """The search engine over the indexes of one store.

    Built by :meth:`from_url` from ``memory://`` or ``tantivy:///path?indexes=200&timeout=30&name=second``. ``indexes``
    is the number of indexes that a process keeps open, ``timeout`` the seconds that a write waits for another write of
    the same index, and ``name`` distinguishes this engine from another one on disk.
    """

    def __init__(self, store: Store, *, name: str, identity: str, persistent: bool):
        self.store = store
        self.name = name
        self.identity = identity
        self.persistent = persistent

    @classmethod
    def from_url(cls, url: str) -> TantivyBackend:
        """Build the backend for a URL. Opens nothing.

        Raises:
            ValueError: The URL does not have the form above.
        """
        parts = urlsplit(url)
        options = {name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
        timeout = _positive(options.pop("timeout", str(WRITE_TIMEOUT_SECONDS)), "timeout")
        if parts.scheme == "memory":
            if options or parts.netloc or parts.path.strip("/"):
                raise ValueError("The URL of the search engine in memory must be memory:// without further parts.")
            return cls(MemoryStore(timeout), name="memory", identity=engine_identity("memory"), persistent=False)
        path = unquote(parts.path)
        if parts.netloc or not path.startswith("/") or path == "/":
            raise ValueError("The URL of the embedded search engine must have the form tantivy:///absolute/path.")
        indexes = int(_positive(options.pop("indexes", str(OPEN_INDEXES)), "indexes"))
        identity = engine_identity("tantivy", options.pop("name", ""))
        if options:
            raise ValueError(f"The embedded search engine has no option {min(options)!r}.")
        store = DiskStore(Path(path), max(1, indexes), timeout, MergeScheduler)
        return cls(store, name="tantivy", identity=identity, persistent=True)

    def create_index(self, index: str) -> None:
        with engine_errors("creating an index"):
            self.store.create(index)

    def delete_index(self, index: str) -> None:
        with engine_errors("deleting an index"):
            self.store.drop(index)

    def list_indexes(self) -> list[str]:
        with engine_errors("listing the indexes"):
            return self.store.names()

    def outdated_indexes(self) -> list[str]:
        with engine_errors("listing the indexes"):
            return self.store.outdated_names()

    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        with engine_errors("writing documents"):
            if not documents:
                self.store.snapshot(index)
                return
            with self.store.writing(index, kinds, sum(map(searched_characters, documents))) as writing:
                writing.put(documents)

    def delete(self, index: str, ids: Sequence[str]) -> None:
        with engine_errors("deleting documents"):
            if not ids:
                self.store.snapshot(index)
                return
            with self.store.writing(index, {}, 0) as writing:
                writing.remove(ids)

    def search(self, index: str, query: SearchQuery, take: TakeHit | None = None) -> SearchResult:
        with engine_errors("searching"):
            return run_search(self.store.snapshot(index), query, take=take)

    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        with engine_errors("finding titles"):
            snapshot = self.store.snapshot(index)
            condition = None if within is None else compile_condition(snapshot, within)
            return find_titles(snapshot, text, limit, condition)

    def count(self, index: str) -> int:
        with engine_errors("counting documents"):
            return self.store.snapshot(index).total

    def document_ids(self, index: str) -> Iterator[str]:
        with engine_errors("listing documents"):
            yield from stored_ids(self.store.snapshot(index).searcher)

    def run_maintenance(self) -> None:
        with engine_errors("looking for indexes to merge"):
            self.store.run_maintenance()

    def check(self) -> None:
        with engine_errors("checking itself"):
            self.store.check()

    def index_bytes(self) -> int | None:
        with engine_errors("measuring the indexes"):
            return self.store.index_bytes()

    def version(self) -> str:
        return package_version("tantivy")

    def close(self) -> None:
        with engine_errors("closing"):
            self.store.close()


def _positive(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e9:
        raise ValueError(f"The option {option!r} of the search engine must be a number above 0.")
    return value
