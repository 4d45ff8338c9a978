"""Analytics reports as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from app.services.analytics.reports import Analytics

COLUMNS = ("list", "query", "count", "clicks", "click_through_rate", "average_click_position")
_LISTS = ("top_queries", "zero_result_queries", "partial_queries", "no_click_queries")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that begin a formula in at least one spreadsheet program, including full-width forms."""


def encode_csv(analytics: Analytics) -> str:
    """Return the lists as CSV (RFC 4180), one line per list and query, page, or channel. Unknown rates are empty.

    Visitors choose the queries, and spreadsheet programs run cells that look like formulas; an apostrophe prevents
    that.
    """
    rows: list[tuple[str, str, int, int | None, float | None, float | None]] = [
        *(
            (name, each.query, each.count, each.clicks, each.click_through_rate, each.average_click_position)
            for name in _LISTS
            for each in getattr(analytics, name)
        ),
        *(
            ("clicked_pages", page.id, page.clicks, page.clicks, None, page.average_position)
            for page in analytics.clicked_pages
        ),
        *(("pages", page.page, page.searches, None, None, None) for page in analytics.pages),
        *(("channels", each.channel, each.searches, each.clicks, None, None) for each in analytics.channels),
    ]
    return csv_lines([COLUMNS, *((name, harmless(subject), *numbers) for name, subject, *numbers in rows)])


def csv_lines(rows: Iterable[Iterable[object]]) -> str:
    """Format rows as CSV lines."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def harmless(text: str) -> str:
    """Return a text as a cell that no spreadsheet treats as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
