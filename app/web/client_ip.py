"""Addresses that requests come from."""

from __future__ import annotations

import ipaddress
import logging
import re
from functools import lru_cache

from flask import Request

log = logging.getLogger(__name__)
_HOP = re.compile(r"\[([^\[\]]*)\](?::[0-9]{1,5})?|([^:]+):[0-9]{1,5}", re.ASCII)
_OF_PROXIES = re.compile(
    r"""HTTP_(?:
    (?:X_)?FORWARDED(?:_.*)? | VIA | X_VIA | .*CLIENT_?IP | .*USER_IP
    | X_(?:REAL|ORIGINAL|REWRITE|SSL|URL|SCHEME|HOST|REQUEST_START)(?:_.*)? | FRONT_END_HTTPS | SURROGATE_.* | CDN_.*
    | (?:CF|FASTLY|FLY|X_AMZN|X_AMZ_CF|X_ARR|X_AZURE|X_CLOUD_TRACE|X_ENVOY|X_VARNISH)(?:_.*)?
    )""",
    re.ASCII | re.VERBOSE,
)
"""Headers of proxies as WSGI names them: the standard ones, the usual ones, those of the large networks."""
_warned = False


def client_address(request: Request, trusted_proxies: int) -> str:
    """The visitor's address: the TCP peer, or what ``trusted_proxies`` proxies say of it.

    An IPv6 address counts by its /64 network, since a visitor has a whole one.
    """
    forwarded = request.headers.get("X-Forwarded-For")
    address = request.environ.get("REMOTE_ADDR") or "unknown"
    if forwarded is not None:
        if trusted_proxies > 0:
            hops = [hop.strip() for hop in forwarded.split(",")]
            address = _without_port(hops[-min(trusted_proxies, len(hops))]) or address
        else:
            _warn_once()
    return _network(address)


def is_forwarded(request: Request) -> bool:
    """Tell whether a proxy handed the request on: whether it has a header that only proxies add."""
    return any(_OF_PROXIES.fullmatch(name) for name in request.environ)


def is_loopback(request: Request) -> bool:
    """Tell whether the TCP peer is this machine."""
    address = request.environ.get("REMOTE_ADDR") or ""
    return address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")


def _without_port(hop: str) -> str:
    """The address of a hop. Some proxies name the port too, which differs with every connection."""
    match = _HOP.fullmatch(hop)
    return hop if match is None else match[1] or match[2]


@lru_cache(maxsize=4096)
def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network(f"{address.partition('%')[0]}/64", strict=False))


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        log.warning("A forwarded header arrived but TRUSTED_PROXIES is 0: all visitors count as one address.")
