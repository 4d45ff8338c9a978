"""IP addresses: which of them are on the public internet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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
"""IPv4-mapped addresses and those of NAT64: the IPv4 address in the last 32 bits is the one that is reached."""


def is_public(address: IPAddress) -> bool:
    """Tell whether an address is one of the public internet.

    Loopback, private, link-local, shared, multicast, reserved, unspecified, and metadata addresses are not, nor are
    IPv6 addresses that lead to one of them. (The module ``ipaddress`` judges some of these differently in each
    version of Python.)
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    if any(address in network for network in _EMBEDDING):
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _PUBLIC_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def literal_address(host: str) -> IPAddress | None:
    """The IP address that a host as browsers serialise it is; ``None`` if it is a name."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
