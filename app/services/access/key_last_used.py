"""Times of the last use of keys: gathered in memory, written every half minute."""

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
        self._lock = threading.Lock()

    def note(self, key_id: str) -> None:
        """A key was used now."""
        self._used[key_id] = now()

    def flush(self) -> None:
        """Write down the keys used; all of them again the next time if that fails."""
        with self._lock:
            used, self._used = self._used, {}
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
            except Exception:
                for key_id, moment in used.items():
                    self._used.setdefault(key_id, moment)
                raise
