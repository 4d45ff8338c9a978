"""Visitors: anonymous IDs for analytics, and counting the visitors of queries.

An ID is a hash of the IP address with the server's secret and a random key that all machines share. The key changes
every :data:`KEY_DAYS` days, and the old key is deleted; from then on, an ID cannot be traced back. A visitor who
searches before and after a change is counted twice.

An event is counted as it arrives and may be replaced by a later keystroke, so ``query_visits`` stores the number of
counted events of each visitor and day. A visitor counts only on the last day with such events. The daily visitors of a
period that ends today therefore add up to the number of distinct visitors.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Network
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, literal_column, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.clock import now
from app.models import VisitorKey
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.storage.database import Database, execute_rows, is_unavailable

KEY_DAYS = 30
"""UTC days for which a key is used."""

NETWORK_BITS = 32
"""Number of bits of a visitor ID that identify the network. The other 32 bits identify the visitor."""

_RETRY_SECONDS = 5.0
_NO_PERIOD = -1
# If two processes add the key of a period at the same time, the first one applies.
_ADD_KEY = text("INSERT INTO visitor_keys (period, key) VALUES (:period, :key) ON CONFLICT DO NOTHING")

log = logging.getLogger(__name__)


class VisitorKeys:
    """The current visitor key, which each process reads once.

    Args:
        database: Database through which processes share the key.
        secret: The server's secret, so that a copy of the database is not enough to hash an address.
    """

    def __init__(self, database: Database, secret: str):
        self._database = database
        self._secret = hashlib.sha256(secret.encode()).digest()
        self._current: tuple[int, bytes] | None = None
        self._retry_at = 0.0
        self._lock = threading.Lock()

    def address_visitor(self, site_id: int, address: str) -> int:
        """Return the ID of a visitor to a site by IP address: a signed 64-bit number, different for each site.

        The first :data:`NETWORK_BITS` bits identify the IPv4 address, or the /48 network of an IPv6 address, because a
        single customer of a provider may have a whole /48 network.

        Args:
            address: An IPv4 address or an IPv6 network.
        """
        first = self._hash(f"{site_id}:{_network(address)}", 4)
        return int.from_bytes(first + self._hash(f"{site_id}:{address}", 4), signed=True)

    def address_session(self, holder: str, address: str) -> str:
        """Return a session ID for callers that send none, which is unique per engine key, address, and UTC day.

        Args:
            holder: Holder of the engine key.
        """
        return self._hash(f"{holder}:{_today()}:{address}", 12).hex()

    def _hash(self, text: str, size: int) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "replace"), key=self._key(), digest_size=size).digest()

    def _key(self) -> bytes:
        period = key_period(_today())
        current = self._current
        if current is not None and (current[0] == period or time.monotonic() < self._retry_at):
            return current[1]
        with self._lock:
            if self._current is not None and self._current[0] == period:
                return self._current[1]
            try:
                # With the server's secret, so that the database alone does not reveal IP addresses: there are only four
                # billion IPv4 addresses to try.
                self._current = period, self._read(period) + self._secret
            except SQLAlchemyError as error:
                if not is_unavailable(error):
                    raise
                log.warning("using a temporary visitor key until the next one can be read: %s", error)
                # Use the last key, or a random key of this process. A visitor may then be counted twice.
                self._current = current or (_NO_PERIOD, secrets.token_bytes(32) + self._secret)
                self._retry_at = time.monotonic() + _RETRY_SECONDS
            return self._current[1]

    def _read(self, period: int) -> bytes:
        """Return the key of a period. The first process that needs the key creates it."""
        query = select(VisitorKey.key).where(VisitorKey.period == period)
        with self._database.read() as session:
            key = session.scalar(query)
        if key is None:
            with self._database.write() as session:
                session.execute(_ADD_KEY, {"period": period, "key": secrets.token_bytes(32)})
                key = session.scalars(query).one()
        return key


def _network(address: str) -> str:
    if ":" not in address:
        return address
    try:
        # A customer of a provider may have a whole /48 network.
        return str(IPv6Network(address).supernet(new_prefix=48))
    except ValueError:
        return address


def network_of(visitor: InstrumentedAttribute[int | None]) -> ColumnElement[int | None]:
    """Return an expression that is equal for all visitors of one network: see :meth:`VisitorKeys.address_visitor`."""
    # A literal: PostgreSQL shifts a bigint by an integer only, and a bound number is a bigint there.
    return visitor.bitwise_rshift(literal_column(str(NETWORK_BITS)))


def session_visitor(site_id: int, session_id: str) -> int:
    """Return the visitor ID for a session that the site's own server reports: a signed 64-bit number."""
    return int.from_bytes(hashlib.blake2b(f"{site_id}:{session_id}".encode(), digest_size=8).digest(), signed=True)


