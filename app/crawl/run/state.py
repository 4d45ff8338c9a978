"""The state of one run, the reasons to end it early, and the retries of its steps.

A run is executed by functions over :class:`RunState`. A function that accesses SQL or writes documents can be repeated
safely. Its caller passes it to :meth:`RunState.retry`, so every call site shows whether it waits for an unavailable
database or engine.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from app.clock import Pauses
from app.counters.values import CountersUnavailable
from app.crawl.fetch.browser import Browser
from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turn, Turns
from app.crawl.fetch.unexpected import EndsRun
from app.crawl.fetch.values import NotIndexed
from app.crawl.read.reader import PageReader
from app.crawl.run.branches import Branches
from app.crawl.run.outcomes import Outcome, QueuedPage
from app.crawl.run.page_documents import PathSections, TitleRules
from app.crawl.run.visits.admission import Admission
from app.crawl.run.visits.rendering import Renderer
from app.crawl.run.visits.visitor import HostVisitor
from app.crawl.sources.runs import Claim
from app.models import Site, Source, SourceRun
from app.plans import PlanTable
from app.services.indexing.documents import DocumentWriter
from app.services.syncs import Syncs
from app.storage.database import Database, is_unavailable
from backends.errors import BackendUnavailable

T = TypeVar("T")
P = ParamSpec("P")

PAUSES = Pauses(1.0, 60.0)
"""Seconds between attempts at a failed step: 1 at first, at most 60."""

TURN_SECONDS = 300.0
"""Seconds after which a run yields to queued runs."""

_BEFORE_FIRST = -(2**62)
"""A position before all others, since URLs with a date have negative positions."""


class RunLost(EndsRun):
    """Another process owns the run, or the run was deleted with its source. This process must stop writing."""


class RunInterrupted(EndsRun):
    """The run must be handed back; another process, or this one, continues it later."""


class RunCanceled(EndsRun):
    """A user canceled the run."""


class RunFailed(EndsRun):
    """A run that cannot be finished.

    Attributes:
        code: A reason of :class:`~app.crawl.fetch.values.Reason`, or an error code.
        message: One sentence for the site's owner.
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = str(code)
        self.message = message


class RunControl:
    """Signals the threads of a run to stop. Thread-safe."""

    def __init__(self) -> None:
        self._started_at = time.monotonic()
        self._ended = threading.Event()
        self._signal: type[Exception] = RunInterrupted

    def interrupt(self) -> None:
        """Stop the run so that it is handed back."""
        self._end(RunInterrupted)

    def cancel(self) -> None:
        """Stop the run because it was canceled."""
        self._end(RunCanceled)

    def lose(self) -> None:
        """Stop the run because another process owns it."""
        self._end(RunLost)

    def acknowledge_cancellation(self) -> None:
        """Clear the cancellation, so that the remaining steps, which store the end of the run, do not raise."""
        if self._signal is RunCanceled:
            self._ended.clear()

    def _end(self, signal: type[Exception]) -> None:
        # The first reason counts: a run that lost its claim must not be turned into a canceled one, which writes its
        # end.
        if not self._ended.is_set():
            self._signal = signal
            self._ended.set()

    @property
    def has_used_its_turn(self) -> bool:
        """Whether the run should yield to queued runs."""
        return time.monotonic() - self._started_at >= TURN_SECONDS

    def check(self) -> None:
        """Check that the run was not stopped.

        Raises:
            RunInterrupted, RunCanceled, RunLost: The run was stopped.
        """
        if self._ended.is_set():
            raise self._signal

    def wait(self, seconds: float) -> None:
        """Sleep for some seconds, or until the run is stopped.

        Raises:
            RunInterrupted, RunCanceled, RunLost: The run was stopped.
        """
        if self._ended.wait(seconds):
            raise self._signal

    def retry(self, step: Callable[[], T]) -> T:
        """Call ``step`` until it succeeds, with growing pauses while the database or the engine is unavailable.

        Raises:
            RunInterrupted, RunCanceled, RunLost: The run was stopped during a pause.
        """
        failures = 0
        while True:
            try:
                return step()
            except Exception as error:
                if not is_temporary(error):
                    raise
            failures += 1
            self.wait(PAUSES.after(failures))


def is_temporary(error: BaseException) -> bool:
    """Whether an error means that the database, the counter store, or the engine is unavailable for now."""
    return is_unavailable(error) or isinstance(error, BackendUnavailable | CountersUnavailable)


