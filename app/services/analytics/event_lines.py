"""Searches and clicks, and their lines in journal files.

A line has eight hexadecimal digits of CRC-32, a space, a JSON array, and a newline. The array begins with ``"click"``
for a click, and with the site's ID for a search. New values are added at the end, so that lines of older versions
remain readable.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime

import orjson

from app.models.base import from_microseconds, to_microseconds

MAX_LINE_BYTES = 65_536
"""Maximum size of a line. A query of 512 bytes needs far less."""
MAX_PAGE_LENGTH = 200
"""Maximum length of the path of a page that visitors search from."""
_MAX_INT64 = 2**63 - 1
_CLICK = "click"


@dataclass(slots=True)
class SearchEvent:
    """One search or search-log entry.

    Attributes:
        site_id: The searched site. Its account is looked up when the event is counted.
        query: As sent; neither blank nor ``*``.
        results_count: Number of matching documents.
        occurred_at: Timezone-aware time of the search.
        session_id: The visitor's session, in which keystrokes are merged; ``None`` or empty without a session.
        response_ms: Response time; ``None`` if the service did not run the search.
        matched: ``all``, ``some`` (no document has every word), or ``corrected``; ``None`` if unknown.
        visitor: The visitor, a signed 64-bit number (:mod:`app.services.analytics.visitors`); ``None`` if unknown.
        channel: One of ``CHANNELS``; ``None`` if unknown.
        page: Path of the page with the search box; ``None`` if not reported.
        mixed: Whether the results were also ranked by meaning.
        recorded_at: Time of arrival in microseconds since the Unix epoch, once it is in a journal.
        counted: Whether the event counts; false if the session's next event replaces it.
        id: ID of the stored event; ``None`` before.
    """

    site_id: int
    query: str
    results_count: int
    occurred_at: datetime
    session_id: str | None = None
    response_ms: int | None = None
    matched: str | None = None
    visitor: int | None = None
    channel: str | None = None
    page: str | None = None
    mixed: bool = False
    recorded_at: int = 0
    counted: bool = True
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Click:
    """A click on a document in search results.

    Attributes:
        site_id: The searched site.
        search_key: Key of the search, 63 bits. A second click on a document in one search does not count.
        query: The query; neither blank nor ``*``.
        document_id: ID of the document.
        position: Its position in the results, from 1; ``None`` if not reported.
        occurred_at: Timezone-aware time of the click.
        anchor: Anchor of the section that the click led to; ``None`` for the whole document.
        visitor: The visitor, as for a search.
        channel: The channel, as for a search.
        session_id: The visitor's session, if reported.
    """

    site_id: int
    search_key: int
    query: str
    document_id: str
    position: int | None
    occurred_at: datetime
    anchor: str | None = None
    visitor: int | None = None
    channel: str | None = None
    session_id: str | None = None


Event = SearchEvent | Click


def encode(event: Event, recorded_at: int) -> bytes:
    """Return the line of an event.

    Args:
        recorded_at: Time of arrival, in microseconds since the Unix epoch.

    Raises:
        ValueError: The event cannot be stored: a blank query, a NUL or lone surrogate in a text, a negative count, a
            number of more than 63 bits, a time without a zone, or a query that is far too long.
    """
    if event.occurred_at.tzinfo is None:
        raise ValueError("an event's time must have a time zone")
    if not event.query.strip():
        raise ValueError("an event must have a query")
    if event.session_id and len(event.session_id) > 64:
        raise ValueError("an event's session_id must have at most 64 characters")
    values = _search_values(event, recorded_at) if isinstance(event, SearchEvent) else _click_values(event)
    try:
        payload = orjson.dumps(values)
    except TypeError as error:
        raise ValueError(f"cannot encode an event: {error}") from error
    # The checksum, the space, and the newline take 10 bytes.
    if len(payload) > MAX_LINE_BYTES - 10:
        raise ValueError("an event's query is too long")
    return frame(payload)


def frame(payload: bytes) -> bytes:
    """Return the line for ``payload``, which must not contain a newline."""
    return b"%08x %b\n" % (zlib.crc32(payload), payload)


def unframe(line: bytes) -> bytes | None:
    """Return the payload of a line, given without its newline; ``None`` if the line is damaged."""
    payload = line[9:]
    intact = len(line) >= 11 and line[8:9] == b" " and line[:8] == b"%08x" % zlib.crc32(payload)
    return payload if intact else None


def _search_values(event: SearchEvent, recorded_at: int) -> tuple[object, ...]:
    if not (
        0 < event.site_id <= _MAX_INT64
        and 0 <= event.results_count <= _MAX_INT64
        and 0 <= (event.response_ms or 0) <= _MAX_INT64
        and -_MAX_INT64 - 1 <= (event.visitor or 0) <= _MAX_INT64
    ):
        raise ValueError("an event's numbers must fit in 63 bits")
    # PostgreSQL cannot store NUL in texts.
    if "\x00" in event.query + (event.session_id or "") + (event.page or ""):
        raise ValueError("an event's texts must not contain NUL")
    if event.page is not None and not (event.page.startswith("/") and len(event.page) <= MAX_PAGE_LENGTH):
        raise ValueError(f"an event's page must be a path of at most {MAX_PAGE_LENGTH} characters")
    return (
        event.site_id,
        to_microseconds(event.occurred_at),
        recorded_at,
        event.results_count,
        event.response_ms,
        event.session_id or None,
        event.query,
        event.matched,
        event.visitor,
        event.channel,
        event.page,
        event.mixed,
    )


def _click_values(click: Click) -> tuple[object, ...]:
    if not (
        0 < click.site_id <= _MAX_INT64
        and 0 <= click.search_key <= _MAX_INT64
        and 1 <= (1 if click.position is None else click.position) <= _MAX_INT64
        and -_MAX_INT64 - 1 <= (click.visitor or 0) <= _MAX_INT64
    ):
        raise ValueError("an event's numbers must fit in 63 bits")
    if "\x00" in click.query + click.document_id + (click.anchor or "") + (click.session_id or ""):
        raise ValueError("an event's texts must not contain NUL")
    if not 0 < len(click.document_id) <= 512:
        raise ValueError("an event's document_id must have 1 to 512 characters")
    if click.anchor is not None and not 0 < len(click.anchor) <= 200:
        raise ValueError("an event's anchor must have 1 to 200 characters")
    return (
        _CLICK,
        click.site_id,
        to_microseconds(click.occurred_at),
        click.search_key,
        click.query,
        click.document_id,
        click.position,
        click.anchor,
        click.visitor,
        click.channel,
        click.session_id or None,
    )


def decode(line: bytes) -> Event | None:
    """Return the event in a line, given without its newline; ``None`` if the line is damaged."""
    payload = unframe(line)
    if payload is None:
        return None
    values = orjson.loads(payload)
    if values[0] == _CLICK:
        _, site_id, occurred_at, search_key, query, document_id, position, *others = values
        return Click(site_id, search_key, query, document_id, position, from_microseconds(occurred_at), *others)
    site_id, occurred_at, recorded_at, results_count, response_ms, session_id, query, *others = values
    moment = from_microseconds(occurred_at)
    event = SearchEvent(site_id, query, results_count, moment, session_id, response_ms, *others)
    event.recorded_at = recorded_at
    return event
