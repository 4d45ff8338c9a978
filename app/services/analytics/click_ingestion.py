"""Storing clicks from journals in SQL, without duplicates, and counting them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from app.models.events import DAY_MICROSECONDS
from app.services.analytics.event_journal import ClickEntry
from app.services.analytics.rollups import Changes
from app.services.analytics.visits import execute_rows
from backends.text import normal_form


def ingest_clicks(session: Session, entries: Iterable[ClickEntry], changes: Changes) -> None:
    """Store clicks and count new ones.

    Args:
        session: A write transaction that has locked the sites of all ``entries``.
        entries: In order of arrival.
        changes: Collects the counts.
    """
    clicks: dict[tuple[int, int, str], ClickEntry] = {}
    for entry in entries:
        clicks.setdefault((entry.site_id, entry.search_key, entry.document_id), entry)
    if not clicks:
        return
    clicked = clicked_searches(session, [(click.site_id, click.search_key) for click in clicks.values()])
    added = _insert(session, clicks.values())
    for key, click in clicks.items():
        if key in added:
            search = click.site_id, click.search_key
            day = click.occurred_at // DAY_MICROSECONDS
            changes.add_click(
                (click.site_id, day, normal_form(click.query), click.document_id),
                click.position,
                click.anchor,
                click.channel,
                first=search not in clicked,
            )
            clicked.add(search)


def clicked_searches(session: Session, searches: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the searches that have clicks, as pairs of site ID and search key."""
    rows = execute_rows(
        session,
        """
        SELECT site_id, search_key FROM {rows} AS search WHERE EXISTS (
            SELECT 1 FROM search_clicks AS click
            WHERE click.site_id = search.site_id AND click.search_key = search.search_key
        )
        """,
        "site_id:int search_key:int",
        sorted(set(searches)),
    )
    return {(site_id, search_key) for site_id, search_key in rows}


def _insert(session: Session, clicks: Iterable[ClickEntry]) -> set[tuple[int, int, str]]:
    """Insert clicks. Returns the site ID, search key, and document ID of each new click."""
    columns = "site_id, search_key, query, document_id, position, occurred_at, visitor, channel, session_id"
    rows = execute_rows(
        session,
        f"""
        INSERT INTO search_clicks ({columns}) SELECT {columns} FROM {{rows}} AS added WHERE true ORDER BY row_number
        ON CONFLICT (site_id, search_key, document_id) DO NOTHING
        RETURNING site_id, search_key, document_id
        """,  # noqa: S608 - made of constants
        "site_id:int search_key:int query:text document_id:text position:int occurred_at:int visitor:int channel:text "
        "session_id:text",
        [
            (
                click.site_id,
                click.search_key,
                normal_form(click.query),
                click.document_id,
                click.position,
                click.occurred_at,
                click.visitor,
                click.channel,
                click.session_id,
            )
            for click in clicks
        ],
    )
    return {(site_id, search_key, document_id) for site_id, search_key, document_id in rows}
