"""Tables of the SQLite store, and the deletion of rows that have expired."""

from __future__ import annotations

from app.counters.metering import INTENT_KEPT_SECONDS, USAGE_DAYS_KEPT
from app.counters.sqlite.housekeeper import Execute

VERSION = 1
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS windows (key TEXT PRIMARY KEY, hits INTEGER, reset_ms INTEGER) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS windows_by_end ON windows (reset_ms)",
    "CREATE TABLE IF NOT EXISTS days (account_id INTEGER, day INTEGER, used INTEGER DEFAULT 0,"
    " indexing INTEGER DEFAULT 0, PRIMARY KEY (account_id, day)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS days_by_day ON days (day)",
    "CREATE TABLE IF NOT EXISTS site_days (account_id INTEGER, day INTEGER, site_id INTEGER, gateway INTEGER,"
    " trusted INTEGER, capped INTEGER, PRIMARY KEY (account_id, day, site_id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS site_days_by_day ON site_days (day)",
    "CREATE TABLE IF NOT EXISTS reports (account_id INTEGER, key TEXT, fingerprint TEXT, until_ms INTEGER,"
    " PRIMARY KEY (account_id, key)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS reports_by_end ON reports (until_ms)",
    "CREATE TABLE IF NOT EXISTS epochs (account_id INTEGER PRIMARY KEY, started INTEGER, finished INTEGER,"
    " begun_ms INTEGER)",
    "CREATE INDEX IF NOT EXISTS epochs_open ON epochs (begun_ms) WHERE finished < started",
    "CREATE TABLE IF NOT EXISTS intents (key TEXT, began_ms INTEGER, day INTEGER, text TEXT, last_ms INTEGER,"
    " requests INTEGER, failed INTEGER, PRIMARY KEY (key, began_ms)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS intents_by_last ON intents (last_ms)",
    "CREATE TABLE IF NOT EXISTS refusals (account_id INTEGER, day INTEGER, searches INTEGER,"
    " PRIMARY KEY (account_id, day)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS refusals_by_day ON refusals (day)",
    "CREATE TABLE IF NOT EXISTS incarnations (id TEXT)",
)

# Subqueries, because DELETE supports LIMIT only in specially compiled versions of SQLite.
_SWEEPS = (
    "DELETE FROM windows WHERE key IN (SELECT key FROM windows WHERE reset_ms <= :now_ms LIMIT :rows)",
    "DELETE FROM reports WHERE (account_id, key) IN"
    " (SELECT account_id, key FROM reports WHERE until_ms <= :now_ms LIMIT :rows)",
    "DELETE FROM days WHERE (account_id, day) IN (SELECT account_id, day FROM days WHERE day < :day LIMIT :rows)",
    "DELETE FROM site_days WHERE (account_id, day, site_id) IN"
    " (SELECT account_id, day, site_id FROM site_days WHERE day < :day LIMIT :rows)",
    "DELETE FROM intents WHERE (key, began_ms) IN"
    " (SELECT key, began_ms FROM intents WHERE last_ms <= :intents_ms LIMIT :rows)",
    "DELETE FROM refusals WHERE (account_id, day) IN"
    " (SELECT account_id, day FROM refusals WHERE day < :day LIMIT :rows)",
)
_SWEPT_ROWS = 100


class Latest:
    """The time of the latest hit, for the sweep. It comes from the callers' clocks, not this machine's."""

    now_ms: int | None = None


def sweep(latest: Latest, execute: Execute) -> bool:
    """Delete a few expired rows of each kind. Returns whether there may be more.

    Nothing is deleted before the first hit reveals the time.
    """
    now_ms = latest.now_ms
    if now_ms is None:
        return False
    values = {
        "now_ms": now_ms,
        "intents_ms": now_ms - INTENT_KEPT_SECONDS * 1000,
        "day": now_ms // 86_400_000 - USAGE_DAYS_KEPT,
        "rows": _SWEPT_ROWS,
    }
    return max(execute(statement, values).rowcount for statement in _SWEEPS) >= _SWEPT_ROWS
