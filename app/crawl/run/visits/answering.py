"""One bounded request for a person who waits: whether a URL answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from app.crawl.fetch.addresses import Scope, host_of
from app.crawl.fetch.fetching import Fetcher
from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turns, polite
from app.crawl.fetch.values import NotIndexed, Reason

MAX_SECONDS = 3.0
"""How long an address may take to answer, and its host may want to be waited for."""

_UNANSWERED = {Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS}


def answers(url: str, turns: Turns, user_agent: str, *, private_addresses: bool) -> bool:
    """Whether a server answers at a URL, with whatever status.

    Args:
        turns: Whose turn it is at a host.
        user_agent: Says who we are.
        private_addresses: Whether hosts may have addresses that are not public.
    """
    try:
        scope, host = Scope.of(url), host_of(url)
    except ValueError:
        return False
    wait = waiting_until(MAX_SECONDS)
    try:
        with closing(Network(private_addresses=private_addresses)) as network:
            fetcher = Fetcher(network, scope, user_agent, max_seconds=MAX_SECONDS)
            fetcher.fetch(
                url,
                visit=lambda _: polite(turns, host, wait=wait),
                any_type=True,
                max_bytes=1,
                truncate=True,
            )
    except NotIndexed as error:
        return error.reason not in _UNANSWERED
    return True


def waiting_until(seconds: float) -> Callable[[float], None]:
    """Waits, but never beyond this many seconds from now."""
    until = time.monotonic() + seconds

    def wait(pause: float) -> None:
        if time.monotonic() + pause > until:
            raise NotIndexed(Reason.TIMEOUT, "The host asks to wait for longer than a person does.")
        time.sleep(pause)

    return wait
