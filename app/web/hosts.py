"""The service's own host and URLs, client IP addresses, and whether a proxy forwarded a request."""

from __future__ import annotations

import ipaddress
import logging
import re
from functools import lru_cache
from urllib.parse import urlsplit

from flask import Request, request
from werkzeug.sansio.utils import get_host

from app.errors import ApiError, ErrorCode, field_error
from app.runtime import runtime
from app.tokens import make_hook_token

log = logging.getLogger(__name__)
_PROXY_HOP = re.compile(r"\[([^\[\]]*)\](?::[0-9]{1,5})?|([^:]+):[0-9]{1,5}", re.ASCII)
_OF_PROXIES = re.compile(
    r"""HTTP_(?:
    (?:X_)?FORWARDED(?:_.*)? | VIA | X_VIA | .*CLIENT_?IP | .*USER_IP
    | X_(?:REAL|ORIGINAL|REWRITE|SSL|URL|SCHEME|HOST|REQUEST_START)(?:_.*)? | FRONT_END_HTTPS | SURROGATE_.* | CDN_.*
    | (?:CF|FASTLY|FLY|X_AMZN|X_AMZ_CF|X_ARR|X_AZURE|X_CLOUD_TRACE|X_ENVOY|X_VARNISH)(?:_.*)?
    )""",
    re.ASCII | re.VERBOSE,
)
"""Pattern for the WSGI names of the headers that proxies add: standard, common, and specific to large networks."""
_warned = False


def client_address(request: Request, trusted_proxies: int) -> str:
    """Return the client's IP address: the TCP peer, or the address that ``trusted_proxies`` proxies report.

    IPv6 addresses are reduced to their /64 network, since a client usually has a whole network.
    """
    forwarded = request.environ.get("HTTP_X_FORWARDED_FOR")
    address = request.environ.get("REMOTE_ADDR") or "unknown"
    if forwarded is not None:
        if trusted_proxies > 0:
            hops = [hop.strip() for hop in forwarded.split(",")]
            # Counted from the right: each proxy appends its peer, while a client can put anything at the left.
            address = _without_port(hops[-min(trusted_proxies, len(hops))]) or address
        else:
            _warn_once()
    return _network(address)


def is_forwarded(request: Request) -> bool:
    """Whether a proxy forwarded the request, judged by headers that only proxies add."""
    return any(_OF_PROXIES.fullmatch(name) for name in request.environ)


def is_loopback(request: Request) -> bool:
    """Whether the TCP peer is this machine."""
    address = request.environ.get("REMOTE_ADDR") or ""
    return address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")


def _without_port(hop: str) -> str:
    """``"192.0.2.1:5000" -> "192.0.2.1"``; some proxies add the port, which changes with every connection."""
    match = _PROXY_HOP.fullmatch(hop)
    return hop if match is None else match[1] or match[2]


@lru_cache(maxsize=4096)
def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        # A proxy may forward anything as the address, which becomes part of the audit log.
        return address[:64]
    if parsed.version == 4:
        return address
    # On a dual-stack socket, IPv4 clients have such addresses. Their common /64 would be a single caller.
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network(f"{address.partition('%')[0]}/64", strict=False))


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        log.warning("A forwarded header arrived but TRUSTED_PROXIES is 0: all visitors count as one IP address.")


_HOST = re.compile(
    r"(?:(?P<name>[\w-]{1,63}(?:\.[\w-]{1,63})*\.?)|\[(?P<ipv6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{0,5}))?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_NAME = 253
_LAST_PORT = 65535
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def check_host(req: Request) -> None:
    """Check the header ``Host``.

    Raises:
        ApiError: 400 for a header that is missing or no host.
    """
    environ = req.environ
    host = environ.get("HTTP_HOST")
    # HTTP/1.0 doesn't require the header.
    if host is None and environ.get("SERVER_PROTOCOL") != "HTTP/1.1":
        return
    if host is None or not is_host(host):
        raise field_error("Host", "invalid", "must be a host, with or without a port")


# A regular client sends the same host with every request. The bound keeps made-up hosts from filling the memory.
@lru_cache(maxsize=1024)
def is_host(text: str) -> bool:
    """Whether ``text`` is a host name or an IP address, with or without a port."""
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"] or 0) > _LAST_PORT:
        return False
    if match["ipv6"] is None:
        return len(match["name"]) <= _LONGEST_NAME
    try:
        ipaddress.IPv6Address(match["ipv6"])
    except ValueError:
        return False
    return True


def base_url() -> str:
    """Return the service's public URL: ``PUBLIC_URL`` if set, otherwise from the request."""
    return runtime().settings.public_url or f"{request.scheme}://{_host_of(request)}{request.root_path}"


def service_name() -> str:
    """Return the service's host, which authenticator apps show as the issuer."""
    return urlsplit(base_url()).hostname or ""


def hook_url(source_id: str, salt: str) -> str:
    """Return the URL of a source's deploy hook, which is a secret.

    Args:
        salt: The source's ``hook_salt``.
    """
    return f"{base_url()}/hooks/{make_hook_token(source_id, salt, runtime().settings.secret_key)}"


def _host_of(req: Request) -> str:
    """Return the requested host without the scheme's default port, or the server's host without a ``Host`` header."""
    host = req.environ.get("HTTP_HOST")
    if host is None:
        return get_host(req.scheme, None, req.server)
    return str(host).removesuffix(":").removesuffix(_DEFAULT_PORTS.get(req.scheme, ""))


def reject_foreign_form(req: Request) -> None:
    """Reject forms from other sites' pages. Before login, there is no CSRF token to check.

    Raises:
        ApiError: 403 ``csrf_failed``.
    """
    origin = req.headers.get("Origin")
    foreign = origin is not None and not is_own_origin(req, origin)
    # Clients without a browser send neither header, and carry no cookies that another site could abuse.
    if foreign or req.headers.get("Sec-Fetch-Site") == "cross-site":
        raise ApiError(ErrorCode.CSRF_FAILED, "The form was submitted from another site; use the form on this site.")


def is_own_origin(req: Request, origin: str) -> bool:
    """Whether ``origin`` is the origin of this service's own pages."""
    host = _host_of(req)
    # The https origin of the same host is ours, too: a proxy that terminates TLS may not report the scheme.
    own_origins = {f"{req.scheme}://{host}", f"https://{host}"}
    if runtime().settings.public_url:
        parts = urlsplit(runtime().settings.public_url)
        own_origins.add(f"{parts.scheme}://{parts.netloc}".removesuffix(_DEFAULT_PORTS[parts.scheme]))
    return origin.lower() in {own_origin.lower() for own_origin in own_origins}
