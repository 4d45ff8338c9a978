"""The parts that runs of sources need in a command's process, and the demo, whose pages are the service's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpcore
import orjson
from ada_url import URL
from flask import Flask, current_app

from app.crawl.fetch.network import Network
from app.crawl.fetch.values import user_agent
from app.crawl.read.reader import PageReader
from app.crawl.run.state import CrawlParts
from app.crawl.run.visits.turns import SharedTurns
from app.runtime import Runtime


@contextmanager
def crawl_parts(runtime: Runtime) -> Iterator[CrawlParts]:
    """Parts that the runs of this process share. The demo's pages are the service's own and need no network."""
    network, reader = _network(runtime), PageReader()
    try:
        yield CrawlParts(
            runtime.database,
            runtime.writer,
            runtime.syncs,
            runtime.plans,
            network,
            reader,
            SharedTurns(runtime.database),
            user_agent(runtime.settings.public_url),
            runtime.settings.public_url if runtime.settings.sends_mail else None,
        )
    finally:
        reader.close()
        network.close()


def _network(runtime: Runtime) -> Network:
    private_addresses = runtime.settings.crawl_private_addresses
    base_url = (read_demo(runtime.settings.data_path) or {}).get("base_url")
    if base_url is None:
        return Network(private_addresses=private_addresses)
    app = current_app._get_current_object()  # type: ignore[attr-defined]  # The proxy's own method.
    app.extensions["jobs"].forgo()
    return OwnPages(app, base_url, private_addresses=private_addresses)


def demo_file(folder: Path) -> Path:
    """Path of the demo's record: its account, site, source, password, and keys."""
    return folder / "demo.json"


def read_demo(folder: Path) -> dict[str, Any] | None:
    """Return the demo's record, or ``None`` if the installation has no demo."""
    path = demo_file(folder)
    if not path.exists():
        return None
    record: dict[str, Any] = orjson.loads(path.read_bytes())
    return record


_DOCUMENTATION_ADDRESS = "192.0.2.1"
"""A client address that no network has (RFC 5737), so that pages for loopback only stay closed."""


class OwnPages(Network):
    """A network in which one origin is an application of this process, reached without a socket.

    The crawler gets the pages that an anonymous visitor gets over HTTP. It connects to no private address, whatever the
    application's host is.

    Args:
        app: The application.
        base_url: URL of the application.
    """

    def __init__(self, app: Flask, base_url: str, *, private_addresses: bool):
        super().__init__(private_addresses=private_addresses)
        self._app = app
        self._origin = URL(base_url).origin

    def allows(self, target: URL) -> bool:
        return target.origin == self._origin or super().allows(target)

    @contextmanager
    def get(
        self, target: URL, headers: Mapping[str, str], on_sent: Callable[[], object] = lambda: None
    ) -> Iterator[httpcore.Response]:
        if target.origin != self._origin:
            with super().get(target, headers, on_sent) as response:
                yield response
            return
        on_sent()
        client = self._app.test_client(use_cookies=False)
        with client.get(
            target.pathname + target.search,
            base_url=self._origin,
            headers=dict(headers),
            environ_base={"REMOTE_ADDR": _DOCUMENTATION_ADDRESS},
        ) as response:
            yield httpcore.Response(
                response.status_code,
                headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()],
                content=response.get_data(),
            )
