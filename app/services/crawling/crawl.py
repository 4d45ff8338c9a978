"""One run: what a source's kind lists is read page by page, breadth first, and becomes the source's documents.

All that a run knows is in SQL. Whoever claims the run of a killed process continues with the pages that wait. Threads
fetch and read; the one that began the run decides and writes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import orjson

from app.crawler.network import Network
from app.crawler.politeness import Turns
from app.crawler.reading.reader import PageReader
from app.crawler.traps import Traps
from app.crawler.values import Fetched, NotIndexed, Page, Reason, Selectors, Validators
from app.models import Source
from app.plans import PlanTable
from app.services.crawling import titles
from app.services.crawling.control import RunControl, RunInterrupted
from app.services.crawling.frontier import Address, Found, Frontier, Known, pack_links
from app.services.crawling.page_documents import clean_title, document_id, make_document
from app.services.crawling.recorder import Outcome, Recorder
from app.services.crawling.rules import Rules
from app.services.crawling.source_documents import SourceDocuments
from app.services.crawling.visitor import Visitor, is_failure
from app.services.indexing.documents import DocumentWriter
from app.services.sources.runs import count_waiting
from app.services.syncs import Syncs
from app.storage.database import Database

FETCHERS = 2
"""Pages of a run that are fetched and read at once: as many as one host takes requests."""

AHEAD = 2 * FETCHERS
"""Pages that are handed to them."""

MAX_LINKS = 5_000
"""Links of a page that are followed."""

MAX_NOTED = 100_000
"""Addresses that a run remembers to have noted, so that it need not ask whether it has."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrawlParts:
    """What all runs of a process share."""

    database: Database
    writer: DocumentWriter
    syncs: Syncs
    plans: PlanTable
    network: Network
    reader: PageReader
    turns: Turns
    user_agent: str


@dataclass(frozen=True, slots=True)
class _Reading:
    """A page as it was fetched and read.

    Attributes:
        fetched: The answer; its body is gone.
        page: ``None`` if it did not change.
    """

    fetched: Fetched
    page: Page | None


