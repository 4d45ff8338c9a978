"""MiniLM, a small model for English, which one process of the machine runs for all."""

from __future__ import annotations

import logging
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.services.embedding import minilm_server
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.minilm_server import DIMENSION, GREETING, MODEL, SOCKET
from app.storage.machine_process import MachineProcess

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CHARACTERS = 4_000
"""Characters of a text that are sent: more than its first 256 tokens are."""
TEXTS_AT_ONCE = 64
RETRY_SECONDS = 0.01
HUNG_SECONDS = 30.0
"""How long the process greets nobody when it is killed. It takes some seconds to start on a slow disk."""
STOP_SECONDS = 2.0
FAILURE_PAUSE_SECONDS = 60.0
MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "3276800", "MALLOC_TRIM_THRESHOLD_": "16777216"}
"""Bounds of glibc's malloc. All that a text of 256 tokens needs is used again by the next one: to take it from the
system each time takes twice as long. What is larger, most of what loading takes, goes back."""
MAX_SOCKET_PATH = 107
"""Bytes of a socket's path on Linux."""

log = logging.getLogger(__name__)


class MinilmEmbedder:
    """Asks the process, and starts it if there is none.

    Args:
        folder: DATA_DIR.
        server: Path of the program that is started (tests).
    """

    model = f"all-MiniLM-L6-v2-int8-{MODEL.sha256[:8]}"
    languages = frozenset({"en"})
    dimension = DIMENSION

    def __init__(self, folder: Path, server: Path = Path(minilm_server.__file__)):
        self._folder = folder
        self._process = MachineProcess(
            folder,
            "minilm",
            (sys.executable, "-P", str(server), str(folder)),
            stop_seconds=STOP_SECONDS,
            failure_pause_seconds=FAILURE_PAUSE_SECONDS,
            env={**MEMORY, **os.environ, "TOKENIZERS_PARALLELISM": "false"},
        )
        self._lock = threading.Lock()
        self._silent_since: float | None = None

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """As in :class:`~app.services.embedding.embedder.Embedder`."""
        vector: NDArray[np.float32] = self._ask("query", [text], time.monotonic() + timeout_seconds)[0]
        return vector

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """As in :class:`~app.services.embedding.embedder.Embedder`."""
        deadline = time.monotonic() + timeout_seconds
        parts = [
            self._ask("documents", texts[at : at + TEXTS_AT_ONCE], deadline)
            for at in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        return np.concatenate([np.empty((0, DIMENSION), np.float32), *parts])

    def close(self) -> None:
        """End the process if it was started here."""
        self._process.stop()

    def _ask(self, kind: str, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        with self._connect(deadline) as connection:
            left = _left(deadline)
            try:
                connection.settimeout(left)
                # The tokenizer takes no halves of characters.
                shortened = [text[:MAX_CHARACTERS].encode(errors="replace").decode() for text in texts]
                minilm_server.send_frame(connection, {"kind": kind, "texts": shortened, "seconds": left})
                answer = minilm_server.receive_bytes(connection, len(texts) * DIMENSION * 4, deadline)
            except (OSError, EOFError) as error:
                raise EmbedderUnavailable(f"MiniLM does not answer: {error}") from error
        return np.frombuffer(bytes(answer), dtype="<f4").reshape(len(texts), DIMENSION)

    def _connect(self, deadline: float) -> socket.socket:
        """A connection that the process has greeted; it is started if there is none."""
        while True:
            connection = self._greeted(deadline)
            if connection is not None:
                return connection
            if not self._process.start():
                raise EmbedderUnavailable("the process of MiniLM has ended with an error, which the log shows")
            if time.monotonic() + RETRY_SECONDS > deadline:
                raise EmbedderUnavailable("the process of MiniLM does not run, or is full")
            time.sleep(RETRY_SECONDS)

    def _greeted(self, deadline: float) -> socket.socket | None:
        left = _left(deadline)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(left)
            _connect_to(connection, self._folder / SOCKET)
            greeting = connection.recv(len(GREETING))
        except TimeoutError as error:
            self._note_silence(connection)
            connection.close()
            raise EmbedderUnavailable("the process of MiniLM does not answer in time") from error
        except OSError:
            greeting = b""
        with self._lock:
            self._silent_since = None
        if greeting != GREETING:
            connection.close()
            return None
        return connection

    def _note_silence(self, connection: socket.socket) -> None:
        """Kill a process that has listened, but greeted nobody, for long: the next one can take its lock."""
        with self._lock:
            now = time.monotonic()
            if self._silent_since is None:
                self._silent_since = now
            if now - self._silent_since < HUNG_SECONDS:
                return
            self._silent_since = None
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process_id, _, _ = struct.unpack("3i", credentials)
        if process_id > 0:
            log.error("the process of MiniLM (%d) hangs and is killed", process_id)
            os.kill(process_id, signal.SIGKILL)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise EmbedderUnavailable("MiniLM does not answer in time")
    return left


def _connect_to(connection: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        connection.connect(os.fspath(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
