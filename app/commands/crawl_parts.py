"""The parts that runs of sources need in a command's process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flask import current_app

from app.commands.demo_file import read_demo
from app.commands.own_pages import OwnPages
from app.crawl.fetch.network import Network
from app.crawl.fetch.values import user_agent
from app.crawl.read.reader import PageReader
from app.crawl.run.execution import CrawlParts
from app.crawl.run.visits.turns import SharedTurns
from app.runtime import Runtime


@contextmanager
def crawl_parts(runtime: Runtime) -> Iterator[CrawlParts]:
    """Parts that the runs of this process share. The demo's pages are the service's own, which need no network."""
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
