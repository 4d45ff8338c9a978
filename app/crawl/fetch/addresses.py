"""URLs of pages, the hosts of a site, and public IP addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import unquote_plus

from ada_url import URL, HostType
from publicsuffixlist import PublicSuffixList

from app.crawl.fetch.session_ids import is_session_id, without_session_ids

MAX_URL_CHARACTERS = 2_048
"""Maximum number of characters in the URL of a page; longer ones are not stored."""


def parse_url(url: str, base: str | None = None) -> URL:
    """Parse a URL as browsers do, without its fragment, user name, and password.

    Args:
        url: Absolute, or relative to ``base``.
        base: An absolute URL.

    Raises:
        ValueError: The URL is not an http or https URL.
    """
    parsed = URL(url, base) if base is not None else URL(url)
    href = parsed.href
    if not href.startswith(("http:", "https:")):
        raise ValueError("not an http or https URL")
    # Links of pages rarely have these parts, and setters are slow.
    if "#" in href:
        parsed.hash = ""
    if "@" in href:
        parsed.username = ""
        parsed.password = ""
    return parsed


def normalize_url(url: str, base: str | None = None, *, keep_route: bool = False) -> str:
    """Serialize a URL as browsers do, without fragment, user, tracking parameters, and session IDs.

    The result identifies a page.

    Args:
        url: Absolute, or relative to ``base``.
        base: An absolute URL.
        keep_route: Whether to keep a fragment that is a route; see :func:`route_of`.

    Raises:
        ValueError: The URL is not an http or https URL.
    """
    parsed = parse_url(url, base)
    href = parsed.href
    if "?" in href or ";" in href or "(" in href:
        _remove_visitor_parameters(parsed)
        href = parsed.href
    return href + route_of(url) if keep_route else href


def route_of(url: str) -> str:
    """Return the fragment of a URL if it is a route, for which scripts render a page: ``#/…`` or ``#!/…``.

    Empty for other fragments, and for the route of the start page, ``#/``.
    """
    fragment = url.strip().partition("#")[2]
    if not fragment.startswith(("/", "!/")) or fragment in ("/", "!/"):
        return ""
    return URL(f"#{fragment}", "http://host/").hash


def _remove_visitor_parameters(parsed: URL) -> None:
    """``"/a;jsessionid=1?b=2&utm_source=c" -> "/a?b=2"``"""
    path = parsed.pathname
    shorter = without_session_ids(path)
    if shorter != path:
        parsed.pathname = shorter
    for is_removed in (is_session_id, _is_tracking):
        parameters = parsed.search[1:].split("&")
        kept = [parameter for parameter in parameters if not is_removed(parameter)]
        if len(kept) < len(parameters):
            parsed.search = "&".join(kept)


def _is_tracking(parameter: str) -> bool:
    name = unquote_plus(parameter.partition("=")[0]).lower()
    return name.startswith("utm_") or name in {"gclid", "fbclid"}


@dataclass(frozen=True, slots=True)
class Scope:
    """The hosts of a site: the host in its URL, its registrable domain, and all subdomains, on any port, by http or
    https.

    If the host has no registrable domain (an IP address, a name without dots, a public suffix), the scope is that
    host.

    Attributes:
        host: Lower case, punycode; IPv6 addresses in brackets.
        domain: The registrable domain, if the host has one.
    """

    host: str
    domain: str | None

    @classmethod
    def of(cls, url: str) -> Scope:
        """Return the scope of the site at a URL.

        Raises:
            ValueError: The URL is not an http or https URL.
        """
        parsed = parse_url(url)
        host = _host(parsed)
        return cls(host, _registrable_domain(host) if parsed.host_type == HostType.DEFAULT else None)

    def contains(self, url: str) -> bool:
        """Whether a URL is on one of the hosts; always false for URLs other than http and https."""
        try:
            host = _host(parse_url(url))
        except ValueError:
            return False
        return host == self.host or (
            self.domain is not None and (host == self.domain or host.endswith(f".{self.domain}"))
        )


def host_of(url: str) -> str:
    """Return the host of a URL: lower case, punycode, without port and final dot; IPv6 addresses in brackets.

    Raises:
        ValueError: The URL is not an http or https URL.
    """
    return _host(parse_url(url))


def header_origins(url: str) -> set[str]:
    """Return the origins that receive the request headers of a source at ``url``: its own, and its host with https.

    Raises:
        ValueError: The URL is not an http or https URL.
    """
    source = parse_url(url)
    origins = {source.origin}
    if source.protocol == "http:" and not source.port:
        origins.add(f"https://{source.hostname}")
    return origins


def _host(parsed: URL) -> str:
    # A name with a final dot is the same name, without the resolver's search domains (RFC 1034).
    return parsed.hostname.removesuffix(".")


def _registrable_domain(host: str) -> str | None:
    domain: str | None = _public_suffixes().privatesuffix(host)
    return domain


@cache
def _public_suffixes() -> PublicSuffixList:
    return PublicSuffixList()


IPAddress = IPv4Address | IPv6Address

_NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # This network, unspecified.
        "10.0.0.0/8",  # Private.
        "100.64.0.0/10",  # Shared; Alibaba's metadata.
        "127.0.0.0/8",  # Loopback.
        "168.63.129.16/32",  # Azure's metadata, within a public range.
        "169.254.0.0/16",  # Link-local; the metadata of most clouds.
        "172.16.0.0/12",  # Private.
        "192.0.0.0/24",  # Protocol assignments; Oracle's metadata.
        "192.0.2.0/24",  # Documentation.
        "192.88.99.0/24",  # Relays of 6to4.
        "192.168.0.0/16",  # Private.
        "198.18.0.0/15",  # Benchmarks.
        "198.51.100.0/24",  # Documentation.
        "203.0.113.0/24",  # Documentation.
        "224.0.0.0/4",  # Multicast.
        "240.0.0.0/4",  # Reserved, broadcast.
    )
)

# The only range that IANA allocates for global unicast addresses.
_PUBLIC_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # Protocol assignments, among them Teredo, which embeds IPv4 addresses.
        "2001:db8::/32",  # Documentation.
        "2002::/16",  # 6to4, which embeds IPv4 addresses.
        "3fff::/20",  # Documentation.
    )
)
_EMBEDDING = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Networks of IPv4-mapped and NAT64 addresses, which contain an IPv4 address in their last 32 bits."""


def is_public(address: IPAddress) -> bool:
    """Whether an IP address is on the public internet.

    Loopback, private, link-local, shared, multicast, reserved, unspecified, and metadata addresses are not public, nor
    are IPv6 addresses that embed one of them. (The module ``ipaddress`` classifies some of these differently in each
    version of Python.)
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    if any(address in network for network in _EMBEDDING):
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _PUBLIC_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def literal_address(host: str) -> IPAddress | None:
    """Parse a host, as browsers serialize it, as an IP address; ``None`` if it is a name."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