def key_period(day: int) -> int:
    """Return the number of the key period that contains a UTC day; both are counted from 1970-01-01."""
    return day // KEY_DAYS


def forget_visitor_keys(database: Database, today: int) -> None:
    """Delete the keys that are no longer used.

    Args:
        today: The current UTC day.
    """
    with database.write() as session:
        session.execute(delete(VisitorKey).where(VisitorKey.period < key_period(today)))


def _today() -> int:
    return to_microseconds(now()) // DAY_MICROSECONDS


class Visit(NamedTuple):
    """A visitor's searches for one query on one day, of one kind of ``VISITOR_KINDS``."""

    site_id: int
    day: int
    query: str
    visitor: int
    kind: str

    @property
    def digest(self) -> int:
        """Signed 64-bit hash of visitor, query, and kind."""
        text = f"{self.visitor}\0{self.query}\0{self.kind}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


VisitorCounts = dict[tuple[int, int, str, str], int]
"""Number of visitors by site, day, query, and kind."""

_Key = tuple[int, int]
"""Site and digest of a visit, on any day."""


def change_visits(session: Session, visits: Mapping[Visit, int], first_day: int) -> VisitorCounts:
    """Add events to ``query_visits``, or subtract them.

    Args:
        visits: Visit to number of events.
        first_day: Visits before this day are outside every reporting period and may be deleted at any time.

    Returns:
        Change in the number of visitors of each query.
    """
    changed = {(visit.site_id, visit.day, visit.digest): visit for visit, events in visits.items() if events}
    visitors: VisitorCounts = defaultdict(int)
    if not changed:
        return visitors
    kinds = {(visit.site_id, digest): visit for (_, _, digest), visit in changed.items()}
    before = _last_days(session, kinds, first_day)
    emptied = [
        (site_id, day, digest)
        for site_id, day, digest, events in execute_rows(
            session,
            """
            INSERT INTO query_visits (site_id, day, visit, events)
            SELECT site_id, day, visit, events FROM {rows} AS changed WHERE true
            ON CONFLICT (site_id, day, visit) DO UPDATE SET events = query_visits.events + excluded.events
            RETURNING site_id, day, visit, events
            """,
            "site_id:int day:int visit:int events:int",
            [(*key, visits[visit]) for key, visit in sorted(changed.items(), key=lambda item: item[0])],
        )
        if events <= 0  # Negative if the event was counted before visits were stored.
    ]
    if emptied:
        execute_rows(
            session,
            """
            DELETE FROM query_visits
            WHERE (site_id, day, visit) IN (SELECT site_id, day, visit FROM {rows} AS emptied)
            """,
            "site_id:int day:int visit:int",
            emptied,
        )
    after = _last_days(session, kinds, first_day)
    # A visitor counts only on the last day, so compare the last days before and after the change.
    for key, visit in kinds.items():
        for days, change in ((before, -1), (after, 1)):
            if key in days:
                visitors[visit.site_id, days[key], visit.query, visit.kind] += change
    return visitors


def _last_days(session: Session, keys: Iterable[_Key], first_day: int) -> dict[_Key, int]:
    """Return the last day of each visit, ignoring days before ``first_day``."""
    rows = execute_rows(
        session,
        """
        SELECT wanted.site_id, wanted.visit, (
            SELECT max(day) FROM query_visits
            WHERE query_visits.site_id = wanted.site_id AND query_visits.visit = wanted.visit AND day >= :first_day
        ) FROM {rows} AS wanted
        """,
        "site_id:int visit:int",
        sorted(keys),
        first_day=first_day,
    )
    return {(site_id, digest): day for site_id, digest, day in rows if day is not None}
