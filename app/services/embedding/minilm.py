"""MiniLM, a small model for English, which runs in one process shared by all processes of the machine."""

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

from app.clock import Pauses
from app.services.embedding import minilm_server
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.minilm_server import DIMENSION, GREETING, MODEL, SOCKET
from app.storage.machine_process import MachineProcess

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CHARACTERS = 4_000
"""Maximum number of characters sent per text, enough for 256 tokens."""
MAX_TEXTS_PER_REQUEST = 64
RETRY_SECONDS = 0.01
HUNG_SECONDS = 30.0
"""Seconds without a greeting after which the process is killed. On a slow disk, starting takes several seconds."""
STOP_SECONDS = 2.0
FAILURE_PAUSES = Pauses(60.0, 60.0)
MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "3276800", "MALLOC_TRIM_THRESHOLD_": "16777216"}
"""Limits of glibc's malloc.

Memory for a text of 256 tokens is reused for the next text; requesting it from the system each time takes twice as
long. Larger blocks, such as most blocks for loading, are returned to the system."""
MAX_SOCKET_PATH = 107
"""Maximum length of a socket path on Linux, in bytes."""

log = logging.getLogger(__name__)


class MinilmEmbedder:
    """A client of the MiniLM process, which it starts if necessary.

    Args:
        folder: DATA_DIR.
        server: Path of the program to start (for tests).
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
            failure_pauses=FAILURE_PAUSES,
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
            self._ask("documents", texts[at : at + MAX_TEXTS_PER_REQUEST], deadline)
            for at in range(0, len(texts), MAX_TEXTS_PER_REQUEST)
        ]
        return np.concatenate([np.empty((0, DIMENSION), np.float32), *parts])

    def close(self) -> None:
        """Stop the MiniLM process if this process started it."""
        self._process.stop()

    def _ask(self, kind: str, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        with self._connect(deadline) as connection:
            seconds = _seconds_until(deadline)
            try:
                connection.settimeout(seconds)
                # The tokenizer rejects lone surrogates.
                shortened = [text[:MAX_CHARACTERS].encode(errors="replace").decode() for text in texts]
                minilm_server.send_frame(connection, {"kind": kind, "texts": shortened, "seconds": seconds})
                response = minilm_server.receive_bytes(connection, len(texts) * DIMENSION * 4, deadline)
            except (OSError, EOFError) as error:
                raise EmbedderUnavailable(f"MiniLM does not respond: {error}") from error
        return np.frombuffer(bytes(response), dtype="<f4").reshape(len(texts), DIMENSION)

    def _connect(self, deadline: float) -> socket.socket:
        """Return a connection that the process has greeted, and start the process if necessary."""
        while True:
            connection = self._greeted(deadline)
            if connection is not None:
                return connection
            if not self._process.start():
                raise EmbedderUnavailable("the MiniLM process has ended with an error; see the log")
            if time.monotonic() + RETRY_SECONDS > deadline:
                raise EmbedderUnavailable("the MiniLM process is not running, or has too many connections")
            time.sleep(RETRY_SECONDS)

    def _greeted(self, deadline: float) -> socket.socket | None:
        seconds = _seconds_until(deadline)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(seconds)
            _connect_to(connection, self._folder / SOCKET)
            greeting = connection.recv(len(GREETING))
        except TimeoutError as error:
            self._note_silence(connection)
            connection.close()
            raise EmbedderUnavailable("the MiniLM process does not respond in time") from error
        except OSError:
            greeting = b""
        with self._lock:
            self._silent_since = None
        # The process refused the connection, is ending, or has not started yet.
        if greeting != GREETING:
            connection.close()
            return None
        return connection

    def _note_silence(self, connection: socket.socket) -> None:
        """Kill a MiniLM process that has not greeted for too long, so that a new process can take its lock."""
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
            log.error("the MiniLM process (%d) hangs and is killed", process_id)
            os.kill(process_id, signal.SIGKILL)


def _seconds_until(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise EmbedderUnavailable("MiniLM does not respond in time")
    return seconds


def _connect_to(connection: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        connection.connect(os.fspath(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
