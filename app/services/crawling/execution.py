"""The course of a run: its sync begins, addresses are found, pages are read, and what is gone goes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import orjson
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.crawler.addresses import parse_url
from app.crawler.feeds import fetch_feed
from app.crawler.sitemaps import walk_sitemaps
from app.crawler.values import NotIndexed, Reason
from app.crawler.wordpress import walk_posts
from app.errors import ApiError, ErrorCode
from app.models import RunPage, Site, Source, SourcePage, SourceRun, Sync
from app.services.crawling import titles
from app.services.crawling.control import RunCancelled, RunControl, RunInterrupted, call_once, is_passing
from app.services.crawling.crawl import Crawl, CrawlParts
from app.services.crawling.frontier import Found, Frontier
from app.services.crawling.page_documents import retitle
from app.services.crawling.posts import page_of_post
from app.services.crawling.recorder import Outcome, Recorder, RunLost
from app.services.crawling.source_documents import SourceDocuments
from app.services.crawling.turns import InsistentTurns
from app.services.crawling.visitor import Visitor, is_failure
from app.services.indexing.stored_documents import read_stored
from app.services.sources.runs import ENDED_RUNS, Claim, delete_old_runs, end_run, hand_back, held_run
from app.services.syncs import DEFAULT_MAX_REMOVED_PERCENT

STEP = 500
DELETE_STEP = 500

MAX_LAPSES = 10
"""How often a run is continued whose process was killed: one of its pages may be what kills."""

log = logging.getLogger(__name__)


class RunFailed(Exception):
    """A run that cannot be finished.

    Attributes:
        code: A reason of :class:`~app.crawler.values.Reason`, or an error code.
        message: For the site's owner.
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = str(code)
        self.message = message


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
        self._claim = claim
        self._control = control
        self._run, self._source, self._site = control.insist(self._load)
        self._urls: list[str] | None = self._run.options.get("urls")

    def _load(self) -> tuple[SourceRun, Source, Site]:
        with self._parts.database.read() as session:
            run = session.scalar(
                select(SourceRun).where(SourceRun.id == self._claim.run_id, SourceRun.lease == self._claim.lease)
            )
            if run is None:
                raise RunLost
            source = session.get_one(Source, run.source_id)
            return run, source, session.get_one(Site, source.site_id)

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
            raise RunFailed(ErrorCode.SITE_INACTIVE, "The site is paused; resume it to crawl.")
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
                self._seed()
            self._crawl.read_all(self._run.indexed + self._run.unchanged)
            if self._urls is None:
                self._look_for_lost_pages()
        except (RunCancelled, RunInterrupted):
            self._write_what_was_read()
            raise
        self._settle_titles()
        if self._urls is not None:
            return 0
        return self._sweep()

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
            self._control.insist(self._begin_anew)
        begun = self._control.insist(
            lambda: self._parts.syncs.begin(account_id, site_id, self._source.id, replace=True)
        )
        self._control.insist(lambda: self._note(sync_id=begun.id))
        return None

    def _begin_anew(self) -> None:
        with self._parts.database.write() as session:
            run = self._held(session)
            session.execute(delete(RunPage).where(RunPage.run_id == run.id))
            run.found = run.indexed = run.unchanged = run.skipped = run.failed = 0
            run.seeded, run.complete, run.sync_id = False, True, None
        self._run = run

    def _note(self, **values: Any) -> None:
        """Change what is stored of the run."""
        with self._parts.database.write() as session:
            run = self._held(session)
            for name, value in values.items():
                setattr(run, name, value)
        self._run = run

    def _held(self, session: Session) -> SourceRun:
        run = held_run(session, self._claim)
        if run is None:
            raise RunLost
        return run

    def _make_parts(self) -> None:
        parts, source = self._parts, self._source
        turns = InsistentTurns(parts.turns, self._control.insist)
        self._visitor = Visitor(parts.network, turns, source, parts.user_agent, self._control.wait)
        self._frontier = Frontier(parts.database, self._run.id, source)
        self._documents = SourceDocuments(
            parts.database, parts.writer, parts.plans, self._site.account_id, source, self._run.sync_id
        )
        self._crawl = Crawl(
            parts, source, self._frontier, self._visitor, self._documents, self._control,
            follow=source.kind == "website" and self._urls is None,
        )  # fmt: skip
        self._recorder = Recorder(
            parts.database, self._claim, self._documents, parts.syncs, self._control.insist, self._crawl.judge
        )
        self._crawl.recorder = self._recorder

    # Where a run begins

    def _seed(self) -> None:
        """Find the addresses to begin with."""
        url = self._source.url
        if self._urls is not None:
            self._add(self._urls, depth=0)
        elif self._source.kind == "website":
            self._add([url], depth=0)
            self._add(walk_sitemaps(self._visitor.fetch_listing, self._sitemaps(), self._note_failed_sitemap), depth=1)
        elif self._source.kind == "sitemap":
            self._add(walk_sitemaps(self._visitor.fetch_listing, [url], self._note_failed_sitemap), depth=0)
        elif self._source.kind == "feed":
            try:
                self._add(fetch_feed(self._visitor.fetch_listing, url), depth=0)
            except NotIndexed as error:
                raise RunFailed(error.reason, error.message) from error
        else:
            self._read_posts()
        self._control.insist(lambda: self._note(seeded=True))

    def _add(self, urls: Iterable[str], *, depth: int) -> None:
        step: list[Found] = []
        for url in urls:
            step.append(Found(url, depth))
            if len(step) == STEP:
                self._recorder.add_found(step)
                self._control.check()
                step = []
        self._recorder.add_found(step)

    def _sitemaps(self) -> list[str]:
        """The sitemaps of the source's host: those that its robots.txt names, and the usual one."""
        usual = self._usual_sitemap()
        try:
            named = self._visitor.robots.rules(self._source.url).sitemaps(self._source.url)
        except NotIndexed:
            self._control.insist(lambda: self._note(complete=False))
            return []
        return list(dict.fromkeys((*named, usual)))

    def _usual_sitemap(self) -> str:
        return parse_url("/sitemap.xml", self._source.url).href

    def _note_failed_sitemap(self, url: str, error: NotIndexed) -> None:
        """Put a sitemap that cannot be read into the report; what it lists is not removed unless it is gone."""
        if url == self._source.url and self._source.kind == "sitemap":
            raise RunFailed(error.reason, error.message)
        guessed = self._source.kind == "website" and url == self._usual_sitemap()
        if guessed and (error.reason == Reason.BAD_SOURCE or not is_failure(error.reason)):
            return  # There is none.
        failure = is_failure(error.reason)
        if failure:
            self._control.insist(lambda: self._note(complete=False))
        self._recorder.add(Outcome(url, "failed" if failure else "skipped", error.reason))

    def _read_posts(self) -> None:
        """Read a blog's posts from its API, which gives them whole."""
        try:
            for post in walk_posts(self._visitor.fetch_listing, self._source.url):
                self._crawl.index_page(post.url, page_of_post(post))
                self._control.check()
        except NotIndexed as error:
            raise RunFailed(error.reason, error.message) from error

    # How it ends

    def _look_for_lost_pages(self) -> None:
        """Ask for pages that no page led to because those that might were left out for want of room."""
        if self._source.kind == "feed":
            return
        while self._has_quota_pages():
            lost = self._control.insist(self._frontier.lost_pages)
            if not lost:
                return
            self._recorder.add_found([Found(url, 0) for url in lost])
            self._crawl.read_all(self._run.indexed + self._run.unchanged)

    def _has_quota_pages(self) -> bool:
        def count() -> bool:
            with self._parts.database.read() as session:
                found = session.scalar(
                    select(RunPage.url).where(RunPage.run_id == self._run.id, RunPage.reason == Reason.QUOTA).limit(1)
                )
            return found is not None

        return self._control.insist(count)

    def _settle_titles(self) -> None:
        """Take what all titles share off those that still have it, also of pages that did not change."""
        database, source = self._parts.database, self._source
        if self._urls is None:
            suffix = self._control.insist(lambda: titles.learn_suffix(database, source.id))
        else:
            suffix = self._control.insist(self._load)[1].title_suffix
        for pages in titles.pages_to_retitle(database, source.id, suffix):
            by_id = {page.document_id: page for page in pages}
            with database.read() as session:
                documents = [
                    retitle(orjson.loads(stored.body), by_id[stored.id].title)
                    for stored in read_stored(session, source.site_id, list(by_id))
                    if stored.origin.source == source.id
                ]
            self._control.insist(lambda documents=documents: self._documents.put(documents))  # type: ignore[misc]
            self._control.insist(lambda pages=pages: titles.keep(database, source.id, pages))  # type: ignore[misc]
            self._control.check()

    def _sweep(self) -> int:
        """Remove the documents of pages that are gone; gives how many."""
        if self._crawl.start_error is not None and is_failure(self._crawl.start_error.reason):
            raise RunFailed(self._crawl.start_error.reason, self._crawl.start_error.message)
        run, _, _ = self._control.insist(self._load)
        if not run.complete:
            self._abandon_sync()
            return 0
        if self._source.kind == "feed":
            self._keep_what_left_the_feed()
        assert run.sync_id is not None
        sync_id = run.sync_id
        percent = run.options.get("max_removed_percent", DEFAULT_MAX_REMOVED_PERCENT)
        removed = self._control.insist(
            lambda: self._parts.syncs.finish(self._site.account_id, self._site.id, sync_id, percent)
        )
        if self._source.kind != "feed":
            self._control.insist(self._forget_lost_pages)
        return removed

    def _keep_what_left_the_feed(self) -> None:
        after = ""
        while lost := self._control.insist(lambda after=after: self._frontier.lost_documents(after)):  # type: ignore[misc]
            self._recorder.mark_seen([document_id for _, document_id in lost])
            after = lost[-1][0]

    def _forget_lost_pages(self) -> None:
        found = select(RunPage.url).where(RunPage.run_id == self._run.id, RunPage.url == SourcePage.url)
        with self._parts.database.write() as session:
            session.execute(delete(SourcePage).where(SourcePage.source_id == self._source.id, ~found.exists()))

    def _abandon_sync(self) -> None:
        sync_id = self._run.sync_id
        if sync_id is None:
            return
        try:
            self._control.insist(lambda: self._parts.syncs.abandon(self._site.account_id, self._site.id, sync_id))
        except ApiError as error:
            if error.code not in (ErrorCode.SYNC_NOT_FOUND, ErrorCode.SITE_NOT_FOUND):
                raise

    def _end(self, status: str, *, error: dict[str, str] | None = None, removed: int = 0) -> str:
        self._control.insist(lambda: self._close(status, error, removed))
        ENDED_RUNS.labels(status).inc()
        self._control.insist(self._delete_settled)
        return status

    def _close(self, status: str, error: dict[str, str] | None, removed: int) -> None:
        with self._parts.database.write() as session:
            run = self._held(session)
            waiting = session.execute(
                update(RunPage)
                .where(RunPage.run_id == run.id, RunPage.status == "waiting")
                .values(status="skipped", reason=Reason.CANCELLED),
                execution_options={"synchronize_session": False},
            )
            run.skipped += waiting.rowcount  # type: ignore[attr-defined]  # An UPDATE's result has one.
            run.removed += removed
            end_run(run, status, error=error)
            session.flush()
            delete_old_runs(session, run.source_id)

    def _delete_settled(self) -> None:
        """Delete the addresses of the source's ended runs that no report lists, in steps."""
        ended = select(SourceRun.id).where(
            SourceRun.source_id == self._source.id, SourceRun.status.in_(("finished", "failed", "cancelled"))
        )
        while True:
            with self._parts.database.write() as session:
                urls = session.execute(
                    select(RunPage.run_id, RunPage.url)
                    .where(RunPage.run_id.in_(ended), RunPage.status.in_(("indexed", "unchanged")))
                    .limit(DELETE_STEP)
                ).all()
                for run_id in {row.run_id for row in urls}:
                    of_run = [row.url for row in urls if row.run_id == run_id]
                    session.execute(delete(RunPage).where(RunPage.run_id == run_id, RunPage.url.in_(of_run)))
            if len(urls) < DELETE_STEP:
                return

    def _write_what_was_read(self) -> None:
        """Write the last batch of a run that ends early; without the database or the engine, it is read again."""
        self._recorder.insist = call_once
        try:
            self._recorder.flush()
        except Exception as error:
            if not is_passing(error):
                raise
            log.warning("what run %s read last is read again: %s", self._run.id, error)

    def _hand_back(self) -> None:
        def write() -> None:
            with self._parts.database.write() as session:
                hand_back(session, self._claim)

        try:
            write()
        except Exception as error:
            if not is_passing(error):
                raise
            log.warning("run %s is continued when its claim lapses: %s", self._run.id, error)
