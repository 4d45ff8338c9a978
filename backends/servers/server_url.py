"""The URL of a server engine: hosts, key, and time limits."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from backends.base import engine_identity

_FORM = re.compile(
    r"(?P<scheme>[a-z]+)(?P<tls>\+https)?://(?P<user>[^:@/?#]*):(?P<key>[^@/?#]+)@(?P<hosts>[^@/?#]+)/?(?:\?(?P<options>[^#]*))?"
)
_HOST = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")

CONNECT_TIMEOUT_SECONDS = 1.0
"""Default number of seconds for opening a connection."""

SEND_TIMEOUT_SECONDS = 10.0
"""Default number of seconds for sending the body of one request."""

TIMEOUT_SECONDS = 5.0
"""Default number of seconds for one operation (a search, or one batch of a bulk write)."""


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """The location of a server engine and its time limits.

    Attributes:
        name: Name of the engine, which is the scheme of the URL.
        nodes: Base URLs of its nodes, such as ``http://10.0.0.5:8108``.
        key: The operator's key; a secret, never part of ``repr``.
        identity: Stable identity of the engine; see :attr:`backends.base.SearchBackend.identity`.
        connect_timeout_seconds: Limit for opening a connection to one node.
        send_timeout_seconds: Limit for sending the body of one request.
        timeout_seconds: Limit for one operation, including connecting, failover, and retries, but not sending bodies.
        ca_file: Certificates to trust instead of the usual ones, with ``+https``.
    """

    name: str
    nodes: tuple[str, ...]
    key: str = field(repr=False)
    identity: str
    connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS
    send_timeout_seconds: float = SEND_TIMEOUT_SECONDS
    timeout_seconds: float = TIMEOUT_SECONDS
    ca_file: str | None = None

    @classmethod
    def parse(cls, url: str, *, default_port: int) -> ServerUrl:
        """Parse ``scheme://:key@host:port,host:port?timeout_seconds=5``; ``scheme+https`` for TLS.

        The key is percent-decoded. Options: ``connect_timeout_seconds``, ``send_timeout_seconds``, ``timeout_seconds``
        (more than 0, at most 600), ``ca_file``, and ``name``.

        Raises:
            ValueError: The URL does not have this form. The message never repeats the key.
        """
        match = _FORM.fullmatch(url)
        if match is None:
            raise ValueError(
                "The URL of a search server must have the form scheme://:KEY@host:port, with commas between hosts; "
                "characters such as @ / ? # in the key must be percent-encoded."
            )
        if match["user"]:
            raise ValueError("The URL of a search server must not contain a user name: write scheme://:KEY@host.")
        protocol = "https" if match["tls"] else "http"
        options = dict(parse_qsl(match["options"] or "", keep_blank_values=True))
        ca_file = options.pop("ca_file", None)
        label = options.pop("name", "")
        connect = _seconds(options, "connect_timeout_seconds", CONNECT_TIMEOUT_SECONDS)
        send = _seconds(options, "send_timeout_seconds", SEND_TIMEOUT_SECONDS)
        total = _seconds(options, "timeout_seconds", TIMEOUT_SECONDS)
        if options:
            raise ValueError(f"Unknown option in the URL of a search server: {', '.join(sorted(options))}.")
        if ca_file is not None and protocol != "https":
            raise ValueError(f"ca_file is valid only with {match['scheme']}+https://.")
        nodes = tuple(_node(protocol, host, default_port) for host in match["hosts"].split(","))
        if len(set(nodes)) != len(nodes):
            raise ValueError("The URL of a search server contains a host twice.")
        identity = engine_identity(match["scheme"], label)
        return cls(
            match["scheme"],
            nodes,
            unquote(match["key"]),
            identity,
            connect_timeout_seconds=min(connect, total),
            send_timeout_seconds=send,
            timeout_seconds=total,
            ca_file=ca_file,
        )


def _node(protocol: str, text: str, default_port: int) -> str:
    match = _HOST.fullmatch(text)
    port = int(match["port"] or default_port) if match else 0
    if match is None or not 0 < port < 65536:
        raise ValueError("The URL of a search server contains a host that does not have the form name:port.")
    return f"{protocol}://{match['host'].lower()}:{port}"


def _seconds(options: dict[str, str], name: str, default: float) -> float:
    text = options.pop(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 600:
        raise ValueError(f"{name} must be a number of seconds above 0 and at most 600.")
    return value
