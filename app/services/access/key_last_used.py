"""Last uses of keys, and hosts of pages that used public ones: gathered in memory, written every half minute."""

from __future__ import annotations

import threading
from datetime import datetime

from sqlalchemy import update

from app.clock import now
from app.models import Key
from app.storage.database import Database


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
