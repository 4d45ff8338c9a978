"""Query ids: the name of one search, by which clicks refer to it.

Nothing is stored: an id holds the site, the time, and the query, signed with the installation's secret. A few random
bytes make it unlike that of any other search.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import struct
from datetime import datetime
from functools import cache

from app.errors import ApiError, field_error
from app.models.base import to_microseconds
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
        raise field_error("query_id", "expired", "belongs to a search of more than 24 hours ago")
    return payload[_HEAD.size :].decode()


def _encode(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def _unknown() -> ApiError:
    return field_error("query_id", "unknown", "is not the query_id of a search of this site")
