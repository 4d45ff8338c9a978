"""Turns at hosts, shared by all sites, processes, and machines of the installation: one row for each host."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app import clock
from app.crawl.fetch.politeness import HostPace, Turn, Turns
from app.models import CrawlHost
from app.storage.database import ROW_LOCK, Database

KEPT_SECONDS = 3600.0
"""Seconds after the last request until a host's row is deleted."""


class SharedTurns(Turns):
    """Turns in SQL. The clocks of all machines must agree to a fraction of a second (NTP).

    Args:
        now: Returns the current time in Unix seconds.
    """

    def __init__(self, database: Database, now: Callable[[], float] = lambda: clock.now().timestamp()):
        self._database = database
        self._now = now

    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        # Most attempts must wait, and a read, unlike a write, does not queue behind other writers.
        with self._database.read() as session:
            _, turn = _load_pace(session.get(CrawlHost, host)).take(host, self._now(), crawl_delay=crawl_delay)
        if not isinstance(turn, Turn):
            return turn
        # The host seemed to be free; only the holder of the row lock can be sure.
        with self._database.write() as session:
            row = _lock(session, host)
            pace, turn = _load_pace(row).take(host, self._now(), crawl_delay=crawl_delay)
            _store_pace(row, pace)
        return turn

    def give_back(self, turn: Turn, *, pause: float = 0.0) -> None:
        with self._database.write() as session:
            row = _lock(session, turn.host)
            _store_pace(row, _load_pace(row).give_back(turn, self._now(), pause=pause))

    def forget_idle(self) -> None:
        """Delete the rows of hosts without recent requests."""
        with self._database.write() as session:
            session.execute(delete(CrawlHost).where(CrawlHost.next_at < self._now() - KEPT_SECONDS))


def _lock(session: Session, host: str) -> CrawlHost:
    query = select(CrawlHost).where(CrawlHost.host == host).with_for_update(**ROW_LOCK)
    row = session.scalar(query)
    if row is not None:
        return row
    try:
        # A savepoint, since PostgreSQL aborts the whole transaction after an error.
        with session.begin_nested():
            session.execute(insert(CrawlHost).values(host=host, next_at=0.0, slowness=0.0, taken={}))
    except IntegrityError:
        pass  # Another process inserted the row first.
    return session.scalars(query).one()


def _load_pace(row: CrawlHost | None) -> HostPace:
    return HostPace() if row is None else HostPace(row.next_at, row.slowness, row.taken)


def _store_pace(row: CrawlHost, pace: HostPace) -> None:
    # A new dictionary: SQLAlchemy notices a change of JSON only if the value is replaced.
    row.next_at, row.slowness, row.taken = pace.next_at, pace.slowness, dict(pace.active)
