"""The search engines in use: SEARCH_URL and, while sites move, SEARCH_NEXT_URL."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from app.timing import observe_calls
from backends.base import SearchBackend
from backends.errors import BackendMisconfigured, BackendUnavailable

ENGINE_SECONDS = Histogram(
    "search_engine_seconds",
    "Time that the search engine takes.",
    ["operation"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
ENGINE_FAILURES = Counter(
    "search_engine_failures_total", "Operations for which the search engine was unavailable or too slow.", ["operation"]
)
OPERATIONS = (
    "search", "find_titles", "upsert", "delete", "count", "create_index", "delete_index", "list_indexes", "check",
    "issue_credential", "revoke_credential",
)  # fmt: skip
"""Observed methods of :class:`SearchBackend`."""


class Engines:
    """The configured search engines, by identity.

    Args:
        current: Engine for new sites.
        upcoming: Engine that sites are being moved to, if any.

    Raises:
        ValueError: Both have the same identity.
    """

    def __init__(self, current: SearchBackend, upcoming: SearchBackend | None = None):
        if upcoming is not None and upcoming.identity == current.identity:
            raise ValueError(
                "SEARCH_URL and SEARCH_NEXT_URL are engines of the same kind; name the next one, "
                "for example with ?name=second."
            )
        self.current = current
        self.upcoming = upcoming
        self._by_identity = {engine.identity: engine for engine in (current, upcoming) if engine is not None}
        for engine in self.all():
            observe_calls(
                engine,
                OPERATIONS,
                seconds=ENGINE_SECONDS.labels,
                failures=ENGINE_FAILURES.labels,
                failure=BackendUnavailable,
            )

    def get_engine(self, identity: str) -> SearchBackend:
        """Return the engine with this identity, as stored with a site.

        Raises:
            BackendMisconfigured: This process has no such engine.
        """
        engine = self._by_identity.get(identity)
        if engine is None:
            raise BackendMisconfigured("The site's index is on an engine that is not configured in SEARCH_URL.")
        return engine

    def knows(self, identity: str) -> bool:
        """Whether an engine with this identity is configured."""
        return identity in self._by_identity

    def all(self) -> list[SearchBackend]:
        """Return all engines in use."""
        return list(self._by_identity.values())

    def run_maintenance(self) -> None:
        """Start maintenance that makes later searches faster, in every engine."""
        for engine in self.all():
            engine.run_maintenance()

    def close(self) -> None:
        """Close all engines."""
        for engine in self.all():
            engine.close()
