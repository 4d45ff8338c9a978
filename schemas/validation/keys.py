"""Keys: the scopes of private keys, and the origins of web pages that may use public keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Scope(StrEnum):
    """A permission of private keys."""

    DOCUMENTS = "documents"
    SEARCH = "search"
    ANALYTICS = "analytics"
    SITES = "sites"
    KEYS = "keys"
    ACCOUNT = "account"


SCOPES = tuple(scope.value for scope in Scope)

MAX_ORIGIN_LENGTH = 300

_TYPED = re.compile(r"https?://[^\s\x00-\x20\x7f/\\?#@%]+/?", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.ASCII)
_ORIGIN_HEADER = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def normalize_allowed_origin(typed: str) -> str:
    """Normalize an origin as browsers send it in ``Origin``: lower case, punycode, without a default port.

    Args:
        typed: An http or https URL without a path. Its host may begin with ``*.``, which matches all subdomains.

    Raises:
        ValueError: ``typed`` is not an origin. The message is a predicate.
    """
    # Only needed to save a key, so processes that only search don't load the package.
    from ada_url import URL, HostType

    if len(typed) > MAX_ORIGIN_LENGTH or not _TYPED.fullmatch(typed):
        raise ValueError("must be an origin, such as https://example.com, without path or user")
    try:
        parsed = URL(typed)
    except ValueError as error:
        raise ValueError("must have a valid host and port") from error
    host = parsed.hostname
    if parsed.host_type != HostType.DEFAULT:
        return str(parsed.origin)
    if host.endswith("."):
        raise ValueError("must not end with a dot")
    if not _NAME.fullmatch(host.removeprefix("*.")):
        raise ValueError("must have a valid host; only its first part may be *")
    return str(parsed.origin)


@dataclass(frozen=True, slots=True)
class AllowedOrigins:
    """Origins that may use a key.

    Attributes:
        exact: Origins as browsers send them.
        wildcards: Prefix and suffix of origins whose host begins with ``*.``: ``https://`` and ``.example.com:8443``.
    """

    exact: frozenset[str]
    wildcards: tuple[tuple[str, str], ...]

    def allow(self, header: str) -> bool:
        """Whether the value of an ``Origin`` header is one of these origins; never for ``null`` or an invalid value."""
        if header in self.exact:
            return True
        return len(header) <= MAX_ORIGIN_LENGTH and self._allow(_normalize_header(header))

    def _allow(self, origin: str | None) -> bool:
        if origin is None:
            return False
        return origin in self.exact or any(
            # The text in place of the wildcard begins a host name, because the header is a valid origin.
            origin.startswith(start) and origin.endswith(end) and len(origin) > len(start) + len(end)
            for start, end in self.wildcards
        )


@lru_cache(maxsize=1024)
def _normalize_header(header: str) -> str | None:
    """``"HTTPS://Example.com:443" -> "https://example.com"``; ``None`` if it is not an http or https origin."""
    match = _ORIGIN_HEADER.fullmatch(header.lower())
    if match is None:
        return None
    port = match["port"]
    is_default = port is None or port == _DEFAULT_PORTS[match["scheme"]]
    return f"{match['scheme']}://{match['host']}" + ("" if is_default else f":{port}")


def read_allowed_origins(origins: Iterable[str]) -> AllowedOrigins:
    """Prepare origins from :func:`normalize_allowed_origin` for comparison."""
    exact, wildcards = set(), []
    for origin in origins:
        start, star, end = origin.partition("*")
        if star:
            wildcards.append((start, end))
        else:
            exact.add(origin)
    return AllowedOrigins(frozenset(exact), tuple(wildcards))
