"""The service's own pages as a crawler sees them, without a socket: the demo's site is the service itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpcore
from ada_url import URL
from flask import Flask

from app.crawl.fetch.network import Network

_NOBODY = "192.0.2.1"
"""An address of no network: what is open to loopback alone stays closed."""


class OwnPages(Network):
    """Answers for one address with an application's pages; all other addresses are those of the internet.

    Whoever crawls with it reaches what everybody reaches over HTTP, as nobody in particular. No private address is
    connected to, whatever the application's host is.

    Args:
        app: The application.
        base_url: Where it will be.
    """

    def __init__(self, app: Flask, base_url: str, *, private_addresses: bool):
        super().__init__(private_addresses=private_addresses)
        self._app = app
        self._origin = URL(base_url).origin

    def allows(self, target: URL) -> bool:
        return target.origin == self._origin or super().allows(target)

    @contextmanager
    def get(self, target: URL, headers: Mapping[str, str]) -> Iterator[httpcore.Response]:
        if target.origin != self._origin:
            with super().get(target, headers) as response:
                yield response
            return
        client = self._app.test_client(use_cookies=False)
        with client.get(
            target.pathname + target.search,
            base_url=self._origin,
            headers=dict(headers),
            environ_base={"REMOTE_ADDR": _NOBODY},
        ) as answer:
            yield httpcore.Response(
                answer.status_code,
                headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()],
                content=answer.get_data(),
            )
