"""Fetching one address: redirects, limits, conditions, and the reason where it cannot be had."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC
from email.utils import parsedate_to_datetime

import httpcore
from ada_url import URL

from app import clock
from app.crawl.fetch.addresses import Scope, header_origins, normalize_url, parse_url
from app.crawl.fetch.cookies import Cookies
from app.crawl.fetch.media_types import HEAD_BYTES, is_page, sniff
from app.crawl.fetch.network import CertificateError, Network, PrivateAddressError, ResolutionError, time_limit
from app.crawl.fetch.unpacking import PACKED, UnpackingError, unpack
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
"""Surrounds every single request to an address: it may wait for the host's turn, or raise :class:`NotIndexed`."""

MAX_REDIRECTS = 10
MAX_SECONDS = 30.0
MAX_RETRY_AFTER_SECONDS = 600.0
MAX_HEADERS = 5

_WITHOUT_RETRY_AFTER_SECONDS = 30.0
_MAX_DRAINED_BYTES = 65_536
_ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.9, application/pdf;q=0.9, */*;q=0.5"
_REDIRECTS = {301, 302, 303, 307, 308}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]{0,4094}[\x21-\x7e\x80-\xff])?")
_OWN_HEADERS = {
    *("accept-encoding", "connection", "content-length", "expect", "host", "if-modified-since", "if-none-match"),
    *("keep-alive", "proxy-authorization", "proxy-connection", "range", "te", "trailer", "transfer-encoding"),
    *("upgrade", "user-agent"),
}
"""Headers that belong to the connection, or say who we are and what we know."""


def check_headers(headers: Mapping[str, str]) -> None:
    """Check headers that a source's owner wants to have sent.

    Raises:
        ValueError: There are too many, or one cannot be sent; the message says which and why.
    """
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"at most {MAX_HEADERS} headers can be sent")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a header is there twice")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name[:100]!r} is no name of a header")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"the header {name} is set by the crawler")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} cannot be sent")


class Fetcher:
    """Fetches addresses within the scope of one site. Keeps cookies, so there is one for each run. Thread-safe.

    A fetch holds at most twice ``max_bytes``, and 200 KiB for the connection.
    """

    def __init__(
        self,
        network: Network,
        scope: Scope,
        user_agent: str,
        *,
        headers: Mapping[str, str] | None = None,
        headers_url: str = "",
        max_seconds: float = MAX_SECONDS,
    ):
        """
        Args:
            network: The connections; it may be shared.
            scope: The hosts that may be asked.
            user_agent: Says who we are, see :func:`user_agent`.
            headers: Sent to the host, scheme, and port of ``headers_url`` alone, or to its https version.
            headers_url: The source's address.
            max_seconds: How long connecting, redirects, and reading may take, added up, without waiting for turns.

        Raises:
            ValueError: A header cannot be sent.
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
        """Fetch an address, following redirects.

        Args:
            url: Absolute.
            validators: Gives what is known of an address, by its normalized form. Where it gives something, the
                answer may be 304, without body.
            visit: Surrounds each request, also those that redirects lead to.
            any_type: Whether bodies may be other than text, PDFs, and office files.
            max_bytes: How long the unpacked body may be.
            truncate: Whether a longer body is cut there.
            on_sent: Called when a request was written, before its answer is waited for.

        Raises:
            TryLater: The server asks to wait for at most 600 seconds.
            NotIndexed: It cannot be had, or is no page.
        """
        left = self._max_seconds
        led_here: list[str] = []
        asked: set[tuple[str, str]] = set()
        target = _target(url)
        while True:
            if not self._network.allows(target):
                raise _private(target.hostname)
            if not self._scope.contains(target.href):
                raise NotIndexed(Reason.OTHER_HOST, f"{_shown(target.href)} is not on the site's hosts.")
            cookies = self._cookies.header(target.href)
            if (target.href, cookies) in asked:
                raise NotIndexed(Reason.REDIRECT_LOOP, "The address redirects to itself.")
            if len(led_here) > MAX_REDIRECTS:
                raise NotIndexed(Reason.REDIRECT_LOOP, f"The address redirects more than {MAX_REDIRECTS} times.")
            asked.add((target.href, cookies))
            address = normalize_url(target.href)
            with visit(address):
                begun = time.monotonic()
                with _reasons(target.hostname), time_limit(left):
                    answer = self._request(
                        target,
                        cookies,
                        validators(address),
                        any_type=any_type,
                        max_bytes=max_bytes,
                        truncate=truncate,
                        on_sent=on_sent,
                    )
                left -= time.monotonic() - begun
            if isinstance(answer, Fetched):
                return Fetched(address, answer.status, answer.headers, answer.body, tuple(led_here))
            led_here.append(address)
            target = answer

    def _request(
        self,
        target: URL,
        cookies: str,
        known: Validators | None,
        *,
        any_type: bool,
        max_bytes: int,
        truncate: bool,
        on_sent: Callable[[], object],
    ) -> Fetched | URL:
        """An answer, or where it redirects to."""
        sent = self._request_headers(target, cookies, known)
        with self._network.get(target, sent, on_sent) as response:
            headers = _headers(response.headers)
            self._cookies.keep(target.href, [_text(v) for n, v in response.headers if n.lower() == b"set-cookie"])
            status = response.status
            if status == 200:
                body = _body(response, headers, any_type=any_type, max_bytes=max_bytes, truncate=truncate)
                return Fetched(target.href, status, headers, body)
            _drain(response, headers)
            if status == 304 and known is not None:
                return Fetched(target.href, status, headers, b"")
            if status in _REDIRECTS and "location" in headers:
                return _target(headers["location"], target.href)
            raise _refusal(status, headers)

    def _request_headers(self, target: URL, cookies: str, known: Validators | None) -> dict[str, str]:
        headers = {
            "Host": target.host,
            "User-Agent": self._user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": PACKED,
        }
        if known is not None and known.etag:
            headers["If-None-Match"] = known.etag
        if known is not None and known.last_modified:
            headers["If-Modified-Since"] = known.last_modified
        own = self._headers if target.origin in self._headers_origins else {}
        replaced = {name.lower() for name in own}
        headers = {name: value for name, value in headers.items() if name.lower() not in replaced} | own
        if cookies:
            (name,) = [name for name in own if name.lower() == "cookie"] or ["Cookie"]
            headers[name] = f"{headers[name]}; {cookies}" if name in headers else cookies
        return headers


def post(network: Network, url: str, headers: Mapping[str, str], body: bytes, *, max_seconds: float) -> int:
    """Send a body to an address once; gives the status of the answer, which is neither read nor followed elsewhere.

    Args:
        max_seconds: How long looking up, connecting, sending, and waiting for the answer may take, added up.

    Raises:
        NotIndexed: There is no answer; its message says why.
    """
    target = _target(url)
    if not network.allows(target):
        raise _private(target.hostname)
    sent = {"Host": target.host, "Content-Length": str(len(body)), **headers}
    with _reasons(target.hostname), time_limit(max_seconds), network.send("POST", target, sent, body) as response:
        return int(response.status)


@contextmanager
def _reasons(host: str) -> Iterator[None]:
    """Translate what goes wrong on the way to a host."""
    try:
        yield
    except PrivateAddressError as error:
        raise _private(host) from error
    except CertificateError as error:
        raise NotIndexed(Reason.CERTIFICATE, f"The certificate of {host} is not valid: {error}.") from error
    except ResolutionError as error:
        raise NotIndexed(Reason.UNREACHABLE, f"{host} has no address.") from error
    except httpcore.TimeoutException as error:
        raise NotIndexed(Reason.TIMEOUT, f"{host} takes too long to answer.") from error
    except httpcore.ConnectError as error:
        raise NotIndexed(Reason.UNREACHABLE, f"{host} cannot be connected to.") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, UnpackingError) as error:
        raise NotIndexed(Reason.UNREACHABLE, f"The answer of {host} cannot be read: {error}.") from error


def _target(url: str, base: str | None = None) -> URL:
    try:
        return parse_url(url, base)
    except ValueError as error:
        raise NotIndexed(Reason.OTHER_HOST, f"{_shown(url)} is no http or https address.") from error


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case; of several with one name, the values with commas between them."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        if name == "location" or name == "content-type":
            headers.setdefault(name, value)
        elif name != "set-cookie":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body(
    response: httpcore.Response, headers: dict[str, str], *, any_type: bool, max_bytes: int, truncate: bool
) -> bytes:
    content_type = headers.get("content-type", "")
    if not (any_type or is_page(content_type)):
        raise _not_text(content_type)
    if not truncate and int(_length(headers) or 0) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    sniffed = any_type
    for piece in unpack(_bounded(response, max_bytes, truncate=truncate), headers.get("content-encoding", "")):
        body += piece
        if not sniffed and len(body) >= HEAD_BYTES:
            headers["content-type"] = _sniffed(content_type, body)
            sniffed = True
        if len(body) > max_bytes:
            if not truncate:
                raise _too_large(max_bytes)
            del body[max_bytes:]
            break
    if not sniffed:
        headers["content-type"] = _sniffed(content_type, body)
    return bytes(body)


def _bounded(response: httpcore.Response, max_bytes: int, *, truncate: bool) -> Iterator[bytes]:
    """The pieces of a body as it was transferred: packing does not make longer what is worth reading."""
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
    """Read a short body that nobody needs, so that the connection can be used again."""
    length = _length(headers)
    if length is not None and int(length) <= _MAX_DRAINED_BYTES:
        for _ in response.iter_stream():
            pass


def _sniffed(content_type: str, head: bytearray) -> str:
    kind = sniff(content_type, bytes(head[:HEAD_BYTES]))
    if kind is None:
        raise _not_text(content_type)
    return kind


def _private(host: str) -> NotIndexed:
    return NotIndexed(Reason.PRIVATE_ADDRESS, f"{host} is at an address that is not public.")


def _not_text(content_type: str) -> NotIndexed:
    return NotIndexed(
        Reason.NOT_TEXT, f"The address gives neither text, a PDF, nor an office file ({content_type[:80] or 'untold'})."
    )


def _too_large(max_bytes: int) -> NotIndexed:
    return NotIndexed(Reason.TOO_LARGE, f"The page has more than {max_bytes // 1_048_576 or 1} MiB.")


def _refusal(status: int, headers: Mapping[str, str]) -> NotIndexed:
    reason = http_reason(status)
    if status in {429, 503}:
        seconds = _retry_after(headers.get("retry-after", ""))
        if seconds is None and status == 429:
            seconds = _WITHOUT_RETRY_AFTER_SECONDS
        if seconds is not None and seconds <= MAX_RETRY_AFTER_SECONDS:
            return TryLater(reason, f"The server asks to wait for {seconds:.0f} seconds.", seconds)
        if seconds is not None:
            return NotIndexed(reason, "The server asks to wait for more than ten minutes.")
    return NotIndexed(reason, f"The server answers with status {status}.")


def _retry_after(value: str) -> float | None:
    """Seconds that a header ``Retry-After`` asks for, at least one; ``None`` if it says nothing."""
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,12}", value):
        return max(1.0, float(value))
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(1.0, (aware - clock.now()).total_seconds())


def _shown(url: str) -> str:
    return url if len(url) <= 200 else f"{url[:200]}…"
