"""URLs of sites."""

from __future__ import annotations

import re
from urllib.parse import urlsplit


def domain_of(url: str) -> str:
    """Return the host of an absolute http(s) URL: lower case, punycode, without port.

    Raises:
        ValueError: ``url`` is not an absolute http or https URL with a host.
    """
    if any(character.isspace() or ord(character) < 32 for character in url):
        raise ValueError("white space")
    parts = urlsplit(url)
    if parts.scheme.lower() not in {"http", "https"}:
        raise ValueError("scheme")
    _ = parts.port  # Raises on a port that is no port.
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise ValueError("no host")
    if ":" in host:
        return host
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    host = host.lower()
    labels = host.split(".")
    if len(host) > 253 or any(not label or len(label) > 63 for label in labels):
        raise ValueError("host")
    if not all(c.isalnum() or c in "-_." for c in host):
        raise ValueError("host")
    return host


def complete_url(typed: str) -> str:
    """Add ``https://`` to a typed URL if only the scheme is missing; return anything else unchanged.

    Text with a user part, such as an e-mail address, or without a dot in its host is not completed.
    """
    return f"https://{match['address']}" if (match := _BARE_ADDRESS.fullmatch(typed.strip())) else typed


_BARE_ADDRESS = re.compile(r"(?://)?(?P<address>[^\s/:@?#\\]+\.[^\s/:@?#\\]+(?::\d{1,5})?(?:[/?#]\S*)?)")
