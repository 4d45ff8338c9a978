"""Processes and their memory.

:class:`BoundedProcess` reads untrusted input in a process of its own, so that no input can hang, crash, or fill the
service. Two functions return memory that glibc's malloc would keep; other C libraries need neither.
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
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

MAX_CPU_SECONDS = 10
"""CPU seconds for one task, or one piece of a stream."""
MAX_SECONDS = 60.0
"""Seconds for the same, including waiting for a CPU."""
MAX_MEMORY_BYTES = 1_024 * 1_048_576
"""Private memory of the process in bytes."""
TASKS_PER_PROCESS = 1_000
"""Tasks after which a new process replaces the old one, to return fragmented memory."""

ARENAS = 2
"""Heaps that the threads of a process share. glibc creates eight per core, and each keeps its own free pages."""
_M_ARENA_MAX = -8
_library = ctypes.CDLL(None)

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Bound(Enum):
    """The bound that a task exceeded, or an error of this program that interrupted it."""

    TIME = "takes too long to read"
    MEMORY = "needs too much memory to read"
    BROKEN = "cannot be read"


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
    """Runs tasks, one at a time, in a process with limited time and memory. Close it after use; a context manager.

    The process starts with the first task, and again after a task that it did not survive. It inherits its parent's
    nice value. A task is a function of a module; its arguments and results are pickled. An exception in a task ends it
    as :attr:`Bound.BROKEN`.

    Args:
        cpu_seconds: CPU seconds for one task, or one piece of a stream.
        seconds: Seconds for the same.
    """

    def __init__(self, cpu_seconds: int = MAX_CPU_SECONDS, seconds: float = MAX_SECONDS):
        self._cpu_seconds = cpu_seconds
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._tasks = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, task: Callable[..., T], *arguments: Any) -> T:
        """Run a task and return its result.

        Raises:
            BoundExceeded: The task exceeded a bound and was aborted.
        """
        with self._lock:
            self._ask(task, arguments, is_stream=False)
            _, answer = self._answer()
        result: T = answer
        return result

    def stream(self, task: Callable[[Source], Iterator[T]], source: Source) -> Iterator[T]:
        """Run a task that reads a stream piece by piece and yields results. Keeps one piece in memory.

        Raises:
            BoundExceeded: The task exceeded a bound and was aborted.
        """
        with self._lock:
            self._ask(task, (), is_stream=True)
            has_ended = False
            try:
                while True:
                    kind, answer = self._answer()
                    if kind == "read":
                        self._send(source.read(answer))
                    elif kind == "found":
                        yield answer
                    else:
                        has_ended = True
                        return
            finally:
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

    def _answer(self) -> tuple[str, Any]:
        assert self._connection is not None, "it was begun"
        try:
            if not self._connection.poll(self._seconds):
                self.close()
                raise BoundExceeded(Bound.TIME)
            kind, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if kind == "given up":
            raise BoundExceeded(answer)
        return kind, answer

    def _begin(self, module: str) -> None:
        # Not ``fork``, which is unsafe in a process with threads, and copies its connections and secrets.
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
        """Return the error for a task that the process did not survive."""
        process = self._process
        exit_code = None
        if process is not None:
            process.join()
            exit_code = process.exitcode
        self.close()
        # The kernel sends it at the soft limit that ``_allow`` sets.
        if exit_code == -signal.SIGXCPU:
            return BoundExceeded(Bound.TIME)
        logger.error("The input crashed the reading process with exit code %s.", exit_code)
        return BoundExceeded(Bound.BROKEN)


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
    # A terminal sends it to all processes; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            task, arguments, is_stream = connection.recv()
            _allow(cpu_seconds)
            if is_stream:
                for yielded in task(_Remote(connection, cpu_seconds)):
                    connection.send(("found", yielded))
                answer: tuple[str, Any] = ("done", None)
            else:
                answer = ("done", task(*arguments))
        except (EOFError, ConnectionError):
            return
        except MemoryError:
            answer = ("given up", Bound.MEMORY)
        except Exception:
            logger.exception("What was sent cannot be read.")
            answer = ("given up", Bound.BROKEN)
        connection.send(answer)


def _allow(cpu_seconds: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    # The limit counts from the start of the process and in whole seconds, so the used time is added.
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1 + cpu_seconds, resource.RLIM_INFINITY))


def bound_arenas() -> None:
    """Limit threads that start from now on to :data:`ARENAS` heaps."""
    if hasattr(_library, "mallopt") and hasattr(_library, "malloc_trim"):
        _library.mallopt(_M_ARENA_MAX, ARENAS)


def release_free_memory() -> None:
    """Return free pages within the heaps to the operating system; glibc itself returns only those at their ends."""
    if hasattr(_library, "malloc_trim"):
        _library.malloc_trim(ctypes.c_size_t(0))
