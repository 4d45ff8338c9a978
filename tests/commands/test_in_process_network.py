"""The service's own pages are fetched without a socket."""

from __future__ import annotations

import pytest
from ada_url import URL
from flask import Flask

from app.commands.crawl import InProcessNetwork


@pytest.mark.parametrize(("path", "status"), [("/docs/search", 200), ("/docs/nope", 404), ("/metrics", 401)])
def test_pages_of_this_service_are_fetched_with_public_access(app: Flask, path: str, status: int) -> None:
    pages = InProcessNetwork(app, "http://127.0.0.1:8000", private_addresses=False)
    with pages.get(URL(f"http://127.0.0.1:8000{path}"), {"Host": "127.0.0.1:8000", "Accept": "text/html"}) as answer:
        got = answer.status, b"".join(answer.iter_stream())
    pages.close()

    assert got[0] == status
    assert (b'<div class="prose">' in got[1]) is (status == 200)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [("http://127.0.0.1:8000/", True), ("http://127.0.0.1:9000/", False), ("http://localhost:8000/", True)],
)
def test_private_addresses_other_than_this_server_are_rejected(app: Flask, url: str, allowed: bool) -> None:
    pages = InProcessNetwork(app, "http://127.0.0.1:8000", private_addresses=False)

    # A host name is resolved, and a private IP address rejected, only on connecting.
    assert pages.allows(URL(url)) is allowed
    pages.close()
