"""Reads pages in a process of its own, so that no page can hang, crash, or fill whoever asks for it."""

from __future__ import annotations

import logging
import multiprocessing
import resource
import signal
import threading
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from app.crawler.reading.pages import read_page
from app.crawler.values import Fetched, NotIndexed, Page, Reason, Selectors

MAX_CPU_SECONDS = 10
"""Processor time for one page."""
MAX_SECONDS = 60.0
"""Time for one page, waiting for a processor included."""
MAX_MEMORY_BYTES = 1_024 * 1_048_576
"""Private memory of the process."""
PAGES_PER_PROCESS = 1_000
"""Pages after which a new process begins, so that what memory is in pieces is given back."""

logger = logging.getLogger(__name__)

Answer = Page | tuple[str, str] | ValueError
"""A page, or the reason and message why there is none, or what is wrong with a selector."""


class PageReader:
    """Reads pages, one at a time, as :func:`read_page` does. To be closed after use; a context manager.

    The process begins with the first page, and again after a page that it did not survive. It inherits how nice its
    parent is.

    Args:
        cpu_seconds: Processor time for one page.
        seconds: Time for one page.
    """

    def __init__(self, cpu_seconds: int = MAX_CPU_SECONDS, seconds: float = MAX_SECONDS):
        self._cpu_seconds = cpu_seconds
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._pages = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, fetched: Fetched, selectors: Selectors | None = None) -> Page:
        """Read a page.

        Raises:
            NotIndexed: It is no text (``not_text``), or takes too long to read (``timeout``).
            ValueError: A selector is no CSS.
        """
        with self._lock:
            answer = self._ask(replace(fetched, headers=dict(fetched.headers)), selectors)
        if isinstance(answer, Page):
            return answer
        if isinstance(answer, ValueError):
            raise answer
        raise NotIndexed(*answer)

    def close(self) -> None:
        """End the process."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.join()
            process.close()

    def _ask(self, fetched: Fetched, selectors: Selectors | None) -> Answer:
        if self._pages >= PAGES_PER_PROCESS:
            self.close()
        connection = self._connection or self._begin()
        self._pages += 1
        try:
            connection.send((fetched, selectors))
            if connection.poll(self._seconds):
                answer: Answer = connection.recv()
                return answer
        except (EOFError, OSError):
            return self._died(fetched.url)
        self.close()
        return Reason.TIMEOUT, "The page takes too long to read."

    def _begin(self) -> Connection:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._cpu_seconds), daemon=True)
        self._process.start()
        theirs.close()
        self._connection = connection
        self._pages = 0
        return connection

    def _died(self, url: str) -> tuple[str, str]:
        """The answer for a page that the process did not survive."""
        process = self._process
        exit_code = None
        if process is not None:
            process.join()
            exit_code = process.exitcode
        self.close()
        if exit_code == -signal.SIGXCPU:
            return Reason.TIMEOUT, "The page takes too long to read."
        logger.error("Reading %s ended its process with exit code %s.", url, exit_code)
        return Reason.NOT_TEXT, "The page cannot be read: its file is broken, or needs too much memory."


def _serve(connection: Connection, cpu_seconds: int) -> None:
    """Read pages until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            fetched, selectors = connection.recv()
        except EOFError:
            return
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = usage.ru_utime + usage.ru_stime
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1 + cpu_seconds, resource.RLIM_INFINITY))
        connection.send(_read(fetched, selectors))


def _read(fetched: Fetched, selectors: Selectors | None) -> Answer:
    try:
        return read_page(fetched, selectors)
    except NotIndexed as refusal:
        return refusal.reason, refusal.message
    except ValueError as error:
        return ValueError(str(error))
    except MemoryError:
        return Reason.TOO_LARGE, "The page needs too much memory to read."
    except Exception:
        logger.exception("The page %s cannot be read.", fetched.url)
        return Reason.NOT_TEXT, "The page cannot be read."
