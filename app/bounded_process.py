"""Child processes with limited time and memory, and memory settings of this process.

:class:`BoundedProcess` reads untrusted input in a separate process, so that no input can hang or crash the service or
exhaust its memory. Two functions reduce the memory that glibc's malloc retains; other C libraries need neither.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

MAX_CPU_SECONDS = 10
"""CPU seconds for one task, or one piece of a stream."""
MAX_SECONDS = 60.0
"""Elapsed seconds for one task, or one piece of a stream, including time spent waiting for a CPU."""
MAX_MEMORY_BYTES = 1_024 * 1_048_576
"""Maximum private memory of the process in bytes."""
TASKS_PER_PROCESS = 1_000
"""Tasks after which a new process replaces the old one, to release fragmented memory."""

ARENAS = 2
"""Maximum number of heaps per process. By default, glibc creates up to eight per core, each with its own free pages."""
_M_ARENA_MAX = -8
_library = ctypes.CDLL(None)

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Bound(Enum):
    """The limit that a task exceeded, ``BROKEN`` if an exception ended it, or ``CRASHED`` if its process died."""

    TIME = "takes too long to read"
    MEMORY = "needs too much memory to read"
    BROKEN = "causes an error"
    CRASHED = "cannot be read"


class BoundExceeded(Exception):
    """A task exceeded a bound and was aborted.

    Attributes:
        bound: The exceeded bound.
    """

    def __init__(self, bound: Bound):
        super().__init__(bound.value)
        self.bound = bound


class Source(Protocol):
    """A stream that a task reads."""

    def read(self, size: int = -1, /) -> bytes: ...


class BoundedProcess:
    """A process with limited time and memory that runs one task at a time. Close it after use, or use ``with``.

    The process starts with the first task, and is replaced after a task during which it died or was killed. It
    inherits its parent's nice value. A task is a module-level function; its arguments and results are pickled.
    If a task raises an exception, the caller gets :attr:`Bound.BROKEN`.

    Args:
        cpu_seconds: CPU seconds for one task, or one piece of a stream.
        seconds: Elapsed seconds for one task, or one piece of a stream.
    """

    def __init__(self, cpu_seconds: int = MAX_CPU_SECONDS, seconds: float = MAX_SECONDS):
        self._cpu_seconds = cpu_seconds
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._tasks = 0

    def call(self, task: Callable[..., T], *arguments: Any) -> T:
        """Run a task and return its result.

        Raises:
            BoundExceeded: The task exceeded a bound and was aborted.
        """
        with self._lock:
            self._ask(task, arguments, is_stream=False)
            _, message = self._receive()
        result: T = message
        return result

    def stream(self, task: Callable[[Source], Iterator[T]], source: Source) -> Iterator[T]:
        """Run a task that reads a stream piece by piece, and yield its results. Only one piece is in memory at a time.

        Raises:
            BoundExceeded: The task exceeded a bound and was aborted.
        """
        with self._lock:
            self._ask(task, (), is_stream=True)
            has_ended = False
            try:
                while True:
                    kind, message = self._receive()
                    if kind == "read":
                        self._send(source.read(message))
                    elif kind == "found":
                        yield message
                    else:
                        has_ended = True
                        return
            finally:
                # The consumer stopped early, so the process still has a result to send, which the next task would
                # receive.
                if not has_ended:
                    self.close()

    def close(self) -> None:
        """End the process."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None:
            process.kill()
            process.join()
            process.close()
        if connection is not None:
            connection.close()

    def _ask(self, task: Callable[..., Any], arguments: tuple[Any, ...], *, is_stream: bool) -> None:
        if self._tasks >= TASKS_PER_PROCESS:
            self.close()
        if self._connection is None:
            self._begin(task.__module__)
        self._tasks += 1
        self._send((task, arguments, is_stream))

    def _send(self, message: Any) -> None:
        assert self._connection is not None, "it was begun"
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._died() from error

    def _receive(self) -> tuple[str, Any]:
        assert self._connection is not None, "it was begun"
        try:
            if not self._connection.poll(self._seconds):
                self.close()
                raise BoundExceeded(Bound.TIME)
            kind, message = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if kind == "given up":
            raise BoundExceeded(message)
        return kind, message

    def _begin(self, module: str) -> None:
        # Not ``fork``, which is unsafe in a process with threads, and would copy connections and secrets.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, module])
        connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._cpu_seconds), daemon=True)
        self._process.start()
        # Otherwise the pipe would stay open after the child's death, and ``recv`` would wait forever.
        theirs.close()
        self._connection = connection
        self._tasks = 0

    def _died(self) -> BoundExceeded:
        """Return the error for a task during which the process died."""
        process = self._process
        exit_code = None
        if process is not None:
            process.join()
            exit_code = process.exitcode
        self.close()
        # The kernel sends SIGXCPU at the soft limit that ``_allow`` sets.
        if exit_code == -signal.SIGXCPU:
            return BoundExceeded(Bound.TIME)
        logger.error("The input crashed the reading process with exit code %s.", exit_code)
        return BoundExceeded(Bound.CRASHED)


class _Remote:
    """A stream that the parent process reads."""

    def __init__(self, connection: Connection, cpu_seconds: int):
        self._connection = connection
        self._cpu_seconds = cpu_seconds

    def read(self, size: int = -1, /) -> bytes:
        self._connection.send(("read", size))
        piece: bytes = self._connection.recv()
        _allow(self._cpu_seconds)
        return piece


def _serve(connection: Connection, cpu_seconds: int) -> None:
    """Run tasks until the parent closes the connection."""
    # A terminal sends SIGINT to all processes; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Not RLIMIT_AS, which also counts address space that is only reserved, for example by shared libraries.
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    # A crash on hostile input must not fill the disk with core files, which also contain customers' pages.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            task, arguments, is_stream = connection.recv()
            _allow(cpu_seconds)
            if is_stream:
                for yielded in task(_Remote(connection, cpu_seconds)):
                    connection.send(("found", yielded))
                message: tuple[str, Any] = ("done", None)
            else:
                message = ("done", task(*arguments))
        # The parent has closed the connection, or has died.
        except (EOFError, ConnectionError):
            return
        except MemoryError:
            message = ("given up", Bound.MEMORY)
        except Exception:
            logger.exception("The task failed on its input.")
            message = ("given up", Bound.BROKEN)
        connection.send(message)


def _allow(cpu_seconds: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    # The limit is in whole seconds since the process started, so the CPU time already used is added.
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1 + cpu_seconds, resource.RLIM_INFINITY))


def bound_arenas() -> None:
    """Limit this process to :data:`ARENAS` heaps; affects only threads that start later."""
    if hasattr(_library, "mallopt") and hasattr(_library, "malloc_trim"):
        _library.mallopt(_M_ARENA_MAX, ARENAS)


def release_free_memory() -> None:
    """Return free pages inside the heaps to the operating system; by itself, glibc returns only pages at their ends."""
    if hasattr(_library, "malloc_trim"):
        _library.malloc_trim(ctypes.c_size_t(0))
