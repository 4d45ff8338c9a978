"""The certificates of the servers that the settings name: whom they are for, and when they end."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from app.config import Settings
from app.storage.database import normalized_url
from backends.servers.server_url import ServerUrl

_T = TypeVar("_T")

TIMEOUT_SECONDS = 5.0
_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for."""
_POSTGRESQL_TLS = bytes.fromhex("0000000804d2162f")
"""The message that asks PostgreSQL for TLS."""
_ENGINE_PORTS = {"typesense": 8108, "meilisearch": 7700}


class NoTls(Exception):
    """A server does not speak TLS, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a certificate is shown.

    Attributes:
        setting: The setting that names it.
        host: Name that the certificate must be for.
        ca_file: Certificates to trust; ``None`` for the system's.
        check_name: Whether whoever connects there looks at the name.
        prepare: What is said on a new connection before TLS begins.
    """

    setting: str
    host: str
    port: int
    ca_file: str | None = None
    check_name: bool = True
    prepare: Callable[[socket.socket], None] = lambda connection: None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server showed.

    Attributes:
        names: Whom it is for.
        ends_at: When it ends, aware UTC.
        refusal: Why it is not accepted, in OpenSSL's words; empty if it is.
    """

    names: tuple[str, ...]
    ends_at: datetime
    refusal: str


def endpoints(settings: Settings) -> Iterator[Endpoint]:
    """Where the settings have the service, or its users, look at certificates."""
    for setting in ("PUBLIC_URL", "SEARCH_PUBLIC_URL"):
        parts = urlsplit(getattr(settings, setting.lower()))
        if parts.scheme == "https" and parts.hostname:
            yield Endpoint(setting, parts.hostname, parts.port or 443)
    for setting in ("SEARCH_URL", "SEARCH_NEXT_URL"):
        yield from _engine(setting, getattr(settings, setting.lower()))
    yield from _redis(settings.limits_url)
    yield from _postgresql(settings.database_url)
    yield from _smtp(getattr(settings, "smtp_url", ""))


def _engine(setting: str, url: str) -> Iterator[Endpoint]:
    name, _, rest = url.partition("+")
    if name in _ENGINE_PORTS and rest.startswith("https:"):
        server = ServerUrl.parse(url, default_port=_ENGINE_PORTS[name])
        for node in map(urlsplit, server.nodes):
            yield Endpoint(setting, node.hostname or "", node.port or 443, server.ca_file or DEFAULT_CA_BUNDLE_PATH)


def _redis(url: str) -> Iterator[Endpoint]:
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.scheme == "rediss" and options.get("ssl_cert_reqs", "required") == "required":
        named = options.get("ssl_check_hostname", "true").lower() not in ("false", "0", "no")
        ca_file = options.get("ssl_ca_certs")
        yield Endpoint("LIMITS_URL", parts.hostname or "localhost", parts.port or 6379, ca_file, named)


def _postgresql(url: str) -> Iterator[Endpoint]:
    parsed = normalized_url(url)
    mode = parsed.query.get("sslmode")
    if mode in ("verify-ca", "verify-full") and parsed.host:
        ca_file = parsed.query.get("sslrootcert")
        trusted = ca_file if isinstance(ca_file, str) and ca_file != "system" else None
        port = parsed.port or 5432
        yield Endpoint("DATABASE_URL", parsed.host, port, trusted, mode == "verify-full", _ask_postgresql)


def _ask_postgresql(connection: socket.socket) -> None:
    connection.sendall(_POSTGRESQL_TLS)
    if connection.recv(1) != b"S":
        raise NoTls("PostgreSQL offers no TLS")


def _smtp(url: str) -> Iterator[Endpoint]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "smtps":
        yield Endpoint("SMTP_URL", host, parts.port or 465)
    elif parts.scheme == "smtp" and host not in ("localhost", "::1") and not host.startswith("127."):
        yield Endpoint("SMTP_URL", host, parts.port or 587, prepare=_ask_smtp)


def _ask_smtp(connection: socket.socket) -> None:
    mail = smtplib.SMTP()
    mail.sock = connection
    mail.getreply()
    mail.ehlo()
    if mail.docmd("STARTTLS")[0] != 220:
        raise NoTls("the mail server offers no TLS")


def look_at(endpoint: Endpoint) -> Certificate:
    """The certificate that a server shows, be it accepted or not.

    Raises:
        NoTls: There is none to see.
    """
    shown = _handshake(endpoint, _accepting(), lambda connection: connection.getpeercert(binary_form=True))
    # Python decodes only certificates that were verified: this one vouches for itself here.
    decoding = ssl.create_default_context(cadata=shown)
    decoding.check_hostname = False
    decoding.verify_flags = ssl.VerifyFlags(_NO_CHECK_TIME) | ssl.VERIFY_X509_PARTIAL_CHAIN
    details = _handshake(endpoint, decoding, _decoded)
    strict = ssl.create_default_context(cafile=endpoint.ca_file)
    strict.check_hostname = endpoint.check_name
    try:
        refusal = _handshake(endpoint, strict, lambda connection: "")
    except ssl.SSLCertVerificationError as error:
        refusal = error.verify_message.rstrip(".")
    return Certificate(
        names=tuple(value for _, value in details.get("subjectAltName", ())),
        ends_at=datetime.fromtimestamp(ssl.cert_time_to_seconds(details["notAfter"]), UTC),
        refusal=refusal,
    )


def _decoded(connection: ssl.SSLSocket) -> dict[str, Any]:
    return dict(connection.getpeercert() or {})


def _accepting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _handshake(endpoint: Endpoint, context: ssl.SSLContext, read: Callable[[ssl.SSLSocket], _T]) -> _T:
    """What ``read`` finds once a connection is secured.

    Raises:
        ssl.SSLCertVerificationError: The certificate is not accepted.
        NoTls: There is no such connection.
    """
    try:
        with socket.create_connection((endpoint.host, endpoint.port), TIMEOUT_SECONDS) as connection:
            endpoint.prepare(connection)
            with context.wrap_socket(connection, server_hostname=endpoint.host) as secured:
                return read(secured)
    except ssl.SSLCertVerificationError:
        raise
    except (OSError, smtplib.SMTPException) as error:
        raise NoTls(str(error)) from error
