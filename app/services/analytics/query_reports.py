"""Analytics of one query: its searches, and the clicks on its results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import ApiError, ErrorCode
from app.models import Site
from app.services.analytics.clicks import document_key
from app.services.analytics.report_parts import mean, share_of
from app.services.analytics.reports import EPOCH, snapshot
from app.services.analytics.titles import read_titles
from app.storage.database import execute_rows
from backends.text import normal_form

MAX_CLICKED_DOCUMENTS = 100
"""Maximum number of listed documents, and of listed sections for each document."""


@dataclass(frozen=True, slots=True)
class QueryDayCount:
    """Counts of a query for one UTC day."""

    date: date
    searches: int
    zero_results: int
    clicks: int


@dataclass(frozen=True, slots=True)
class ClickedAnchor:
    """A section of a document that clicks led to."""

    anchor: str
    clicks: int


@dataclass(frozen=True, slots=True)
class ClickedDocument:
    """A clicked document.

    Attributes:
        title: Current title; ``None`` if the document was deleted.
        average_position: Mean of the reported positions, from 1; ``None`` if no click reported its position.
        anchors: Sections that clicks led to, at most 100, by clicks, then anchor.
    """

    id: str
    title: str | None
    clicks: int
    average_position: float | None
    anchors: Sequence[ClickedAnchor] = ()


@dataclass(frozen=True, slots=True)
class QueryAnalytics:
    """Analytics of one query on one site in a period of UTC calendar days.

    Attributes:
        query: The query, in normal form.
        searches: Number of searches, with keystrokes merged.
        click_through_rate: Share of searches with a click, from 0 to 1; ``None`` without searches.
        average_click_position: From 1; ``None`` if no click reported its position.
        series: One entry per day, oldest first.
        clicked_documents: At most 100, by clicks, then ID.
    """

    query: str
    searches: int
    clicks: int
    click_through_rate: float | None
    average_click_position: float | None
    series: Sequence[QueryDayCount]
    clicked_documents: Sequence[ClickedDocument]


def get_query_analytics(
    session: Session, account_id: int, site_id: int, query: str, period_days: int, today: date
) -> QueryAnalytics:
    """Return the analytics of one query, including every event moved to SQL so far.

    Args:
        account_id: The caller's account.
        query: The query, in any form.
        period_days: UTC calendar days including ``today``.

    Raises:
        ApiError: 404 if the site does not belong to the account.
    """
    if period_days < 1:
        raise ValueError("period_days must be at least 1")
    query = normal_form(query)
    last = (today - EPOCH).days
    days = range(last - period_days + 1, last + 1)
    with snapshot(session) as session:
        own_site = Site.id == site_id, Site.account_id == account_id, Site.deleted_at.is_(None)
        if session.scalar(select(Site.id).where(*own_site)) is None:
            raise ApiError(ErrorCode.SITE_NOT_FOUND, "Site not found.")
        counts_by_day = _query_days(session, site_id, query, days)
        documents = _clicked_documents(session, site_id, query, days)
    searches, _, clicks, clicked_searches, positioned_clicks, click_positions = [
        sum(column) for column in zip(*counts_by_day.values(), strict=True)
    ] or [0] * len(_COLUMNS)
    return QueryAnalytics(
        query=query,
        searches=searches,
        clicks=clicks,
        click_through_rate=share_of(clicked_searches, searches),
        average_click_position=mean(click_positions, positioned_clicks),
        series=[QueryDayCount(EPOCH + timedelta(days=day), *counts_by_day.get(day, (0, 0, 0))[:3]) for day in days],
        clicked_documents=documents,
    )


_COLUMNS = ("searches", "zero_results", "clicks", "clicked_searches", "positioned_clicks", "click_positions")


def _query_days(session: Session, site_id: int, query: str, days: Sequence[int]) -> dict[int, Sequence[int]]:
    """Return the values of ``_COLUMNS`` by day.

    The day precedes the query in the table's key, so each day takes one lookup.
    """
    rows = execute_rows(
        session,
        f"""
        SELECT query_days.day, {", ".join(_COLUMNS)} FROM {{rows}} AS wanted CROSS JOIN query_days
        WHERE site_id = :site_id AND query_days.day = wanted.day AND query = :query
        """,  # noqa: S608 - made of constants
        "day:int",
        [(day,) for day in days],
        site_id=site_id,
        query=query,
    )
    return {day: numbers for day, *numbers in rows}


def _clicked_documents(session: Session, site_id: int, query: str, days: Sequence[int]) -> list[ClickedDocument]:
    rows = execute_rows(
        session,
        """
        SELECT document_id, sum(clicks), sum(positioned_clicks), sum(click_positions)
        FROM {rows} AS wanted CROSS JOIN click_days
        WHERE site_id = :site_id AND click_days.day = wanted.day AND query = :query
        GROUP BY document_id ORDER BY 2 DESC, document_id LIMIT :limit
        """,
        "day:int",
        [(day,) for day in days],
        site_id=site_id,
        query=query,
        limit=MAX_CLICKED_DOCUMENTS,
    ).all()
    ids = [row[0] for row in rows]
    titles = read_titles(session, [(site_id, document_id) for document_id in ids])
    anchors = _clicked_anchors(session, site_id, query, days, ids)
    return [
        ClickedDocument(
            document_id,
            titles.get((site_id, document_id)),
            int(clicks),
            mean(int(positions), int(positioned)),
            tuple(anchors[document_key(document_id)][:MAX_CLICKED_DOCUMENTS]),
        )
        for document_id, clicks, positioned, positions in rows
    ]


def _clicked_anchors(
    session: Session, site_id: int, query: str, days: Sequence[int], ids: Sequence[str]
) -> Mapping[int, list[ClickedAnchor]]:
    """Return clicked sections by document key."""
    rows = execute_rows(
        session,
        """
        SELECT click_anchor_days.document_key, anchor, sum(clicks) FROM {rows} AS wanted CROSS JOIN click_anchor_days
        WHERE site_id = :site_id AND click_anchor_days.day = wanted.day AND query = :query
            AND click_anchor_days.document_key = wanted.document_key
        GROUP BY click_anchor_days.document_key, anchor ORDER BY 3 DESC, anchor
        """,
        "day:int document_key:int",
        [(day, document_key(document_id)) for day in days for document_id in ids],
        site_id=site_id,
        query=query,
    )
    anchors: dict[int, list[ClickedAnchor]] = defaultdict(list)
    for key, anchor, clicks in rows:
        anchors[key].append(ClickedAnchor(anchor, int(clicks)))
    return anchors
