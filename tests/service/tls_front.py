"""A TLS front for a server without TLS, with a certificate that a test can expire and renew."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import trustme

ENDED = datetime(2020, 1, 2, 3, 4, tzinfo=UTC)


class TlsFront:
    """Listens on a loopback port and forwards the decrypted data.

    Args:
        target: Port of the server behind.
        postgresql: Whether clients request TLS first, as PostgreSQL's do.
    """

    def __init__(self, authority: trustme.CA, target: int, *, postgresql: bool = False):
        self._authority, self._target, self._postgresql = authority, target, postgresql
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self.show()
        threading.Thread(target=self._accept, daemon=True).start()

    def show(self, name: str = "localhost", *, ends_at: datetime | None = None) -> None:
        """Use another certificate from now on; open connections end."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(name, not_after=ends_at).configure_cert(context)
        self._context = context
        self._end_connections()

    def close(self) -> None:
        self._listener.close()
        self._end_connections()

    def _end_connections(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # The listener was closed.
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain:
            if self._postgresql:
                plain.recv(8)
                plain.sendall(b"S")
            with (
                self._context.wrap_socket(plain, server_side=True) as client,
                socket.create_connection(("127.0.0.1", self._target)) as server,
            ):
                self._open |= {client, server}
                answers = threading.Thread(target=_pump, args=(server, client), daemon=True)
                answers.start()
                _pump(client, server)
                answers.join()
                self._open -= {client, server}


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def tls_front(authority: trustme.CA, target: int, *, postgresql: bool = False) -> Iterator[TlsFront]:
    """Run a TLS front for as long as the block lasts."""
    front = TlsFront(authority, target, postgresql=postgresql)
    try:
        yield front
    finally:
        front.close()


def trusted_file(authority: trustme.CA, folder: Path) -> Path:
    """Write a file with the authority's certificate."""
    file = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    return file
