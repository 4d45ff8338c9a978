"""Tokens: creating, recognizing, and hashing them.

An API key is a prefix that identifies its type, 32 random base62 characters, and 6 base62 characters of the CRC32 of
the preceding characters. The checksum identifies mistyped and made-up keys without a lookup.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import string
import zlib
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIXES = {"public": "svc_pub_", "search": "svc_srch_", "private": "svc_prv_"}
_RANDOM_LENGTH = 32
_CHECKSUM_LENGTH = 6
_INVITATION_PREFIX = "svc_inv_"
_INVITATION_LENGTH = 43
_KEY_ID = re.compile(r"key_[A-Z2-7]{10}", re.ASCII)
_INVITATION = re.compile(r"svc_inv_[0-9A-Za-z]{43}", re.ASCII)
_HOOK_PREFIX = "svc_hook_"
_HOOK = re.compile(r"svc_hook_([0-9a-f]{16})[0-9a-f]{32}", re.ASCII)
_TOKEN = re.compile(r"svc_(?:pub|srch|prv)_[0-9A-Za-z]{38}", re.ASCII)


def _checksum(text: str) -> str:
    value = zlib.crc32(text.encode("ascii"))
    digits = ""
    for _ in range(_CHECKSUM_LENGTH):
        value, remainder = divmod(value, 62)
        digits = ALPHABET[remainder] + digits
    return digits


def make_invitation_token() -> str:
    """Return a new token for an invitation's link. Its prefix lets logs, which contain request paths, redact it."""
    return _INVITATION_PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(_INVITATION_LENGTH))


def is_invitation_token(text: str) -> bool:
    """Whether ``text`` has the form of an invitation token, so that a database lookup is worthwhile."""
    return _INVITATION.fullmatch(text) is not None


def make_hook_token(source_id: str, salt: str, secret: str) -> str:
    """Return the token in the URL of a source's deploy hook.

    The token is computed instead of stored. It can be displayed at any time, but not computed from the database alone.

    Args:
        source_id: ``src_`` and 16 hexadecimal digits.
        salt: The source's salt. Changing the salt changes the token.
        secret: The server's secret.
    """
    return f"{_HOOK_PREFIX}{source_id[4:]}{hash_token(f'hook:{source_id}:{salt}', secret)[:32]}"


def read_hook_token(text: str) -> str | None:
    """Return the source ID in a deploy hook's token, without verifying the token; ``None`` if it is malformed."""
    match = _HOOK.fullmatch(text)
    return None if match is None else f"src_{match[1]}"


def make_token(key_type: str) -> str:
    """Return a new token for a key of ``key_type`` (``public``, ``search``, or ``private``)."""
    body = PREFIXES[key_type] + "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM_LENGTH))
    return body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """Whether ``token`` has the form and the checksum of an API key."""
    return _TOKEN.fullmatch(token) is not None and hmac.compare_digest(
        _checksum(token[:-_CHECKSUM_LENGTH]), token[-_CHECKSUM_LENGTH:]
    )


def hash_token(token: str, secret: str) -> str:
    """Return the stored form of a token: SHA-256 keyed with the server's secret, in hexadecimal."""
    # A fast hash is enough, since tokens, unlike passwords, have 190 random bits and cannot be guessed. The key
    # prevents an attacker who can write to the database from adding tokens.
    return hmac.digest(secret.encode(), token.encode(), "sha256").hex()


def sign(value: object, secret: str, purpose: str) -> str:
    """Return a signed, unencrypted token that contains ``value``, a JSON value. :func:`read_signed` verifies it."""
    return str(_signer(secret, purpose).dumps(value))


def read_signed(token: str, secret: str, purpose: str, seconds: int) -> Any:
    """Return the value in a token that was signed for ``purpose`` at most ``seconds`` ago; otherwise ``None``."""
    try:
        return _signer(secret, purpose).loads(token, max_age=seconds)
    except BadData:
        return None


def _signer(secret: str, purpose: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt=purpose, signer_kwargs={"digest_method": hashlib.sha256})


def make_key_id() -> str:
    """Return a new public ID for a key: ``key_`` and 10 base32 characters."""
    return "key_" + base64.b32encode(secrets.token_bytes(7)).decode("ascii")[:10]


def is_key_id(text: str) -> bool:
    """Whether ``text`` has the form of a key's public ID, so that a database lookup is worthwhile."""
    return _KEY_ID.fullmatch(text) is not None
