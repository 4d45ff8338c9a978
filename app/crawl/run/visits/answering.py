"""One bounded request for somebody who waits: whether an address answers, or what a small file says."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, closing

from app.crawl.fetch.addresses import Scope, host_of
from app.crawl.fetch.fetching import Fetcher
from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turns, polite
from app.crawl.fetch.values import NotIndexed, Reason

MAX_SECONDS = 3.0
"""How long an address may take to answer, and its host may want to be waited for."""

MAX_KEY_FILE_BYTES = 4_096

_UNANSWERED = {Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CERTIFICATE, Reason.PRIVATE_ADDRESS}


def answers(url: str, turns: Turns, user_agent: str, *, private_addresses: bool) -> bool:
    """Tell whether a server answers at an address, with whatever status.

    Args:
        turns: Whose turn it is at a host.
        user_agent: Says who we are.
        private_addresses: Whether hosts may have addresses that are not public.
    """
    try:
        fetch = _Fetch(url, turns, user_agent, private_addresses=private_addresses)
    except ValueError:
        return False
    try:
        fetch(max_bytes=1, truncate=True)
    except NotIndexed as error:
        return error.reason not in _UNANSWERED
    return True


def read_key_file(url: str, turns: Turns, user_agent: str, *, private_addresses: bool) -> str:
    """The text of a small file. Who leads elsewhere, but to the same address with https, does not have it.

    Args:
        url: Its normalized address.
        turns: Whose turn it is at a host.
        user_agent: Says who we are.
        private_addresses: Whether hosts may have addresses that are not public.

    Raises:
        NotIndexed: It cannot be had there, not in time, or is no small file.
    """
    here = {url, url.replace("http://", "https://", 1)}
    fetch = _Fetch(url, turns, user_agent, private_addresses=private_addresses)
    return fetch(max_bytes=MAX_KEY_FILE_BYTES, only=here).decode("utf-8-sig", "replace")


class _Fetch:
    """One bounded request.

    Raises:
        ValueError: There is nothing to ask at the address.
    """

    def __init__(self, url: str, turns: Turns, user_agent: str, *, private_addresses: bool):
        self._url = url
        self._turns = turns
        self._user_agent = user_agent
        self._private_addresses = private_addresses
        self._scope, self._host = Scope.of(url), host_of(url)

    def __call__(self, *, max_bytes: int, truncate: bool = False, only: Collection[str] | None = None) -> bytes:
        """The body.

        Args:
            only: The addresses that may be asked; ``None`` for wherever redirects lead on the site's hosts.

        Raises:
            NotIndexed: It cannot be had.
        """
        wait = waiting_until(MAX_SECONDS)

        def visit(url: str) -> AbstractContextManager[None]:
            if only is not None and url not in only:
                raise NotIndexed(Reason.REDIRECT_LOOP, "The address leads elsewhere.")
            return polite(self._turns, self._host, wait=wait)

        with closing(Network(private_addresses=self._private_addresses)) as network:
            fetcher = Fetcher(network, self._scope, self._user_agent, max_seconds=MAX_SECONDS)
            fetched = fetcher.fetch(self._url, visit=visit, any_type=True, max_bytes=max_bytes, truncate=truncate)
        return fetched.body


def waiting_until(seconds: float) -> Callable[[float], None]:
    """Waits, but never beyond this many seconds from now."""
    until = time.monotonic() + seconds

    def wait(pause: float) -> None:
        if time.monotonic() + pause > until:
            raise NotIndexed(Reason.TIMEOUT, "The host asks to wait for longer than a person does.")
        time.sleep(pause)

    return wait
