"""The web server, gunicorn: its address, processes, and threads as settings, and its worker."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from app.config import ConfigurationError

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - only for a comparison.


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """The settings of :data:`app.config.SERVER_SETTINGS`.

    Attributes:
        host: A name or an IP address.
        workers: Number of worker processes.
        threads: Number of threads per worker.
    """

    host: str
    port: int
    workers: int
    threads: int

    @property
    def bind(self) -> str:
        """The address in gunicorn's format."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The service's URL for a browser on this machine, without a final slash."""
        host = "127.0.0.1" if self.host in _EVERY_ADDRESS else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def read_server_environment(environ: Mapping[str, str] | None = None) -> ServerEnvironment:
    """Read HOST, PORT, WEB_CONCURRENCY and WEB_THREADS.

    Args:
        environ: By default, the process's environment.

    Raises:
        ConfigurationError: A value is not a number, or is out of range.
    """
    environ = os.environ if environ is None else environ
    return ServerEnvironment(
        host=environ.get("HOST") or "127.0.0.1",
        port=_number(environ, "PORT", 8000, 65_535),
        workers=_number(environ, "WEB_CONCURRENCY", os.cpu_count() or 1, 1_000),
        threads=_number(environ, "WEB_THREADS", 8, 1_000),
    )


def _number(environ: Mapping[str, str], name: str, default: int, maximum: int) -> int:
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= maximum):
        raise ConfigurationError(f"{name} must be a number from 1 to {maximum}, not {text!r}.")
    return int(text)
