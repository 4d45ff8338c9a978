"""Choosing a search engine by URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from backends.base import SearchBackend
from backends.servers.locks import NamedLocks


def create_backend(url: str, locks: NamedLocks | None = None) -> SearchBackend:
    """Build the backend for a URL. Opens nothing.

    Args:
        url: ``memory://``, ``tantivy:///path``, ``typesense://:key@host:8108`` (several hosts separated by commas;
            ``typesense+https`` for TLS), or ``meilisearch://:key@host:7700``.
        locks: Locks shared by all processes that use the engine; without them, only one process may change settings.

    Raises:
        ValueError: The scheme is unknown or the rest of the URL is malformed. The message never
            repeats a key.
    """
    scheme = urlsplit(url).scheme
    match scheme:
        case "memory" | "tantivy":
            from backends.embedded.backend import TantivyBackend

            return TantivyBackend.from_url(url)
        case "typesense" | "typesense+https":
            from backends.typesense.backend import TypesenseBackend

            return TypesenseBackend.from_url(url, locks)
        case "meilisearch" | "meilisearch+https":
            from backends.meilisearch.backend import MeilisearchBackend

            return MeilisearchBackend.from_url(url, locks)
        case _:
            raise ValueError(
                f"Unknown search engine {scheme!r}: the URL must begin with memory://, tantivy://, "
                "typesense:// or meilisearch://."
            )
