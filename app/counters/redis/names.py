"""Names of the keys in Redis."""

from __future__ import annotations

from app.counters.metering import USAGE_DAYS_KEPT, milliseconds
from app.counters.values import Intent, IntentRequest

PREFIX = "sitesearch:counters:"
OPEN_CHANGES = f"{PREFIX}open-changes"
INCARNATION = f"{PREFIX}incarnation"
CHECK = f"{PREFIX}check"
SLOTS = f"{PREFIX}slot:"


def window(key: str) -> str:
    return f"{PREFIX}window:{key}"


def day(account_id: int | None, day: int) -> str:
    return f"{PREFIX}day:{account_id}:{day}"


def sites(account_id: int | None, day: int) -> str:
    return f"{PREFIX}sites:{account_id}:{day}"


def last_intent(intent: IntentRequest | None) -> str:
    # Its value is the start of the visitor's last intent, which is part of the name of that intent's record.
    return f"{PREFIX}intent:{'' if intent is None else intent.key}"


def intent(intent: Intent | None) -> str:
    return f"{PREFIX}intent:" + ("" if intent is None else f"{intent.key}:{intent.began_ms}")


def reports(account_id: int) -> tuple[str, str]:
    return f"{PREFIX}reports:{account_id}", f"{PREFIX}report-ends:{account_id}"


def epoch(account_id: int | str | None) -> str:
    return f"{PREFIX}epoch:{account_id}"


def kept_days(now: float) -> range:
    today = milliseconds(now) // 86_400_000
    # Includes tomorrow, in which a machine whose clock is ahead may already count.
    return range(today - USAGE_DAYS_KEPT, today + 2)
