"""Observed uses of keys: when each key was last used, and private keys that were seen in web pages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.clock import isoformat, now
from app.models import Key, Site
from app.services.access.credentials import KeyRecord
from app.services.sites import listed
from app.services.webhooks import announce
from app.storage.database import ROW_LOCK, Database
from schemas.validation.webhooks import KEY_EXPOSED

log = logging.getLogger(__name__)

QUIET = timedelta(hours=1)
"""Minimum time between two reports of the same exposed key."""
MAX_LISTED = 100
"""Maximum number of exposed keys that the dashboard lists."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A use of a private key by a web page.

    Attributes:
        token_version: The key's token version at that time; a rotation changes it.
        origin: Origin of the page, from the browser's header.
    """

    key_id: str
    token_version: int
    origin: str
    seen_at: datetime


class KeyExposures:
    """Private keys that web pages sent since the last flush. A killed process loses at most 30 seconds of sightings."""

    def __init__(self, database: Database):
        self._database = database
        self._waiting: dict[str, Sighting] = {}
        self._noted_at: dict[tuple[str, int], datetime] = {}
        self._lock = threading.Lock()

    def record(self, key: KeyRecord, origin: str) -> None:
        """Record that a page of ``origin`` sent ``key``. Ignores old tokens of rotated keys, which expire anyway."""
        name, moment = (key.id, key.token_version), now()
        noted_at = self._noted_at.get(name)
        # A page may send thousands of requests a minute, and each would otherwise cause a transaction.
        if key.was_rotated or (noted_at is not None and moment - noted_at < QUIET):
            return
        self._noted_at[name] = moment
        self._waiting[key.id] = Sighting(key.id, key.token_version, _printable(origin), moment)

    def flush(self) -> None:
        """Write the sightings to SQL. If that fails, the next flush tries again."""
        with self._lock:
            unwritten, self._waiting = self._waiting, {}
            # Forget keys after their quiet time, so that the dictionary stays small.
            for name, noted_at in list(self._noted_at.items()):
                if now() - noted_at >= QUIET:
                    self._noted_at.pop(name, None)
            if not unwritten:
                return
            try:
                with self._database.write() as session:
                    # All processes lock keys in the same order, so they cannot deadlock.
                    written = [unwritten[key_id] for key_id in sorted(unwritten) if _write(session, unwritten[key_id])]
            except Exception:
                for key_id, sighting in unwritten.items():
                    # ``setdefault``, because a newer sighting may have arrived meanwhile.
                    self._waiting.setdefault(key_id, sighting)
                raise
        for sighting in written:
            log.warning(
                "private key %s is used in a web page with the Origin %r; rotate the key and use a public key there",
                sighting.key_id,
                sighting.origin,
            )


def _write(session: Session, sighting: Sighting) -> bool:
    """Store a sighting. Returns ``False`` for an outdated, dismissed, or repeated sighting.

    A sighting is repeated if any process stored a sighting of the key within the last hour. Webhooks are notified only
    of the first sighting after each rotation.
    """
    key = session.scalar(
        select(Key)
        .where(
            Key.id == sighting.key_id,
            Key.token_version == sighting.token_version,
            ~Key.exposure_dismissed,
            Key.exposed_at.is_(None) | (Key.exposed_at <= sighting.seen_at - QUIET),
        )
        .with_for_update(of=Key, **ROW_LOCK)
    )
    if key is None:
        return False
    if key.exposed_at is None:
        data = {
            "site": {"id": key.site_id, "name": key.site.name},
            "key": {"id": key.id, "name": key.name},
            "origin": sighting.origin,
            "seen_at": isoformat(sighting.seen_at),
        }
        announce(session, key.account_id, KEY_EXPOSED, data)
    key.exposed_at, key.exposed_origin = sighting.seen_at, sighting.origin
    return True


def _printable(origin: str) -> str:
    """``"https://é.example" -> "https://?.example"``: safe in pages, logs, and a column."""
    return "".join(character if " " < character < "\x7f" else "?" for character in origin[:300])


@dataclass(frozen=True, slots=True)
class ExposedKey:
    """A private key that a web page sent, as listed for the account."""

    id: str
    name: str
    site_id: int
    site_name: str
    origin: str
    seen_at: datetime


def list_exposed(session: Session, account_id: int) -> Sequence[ExposedKey]:
    """Return the account's usable private keys that web pages sent, latest first, except dismissed keys."""
    keys = session.scalars(
        select(Key)
        .join(Site, Site.id == Key.site_id)
        .where(
            listed(account_id),
            Key.exposed_at.is_not(None),
            ~Key.exposure_dismissed,
            Key.active,
            Key.expires_at.is_(None) | (Key.expires_at > now()),
        )
        .order_by(Key.exposed_at.desc(), Key.id)
        .limit(MAX_LISTED)
    )
    return [
        ExposedKey(key.id, key.name, key.site_id, key.site.name, key.exposed_origin or "", key.exposed_at)
        for key in keys
        if key.exposed_at is not None
    ]


class KeysLastUsed:
    """Keys used since the last flush. A killed process loses at most a minute of uses."""

    def __init__(self, database: Database):
        self._database = database
        self._used: dict[str, datetime] = {}
        self._page_uses: dict[str, tuple[str, datetime]] = {}
        self._lock = threading.Lock()

    def record(self, key_id: str, host: str | None = None) -> None:
        """Record that a key was used now.

        Args:
            host: Host of the web page that used it; ``None`` for other callers.
        """
        moment = now()
        self._used[key_id] = moment
        if host is not None:
            self._page_uses[key_id] = (host, moment)

    def flush(self) -> None:
        """Write the uses to SQL. If that fails, the next flush tries again."""
        with self._lock:
            used, self._used = self._used, {}
            page_uses, self._page_uses = self._page_uses, {}
            if not used:
                return
            try:
                with self._database.write() as session:
                    # All processes lock keys in the same order, so they cannot deadlock.
                    for key_id, moment in sorted(used.items()):
                        session.execute(
                            update(Key)
                            # Another process may have stored a later use already.
                            .where(Key.id == key_id, (Key.last_used_at.is_(None)) | (Key.last_used_at < moment))
                            .values(last_used_at=moment)
                        )
                        if key_id in page_uses:
                            host, seen_at = page_uses[key_id]
                            session.execute(
                                update(Key)
                                .where(Key.id == key_id, (Key.seen_at.is_(None)) | (Key.seen_at < seen_at))
                                .values(seen_host=host, seen_at=seen_at)
                            )
            except Exception:
                for key_id, moment in used.items():
                    self._used.setdefault(key_id, moment)
                for key_id, sighting in page_uses.items():
                    self._page_uses.setdefault(key_id, sighting)
                raise
