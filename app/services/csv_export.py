"""Analytics as a table, for spreadsheets."""

from __future__ import annotations

import csv
import io

from app.services.analytics.reports import Analytics

COLUMNS = ("list", "query", "count", "clicks", "click_through_rate", "average_click_position")
_LISTS = ("top_queries", "zero_result_queries", "partial_queries", "no_click_queries")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula in some spreadsheet, wide forms included."""


def encode_csv(analytics: Analytics) -> str:
    """The lists as CSV (RFC 4180), one line per list and query, page, or channel; a rate that is not known is empty.

    Visitors choose the queries, and spreadsheets run cells that look like formulas: an apostrophe stops them.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for name in _LISTS:
        for item in getattr(analytics, name):
            writer.writerow(
                (
                    name,
                    harmless(item.query),
                    item.count,
                    item.clicks,
                    item.click_through_rate,
                    item.average_click_position,
                )
            )
    rows: list[tuple[str, str, int, int | None, float | None, float | None]] = [
        *(
            ("clicked_pages", page.id, page.clicks, page.clicks, None, page.average_position)
            for page in analytics.clicked_pages
        ),
        *(("pages", page.page, page.searches, None, None, None) for page in analytics.pages),
        *(("channels", each.channel, each.searches, each.clicks, None, None) for each in analytics.channels),
    ]
    writer.writerows((name, harmless(what), *numbers) for name, what, *numbers in rows)
    return text.getvalue()


def harmless(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
