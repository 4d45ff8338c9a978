"""Clicks as they are reported."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.event_journal import Click
from app.services.analytics.query_ids import read_query_id
from backends.base import MATCH_ALL
from backends.text import normal_form


def make_click(
    secret: str,
    site_id: int,
    document_id: str,
    *,
    query_id: str | None,
    query: str | None,
    session_id: str | None,
    position: int | None,
    moment: datetime,
    anchor: str | None = None,
    visitor: int | None = None,
    channel: str | None = None,
) -> Click | None:
    """A click on a result; ``None`` if it is of a search without words, which is never recorded.

    Args:
        secret: The installation's.
        query_id: The search's; it decides what was searched.
        query: What was searched, if there is no ``query_id``. All searches of one text by one session on one UTC day
            are one search then; without a session each click is of a search of its own.
        moment: When it was clicked, aware.
        anchor: Of the section that it led to, if it led to one.
        visitor, channel: Who clicked, and how it came, as of a search.

    Raises:
        ApiError: 400 for a ``query_id`` that is none of this site, or of more than 24 hours before.
    """
    if query_id is not None:
        text = read_query_id(secret, site_id, query_id, moment)
        search_key = _digest(f"id\0{query_id}")
    else:
        assert query is not None
        text = normal_form(query)
        day = to_microseconds(moment) // DAY_MICROSECONDS
        search_key = session_search_key(session_id, text, day) if session_id else secrets.randbits(63)
    if text == MATCH_ALL:
        return None
    return Click(site_id, search_key, text, document_id, position, moment, anchor, visitor, channel, session_id)


def session_search_key(session_id: str, query: str, day: int) -> int:
    """The search key of clicks that name a session and no ``query_id``; the query is in normal form."""
    return _digest(f"session\0{session_id}\0{query}\0{day}")


def document_key(document_id: str) -> int:
    """A key that stands for a document where its id would be too long a key."""
    return _digest(document_id)


def _digest(text: str) -> int:
    """63 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
