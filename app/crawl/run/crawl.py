"""One run: what a source's kind lists is read page by page, breadth first, and becomes the source's documents.

All that a run knows is in SQL. Whoever claims the run of a killed process continues with the pages that wait. Threads
fetch and read; the one that began the run decides and writes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from app.crawl.fetch.values import Fetched, NotIndexed, Page, Reason, TryLater
from app.crawl.run.control import RunControl, RunInterrupted
from app.crawl.run.decisions import Decisions
from app.crawl.run.documents.source_documents import SourceDocuments
from app.crawl.run.documents.titles import Titles
from app.crawl.run.frontier import Address, Found, Frontier
from app.crawl.run.outcome import Outcome
from app.crawl.run.recorder import Recorder
from app.crawl.run.stored_run import StoredRun
from app.crawl.run.visits.admission import Admission
from app.crawl.run.visits.page_reading import PageReading, Reading
from app.crawl.run.visits.patience import TRIES
from app.crawl.run.visits.visitor import AskingOrder, asks_again
from app.models import Source

FETCHERS = 2
"""Pages of a run that are fetched and read at once: as many as one host takes requests."""

AHEAD = 2 * FETCHERS
"""Pages that are handed to them."""


class Crawl:
    """Reads the pages of one run."""

    def __init__(
        self,
        source: Source,
        frontier: Frontier,
        recorder: Recorder,
        decisions: Decisions,
        admission: Admission,
        reading: PageReading,
        stored: StoredRun,
        titles: Titles,
        documents: SourceDocuments,
        control: RunControl,
    ):
        self._source = source
        self._frontier = frontier
        self._recorder = recorder
        self._decisions = decisions
        self._admission = admission
        self._reading = reading
        self._stored = stored
        self._titles = titles
        self._documents = documents
        self._control = control
        self._in_flight: dict[Future[Reading | NotIndexed], Address] = {}
        self._in_index = 0
        self._only_deferred = False
        self._handed_out = 0
        self._refused: Counter[str] = Counter()
        self._put_off: deque[tuple[int, Address]] = deque()

    def read_all(self, in_index: int) -> None:
        """Read the addresses that wait, and those that they lead to.

        Args:
            in_index: Pages of this run that are in the index already.

        Raises:
            RunInterrupted, RunCancelled, RunLost: The run ends before its end.
            ApiError: 404 for the site or the sync; 403 when the site is paused.
        """
        self._in_index = in_index
        self._only_deferred = False
        self._order = AskingOrder()
        self._pool = ThreadPoolExecutor(FETCHERS, thread_name_prefix="crawl")
        try:
            while self._submit() or self._write():
                done = wait(self._in_flight, timeout=1.0, return_when=FIRST_COMPLETED).done if self._in_flight else ()
                for future in done:
                    self._settle(self._in_flight.pop(future), future.result())
                if self._recorder.is_full:
                    self._write()
                self._control.check()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._in_flight.clear()

    def _submit(self) -> bool:
        """Hand out addresses while there is room; gives whether any are handed out."""
        most = self._source.max_pages
        while len(self._in_flight) < AHEAD:
            if most is not None and self._in_index < most <= self._in_index + len(self._in_flight):
                break  # Those that are under way may be the last.
            address = self._next()
            if address is None:
                break
            if address.url in self._recorder:
                continue  # Another address led to it.
            if address.deferred and self._decisions.is_duplicate_still(address.url):
                self._add(Outcome(address.url, "skipped", Reason.DUPLICATE))
            elif most is not None and self._in_index >= most:
                self._add(
                    self._decisions.left_out(address, NotIndexed(Reason.EXCLUDED, "The source has enough pages."))
                )
            elif self._recorder.plan_is_full and not self._decisions.has_document(address.url):
                self._add(Outcome(address.url, "skipped", Reason.QUOTA, forget=True))
            else:
                self._begin(address, anew=address.deferred)
            if self._recorder.is_full:
                self._write()
        return bool(self._in_flight)

    def _begin(self, address: Address, *, anew: bool) -> None:
        """Have an address fetched and read.

        Args:
            anew: Whether it is read also if it did not change.
        """
        place = self._order.place(address.url)
        self._in_flight[self._pool.submit(self._reading.read, address, anew, place)] = address
        self._handed_out += 1
        self._only_deferred = False

    def _next(self) -> Address | None:
        """The next address; those that were put last only when all others are settled."""
        if self._put_off and self._put_off[0][0] <= self._handed_out:
            return self._put_off.popleft()[1]
        take = self._frontier.take_deferred if self._only_deferred else self._frontier.take
        address = take()
        return self._put_off.popleft()[1] if address is None and self._put_off else address

    def _may_ask_again(self, address: Address) -> bool:
        """Put an address off whose host asks to wait: others come first, which the host may answer after that."""
        self._refused[address.url] += 1
        if self._refused[address.url] >= TRIES:
            del self._refused[address.url]
            return False
        self._put_off.append((self._handed_out + AHEAD, address))
        return True

    def _write(self) -> bool:
        """Write what was settled; gives whether there may be further addresses."""
        if not self._recorder.flush():
            if self._only_deferred:
                return False
            self._only_deferred = True
            return True
        if self._decisions.suffix is None:
            self._decisions.suffix = self._titles.learn_suffix()
        if self._recorder.plan_is_full:
            self._recorder.plan_is_full = self._documents.room() == 0
        if self._control.had_its_turn and self._stored.others_wait():
            raise RunInterrupted
        return True

    def _add(self, outcome: Outcome) -> None:
        if outcome.status in ("indexed", "unchanged"):
            self._in_index += 1
        self._recorder.add(outcome)

    def _settle(self, address: Address, reading: Reading | NotIndexed) -> None:
        """Decide what becomes of an address."""
        if isinstance(reading, TryLater):
            if self._may_ask_again(address):
                return
            reading = asks_again(reading)
        if isinstance(reading, NotIndexed):
            self._add(self._decisions.left_out(address, reading))
            return
        if reading.page is None:
            self._settle_unchanged(address, reading.fetched)
            return
        fetched, page = reading.fetched, reading.page
        canonical = page.canonical
        led_here = {address.url, fetched.url, *fetched.redirects}
        if canonical is not None and canonical not in led_here:
            self._add(self._decisions.canonical_elsewhere(address, fetched, page, canonical))
        elif fetched.url != address.url and canonical != address.url:
            self._settle_redirected(
                address, fetched.url, lambda target: self._add(self._decisions.page(target, fetched, page))
            )
        else:
            self._add(self._decisions.page(address, fetched, page))

    def _settle_unchanged(self, address: Address, fetched: Fetched) -> None:
        known = self._frontier.known(address.url)
        if fetched.url != address.url:
            target = self._frontier.known(fetched.url)
            # A page that calls this address its canonical one is read as the page of this address.
            if target is None or target.reason != Reason.CANONICAL or address.url not in target.links:
                self._settle_redirected(address, fetched.url, lambda target: self._settle_unchanged(target, fetched))
                return
            if known is None or not known.document_is_there:
                self._begin(address, anew=True)
                return
        assert known is not None, "a condition was sent"
        self._add(self._decisions.unchanged(address, known))

    def _settle_redirected(self, address: Address, target: str, settle: Callable[[Address], None]) -> None:
        """An address that leads to another is left out; what was read is that one's, unless that is settled."""
        self._add(self._decisions.redirected(address, target))
        if target in self._recorder or any(under_way.url == target for under_way in self._in_flight.values()):
            return
        if self._frontier.status_of(target) in (None, "waiting"):
            reason = self._admission.refusal(target) if not self._decisions.is_noted(target) else None
            if reason is None:
                settle(Address(target, address.depth))

    def index_page(self, url: str, page: Page) -> None:
        """Make a page a document that an API gave whole, unless the run has it already."""
        if not (self._admission.is_in_scope(url) and self._admission.is_wanted(url)):
            self._recorder.add_found([Found(url, 0)])
        elif url not in self._recorder and self._frontier.status_of(url) in (None, "waiting"):
            self._add(self._decisions.page(Address(url, 0), None, page))
        if self._recorder.is_full:
            self._write()
