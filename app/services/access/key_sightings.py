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
from app.services.webhooks.webhooks import announce
from app.storage.database import ROW_LOCK, Database
from schemas.validation.webhooks import KEY_EXPOSED

log = logging.getLogger(__name__)

QUIET = timedelta(hours=1)
"""Time for which nothing more is said of a key that was seen in a page."""
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class Sighting:
    """A private key in a web page.

    Attributes:
        token_version: The key's at that moment; a rotation makes another.
        origin: The page's, as the browser sent it.
    """

    key_id: str
    token_version: int
    origin: str
    seen_at: datetime


class KeyExposures:
    """The private keys that web pages sent since the last write. A killed process loses at most half a minute of it."""

    def __init__(self, database: Database):
        self._database = database
        self._waiting: dict[str, Sighting] = {}
        self._noted_at: dict[tuple[str, int], datetime] = {}
        self._lock = threading.Lock()

    def note(self, key: KeyRecord, origin: str) -> None:
        """A page of ``origin`` sent ``key`` now. A token before a rotation is on its way out already."""
        name, moment = (key.id, key.token_version), now()
        noted_at = self._noted_at.get(name)
        if key.was_rotated or (noted_at is not None and moment - noted_at < QUIET):
            return
        self._noted_at[name] = moment
        self._waiting[key.id] = Sighting(key.id, key.token_version, _printable(origin), moment)

    def flush(self) -> None:
        """Write down the keys seen; all of them again the next time if that fails."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            for name, noted_at in list(self._noted_at.items()):
                if now() - noted_at >= QUIET:
                    self._noted_at.pop(name, None)
            if not waiting:
                return
            try:
                with self._database.write() as session:
                    # All processes lock keys in this order, so that none waits for another in a circle.
                    written = [waiting[key_id] for key_id in sorted(waiting) if _write(session, waiting[key_id])]
            except Exception:
                for key_id, sighting in waiting.items():
                    self._waiting.setdefault(key_id, sighting)
                raise
        for sighting in written:
            log.warning(
                "the private key %s is in a web page, whose Origin is %r: rotate it, and use a public key there",
                sighting.key_id,
                sighting.origin,
            )


def _write(session: Session, seen: Sighting) -> bool:
    """Tell whether it is news: of several processes that saw a key within the hour, one is told so.

    Webhooks are told the first time alone, until the key is rotated.
    """
    key = session.scalar(
        select(Key)
        .where(
            Key.id == seen.key_id,
            Key.token_version == seen.token_version,
            ~Key.exposure_dismissed,
            Key.exposed_at.is_(None) | (Key.exposed_at <= seen.seen_at - QUIET),
        )
        .with_for_update(of=Key, **ROW_LOCK)
    )
    if key is None:
        return False
    if key.exposed_at is None:
        data = {
            "site": {"id": key.site_id, "name": key.site.name},
            "key": {"id": key.id, "name": key.name},
            "origin": seen.origin,
            "seen_at": isoformat(seen.seen_at),
        }
        announce(session, key.account_id, KEY_EXPOSED, data)
    key.exposed_at, key.exposed_origin = seen.seen_at, seen.origin
    return True


def _printable(origin: str) -> str:
    """A header fit for a page, the log, and a column."""
    return "".join(character if " " < character < "\x7f" else "?" for character in origin[:300])


@dataclass(frozen=True, slots=True)
class ExposedKey:
    """A private key that was seen in a web page, for its owner."""

    id: str
    name: str
    site_id: int
    site_name: str
    origin: str
    seen_at: datetime


def list_exposed(session: Session, account_id: int) -> Sequence[ExposedKey]:
    """The account's usable private keys that were seen in web pages, the last seen first; not those dismissed."""
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
    """The keys used since the last write. A killed process loses at most a minute of it."""

    def __init__(self, database: Database):
        self._database = database
        self._used: dict[str, datetime] = {}
        self._seen: dict[str, tuple[str, datetime]] = {}
        self._lock = threading.Lock()

    def note(self, key_id: str, host: str | None = None) -> None:
        """Note that a key was used now.

        Args:
            host: That of the web page that used it; ``None`` if it was none, or is of no interest.
        """
        moment = now()
        self._used[key_id] = moment
        if host is not None:
            self._seen[key_id] = (host, moment)

    def flush(self) -> None:
        """Write down the keys used; all of them again the next time if that fails."""
        with self._lock:
            used, self._used = self._used, {}
            seen, self._seen = self._seen, {}
            if not used:
                return
            try:
                with self._database.write() as session:
                    # All processes lock keys in this order, so that none waits for another in a circle.
                    for key_id, moment in sorted(used.items()):
                        session.execute(
                            update(Key)
                            .where(Key.id == key_id, (Key.last_used_at.is_(None)) | (Key.last_used_at < moment))
                            .values(last_used_at=moment)
                        )
                        if key_id in seen:
                            host, seen_at = seen[key_id]
                            session.execute(
                                update(Key)
                                .where(Key.id == key_id, (Key.seen_at.is_(None)) | (Key.seen_at < seen_at))
                                .values(seen_host=host, seen_at=seen_at)
                            )
            except Exception:
                for key_id, moment in used.items():
                    self._used.setdefault(key_id, moment)
                for key_id, sighting in seen.items():
                    self._seen.setdefault(key_id, sighting)
                raise
