"""Clients that send oversized bodies over a real connection get a readable error, and the service continues."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import requests

from tests.clients.conftest import Customer

MIB = 1_048_576


@pytest.fixture(scope="module")
def customer(make_customer: Callable[[str], Customer]) -> Customer:
    return make_customer("large@example.com")


def send(customer: Customer, path: str, data: bytes | Iterator[bytes], **headers: str) -> requests.Response:
    """POST with the private key; an iterator is sent chunked, without a Content-Length."""
    token = customer.tokens["private"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    return requests.post(customer.server.base_url + path, data=data, headers=headers, timeout=60)


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536):
        yield b" " * 65_536


@pytest.mark.parametrize("attempt", range(5))
@pytest.mark.parametrize(
    ("path", "size"), [("/api/v1/index/bulk", 40 * MIB), ("/api/v1/index/bulk", 17 * MIB), ("/v1/search", 2 * MIB)]
)
def test_oversized_body_gets_413_even_for_clients_that_read_after_sending(
    customer: Customer, path: str, size: int, attempt: int
) -> None:
    for data in (b" " * size, chunks(size)):
        response = send(customer, path, data)
        assert response.status_code == 413
        assert response.json()["error"] == "payload_too_large"


def test_large_body_with_an_invalid_key_gets_401(customer: Customer) -> None:
    for data in (b" " * (8 * MIB), chunks(8 * MIB)):
        response = send(customer, "/api/v1/index/bulk", data, Authorization="Bearer nonsense")
        assert response.status_code == 401
        assert response.json()["error"] == "invalid_api_key"


def test_large_body_with_the_wrong_kind_of_key_gets_403(customer: Customer) -> None:
    token = customer.tokens["search"]
    response = send(customer, "/api/v1/index/bulk", b" " * (8 * MIB), Authorization=f"Bearer {token}")

    assert response.status_code == 403


def test_chunked_bodies_within_the_limit_are_accepted(customer: Customer) -> None:
    body = b'{"documents": [{"id": "1", "title": "Chunked", "content": "", "url": "/"}]}'

    assert send(customer, "/api/v1/index/bulk", iter([body[:10], body[10:]])).json()["created"] == 1
    assert send(customer, "/v1/search", iter([b'{"q": ', b'"chunked"}'])).json()["results"]["hits"][0]["id"] == "1"


def test_compressed_body_gets_415(customer: Customer) -> None:
    response = send(customer, "/v1/search", b"\x1f\x8b not read", **{"Content-Encoding": "gzip"})

    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")


def test_connection_stays_usable_after_an_error(customer: Customer) -> None:
    with requests.Session() as session:
        headers = {"Authorization": f"Bearer {customer.tokens['search']}", "Content-Type": "application/json"}
        for data, status in ((b"{", 400), (b'{"q": "x"}', 200), (b"x" * (MIB + 1), 413), (b'{"q": "x"}', 200)):
            response = session.post(customer.server.base_url + "/v1/search", data=data, headers=headers, timeout=30)
            assert response.status_code == status


def test_incomplete_body_gets_408_and_does_not_block_other_clients(customer: Customer) -> None:
    parts = urlsplit(customer.server.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(
            b"POST /v1/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 41943040\r\n"
            b"Authorization: Bearer " + customer.tokens["search"].encode() + b"\r\n\r\n{"
        )
        answer = connection.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 408 "), "the announced content must be checked once enough of it has arrived"
    assert customer.call("search", "GET", "/v1/search?q=x").status_code == 200
