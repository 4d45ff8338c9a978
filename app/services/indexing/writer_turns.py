"""The turns of a process's threads that update indexes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from backends.servers.waiting import wait_for

MAX_WRITERS = 16
"""Maximum number of sites whose index a process updates at the same time. Each may hold a connection to PostgreSQL."""


class WriterTurns:
    """Turns of writers: one at each site, and :data:`MAX_WRITERS` in all.

    Threads queue here first: one thread takes the lock between processes and applies the changes of all of them.
    """

    def __init__(self) -> None:
        # Never removed: one thread could hold the removed lock while another takes a new one.
        self._of_sites: dict[int, threading.Lock] = {}
        self._of_all = threading.BoundedSemaphore(MAX_WRITERS)

    @contextmanager
    def turn_at(self, site_id: int) -> Iterator[None]:
        """Wait for a turn at a site, and keep it until the context ends."""
        with wait_for(self._of_sites.setdefault(site_id, threading.Lock())), wait_for(self._of_all):
            yield
