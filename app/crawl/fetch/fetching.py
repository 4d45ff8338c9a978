"""Fetching a URL: redirects, limits, conditional requests, and reasons for failures."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import httpcore
from ada_url import URL

from app import clock
from app.crawl.fetch.addresses import Scope, header_origins, normalize_url, parse_url
from app.crawl.fetch.network import (
    CertificateError,
    Network,
    PrivateAddressError,
    ResolutionError,
    check_time,
    time_limit,
)
from app.crawl.fetch.responses import (
    HEAD_BYTES,
    PACKED,
    Cookies,
    UnpackingError,
    effective_content_type,
    is_complete,
    is_page,
    parse_http_date,
    sniff,
    unpack,
)
from app.crawl.fetch.values import (
    MAX_PAGE_BYTES,
    Fetched,
    NotIndexed,
    Reason,
    TryLater,
    Validators,
    http_reason,
)

Visit = Callable[[str], AbstractContextManager[None]]
"""Returns the context of a request to a URL, which may wait for a turn at the host or raise :class:`NotIndexed`."""

MAX_REDIRECTS = 10
MAX_SECONDS = 30.0
MAX_RETRY_AFTER_SECONDS = 600.0
MAX_HEADERS = 5

_WITHOUT_RETRY_AFTER_SECONDS = 30.0
_MAX_DRAINED_BYTES = 65_536
_ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.9, application/pdf;q=0.9, */*;q=0.5"
_REDIRECTS = {301, 302, 303, 307, 308}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# Without CR and LF, which would start another header, and without spaces at the ends, which HTTP does not transmit.
_HEADER_VALUE = re.compile(r"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]{0,4094}[\x21-\x7e\x80-\xff])?")
_OWN_HEADERS = {
    *("accept-encoding", "connection", "content-length", "expect", "host", "if-modified-since", "if-none-match"),
    *("keep-alive", "proxy-authorization", "proxy-connection", "range", "te", "trailer", "transfer-encoding"),
    *("upgrade", "user-agent"),
}
"""Connection headers, and headers that the crawler sets itself."""


def check_headers(headers: Mapping[str, str]) -> None:
    """Check the request headers that the owner of a source has configured.

    Raises:
        ValueError: Too many headers, or an invalid header; the message contains its name.
    """
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"at most {MAX_HEADERS} headers can be sent")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a header occurs twice")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name[:100]!r} is not a valid header name")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"the header {name} is set by the crawler")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} cannot be sent")


class Fetcher:
    """Fetches URLs of one site. It stores cookies, so each run needs its own instance. Thread-safe.

    A fetch takes at most twice ``max_bytes`` of memory, plus 200 KiB for the connection.
    """

    def __init__(
        self,
        network: Network,
        scope: Scope | None,
        user_agent: str,
        *,
        headers: Mapping[str, str] | None = None,
        headers_url: str = "",
        max_seconds: float = MAX_SECONDS,
    ):
        """
        Args:
            network: The connection pool; may be shared.
            scope: The hosts that may receive requests; ``None`` for all.
            user_agent: The header ``User-Agent``, see :func:`user_agent`.
            headers: Request headers, sent only to the origin of ``headers_url``, or to the same host with https.
            headers_url: The source's URL.
            max_seconds: Total time limit for connecting, redirects, and reading, excluding waits for turns.

        Raises:
            ValueError: A header is not valid.
        """
        check_headers(headers or {})
        self._network = network
        self._scope = scope
        self._user_agent = user_agent
        self._headers = dict(headers or {})
        self._headers_origins = header_origins(headers_url) if headers else set()
        self._max_seconds = max_seconds
        self._cookies = Cookies()

    def fetch(
        self,
        url: str,
        *,
        validators: Callable[[str], Validators | None] = lambda url: None,
        visit: Visit = lambda url: nullcontext(),
        any_type: bool = False,
        max_bytes: int = MAX_PAGE_BYTES,
        truncate: bool = False,
        on_sent: Callable[[], object] = lambda: None,
    ) -> Fetched:
        """Fetch a URL, following redirects.

        Args:
            url: Absolute.
            validators: Returns the stored validators of a normalized URL. With validators, the response may be 304,
                without a body.
            visit: Returns the context of each request, including requests after redirects.
            any_type: Whether to accept bodies other than text, PDFs, and office files.
            max_bytes: Limit for the unpacked body.
            truncate: Whether to truncate a longer body instead of raising.
            on_sent: Called after a request has been written, before waiting for its response.

        Raises:
            TryLater: The server asks the crawler to wait, for at most 600 seconds.
            NotIndexed: The URL cannot be fetched, or is not a page.
        """
        seconds_left = self._max_seconds
        redirects: list[str] = []
        # A page may redirect to itself once it has set a cookie, so only the same URL with the same cookies is a loop.
        requested: set[tuple[str, str]] = set()
        target = _target(url)
        while True:
            # Checked for every redirect, too, since a public host may redirect to a private address.
            if not self._network.allows(target):
                raise _private(target.hostname)
            if self._scope is not None and not self._scope.contains(target.href):
                raise NotIndexed(Reason.OTHER_HOST, f"{_shortened(target.href)} is not on the site's hosts.")
            cookies = self._cookies.header(target.href)
            if (target.href, cookies) in requested:
                raise NotIndexed(Reason.REDIRECT_LOOP, "The URL redirects to itself.")
            if len(redirects) > MAX_REDIRECTS:
                raise NotIndexed(Reason.REDIRECT_LOOP, f"The URL redirects more than {MAX_REDIRECTS} times.")
            requested.add((target.href, cookies))
            normalized = normalize_url(target.href)
            with visit(normalized):
                started_at = time.monotonic()
                with _translate_errors(target.hostname), time_limit(seconds_left):
                    response = self._request(
                        target,
                        cookies,
                        validators(normalized),
                        any_type=any_type,
                        max_bytes=max_bytes,
                        truncate=truncate,
                        on_sent=on_sent,
                    )
                # Count only the time of requests, not the time that ``visit`` waits for a turn at the host.
                seconds_left -= time.monotonic() - started_at
            if isinstance(response, Fetched):
                return Fetched(normalized, response.status, response.headers, response.body, tuple(redirects))
            redirects.append(normalized)
            target = response

    def _request(
        self,
        target: URL,
        cookies: str,
        validators: Validators | None,
        *,
        any_type: bool,
        max_bytes: int,
        truncate: bool,
        on_sent: Callable[[], object],
    ) -> Fetched | URL:
        """Return a response, or the target of its redirect."""
        request_headers = self._request_headers(target, cookies, validators)
        with self._network.get(target, request_headers, on_sent) as response:
            headers = _headers(response.headers)
            self._cookies.store(target.href, [_text(v) for n, v in response.headers if n.lower() == b"set-cookie"])
            status = response.status
            if status == 200:
                body = _body(response, headers, any_type=any_type, max_bytes=max_bytes, truncate=truncate)
                return Fetched(target.href, status, headers, body)
            _drain(response, headers)
            # A 304 without a condition violates RFC 9110 and has no page to confirm.
            if status == 304 and validators is not None:
                return Fetched(target.href, status, headers, b"")
            if status in _REDIRECTS and "location" in headers:
                return _target(headers["location"], target.href)
            raise _status_error(status, headers)

    def _request_headers(self, target: URL, cookies: str, validators: Validators | None) -> dict[str, str]:
        headers = {
            "Host": target.host,
            "User-Agent": self._user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": PACKED,
        }
        if validators is not None and validators.etag:
            headers["If-None-Match"] = validators.etag
        if validators is not None and validators.last_modified:
            headers["If-Modified-Since"] = validators.last_modified
        # They may contain secrets, so a redirect must not carry them to another origin.
        source_headers = self._headers if target.origin in self._headers_origins else {}
        replaced = {name.lower() for name in source_headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in replaced} | source_headers
        if cookies:
            # The owner's own cookies come first, in the same header: a second ``Cookie`` header is not allowed.
            (name,) = [name for name in source_headers if name.lower() == "cookie"] or ["Cookie"]
            headers[name] = f"{headers[name]}; {cookies}" if name in headers else cookies
        return headers


def post(network: Network, url: str, headers: Mapping[str, str], body: bytes, *, max_seconds: float) -> int:
    """Post a body to a URL once, and return the response's status without reading its body or following redirects.

    Args:
        max_seconds: Total time limit for lookup, connecting, sending, and waiting for the response.

    Raises:
        NotIndexed: There is no response; the message explains the cause.
    """
    target = _target(url)
    if not network.allows(target):
        raise _private(target.hostname)
    all_headers = {"Host": target.host, "Content-Length": str(len(body)), **headers}
    with (
        _translate_errors(target.hostname),
        time_limit(max_seconds),
        network.send("POST", target, all_headers, body) as response,
    ):
        return int(response.status)


@contextmanager
def _translate_errors(host: str) -> Iterator[None]:
    """Translate network errors to :class:`NotIndexed`."""
    try:
        yield
    except PrivateAddressError as error:
        raise _private(host) from error
    except CertificateError as error:
        raise NotIndexed(Reason.CERTIFICATE, f"The certificate of {host} is not valid: {error}.") from error
    except ResolutionError as error:
        raise NotIndexed(Reason.UNREACHABLE, f"The host name {host} does not resolve.") from error
    except httpcore.TimeoutException as error:
        raise NotIndexed(Reason.TIMEOUT, f"{host} takes too long to respond.") from error
    except httpcore.ConnectError as error:
        raise NotIndexed(Reason.UNREACHABLE, f"Connecting to {host} failed.") from error
    except UnpackingError as error:
        raise NotIndexed(Reason.BAD_ENCODING, f"The response from {host} cannot be decompressed: {error}.") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise NotIndexed(Reason.UNREACHABLE, f"The response from {host} cannot be read: {error}.") from error


def _target(url: str, base: str | None = None) -> URL:
    try:
        return parse_url(url, base)
    except ValueError as error:
        raise NotIndexed(Reason.OTHER_HOST, f"{_shortened(url)} is not an http or https URL.") from error


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        # HTTP's historical encoding, in which every byte is a character, so that no server can cause an error.
        return value.decode("latin-1")


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lowercase name, with the values of repeated headers joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        if name == "location":
            headers.setdefault(name, value)  # The first one counts, since joined values would be invalid.
        elif name == "content-type":
            headers[name] = effective_content_type([headers.get(name, ""), value])
        elif name != "set-cookie":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body(
    response: httpcore.Response, headers: dict[str, str], *, any_type: bool, max_bytes: int, truncate: bool
) -> bytes:
    content_type = headers.get("content-type", "")
    if not (any_type or is_page(content_type)):
        raise _not_text(content_type)
    # Before anything is read: a server usually declares the length of a large file.
    if not truncate and int(_length(headers) or 0) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    sniffed = any_type
    try:
        for piece in unpack(_limited(response, max_bytes, truncate=truncate), headers.get("content-encoding", "")):
            check_time()
            body += piece
            if not sniffed and len(body) >= HEAD_BYTES:
                headers["content-type"] = _sniffed(content_type, body)
                sniffed = True
            if len(body) > max_bytes:
                if not truncate:
                    raise _too_large(max_bytes)
                del body[max_bytes:]
                break
    except (httpcore.RemoteProtocolError, UnpackingError):
        # Browsers, too, show a page whose server declares a wrong length, or forgets the last chunk.
        if not is_complete(content_type, body):
            raise
    if not sniffed:
        headers["content-type"] = _sniffed(content_type, body)
    return bytes(body)


def _limited(response: httpcore.Response, max_bytes: int, *, truncate: bool) -> Iterator[bytes]:
    """Limit the transferred size of a body, too, since compression never makes a useful body longer."""
    length = 0
    for piece in response.iter_stream():
        length += len(piece)
        if length > max_bytes + _MAX_DRAINED_BYTES and not truncate:
            raise _too_large(max_bytes)
        yield piece


def _length(headers: Mapping[str, str]) -> str | None:
    length = headers.get("content-length", "")
    return length if re.fullmatch(r"[0-9]{1,18}", length) else None


def _drain(response: httpcore.Response, headers: Mapping[str, str]) -> None:
    """Read and discard a short body, so that the connection can be reused."""
    length = _length(headers)
    # A body without a length may never end. Opening a new connection is cheaper than reading a long one.
    if length is not None and int(length) <= _MAX_DRAINED_BYTES:
        for _ in response.iter_stream():
            pass


def _sniffed(content_type: str, head: bytearray) -> str:
    kind = sniff(content_type, bytes(head[:HEAD_BYTES]))
    if kind is None:
        raise _not_text(content_type)
    return kind


def _private(host: str) -> NotIndexed:
    return NotIndexed(Reason.PRIVATE_ADDRESS, f"{host} has an IP address that is not public.")


def _not_text(content_type: str) -> NotIndexed:
    return NotIndexed(
        Reason.NOT_TEXT,
        f"The URL returns neither text, a PDF, nor an office file ({content_type[:80] or 'no type'}).",
    )


def _too_large(max_bytes: int) -> NotIndexed:
    return NotIndexed(Reason.TOO_LARGE, f"The page is larger than {max_bytes // 1_048_576 or 1} MiB.")


def _status_error(status: int, headers: Mapping[str, str]) -> NotIndexed:
    reason = http_reason(status)
    if status in {429, 503}:
        seconds = _retry_after(headers.get("retry-after", ""))
        # A 503 without ``Retry-After`` is more often a failure than a request to slow down.
        if seconds is None and status == 429:
            seconds = _WITHOUT_RETRY_AFTER_SECONDS
        if seconds is not None and seconds <= MAX_RETRY_AFTER_SECONDS:
            return TryLater(reason, f"The server asks the crawler to wait for {seconds:.0f} seconds.", seconds)
        if seconds is not None:
            return NotIndexed(reason, "The server asks the crawler to wait for more than ten minutes.")
    return NotIndexed(reason, f"The server responds with status {status}.")


def _retry_after(value: str) -> float | None:
    """``"5" -> 5.0``, ``"0" -> 1.0``, ``"Wed, 21 Oct 2015 07:28:00 GMT" -> 1.0``; ``None`` for other values."""
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,12}", value):
        return max(1.0, float(value))
    moment = parse_http_date(value)
    return None if moment is None else max(1.0, (moment - clock.now()).total_seconds())


def _shortened(url: str) -> str:
    return url if len(url) <= 200 else f"{url[:200]}…"
