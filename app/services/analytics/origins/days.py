"""Origins of searches: the channel by which they came, and the page from which somebody searched."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy.orm import Session

from app.models.events import OTHER_PAGES, SITE_KINDS
from app.services.analytics.bulk_sql import execute_rows, integers, upsert

MAX_PAGES = 500
"""Most rows with pages of their own that a site has on one day; the searches of other pages are added up."""

Origins = dict[tuple[int, int, str, str], list[int]]
"""(site, day, channel, page) to a number for each of ``SITE_KINDS``."""

_KEY = ("site_id", "day", "channel", "page")
_KEY_COLUMNS = "site_id:int day:int channel:text page:text"


def change_origin_days(session: Session, origins: Origins) -> None:
    """Add to ``origin_days``.

    A row stays when its numbers go to zero, so a page that has none once the day is full never gets one: what is
    counted no longer leaves the row where it was counted.

    Args:
        session: A write transaction that has locked all sites.
    """
    changed = {key: numbers for key, numbers in origins.items() if any(numbers)}
    if not changed:
        return
    paged = sorted(key for key in changed if key[3])
    known = _known(session, paged) if paged else set()
    counts = _count_pages(session, {key[:2] for key in paged}) if paged else {}
    rows: dict[tuple[int, int, str, str], list[int]] = defaultdict(lambda: [0] * len(SITE_KINDS))
    for key, numbers in sorted(changed.items()):
        site_id, day, channel, page = key
        if page and key not in known:
            if counts.get((site_id, day), 0) < MAX_PAGES:
                counts[site_id, day] = counts.get((site_id, day), 0) + 1
            else:
                key = site_id, day, channel, OTHER_PAGES
        rows[key] = [a + b for a, b in zip(rows[key], numbers, strict=True)]
    statement = upsert("origin_days", _KEY, SITE_KINDS)
    columns = f"{_KEY_COLUMNS} {integers(SITE_KINDS)}"
    execute_rows(session, statement, columns, [(*key, *numbers) for key, numbers in sorted(rows.items())])


def _known(session: Session, keys: list[tuple[int, int, str, str]]) -> set[tuple[int, int, str, str]]:
    rows = execute_rows(
        session,
        """
        SELECT site_id, day, channel, page FROM {rows} AS wanted WHERE EXISTS (
            SELECT 1 FROM origin_days
            WHERE origin_days.site_id = wanted.site_id AND origin_days.day = wanted.day
                AND origin_days.channel = wanted.channel AND origin_days.page = wanted.page
        )
        """,
        _KEY_COLUMNS,
        keys,
    )
    return {(site_id, day, channel, page) for site_id, day, channel, page in rows}


def _count_pages(session: Session, days: set[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Rows with pages of their own, by site and day."""
    rows = execute_rows(
        session,
        """
        SELECT wanted.site_id, wanted.day, count(*)
        FROM {rows} AS wanted JOIN origin_days
            ON origin_days.site_id = wanted.site_id AND origin_days.day = wanted.day
        WHERE page NOT IN ('', :others) GROUP BY wanted.site_id, wanted.day
        """,
        "site_id:int day:int",
        sorted(days),
        others=OTHER_PAGES,
    )
    return {(site_id, day): int(count) for site_id, day, count in rows}
