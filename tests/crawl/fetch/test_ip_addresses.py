"""Distinguishes public IP addresses from private and reserved ones."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.fetch.addresses import is_public, literal_address

NOT_PUBLIC = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.192", "168.63.129.16"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "198.18.0.1", "203.0.113.7", "192.88.99.1"),
    *("::1", "::", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "2001:db8::1"),
    *("100::1", "5f00::1", "3fff::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::8.8.8.8"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8", "2002:7f00:1::", "2001:0:808:808::"),
]
PUBLIC = ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "168.63.129.15", "2606:4700::1111", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_private_and_reserved_ip_addresses_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", [*PUBLIC, "64:ff9b::8.8.8.8"])
def test_internet_ip_addresses_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_ipv4_addresses_not_global_in_python_are_not_public(address: IPv4Address) -> None:
    assert address.is_global or not is_public(address)


@given(st.ip_addresses(v=6))
def test_ipv6_addresses_not_global_in_python_are_not_public(address: IPv6Address) -> None:
    assert address.is_global or not is_public(address)


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "64:ff9b::"]))
def test_mapped_ipv6_address_is_as_public_as_its_embedded_ipv4_address(inner: IPv4Address, prefix: str) -> None:
    assert is_public(IPv6Address(int(IPv6Address(prefix)) | int(inner))) == is_public(inner)


@given(st.ip_addresses(v=4), st.sampled_from(["2002::", "2001::", "::"]), st.sampled_from([0, 80]))
def test_tunnel_addresses_that_embed_ipv4_addresses_are_not_public(inner: IPv4Address, prefix: str, shift: int) -> None:
    embedded = IPv6Address(int(IPv6Address(prefix)) | int(inner) << shift if prefix == "2002::" else int(inner))
    assert not is_public(embedded)


def test_ip_literals_are_distinguished_from_hostnames() -> None:
    assert literal_address("127.0.0.1") == IPv4Address("127.0.0.1")
    assert literal_address("[::1]") == IPv6Address("::1")
    assert literal_address("localhost") is None
    assert literal_address("127.0.0.1.example.com") is None