class RetriedTurns(Turns):
    """Turns at hosts, requested again while the database is unavailable."""

    def __init__(self, turns: Turns, control: RunControl):
        self._turns = turns
        self._control = control

    def take(self, host: str, *, crawl_delay: float = 0.0) -> Turn | float:
        return self._control.retry(lambda: self._turns.take(host, crawl_delay=crawl_delay))

    def give_back(self, turn: Turn, *, pause: float = 0.0) -> None:
        self._control.retry(lambda: self._turns.give_back(turn, pause=pause))


@dataclass(frozen=True, slots=True)
class CrawlParts:
    """Parts that all runs of a process share.

    Attributes:
        public_url: The service's URL for links in emails; ``None`` if the service sends no email.
        browser: Renders pages; ``None`` without CRAWL_BROWSER.
        public_network: Connections to public IP addresses only, for resources that pages request from other hosts.
    """

    database: Database
    writer: DocumentWriter
    syncs: Syncs
    plans: PlanTable
    network: Network
    reader: PageReader
    turns: Turns
    user_agent: str
    public_url: str | None = None
    browser: Browser | None = None
    public_network: Network | None = None


@dataclass(slots=True)
class Queue:
    """Pages loaded from the frontier but not read yet, and the position after which to load more."""

    pages: deque[QueuedPage] = field(default_factory=deque)
    position: int = _BEFORE_FIRST


@dataclass(slots=True)
class Batch:
    """Outcomes that are not written yet, with indexes of outcomes that are documents.

    Attributes:
        url_by_text: URL of the page with each text, by the text's digest.
        url_by_document: URL of the page of each document, by the document's ID.
        bytes: Size of all documents.
        links: Number of discovered URLs.
        rendered: Number of pages that the browser rendered.
        started_at: Monotonic seconds of the first outcome.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    url_by_text: dict[bytes, str] = field(default_factory=dict)
    url_by_document: dict[str, str] = field(default_factory=dict)
    bytes: int = 0
    links: int = 0
    rendered: int = 0
    started_at: float = 0.0


@dataclass(slots=True)
class RunState:
    """The state of a run in its process. One thread changes it; the threads that fetch pages only read it.

    Attributes:
        run: The run's row as last loaded; its counts may be outdated.
        urls: The URLs that the run is limited to; ``None`` crawls everything.
        max_urls: The number of URLs that the run may store.
        renderer: Renders pages; ``None`` if the run does not use a browser.
        sections: Sections of the pages that are documents.
        titles: Properties that the titles share.
        branches: The branches of the site that bring no new text.
        max_requests: The number of pages that the run may request, not counting pages that are documents.
        requests: The number of pages that the run has requested.
        indexed_count: Number of indexed pages that the run has visited.
        plan_is_full: Whether documents were rejected because the plan's limit is reached.
        start_error: The reason why the source's own page could not be read.
        noted: Hashes of URLs that the run has stored, to avoid looking them up again.
    """

    parts: CrawlParts
    claim: Claim
    control: RunControl
    run: SourceRun
    source: Source
    site: Site
    visitor: HostVisitor
    admission: Admission
    urls: list[str] | None
    max_urls: int
    renderer: Renderer | None = None
    sections: PathSections = field(default_factory=PathSections)
    titles: TitleRules = field(default_factory=TitleRules)
    branches: Branches = field(default_factory=Branches)
    max_requests: int = 0
    requests: int = 0
    indexed_count: int = 0
    plan_is_full: bool = False
    start_error: NotIndexed | None = None
    batch: Batch = field(default_factory=Batch)
    waiting: Queue = field(default_factory=Queue)
    deferred: Queue = field(default_factory=Queue)
    remembered_urls: set[int] = field(default_factory=set)

    @property
    def follows_links(self) -> bool:
        """Whether pages lead to further pages."""
        return self.source.kind == "website" and self.urls is None

    @property
    def names_domains(self) -> bool:
        """Whether documents have their host as a field."""
        return bool(self.site.domains)

    def retry(self, step: Callable[Concatenate[RunState, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return ``step(state, …)``; call it again while the database or the engine is unavailable.

        Raises:
            RunInterrupted, RunCanceled, RunLost: The run was stopped during a pause.
        """
        return self.control.retry(lambda: step(self, *args, **kwargs))
