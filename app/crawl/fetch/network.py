"""Connections of crawler and webhooks: a host is resolved, its addresses are checked, and one is connected to."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Any

import httpcore
from ada_url import URL

from app.crawl.fetch.ip_addresses import IPAddress, is_public, literal_address

Resolver = Callable[[str, int], Sequence[IPAddress]]
"""Gives the addresses of a host name for a port, the preferred one first.

Raises:
    OSError: The name has none.
"""

_CONNECT_SECONDS = 10.0
"""How long one address of a host may take to accept a connection, before the next one is tried."""
_MAX_CONNECTIONS = 100
_MAX_IDLE_CONNECTIONS = 20
_IDLE_SECONDS = 1.5
"""Below the time after which common servers close idle connections."""
_LOOK_UPS = 4
"""How many names are looked up at once. A look-up that takes too long holds its thread until the system gives up."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class PrivateAddressError(httpcore.ConnectError):
    """A host's name leads to an address that is not on the public internet."""


class CertificateError(httpcore.ConnectError):
    """A server's certificate is not to be trusted."""


class ResolutionError(httpcore.ConnectError):
    """A host's name leads to no address."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Bound all connecting, writing, and reading that this thread does within, added up; a limit around it stays.

    Raises:
        httpcore.TimeoutException: The time is up.
    """
    outer = _deadline.get()
    ends = time.monotonic() + seconds
    token = _deadline.set(ends if outer is None else min(ends, outer))
    try:
        yield
    finally:
        _deadline.reset(token)


