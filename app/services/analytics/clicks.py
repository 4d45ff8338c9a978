"""Clicks on search results, and the signed query IDs that connect them with a search."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import struct
from collections.abc import Iterable
from datetime import datetime
from functools import cache

from sqlalchemy.orm import Session

from app.errors import ApiError, field_error
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.event_lines import Click
from app.storage.database import execute_rows
from backends.query import MATCH_ALL
from backends.text import normal_form

LIFETIME_MICROSECONDS = 86_400_000_000
"""Maximum age of a search that a click can refer to: 24 hours."""
_HEAD = struct.Struct(">QQ6s")
"""Head of a query ID: site, microseconds since the Unix epoch, and random bytes. The query and the signature follow."""
_SIGNATURE_BYTES = 16


@cache
def _key(secret: str) -> bytes:
    # A separate key for this purpose: nothing else that the service signs can serve as a query ID.
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"query-id").digest()


def _sign(secret: str, payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_SIGNATURE_BYTES, key=_key(secret)).digest()


def make_query_id(secret: str, site_id: int, query: str, moment: datetime) -> str:
    """Return the URL-safe ID of a search.

    Args:
        secret: The server's secret.
        query: As searched; the ID contains its normal form.
        moment: Timezone-aware time of the search.
    """
    payload = _HEAD.pack(site_id, to_microseconds(moment), os.urandom(6)) + normal_form(query).encode()
    return _encode(payload + _sign(secret, payload))


def read_query_id(secret: str, site_id: int, text: str, moment: datetime) -> str:
    """Return the query, in normal form, of the search that ``text`` identifies.

    Args:
        site_id: The searched site.
        moment: The current time, timezone-aware.

    Raises:
        ApiError: 400, if it is not a search of this site, or is more than 24 hours old.
    """
    try:
        signed = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _unknown() from None
    payload, signature = signed[:-_SIGNATURE_BYTES], signed[-_SIGNATURE_BYTES:]
    # Base64 has several spellings of the same bytes. Accepting only ours gives each search one key.
    if not hmac.compare_digest(signature, _sign(secret, payload)) or _encode(signed) != text:
        raise _unknown()
    searched_site, searched_at, _ = _HEAD.unpack_from(payload)
    # Otherwise, a visitor of one site could record clicks on another.
    if searched_site != site_id:
        raise _unknown()
    if to_microseconds(moment) - searched_at > LIFETIME_MICROSECONDS:
        raise field_error("query_id", "expired", "belongs to a search that is more than 24 hours old")
    return payload[_HEAD.size :].decode()


def _encode(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def _unknown() -> ApiError:
    return field_error("query_id", "unknown", "is not the query_id of a search on this site")


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
    """Return a click on a result; ``None`` for a search without words, which is never recorded.

    Args:
        secret: The server's secret.
        query_id: ID of the search, which determines its query.
        query: The query of a click without a ``query_id``. All searches for the same text by one session on one UTC day
            then count as one search; without a session, each click counts as a separate search.
        moment: Timezone-aware time of the click.
        anchor: Anchor of the section that the click led to, if any.
        visitor, channel: The visitor and the channel, as for searches.

    Raises:
        ApiError: 400 for a ``query_id`` that belongs to another site or is more than 24 hours old.
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


def session_search_key(session_id: str, query: str, day: int) -> int:
    """Return the search key of clicks that have a session but no ``query_id``. The query must be in normal form."""
    return _digest(f"session\0{session_id}\0{query}\0{day}")


def document_key(document_id: str) -> int:
    """Return a short key for a document, for tables in which its ID would be too long."""
    return _digest(document_id)


def _digest(text: str) -> int:
    """Return a hash of 63 bits."""
    # The columns are signed.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
