"""x"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import struct
from datetime import datetime
from functools import cache

from app.errors import ApiError, field_error
from app.models.base import to_microseconds
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.event_journal import Click
from backends.query import MATCH_ALL
from backends.text import normal_form

LIFETIME_MICROSECONDS = 86_400_000_000
"""How long clicks may refer to a search: 24 hours."""
_HEAD = struct.Struct(">QQ6s")
"""Site, microseconds since the Unix epoch, random bytes; the query follows, and then the signature."""
_SIGNATURE_BYTES = 16


@cache
def _key(secret: str) -> bytes:
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"query-id").digest()


def _sign(secret: str, payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_SIGNATURE_BYTES, key=_key(secret)).digest()


def make_query_id(secret: str, site_id: int, query: str, moment: datetime) -> str:
    """The id of a search, URL-safe.

    Args:
        secret: The installation's.
        query: As searched; the id holds its normal form.
        moment: When it was searched, aware.
    """
    payload = _HEAD.pack(site_id, to_microseconds(moment), os.urandom(6)) + normal_form(query).encode()
    return _encode(payload + _sign(secret, payload))


def read_query_id(secret: str, site_id: int, text: str, moment: datetime) -> str:
    """The query, in normal form, of the search that ``text`` names.

    Args:
        site_id: The site that was searched.
        moment: Now, aware.

    Raises:
        ApiError: 400, if it is no search of this site, or one of more than 24 hours before.
    """
    try:
        signed = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _unknown() from None
    payload, signature = signed[:-_SIGNATURE_BYTES], signed[-_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _sign(secret, payload)) or _encode(signed) != text:
        raise _unknown()
    searched_site, searched_at, _ = _HEAD.unpack_from(payload)
    if searched_site != site_id:
        raise _unknown()
    if to_microseconds(moment) - searched_at > LIFETIME_MICROSECONDS:
        raise field_error("query_id", "expired", "belongs to a search that is more than 24 hours old")
    return payload[_HEAD.size :].decode()


def _encode(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def _unknown() -> ApiError:
    return field_error("query_id", "unknown", "is not the query_id of a search of this site")


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
