"""The course of a run: its sync begins, addresses are found, pages are read, and what is gone goes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from app.crawl.fetch.network import Network
from app.crawl.fetch.politeness import Turns
from app.crawl.read.reader import PageReader
from app.crawl.run.control import RunCancelled, RunControl, RunInterrupted, RunLost, is_passing
from app.crawl.run.crawl import Crawl
from app.crawl.run.decisions import Decisions
from app.crawl.run.documents.source_documents import SourceDocuments
from app.crawl.run.documents.titles import Titles
from app.crawl.run.frontier import Found, Frontier, max_addresses
from app.crawl.run.recorder import Recorder
from app.crawl.run.seeding import RunFailed, Seeding
from app.crawl.run.stored_run import StoredRun
from app.crawl.run.visits.admission import Admission
from app.crawl.run.visits.page_reading import PageReading
from app.crawl.run.visits.visitor import Visitor, is_failure
from app.crawl.sources.runs import ENDED_RUNS, INCOMPLETE, Claim
from app.errors import ApiError, ErrorCode
from app.models import Sync
from app.plans import PlanTable
from app.services.indexing.documents import DocumentWriter
from app.services.sites import limits_of_account
from app.services.syncs import DEFAULT_MAX_REMOVED_PERCENT, Syncs
from app.storage.database import Database
from app.wording import counted, number

MUCH_LEFT_OUT_PERCENT, FEW_LEFT_OUT = 10, 2
"""A run fails if it could not read more than this share of its pages, and more than so few, for reasons that pass."""

REPORTED_URLS = 100
"""Addresses that remain in the options of a run that was limited to more."""

MAX_LAPSES = 10
"""How often a run is continued whose process was killed: one of its pages may be what kills."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrawlParts:
    """Parts that all runs of a process share.

    Attributes:
        public_url: The service's address, to which mails lead; ``None`` where none are sent.
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


def execute(parts: CrawlParts, claim: Claim, control: RunControl) -> str:
    """Work on a claimed run until it ends, or until it is to be handed back.

    Returns:
        ``finished``, ``failed``, ``cancelled``, ``handed_back`` or ``lost``.
    """
    try:
        execution = _Execution(parts, claim, control)
        try:
            return execution.run()
        except RunLost:
            raise
        except Exception:
            log.exception("run %s broke off", claim.run_id)
            return execution.end_broken_off()
    except RunLost:
        return "lost"
    except RunInterrupted:
        return "handed_back"


class _Execution:
    def __init__(self, parts: CrawlParts, claim: Claim, control: RunControl):
        self._parts = parts
        self._control = control
        self._impatient = StoredRun(parts.database, claim, parts.public_url)
        self._stored = control.insistent(self._impatient)
        self._syncs = control.insistent(parts.syncs)
        self._run, self._source, self._site = self._stored.load()
        self._urls: list[str] | None = self._run.options.get("urls")

    def run(self) -> str:
        """Work until the run ends or is handed back; gives which."""
        try:
            return self._run_to_its_end()
        except RunInterrupted:
            self._hand_back()
            return "handed_back"

    def end_broken_off(self) -> str:
        """End the run because of an error of ours."""
        self._abandon_sync()
        return self._end("failed", error={"code": ErrorCode.INTERNAL_ERROR, "message": "The run broke off."})

    def _run_to_its_end(self) -> str:
        try:
            removed = self._work()
        except RunCancelled:
            self._control.go_on()
            self._abandon_sync()
            return self._end("cancelled")
        except RunFailed as error:
            self._abandon_sync()
            return self._end("failed", error={"code": error.code, "message": error.message})
        except ApiError as error:
            if error.code in (ErrorCode.SITE_NOT_FOUND, ErrorCode.INVALID_API_KEY):
                raise RunLost from error  # The site was deleted, and the run with it.
            self._abandon_sync()
            return self._end("failed", error={"code": error.code, "message": error.message})
        return self._end("finished", removed=removed)

    def _work(self) -> int:
        """Do all there is to do; gives how many documents were removed at the end."""
        if not self._site.active:
            message = "The site is paused; resume it to crawl."
            raise RunFailed(ErrorCode.SITE_INACTIVE, "The site was deleted." if self._site.deleted_at else message)
        if self._run.cancelled:
            raise RunCancelled
        if self._run.lapses > MAX_LAPSES:
            raise RunFailed(ErrorCode.INTERNAL_ERROR, "The run was broken off too often.")
        if self._urls is None:
            removed = self._begin_sync()
            if removed is not None:
                return removed  # All that was missing was to say so.
        self._make_parts()
        try:
            if not self._run.seeded:
                seeding = Seeding(
                    self._source, self._parts.reader, self._visitor, self._recorder, self._crawl, self._stored,
                    self._control,
                )  # fmt: skip
                seeding.find(self._urls)
                self._run = self._stored.note(seeded=True, options=self._report_options())
            self._crawl.read_all(self._run.indexed + self._run.unchanged)
            if self._urls is None:
                self._look_for_lost_pages()
        except (RunCancelled, RunInterrupted):
            self._write_what_was_read()
            raise
        self._settle_titles()
        self._refuse_what_is_incomplete()
        return 0 if self._urls is not None else self._sweep()

    def _report_options(self) -> dict[str, Any]:
        """The run's options with few of its addresses, all of which are rows by now: reports are kept, and listed."""
        return self._run.options if self._urls is None else {**self._run.options, "urls": self._urls[:REPORTED_URLS]}

    def _begin_sync(self) -> int | None:
        """Begin the run's sync, or go on with it; what it removed, if it has ended already."""
        account_id, site_id = self._site.account_id, self._site.id
        if self._run.sync_id is not None:
            with self._parts.database.read() as session:
                sync = session.scalar(select(Sync).where(Sync.id == self._run.sync_id))
            if sync is not None and sync.status == "finished":
                return sync.removed or 0
            if sync is not None and sync.status == "running":
                return None
            log.info("run %s begins anew: its sync has lapsed", self._run.id)
            self._run = self._stored.begin_anew()
        begun = self._syncs.begin(account_id, site_id, self._source.id, replace=True)
        self._run = self._stored.note(sync_id=begun.id)
        return None

    def _make_parts(self) -> None:
        parts, source, control = self._parts, self._source, self._control
        limits = control.insist(lambda: limits_of_account(parts.database, parts.plans, self._site.account_id))
        self._impatient.max_addresses = max_addresses(limits)
        turns = control.insistent(parts.turns)
        self._visitor = Visitor(parts.network, turns, source, parts.user_agent, control.wait)
        self._frontier = control.insistent(Frontier(parts.database, self._run.id, source))
        self._titles = control.insistent(Titles(parts.database, source))
        self._documents = control.insistent(
            SourceDocuments(parts.database, parts.writer, parts.plans, self._site.account_id, source, self._run.sync_id)
        )
        admission = Admission(source, self._visitor.scope)
        self._recorder = Recorder(self._stored, self._documents, self._syncs, admission.refusal)
        self._decisions = Decisions(
            source, self._frontier, self._documents, self._recorder, admission, self._titles.sections(),
            follow=source.kind == "website" and self._urls is None, names_domains=bool(self._site.domains),
        )  # fmt: skip
        self._crawl = Crawl(
            source, self._frontier, self._recorder, self._decisions, admission,
            PageReading(self._visitor, parts.reader, source, self._frontier),
            self._stored, self._titles, self._documents, control,
        )  # fmt: skip

    # How it ends

    def _look_for_lost_pages(self) -> None:
        """Ask for pages that no page led to because those that might were left out for want of room."""
        if self._source.kind == "feed":
            return
        while self._stored.has_quota_pages():
            lost = self._frontier.lost_pages()
            if not lost:
                return
            self._recorder.add_found([Found(url, 0) for url in lost])
            self._crawl.read_all(self._run.indexed + self._run.unchanged)

    def _settle_titles(self) -> None:
        """Take what all titles share off those that still have it, and give sections, also to pages as they were."""
        suffix = self._titles.learn_suffix() if self._urls is None else self._stored.load()[1].title_suffix
        sections = self._titles.sections()
        after = ""
        while pages := self._titles.pages_to_retitle(suffix, sections, after):
            self._documents.put(self._titles.retitled(pages))
            self._titles.keep(pages)
            after = pages[-1].url
            self._control.check()

    def _refuse_what_is_incomplete(self) -> None:
        """Fail where the source is not up to date now: without its first page, or much else that may be read soon."""
        error = self._decisions.start_error
        if self._urls is None and error is not None and is_failure(error.reason):
            raise RunFailed(error.reason, error.message)
        left_out, pages = self._stored.count_left_out()
        if left_out > FEW_LEFT_OUT and left_out * 100 > pages * MUCH_LEFT_OUT_PERCENT:
            raise RunFailed(INCOMPLETE, f"{number(left_out)} of {counted(pages, 'page')} could not be read.")

    def _sweep(self) -> int:
        """Remove the documents of pages that are gone; gives how many."""
        run, _, _ = self._stored.load()
        if not run.complete:
            self._abandon_sync()
            return 0
        if self._source.kind == "feed":
            self._keep_what_left_the_feed()
        assert run.sync_id is not None
        sync_id = run.sync_id
        percent = run.options.get("max_removed_percent", DEFAULT_MAX_REMOVED_PERCENT)
        removed = self._syncs.finish(self._site.account_id, self._site.id, sync_id, percent)
        if self._source.kind != "feed":
            self._stored.forget_lost_pages()
        return removed

    def _keep_what_left_the_feed(self) -> None:
        after = ""
        while lost := self._frontier.lost_documents(after):
            self._recorder.mark_seen([document_id for _, document_id in lost])
            after = lost[-1][0]

    def _abandon_sync(self) -> None:
        sync_id = self._run.sync_id
        if sync_id is None:
            return
        try:
            self._syncs.abandon(self._site.account_id, self._site.id, sync_id)
        except ApiError as error:
            if error.code not in (ErrorCode.SYNC_NOT_FOUND, ErrorCode.SITE_NOT_FOUND):
                raise

    def _end(self, status: str, *, error: dict[str, str] | None = None, removed: int = 0) -> str:
        self._stored.end(status, error, removed)
        ENDED_RUNS.labels(status).inc()
        self._stored.delete_settled(self._source.id)
        return status

    def _write_what_was_read(self) -> None:
        """Write the last batch of a run that ends early; without the database or the engine, it is read again."""
        try:
            self._recorder.flush()
        except (RunCancelled, RunInterrupted):
            log.warning("what run %s read last is read again", self._run.id)

    def _hand_back(self) -> None:
        try:
            self._impatient.hand_back()
        except Exception as error:
            if not is_passing(error):
                raise
            log.warning("run %s is continued when its claim lapses: %s", self._run.id, error)
