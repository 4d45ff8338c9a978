"""Names by which requests call this service: the ``Host`` header, and the addresses made of it."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit

from flask import Flask, Request, request
from werkzeug.sansio.utils import get_host

from app.errors import ApiError, ErrorCode, field_error
from app.runtime import runtime
from app.tokens import make_hook_token

_HOST = re.compile(
    r"(?:(?P<name>[\w-]{1,63}(?:\.[\w-]{1,63})*\.?)|\[(?P<ipv6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{0,5}))?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_NAME = 253
_LAST_PORT = 65535
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def register(app: Flask) -> None:
    """Refuse requests to ``app`` that name no host; must come before hooks that answer."""
    app.before_request(_refuse_no_host)


def _refuse_no_host() -> None:
    environ = request.environ
    sent = environ.get("HTTP_HOST")
    # Before HTTP/1.1 there was no such header.
    if sent is None and environ.get("SERVER_PROTOCOL") != "HTTP/1.1":
        return
    if sent is None or not is_host(sent):
        raise field_error("Host", "invalid", "must be a host, with or without a port")


@lru_cache(maxsize=1024)
def is_host(text: str) -> bool:
    """Tell whether ``text`` is a host name or an IP address, with or without a port."""
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"] or 0) > _LAST_PORT:
        return False
    if match["ipv6"] is None:
        return len(match["name"]) <= _LONGEST_NAME
    try:
        ipaddress.IPv6Address(match["ipv6"])
    except ValueError:
        return False
    return True


def base_url() -> str:
    """The service's address as its users see it: ``PUBLIC_URL`` if set, else the request's."""
    return runtime().settings.public_url or f"{request.scheme}://{_host_of(request)}{request.root_path}"


def service_name() -> str:
    """The service's host, as apps for one-time codes name it."""
    return urlsplit(base_url()).hostname or ""


def hook_url(source_id: str, salt: str) -> str:
    """The address of a source's hook, which is a secret.

    Args:
        salt: The source's ``hook_salt``.
    """
    return f"{base_url()}/hooks/{make_hook_token(source_id, salt, runtime().settings.secret_key)}"


def _host_of(req: Request) -> str:
    """The host and, unless it is the scheme's own, the port that a request names; the server's if it names none."""
    sent = req.environ.get("HTTP_HOST")
    if sent is None:
        return get_host(req.scheme, None, req.server)
    return str(sent).removesuffix(":").removesuffix(_DEFAULT_PORTS.get(req.scheme, ""))


def refuse_foreign_form(req: Request) -> None:
    """Refuse what another site's page sends: with no session yet, no token can tell that it is not ours.

    Raises:
        ApiError: 403 ``csrf_failed``.
    """
    origin = req.headers.get("Origin")
    foreign = origin is not None and not is_own_origin(req, origin)
    if foreign or req.headers.get("Sec-Fetch-Site") == "cross-site":
        raise ApiError(ErrorCode.CSRF_FAILED, "The form was submitted from another site; use the form on this site.")


def is_own_origin(req: Request, origin: str) -> bool:
    """Tell whether ``origin`` is that of this service's own pages."""
    host = _host_of(req)
    # A page of the same host that came by https is ours too: a proxy that ends TLS may not say so.
    own = {f"{req.scheme}://{host}", f"https://{host}"}
    if runtime().settings.public_url:
        parts = urlsplit(runtime().settings.public_url)
        own.add(f"{parts.scheme}://{parts.netloc}".removesuffix(_DEFAULT_PORTS[parts.scheme]))
    return origin.lower() in {each.lower() for each in own}
