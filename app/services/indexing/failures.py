"""Failures to update a site's index: recorded for the operator, and pauses before writers try again."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import update

from app.clock import Backoff, now
from app.models import Site
from app.services.engines import Engines
from app.storage.database import Database, is_unavailable
from backends.errors import BackendUnavailable, EngineNotAsked

FAILURE_PAUSE_SECONDS = 2.0
"""Seconds after a failure during which writers to the same index fail immediately, while the engine is unavailable.

If the engine is available but rejects a site's changes, the pause doubles with each failure, since every attempt sends
all pending changes.
"""

MAX_ERROR_CHARACTERS = 500
MAX_RETRY_SECONDS = 60
"""Maximum ``Retry-After`` for writers, in seconds. Their changes are stored, and applied later in any case."""


class IndexingFailures:
    """Failures that this process has seen. Thread-safe."""

    def __init__(self, database: Database, engines: Engines):
        self._database = database
        self._engines = engines
        self._latest: dict[int, tuple[float, BackendUnavailable]] = {}
        """For each site, the monotonic time at which the pause ends, and the error."""
        self._lock = threading.Lock()
        self._backoff = Backoff()

    @contextmanager
    def recording(self, site: Site) -> Iterator[None]:
        """Record a failure to update a site's index, in memory and in SQL for the operator.

        Raises:
            EngineNotAsked: An attempt failed a moment ago.
        """
        self.raise_if_failed(site.id)
        try:
            yield
        except Exception as error:
            # An unavailable database is not a failure of the index, and could not store a record of it.
            if not is_unavailable(error):
                self._record(site, error)
            raise
        self._backoff.forget(site.id)

    def _record(self, site: Site, error: Exception) -> None:
        # An outage concerns all sites and has a fixed pause. Only rejections by an available engine double it.
        pause = (
            self._backoff.record_failure(site.id) if self._engines.is_available(site.engine) else FAILURE_PAUSE_SECONDS
        )
        if not isinstance(error, BackendUnavailable):
            public_error = BackendUnavailable("The site's index cannot be updated.")
        else:
            public_error = error
        with self._lock:
            self._latest[site.id] = (time.monotonic() + pause, public_error)
        cause = f"{error} ({error.__cause__})" if error.__cause__ else str(error) or type(error).__name__
        values = {"indexing_failed_at": now(), "indexing_error": cause.replace("\0", "")[:MAX_ERROR_CHARACTERS]}
        with self._database.write() as session:
            session.execute(update(Site).where(Site.id == site.id).values(values))

    def raise_if_failed(self, site_id: int) -> None:
        """Raise :class:`EngineNotAsked` if an update of the site's index failed a moment ago."""
        with self._lock:
            until, error = self._latest.get(site_id, (0.0, None))
            if error is None:
                return
            seconds = until - time.monotonic()
            if seconds <= 0:
                del self._latest[site_id]
                return
        retry_after = min(MAX_RETRY_SECONDS, max(error.retry_after, math.ceil(seconds)))
        raise EngineNotAsked(str(error), retry_after=retry_after)