class Crawl:
    """Reads the pages of one run.

    Args:
        follow: Whether pages lead to further ones.
    """

    def __init__(
        self,
        parts: CrawlParts,
        source: Source,
        frontier: Frontier,
        visitor: Visitor,
        documents: SourceDocuments,
        control: RunControl,
        *,
        follow: bool,
    ):
        self._parts = parts
        self._source = source
        self._frontier = frontier
        self._visitor = visitor
        self._documents = documents
        self._control = control
        self._follow = follow
        self._rules = Rules(source.include, source.exclude)
        self._selectors = Selectors(**source.selectors)
        self._traps = Traps()
        self._noted: set[int] = set()
        self._suffix = source.title_suffix
        self._in_flight: dict[Future[_Reading | NotIndexed], Address] = {}
        self._in_index = 0
        self._only_deferred = False
        self.start_error: NotIndexed | None = None
        """Why the source's own page could not be read."""
        self.recorder: Recorder

    def judge(self, url: str) -> str | None:
        """The reason why an address is not read at all, if there is one; to be asked once for each address."""
        if url == self._source.url:
            return None
        if not self._visitor.scope.contains(url):
            return Reason.OTHER_HOST
        if not self._rules.allow(url):
            return Reason.EXCLUDED
        try:
            self._traps.check(url)
        except NotIndexed as error:
            return error.reason
        return None

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
        self._pool = ThreadPoolExecutor(FETCHERS, thread_name_prefix="crawl")
        try:
            while self._submit() or self._write():
                done = wait(self._in_flight, timeout=1.0, return_when=FIRST_COMPLETED).done if self._in_flight else ()
                for future in done:
                    self._settle(self._in_flight.pop(future), future.result())
                if self.recorder.is_full:
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
            if address.url in self.recorder:
                continue  # Another address led to it.
            if address.deferred and self._is_duplicate_still(address.url):
                self._add(Outcome(address.url, "skipped", Reason.DUPLICATE))
            elif most is not None and self._in_index >= most:
                self._add(self._left_out(address, NotIndexed(Reason.EXCLUDED, "The source has enough pages.")))
            elif self.recorder.plan_is_full and not self._has_document(address.url):
                self._add(Outcome(address.url, "skipped", Reason.QUOTA, forget=True))
            else:
                self._begin(address, anew=address.deferred)
            if self.recorder.is_full:
                self._write()
        return bool(self._in_flight)

    def _begin(self, address: Address, *, anew: bool) -> None:
        """Have an address fetched and read.

        Args:
            anew: Whether it is read also if it did not change.
        """
        self._in_flight[self._pool.submit(self._read, address, anew)] = address
        self._only_deferred = False

    def _next(self) -> Address | None:
        """The next address; those that were put last only when all others are settled."""
        if not self._only_deferred:
            return self._control.insist(self._frontier.take)
        return self._control.insist(self._frontier.take_deferred)

    def _is_duplicate_still(self, url: str) -> bool:
        """Whether the text that a page had when it was last read is that of a page that is in the index."""
        known = self._known(url)
        if known is None or known.text_digest is None:
            return False
        digest = known.text_digest
        like = self._control.insist(lambda: self._frontier.pages_like(url, "", digest))
        return any(status in ("indexed", "unchanged") for status in like.values())

    def _write(self) -> bool:
        """Write what was settled; gives whether there may be further addresses."""
        if not self.recorder.flush():
            if self._only_deferred:
                return False
            self._only_deferred = True
            return True
        if self._suffix is None:
            self._learn_suffix()
        if self.recorder.plan_is_full:
            self.recorder.plan_is_full = self._control.insist(self._documents.room) == 0
        if self._control.had_its_turn and self._control.insist(self._others_wait):
            raise RunInterrupted
        return True

    def _others_wait(self) -> bool:
        with self._parts.database.read() as session:
            return count_waiting(session) > 0

    def _learn_suffix(self) -> None:
        self._suffix = self._control.insist(lambda: titles.learn_suffix(self._parts.database, self._source.id))

    def _has_document(self, url: str) -> bool:
        known = self._known(url)
        return known is not None and known.document_is_there

    def _known(self, url: str) -> Known | None:
        return self._control.insist(lambda: self._frontier.known(url))

    def _read(self, address: Address, anew: bool) -> _Reading | NotIndexed:
        """Fetch and read a page, in a thread of its own.

        Args:
            anew: Whether it is read also if it did not change.
        """
        try:
            fetched = self._visitor.fetch_page(address.url, lambda url: None if anew else self._validators(url))
            if fetched.status == 304:
                return _Reading(fetched, None)
            page = self._parts.reader.read(fetched, self._selectors)
        except NotIndexed as error:
            return error
        return _Reading(Fetched(fetched.url, fetched.status, fetched.headers, b"", fetched.redirects), page)

    def _validators(self, url: str) -> Validators | None:
        """What the server said of a page, unless its document is gone and must be written anew."""
        known = self._known(url)
        if known is None or (known.document_id is not None and not known.document_is_there):
            return None
        validators = Validators(known.etag, known.last_modified)
        return validators if validators != Validators() else None

    def _add(self, outcome: Outcome) -> None:
        if outcome.status in ("indexed", "unchanged"):
            self._in_index += 1
        self.recorder.add(outcome)

    def _settle(self, address: Address, reading: _Reading | NotIndexed) -> None:
        """Decide what becomes of an address."""
        if isinstance(reading, NotIndexed):
            self._add(self._left_out(address, reading))
            return
        if reading.page is None:
            self._settle_unchanged(address, reading.fetched)
            return
        fetched, page = reading.fetched, reading.page
        canonical = page.canonical
        led_here = {address.url, fetched.url, *fetched.redirects}
        if canonical is not None and canonical not in led_here:
            if self._visitor.scope.contains(canonical):
                self._add(self._no_document(address, fetched, page, Reason.CANONICAL, further=(canonical,)))
            else:
                self._add(self._no_document(address, fetched, page, Reason.CANONICAL))
        elif fetched.url != address.url and canonical != address.url:
            self._settle_redirected(address, fetched.url, lambda target: self._index(target, fetched, page))
        else:
            self._index(address, fetched, page)

    def _settle_unchanged(self, address: Address, fetched: Fetched) -> None:
        known = self._known(address.url)
        if fetched.url != address.url:
            target = self._known(fetched.url)
            # A page that calls this address its canonical one is read as the page of this address.
            if target is None or target.reason != Reason.CANONICAL or address.url not in target.links:
                self._settle_redirected(address, fetched.url, lambda target: self._settle_unchanged(target, fetched))
                return
            if known is None or not known.document_is_there:
                self._begin(address, anew=True)
                return
        assert known is not None, "a condition was sent"
        found = self._found(known.links, address.depth)
        if known.document_id is not None:
            self._add(
                Outcome(address.url, "unchanged", seen=known.document_id, text_digest=known.text_digest, found=found)
            )
        elif known.reason == Reason.DUPLICATE:
            self._add(Outcome(address.url, "waiting", Reason.DUPLICATE, found=found))
        else:
            self._add(Outcome(address.url, "skipped", known.reason, found=found))

    def _settle_redirected(self, address: Address, target: str, settle: Callable[[Address], None]) -> None:
        """An address that leads to another is left out; what was read is that one's, unless that is settled."""
        known = self._known(address.url)
        gone = None if known is None else known.document_id
        self._add(
            Outcome(
                address.url, "skipped", Reason.CANONICAL, gone=gone, forget=True, found=(Found(target, address.depth),)
            )
        )
        if target in self.recorder or any(under_way.url == target for under_way in self._in_flight.values()):
            return
        if self._control.insist(lambda: self._frontier.status_of(target)) in (None, "waiting"):
            reason = self.judge(target) if not self._is_noted(target) else None
            if reason is None:
                settle(Address(target, address.depth))

    def _left_out(self, address: Address, error: NotIndexed) -> Outcome:
        """The outcome of a page that could not be had, or is none."""
        if address.url == self._source.url:
            self.start_error = error
        known = self._known(address.url)
        if is_failure(error.reason):
            found = () if known is None else self._found(known.links, address.depth)
            seen = known.document_id if known is not None and known.document_is_there else None
            return Outcome(address.url, "failed", error.reason, seen=seen, found=found)
        gone = None if known is None else known.document_id
        return Outcome(address.url, "skipped", error.reason, gone=gone, forget=True)

    def _no_document(
        self,
        address: Address,
        fetched: Fetched,
        page: Page,
        reason: str,
        *,
        further: tuple[str, ...] = (),
        identity: str | None = None,
        text: bytes | None = None,
    ) -> Outcome:
        """The outcome of a page that was read and is not indexed.

        Args:
            further: Addresses that it leads to besides its links.
            identity, text: The id and the digest of the text, of a page that another one is the same as.
        """
        known = self._known(address.url)
        was = None if known is None else known.document_id
        links = self._links((*further, *page.links))
        return Outcome(
            address.url,
            "skipped",
            reason,
            gone=was if was != identity else None,
            page={
                **_kept(fetched), "document_id": None, "reason": reason, "digest": None, "text_digest": text,
                "title": None, "document_title": None, "links": pack_links(links),
            },
            found=self._found(links, address.depth, always=further),
        )  # fmt: skip

    def index_page(self, url: str, page: Page) -> None:
        """Make a page a document that an API gave whole, unless the run has it already."""
        reason = None if self._visitor.scope.contains(url) and self._rules.allow(url) else Reason.EXCLUDED
        if reason is not None:
            self.recorder.add_found([Found(url, 0)])
        elif url not in self.recorder and self._control.insist(lambda: self._frontier.status_of(url)) in (
            None,
            "waiting",
        ):
            self._index(Address(url, 0), None, page)
        if self.recorder.is_full:
            self._write()

    def _index(self, address: Address, fetched: Fetched | None, page: Page) -> None:
        """Make a page a document, unless it is as before, or another page is the same.

        Args:
            fetched: ``None`` if an API told of it.
        """
        fetched = fetched or Fetched(address.url, 200, {}, b"")
        if page.left_out is not None:
            self._add(self._no_document(address, fetched, page, page.left_out))
            return
        if not self._rules.allow(address.url):
            self._add(self._no_document(address, fetched, page, Reason.EXCLUDED))
            return
        known = self._known(address.url)
        own_address = page.canonical or address.url
        identity = document_id(page, own_address)
        text_digest = _digest([page.title, page.content])
        digest = _digest(
            [identity, own_address, page.title, page.content, page.excerpt, page.author, page.date, page.lang,
             dict(page.fields)]
        )  # fmt: skip
        is_document = known is not None and known.document_is_there
        same = self._find_same(address, identity, text_digest, is_document=is_document)
        if same is not None and same.status == "waiting":
            self._add(same)
            return
        if same is not None:
            self._add(self._no_document(address, fetched, page, Reason.DUPLICATE, identity=identity, text=text_digest))
            return
        links = self._links(page.links)
        title = clean_title(page.title)
        shown = titles.strip(title, self._suffix)
        kept = {
            **_kept(fetched), "document_id": identity, "reason": None, "digest": digest, "text_digest": text_digest,
            "title": title, "document_title": shown, "links": pack_links(links),
        }  # fmt: skip
        found = self._found(links, address.depth)
        if known is not None and known.document_is_there and (known.document_id, known.digest) == (identity, digest):
            kept["document_title"] = known.document_title
            outcome = Outcome(address.url, "unchanged", seen=identity, text_digest=text_digest, page=kept, found=found)
        else:
            outcome = Outcome(
                address.url,
                "indexed",
                document=make_document(page, own_address, shown),
                gone=known.document_id if known is not None and known.document_id != identity else None,
                text_digest=text_digest,
                page=kept,
                found=found,
            )
        self._add(outcome)

    def _find_same(self, address: Address, identity: str, text_digest: bytes, *, is_document: bool) -> Outcome | None:
        """The outcome of a page that another one is the same as: left out, or put last until the other is read."""
        if self.recorder.find_like(address.url, identity, text_digest) is not None:
            return Outcome(address.url, "skipped", Reason.DUPLICATE)
        like = self._control.insist(lambda: self._frontier.pages_like(address.url, identity, text_digest))
        if any(status in ("indexed", "unchanged") for status in like.values()):
            return Outcome(address.url, "skipped", Reason.DUPLICATE)
        if self._documents.sync_id is None:
            # The others are not read in this run.
            return Outcome(address.url, "skipped", Reason.DUPLICATE) if like and not is_document else None
        undecided = any(status in (None, "waiting") and url not in self.recorder for url, status in like.items())
        return Outcome(address.url, "waiting", Reason.DUPLICATE) if undecided and not address.deferred else None

    def _links(self, links: Iterable[str]) -> tuple[str, ...]:
        """The links of a page that are followed."""
        if not self._follow:
            return ()
        contains = self._visitor.scope.contains
        return tuple(dict.fromkeys(link for link in links if self._is_noted(link) or contains(link)))[:MAX_LINKS]

    def _found(self, links: Iterable[str], depth: int, always: tuple[str, ...] = ()) -> tuple[Found, ...]:
        """The addresses among ``links`` that the run may not know yet.

        Args:
            always: Those that are followed whatever their depth.
        """
        if not self._follow:
            return ()
        deepest = self._source.max_depth
        if deepest is not None and depth >= deepest:
            return tuple(Found(link, depth) for link in always)
        fresh = [link for link in links if not self._is_noted(link)]
        if len(self._noted) + len(fresh) > MAX_NOTED:
            self._noted.clear()
        self._noted.update(map(hash, fresh))
        return tuple(Found(link, depth + 1) for link in fresh)

    def _is_noted(self, url: str) -> bool:
        return hash(url) in self._noted


def _kept(fetched: Fetched) -> dict[str, Any]:
    """What is kept of an answer, to ask later whether it changed."""
    etag, last_modified = fetched.headers.get("etag", ""), fetched.headers.get("last-modified", "")
    return {
        "etag": etag if 0 < len(etag) <= 512 else None,
        "last_modified": last_modified if 0 < len(last_modified) <= 64 else None,
    }


def _digest(values: Any) -> bytes:
    return hashlib.blake2b(orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=list), digest_size=16).digest()
