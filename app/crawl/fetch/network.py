"""Network connections of the crawler and webhooks, made only to checked IP addresses."""

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

from app.crawl.fetch.addresses import IPAddress, is_public, literal_address
from app.crawl.fetch.response_heads import HEAD_END, MAX_HEAD_BYTES, repair

Resolver = Callable[[str, int], Sequence[IPAddress]]
"""Returns the IP addresses of a host name for a port, the preferred one first.

Raises:
    OSError: The name has no address.
"""

_CONNECT_SECONDS = 10.0
"""Seconds that one IP address of a host may take to accept a connection before the next address is tried."""
_MAX_CONNECTIONS = 100
_MAX_IDLE_CONNECTIONS = 20
_IDLE_SECONDS = 1.5
"""Seconds that an idle connection stays open: less than the idle timeout of common servers."""
_MAX_LOOKUPS = 4
"""Maximum number of concurrent name lookups. A lookup that times out occupies its thread until the system gives up."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class PrivateAddressError(httpcore.ConnectError):
    """A host name resolves to an IP address that is not public."""


class CertificateError(httpcore.ConnectError):
    """A server's certificate is not trusted."""


class ResolutionError(httpcore.ConnectError):
    """A host name does not resolve."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the total time that this thread spends connecting, writing, and reading. An outer limit still applies.

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


def check_time() -> None:
    """Apply the limit of :func:`time_limit` to work between two reads, such as decompressing.

    Raises:
        httpcore.ReadTimeout: The time is up.
    """
    _time_left(None, httpcore.ReadTimeout)


def resolve(host: str, port: int) -> Sequence[IPAddress]:
    """Resolve a host name with the operating system.

    Raises:
        OSError: The name has no address.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # An IPv6 address may have a scope (%eth0), which only link-local addresses need.
    return list(dict.fromkeys(ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in entries))


class CheckedBackend(httpcore.NetworkBackend):
    """Connects only to public IP addresses.

    A name is resolved, its addresses are checked, and the connection is made to a checked address, so a name that
    resolves differently the second time (DNS rebinding) cannot bypass the check. Certificates are checked for the host
    name of the URL. Proxies in the environment are not used.
    """

    def __init__(self, *, private_addresses: bool, resolver: Resolver, sockets: httpcore.NetworkBackend):
        """
        Args:
            private_addresses: Whether private IP addresses are allowed.
            resolver: Resolves names.
            sockets: Connects to IP addresses.
        """
        self._private_addresses = private_addresses
        self._resolver = resolver
        self._look_ups = ThreadPoolExecutor(_MAX_LOOKUPS, thread_name_prefix="crawler-look-up")
        self._sockets = sockets

    def close(self) -> None:
        """Release the threads that look up names."""
        # A lookup cannot be interrupted, and the operating system may take a long time to give up.
        self._look_ups.shutdown(wait=False, cancel_futures=True)

    def allows(self, address: IPAddress) -> bool:
        """Whether connections to an IP address are allowed."""
        return self._private_addresses or is_public(address)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first IP address of a host that accepts a connection.

        Raises:
            PrivateAddressError: One of the addresses is not public.
            ResolutionError: The host does not resolve.
            httpcore.ConnectError: No address accepts a connection.
            httpcore.ConnectTimeout: The time is up.
        """
        addresses = self._addresses(host, port)
        # All addresses, not only the one that is used: a name with a public and a private address may be an attack.
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
        # In another thread, because getaddrinfo has no timeout, and a hostile name server may answer after minutes.
        look_up = self._look_ups.submit(self._resolver, host, port)
        try:
            addresses = look_up.result(timeout=_time_left(None, httpcore.ConnectTimeout))
        except TimeoutError as error:
            # This cancels only a lookup that still waits for a thread; a running lookup cannot be interrupted.
            look_up.cancel()
            raise httpcore.ConnectTimeout(f"{host} could not be looked up in time") from error
        except (OSError, UnicodeError) as error:  # Encoding invalid labels raises UnicodeError.
            raise ResolutionError(str(error)) from error
        if not addresses:
            raise ResolutionError(f"{host} has no address")
        return addresses


class Network:
    """A pool of connections, kept open for a moment and shared by all threads of a process."""

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
            private_addresses: Whether hosts may have private IP addresses (CRAWL_PRIVATE_ADDRESSES).
            resolver: Resolves names.
            sockets: Connects to IP addresses; TCP by default.
            ssl_context: The trusted certificates; by default, the certificates of the system and of certifi.
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
        """Whether a URL's host is a name or an allowed IP address. Names are checked once they are resolved."""
        literal = literal_address(target.hostname)
        return literal is None or self._backend.allows(literal)

    @contextmanager
    def get(
        self, target: URL, headers: Mapping[str, str], on_sent: Callable[[], object] = lambda: None
    ) -> Iterator[httpcore.Response]:
        """Send a GET request as :meth:`send` does."""
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
        """Send a request, and close the response when the context ends. The caller reads the body.

        Args:
            headers: Sent unchanged. They include ``Host``, and ``Content-Length`` if there is a body.
            on_sent: Called after the request has been written, before waiting for the response.

        Raises:
            httpcore.NetworkError: The connection fails; see :meth:`CheckedBackend.connect_tcp`.
            httpcore.ProtocolError: The response is not HTTP.
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
            # No such event means that an idle connection of the pool was used.
            connected = connected or event.startswith("connection.connect_tcp")
            # The only event between the end of the request and the wait for the response. Requests without a body have
            # it, too.
            if event == "http11.send_request_body.complete":
                on_sent()

        request = httpcore.Request(
            method,
            httpcore.URL(
                scheme=target.protocol.removesuffix(":"),
                # TLS names have neither brackets nor a final dot.
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
            # A server may close an idle connection just when it is used again, so the request has not been received.
            return self._pool.handle_request(request)


class _TimedStream(httpcore.NetworkStream):
    """A stream that obeys the time limit of the thread that is using it, and repairs the heads of responses."""

    def __init__(self, stream: httpcore.NetworkStream):
        self._stream = stream
        self._expects_head = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._read(max_bytes, timeout)
        if not self._expects_head:
            return data
        while (end := HEAD_END.search(data)) is None and len(data) <= MAX_HEAD_BYTES:
            piece = self._read(max_bytes, timeout)
            if not piece:
                break
            data += piece
        self._expects_head = False
        return data if end is None else repair(data[: end.start()]) + b"\r\n\r\n" + data[end.end() :]

    def _read(self, max_bytes: int, timeout: float | None) -> bytes:
        return self._stream.read(max_bytes, _time_left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._expects_head = True
        self._stream.write(buffer, _time_left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            limit = _time_left(timeout, httpcore.ConnectTimeout)
        except httpcore.ConnectTimeout:
            self.close()  # As the wrapped stream does on a timeout.
            raise
        try:
            return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, limit))
        except httpcore.ConnectError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise CertificateError(error.__cause__.verify_message) from error
            raise
        except ValueError as error:  # A host name that a certificate cannot contain.
            self.close()
            raise CertificateError(str(error)) from error

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _time_left(timeout: float | None, exceeded: type[httpcore.TimeoutException]) -> float | None:
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise exceeded("the time is up")
    return seconds if timeout is None else min(seconds, timeout)