def resolve(host: str, port: int) -> Sequence[IPAddress]:
    """Addresses of a host name, as the operating system knows them.

    Raises:
        OSError: There are none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # An IPv6 address may have a scope (%eth0), which only a link-local one needs.
    return list(dict.fromkeys(ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found))


class CheckedBackend(httpcore.NetworkBackend):
    """Connects to addresses of the public internet alone.

    Addresses are checked after a name was resolved, and the connection is made to the address that was checked, so a
    name that changes between two look-ups gains nothing. Host names of certificates stay as they are in the URL. No
    proxy is used, whatever the environment says.
    """

    def __init__(self, *, private_addresses: bool, resolver: Resolver, sockets: httpcore.NetworkBackend):
        """
        Args:
            private_addresses: Whether all addresses are allowed.
            resolver: How names become addresses.
            sockets: How addresses are connected to.
        """
        self._private_addresses = private_addresses
        self._resolver = resolver
        self._look_ups = ThreadPoolExecutor(_LOOK_UPS, thread_name_prefix="crawler-look-up")
        self._sockets = sockets

    def close(self) -> None:
        """Let go of the threads that look up names."""
        self._look_ups.shutdown(wait=False, cancel_futures=True)

    def allows(self, address: IPAddress) -> bool:
        """Tell whether an address may be connected to."""
        return self._private_addresses or is_public(address)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that accepts.

        Raises:
            PrivateAddressError: The host has an address that is not public.
            ResolutionError: The host has no address.
            httpcore.ConnectError: No address accepts.
            httpcore.ConnectTimeout: It took too long.
        """
        addresses = self._addresses(host, port)
        for address in addresses:
            if not self.allows(address):
                raise PrivateAddressError(f"{host} is {address}")
        for address in addresses[:-1]:
            try:
                return self._connect(address, port, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return self._connect(addresses[-1], port, socket_options)

    def _connect(
        self, address: IPAddress, port: int, socket_options: Iterable[httpcore.SOCKET_OPTION] | None
    ) -> httpcore.NetworkStream:
        timeout = _time_left(_CONNECT_SECONDS, httpcore.ConnectTimeout)
        return _TimedStream(
            self._sockets.connect_tcp(str(address), port, timeout=timeout, socket_options=socket_options)
        )

    def _addresses(self, host: str, port: int) -> Sequence[IPAddress]:
        literal = literal_address(host)
        if literal is not None:
            return [literal]
        look_up = self._look_ups.submit(self._resolver, host, port)
        try:
            addresses = look_up.result(timeout=_time_left(None, httpcore.ConnectTimeout))
        except TimeoutError as error:
            look_up.cancel()
            raise httpcore.ConnectTimeout(f"{host} could not be looked up in time") from error
        except (OSError, UnicodeError) as error:  # Labels that are no host name's fail while they are encoded.
            raise ResolutionError(str(error)) from error
        if not addresses:
            raise ResolutionError(f"{host} has no address")
        return addresses


class Network:
    """Connections to the hosts of the internet, kept open for a moment and shared by all threads of a process."""

    def __init__(
        self,
        *,
        private_addresses: bool,
        resolver: Resolver = resolve,
        sockets: httpcore.NetworkBackend | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ):
        """
        Args:
            private_addresses: Whether hosts may have addresses that are not public (CRAWL_PRIVATE_ADDRESSES).
            resolver: How names become addresses.
            sockets: How addresses are connected to; by TCP if not given.
            ssl_context: Which certificates are trusted; those that the system and certifi trust if not given.
        """
        self._backend = CheckedBackend(
            private_addresses=private_addresses, resolver=resolver, sockets=sockets or httpcore.SyncBackend()
        )
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_MAX_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=self._backend,
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        self._backend.close()

    def allows(self, target: URL) -> bool:
        """Tell whether the host of an address may be connected to, as far as can be told before it is looked up."""
        literal = literal_address(target.hostname)
        return literal is None or self._backend.allows(literal)

    @contextmanager
    def get(
        self, target: URL, headers: Mapping[str, str], on_sent: Callable[[], object] = lambda: None
    ) -> Iterator[httpcore.Response]:
        """Ask for an address as :meth:`send` does."""
        with self.send("GET", target, headers, on_sent=on_sent) as response:
            yield response

    @contextmanager
    def send(
        self,
        method: str,
        target: URL,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        on_sent: Callable[[], object] = lambda: None,
    ) -> Iterator[httpcore.Response]:
        """Send a request, and close the answer at the end; its body is not yet read.

        Args:
            target: The address.
            headers: Sent as they are; ``Host`` is among them, and ``Content-Length`` if there is a body.
            on_sent: Called when the request was written, before the answer is waited for.

        Raises:
            httpcore.NetworkError: There is no connection; see :meth:`CheckedBackend.connect_tcp`.
            httpcore.ProtocolError: The answer is not HTTP.
            httpcore.TimeoutException: The time is up.
        """
        response = self._send(method, target, headers, body, on_sent)
        try:
            yield response
        finally:
            response.close()

    def _send(
        self, method: str, target: URL, headers: Mapping[str, str], body: bytes, on_sent: Callable[[], object]
    ) -> httpcore.Response:
        connected = False

        def trace(event: str, info: Mapping[str, Any]) -> None:
            nonlocal connected
            connected = connected or event.startswith("connection.connect_tcp")
            if event == "http11.send_request_body.complete":
                on_sent()

        request = httpcore.Request(
            method,
            httpcore.URL(
                scheme=target.protocol.removesuffix(":"),
                host=target.hostname.removeprefix("[").removesuffix("]").removesuffix("."),
                port=int(target.port) if target.port else None,
                target=target.pathname + target.search,
            ),
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            content=body,
            extensions={"trace": trace, "timeout": {"pool": _time_left(None, httpcore.PoolTimeout)}},
        )
        try:
            return self._pool.handle_request(request)
        except (httpcore.NetworkError, httpcore.RemoteProtocolError):
            if connected:
                raise
            # A server may close an idle connection at the moment it is used again.
            return self._pool.handle_request(request)


class _TimedStream(httpcore.NetworkStream):
    """A stream that keeps the time limit of whoever uses it now; each single step stays below it."""

    def __init__(self, stream: httpcore.NetworkStream):
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _time_left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _time_left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            limit = _time_left(timeout, httpcore.ConnectTimeout)
        except httpcore.ConnectTimeout:
            self.close()  # As the stream itself does when it takes too long.
            raise
        try:
            return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, limit))
        except httpcore.ConnectError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise CertificateError(error.__cause__.verify_message) from error
            raise
        except ValueError as error:  # A host that is no name of a certificate.
            self.close()
            raise CertificateError(str(error)) from error

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _time_left(timeout: float | None, exceeded: type[httpcore.TimeoutException]) -> float | None:
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise exceeded("the time is up")
    return left if timeout is None else min(left, timeout)
