"""Models that run in one process shared by all processes of the machine: MiniLM, and fastembed models."""

from __future__ import annotations

import hashlib
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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from app.clock import Pauses
from app.services.embedding import local_server
from app.services.embedding.chunks import CHUNK_CHARACTERS
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.local_server import GREETING, MODEL, MODELS
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


class LocalModel(NamedTuple):
    """A model for :class:`LocalEmbedder`.

    Attributes:
        name: Name of the model in fastembed; empty for MiniLM.
        identity: Identity that is stored with vectors.
        languages: Languages that the model knows, as ISO 639-1 codes.
        dimension: Dimension of its vectors.
        chunk_characters: Number of characters that fit the tokens that it considers.
    """

    name: str
    identity: str
    languages: frozenset[str]
    dimension: int
    chunk_characters: int = CHUNK_CHARACTERS

    @property
    def file_name(self) -> str:
        """Name of the process's socket and lock. Processes of different models can run at once, during a restart."""
        return f"fastembed-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}" if self.name else "minilm"


MINILM = LocalModel("", f"all-MiniLM-L6-v2-int8-{MODEL.sha256[:8]}", frozenset({"en"}), 384)

DEFAULT_MODEL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""The smallest multilingual transformer in fastembed, 0.22 GB."""

_PARAPHRASE_LANGUAGES = (
    "ar bg ca cs da de el en es et fa fi fr gl gu he hi hr hu hy id it ja ka ko ku lt lv mk mn mr ms my nl no pl pt ro "
    "ru sk sl sq sr sv th tr uk ur vi zh"
)
"""The languages with which the authors trained the multilingual paraphrase models."""

FASTEMBED_MODELS = {
    name: LocalModel(name, f"fastembed-{name}", frozenset(languages.split()), dimension, *chunk_characters)
    for name, languages, dimension, *chunk_characters in (
        (DEFAULT_MODEL, _PARAPHRASE_LANGUAGES, 384, 450),  # It considers 128 tokens.
        ("sentence-transformers/paraphrase-multilingual-mpnet-base-v2", _PARAPHRASE_LANGUAGES, 768),
        ("sentence-transformers/all-MiniLM-L6-v2", "en", 384),
        ("BAAI/bge-small-en-v1.5", "en", 384),
        ("jinaai/jina-embeddings-v2-base-de", "de en", 768),
        ("jinaai/jina-embeddings-v2-base-es", "es en", 768),
    )
}
"""Selectable fastembed models, by name.

fastembed does not list a model's languages. Its other models are for Chinese, in which no query counts as a
sentence, or need a prefix for each text, or take gigabytes, or are static.
"""


class LocalEmbedder:
    """A client of the process that runs a model, which it starts if necessary.

    Args:
        folder: DATA_DIR.
        model: The model to run.
        server: Path of the program to start (for tests).
    """

    def __init__(self, folder: Path, model: LocalModel, server: Path = Path(local_server.__file__)):
        self.model = model.identity
        self.languages = model.languages
        self.dimension = model.dimension
        self.chunk_characters = model.chunk_characters
        self._socket = folder / f"{model.file_name}.sock"
        self._process = MachineProcess(
            folder,
            model.file_name,
            (sys.executable, "-P", str(server), str(self._socket), model.name),
            stop_seconds=STOP_SECONDS,
            failure_pauses=FAILURE_PAUSES,
            env={
                **MEMORY,
                # Downloads keep everything in DATA_DIR and report nothing.
                "HF_HOME": str(folder / MODELS / "huggingface"),
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                **os.environ,
                "TOKENIZERS_PARALLELISM": "false",
            },
        )
        self._lock = threading.Lock()
        self._silent_since: float | None = None

    def embed_query(self, text: str, timeout_seconds: float) -> NDArray[np.float32]:
        """See :class:`~app.services.embedding.embedder.Embedder`."""
        vector: NDArray[np.float32] = self._ask("query", [text], time.monotonic() + timeout_seconds)[0]
        return vector

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> NDArray[np.float32]:
        """See :class:`~app.services.embedding.embedder.Embedder`."""
        deadline = time.monotonic() + timeout_seconds
        parts = [
            self._ask("documents", texts[start : start + MAX_TEXTS_PER_REQUEST], deadline)
            for start in range(0, len(texts), MAX_TEXTS_PER_REQUEST)
        ]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *parts])

    def close(self) -> None:
        """Stop the model's process if this process started it."""
        self._process.stop()

    def _ask(self, kind: str, texts: Sequence[str], deadline: float) -> NDArray[np.float32]:
        with self._connect(deadline) as connection:
            seconds = _seconds_until(deadline)
            try:
                connection.settimeout(seconds)
                # The tokenizer rejects lone surrogates.
                shortened = [text[:MAX_CHARACTERS].encode(errors="replace").decode() for text in texts]
                local_server.send_frame(connection, {"kind": kind, "texts": shortened, "seconds": seconds})
                response = local_server.receive_bytes(connection, len(texts) * self.dimension * 4, deadline)
            except (OSError, EOFError) as error:
                raise EmbedderUnavailable(f"the model's process does not respond: {error}") from error
        return np.frombuffer(bytes(response), dtype="<f4").reshape(len(texts), self.dimension)

    def _connect(self, deadline: float) -> socket.socket:
        """Return a connection that the process has greeted, and start the process if necessary."""
        while True:
            connection = self._greeted(deadline)
            if connection is not None:
                return connection
            if not self._process.start():
                raise EmbedderUnavailable("the model's process has ended with an error; see the log")
            if time.monotonic() + RETRY_SECONDS > deadline:
                raise EmbedderUnavailable("the model's process is still starting, or has too many connections")
            time.sleep(RETRY_SECONDS)

    def _greeted(self, deadline: float) -> socket.socket | None:
        seconds = _seconds_until(deadline)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(seconds)
            _connect_to(connection, self._socket)
            greeting = connection.recv(len(GREETING))
        except TimeoutError as error:
            self._kill_if_hung(connection)
            connection.close()
            raise EmbedderUnavailable("the model's process does not respond in time") from error
        except OSError:
            greeting = b""
        with self._lock:
            self._silent_since = None
        # The process refused the connection, is ending, or has not started yet.
        if greeting != GREETING:
            connection.close()
            return None
        return connection

    def _kill_if_hung(self, connection: socket.socket) -> None:
        """Kill a process that has not greeted for :data:`HUNG_SECONDS`, so that a new process can take its lock."""
        with self._lock:
            now = time.monotonic()
            if self._silent_since is None:
                self._silent_since = now
            if now - self._silent_since < HUNG_SECONDS:
                return
            self._silent_since = None
        # The kernel reports the process that listens on the socket, whichever worker started it.
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process_id, _, _ = struct.unpack("3i", credentials)
        if process_id > 0:
            log.error("killing the model's process (%d), which hangs", process_id)
            os.kill(process_id, signal.SIGKILL)


def _seconds_until(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise EmbedderUnavailable("the model's process does not respond in time")
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
