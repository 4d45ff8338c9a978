"""The steps of a run: begin its sync, discover URLs, read pages, and remove the documents of lost pages."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from app.crawl.fetch.addresses import parse_url
from app.crawl.fetch.listings import Listed, fetch_feed, walk_sitemaps
from app.crawl.fetch.unexpected import UNEXPECTED_ERRORS, guarded
from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.run.branches import Branches
from app.crawl.run.crawl import add_posts, read_pages
from app.crawl.run.frontier import LATEST_CHANGE, MAX_URLS, lost_documents, lost_pages, max_requests, max_urls
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, is_failure
from app.crawl.run.recorder import add_outcome, confirm_documents, write_batch
from app.crawl.run.state import (
    CrawlParts,
    RetriedTurns,
    RunCanceled,
    RunControl,
    RunFailed,
    RunInterrupted,
    RunLost,
    RunState,
    is_temporary,
)
from app.crawl.run.stored_run import (
    add_discovered,
    change_run,
    count_unreadable,
    delete_unlisted,
    forget_lost_pages,
    has_unread_pages,
    load_run,
    load_sync,
    read_progress,
    release_claim,
    restart_run,
    store_end,
)
from app.crawl.run.titles import count_sections, load_titles, update_titles
from app.crawl.run.visits.admission import Admission
from app.crawl.run.visits.rendering import Renderer, Resources
from app.crawl.run.visits.visitor import HostVisitor
from app.crawl.sources.runs import ENDED_RUNS, INCOMPLETE, Claim
from app.errors import ApiError, ErrorCode
from app.models import Source
from app.services.sites import limits_of_account
from app.services.syncs import DEFAULT_MAX_REMOVED_PERCENT
from app.wording import counted, number

MAX_UNREADABLE_PERCENT, MAX_UNREADABLE_PAGES = 10, 2
"""A run fails if its temporarily unreadable pages exceed both of these limits."""

MAX_REPORTED_URLS = 100
"""Maximum number of URLs that remain in the options of a run that is limited to certain URLs."""

MAX_LAPSES = 10
"""Maximum number of times that a run is continued after its process was killed, since a page may be the cause."""

log = logging.getLogger(__name__)


def execute(parts: CrawlParts, claim: Claim, control: RunControl) -> str:
    """Work on a claimed run until it ends or must be handed back.

    Returns:
        ``finished``, ``failed``, ``cancelled``, ``handed_back`` or ``lost``.
    """
    try:
        state = _load(parts, claim, control)
        try:
            return _run_or_hand_back(state)
        except RunLost:
            raise
        except Exception:
            UNEXPECTED_ERRORS.labels("run").inc()
            log.exception("run %s ended unexpectedly", claim.run_id)
            _abandon_sync(state)
            return _end(
                state, "failed", error={"code": ErrorCode.INTERNAL_ERROR, "message": "The run ended unexpectedly."}
            )
    except RunLost:
        return "lost"
    except RunInterrupted:
        return "handed_back"


def _load(parts: CrawlParts, claim: Claim, control: RunControl) -> RunState:
    run, source, site = control.retry(lambda: load_run(parts.database, claim))
    visitor = HostVisitor(parts.network, RetriedTurns(parts.turns, control), source, parts.user_agent, control.wait)
    return RunState(
        # One customer's slow files must not delay the pages of all others.
        replace(parts, reader=parts.reader.of_account(site.account_id, control.wait)),
        claim,
        control,
        run,
        source,
        site,
        visitor,
        Admission(source, visitor.scope),
        urls=run.options.get("urls"),
        max_urls=MAX_URLS,
        renderer=_renderer(parts, visitor, source, site.account_id, run.slow_seconds),
    )


def _renderer(
    parts: CrawlParts, visitor: HostVisitor, source: Source, account_id: int, slow_seconds: float
) -> Renderer | None:
    if parts.browser is None or parts.public_network is None or source.render == "never":
        return None
    resources = Resources(visitor, source, parts.user_agent, parts.network, parts.public_network)
    return Renderer(parts.browser, resources, visitor.wait, account_id, slow_seconds, mode=source.render)


def _run_or_hand_back(state: RunState) -> str:
    try:
        return _run(state)
    except RunInterrupted:
        # No retry, because the process is about to end. The claim lapses within a minute anyway.
        try:
            release_claim(state)
        except Exception as error:
            if not is_temporary(error):
                raise
            log.warning("run %s is continued when its claim lapses: %s", state.run.id, error)
        return "handed_back"


def _run(state: RunState) -> str:
    """Complete the run.

    Returns:
        The status with which the run ended.
    """
    try:
        removed = _work(state)
    except RunCanceled:
        state.control.acknowledge_cancellation()
        _abandon_sync(state)
        return _end(state, "cancelled")
    except RunFailed as error:
        _abandon_sync(state)
        return _end(state, "failed", error={"code": error.code, "message": error.message})
    except ApiError as error:
        if error.code in (ErrorCode.SITE_NOT_FOUND, ErrorCode.INVALID_API_KEY):
            raise RunLost from error  # The site was deleted, and the run with it.
        _abandon_sync(state)
        return _end(state, "failed", error={"code": error.code, "message": error.message})
    return _end(state, "finished", removed=removed)


def _work(state: RunState) -> int:
    """Do all the work of the run except storing its end.

    Returns:
        The number of documents that the final sweep removed.
    """
    _check_start(state)
    if state.urls is None:
        removed = _begin_sync(state)
        if removed is not None:
            return removed  # The process was killed after the sweep.
    limits = state.control.retry(
        lambda: limits_of_account(state.parts.database, state.parts.plans, state.site.account_id)
    )
    state.max_urls = max_urls(limits)
    state.max_requests = max_requests(state.source.max_pages, state.max_urls)
    ended, state.requests = state.retry(read_progress)
    state.branches = Branches(ended)
    state.sections = state.retry(count_sections)
    state.titles = state.retry(load_titles)
    try:
        if not state.run.seeded:
            seed(state)
            # Both in one step, because a continued run must not lose URLs before all of them are stored as rows.
            state.retry(change_run, seeded=True, options=_report_options(state))
        _read_pages(state)
        if state.urls is None:
            _read_lost_pages(state)
    except (RunCanceled, RunInterrupted):
        _write_last_batch(state)
        raise
    update_titles(state)
    _check_completeness(state)
    return 0 if state.urls is not None else _sweep(state)


def _check_start(state: RunState) -> None:
    if not state.site.active:
        message = "The site is paused; resume it to crawl."
        raise RunFailed(ErrorCode.SITE_INACTIVE, "The site was deleted." if state.site.deleted_at else message)
    if state.run.cancelled:
        raise RunCanceled
    if state.run.lapses > MAX_LAPSES:
        raise RunFailed(ErrorCode.INTERNAL_ERROR, "The run was interrupted too many times.")


def _begin_sync(state: RunState) -> int | None:
    """Begin the run's sync, or continue it.

    Returns:
        The number of removed documents if the sync has already finished, otherwise ``None``.
    """
    if state.run.sync_id is not None:
        sync = state.retry(load_sync)
        if sync is not None and sync.status == "finished":
            return sync.removed or 0
        if sync is not None and sync.status == "running":
            return None
        log.info("run %s starts again: its sync has lapsed", state.run.id)
        state.retry(restart_run)
    syncs, site, source = state.parts.syncs, state.site, state.source
    # ``replace``, because an earlier run may have been killed between its sync's begin and the next line.
    sync = state.control.retry(lambda: syncs.begin(site.account_id, site.id, source.id, replace=True))
    state.retry(change_run, sync_id=sync.id)
    return None


def _report_options(state: RunState) -> dict[str, Any]:
    """Return the run's options with a limited number of URLs, since lists of runs contain them. All URLs are rows."""
    options = state.run.options
    return options if state.urls is None else {**options, "urls": state.urls[:MAX_REPORTED_URLS]}


def _read_pages(state: RunState) -> None:
    # A continued run counts the pages that its earlier processes indexed.
    state.indexed_count = state.run.indexed + state.run.unchanged
    read_pages(state)


def _read_lost_pages(state: RunState) -> None:
    """Read the indexed pages whose referrers may have been skipped: the plan's or the run's limit was reached."""
    if state.source.kind == "feed":
        return
    while state.retry(has_unread_pages):
        urls = state.retry(lost_pages)
        if not urls:
            return
        state.retry(add_discovered, [DiscoveredUrl(url, 0) for url in urls])
        _read_pages(state)


def _write_last_batch(state: RunState) -> None:
    """Write the batch of a run that ends early. If the database or engine is unavailable, its pages are read again."""
    try:
        write_batch(state)
    except (RunCanceled, RunInterrupted):
        log.warning("the last pages of run %s are read again", state.run.id)


def _check_completeness(state: RunState) -> None:
    """Fail the run if its start page, or many other pages, could not be read for reasons that may be temporary."""
    error = state.start_error
    if state.urls is None and error is not None and is_failure(error.reason):
        raise RunFailed(error.reason, error.message)
    unreadable, pages = state.retry(count_unreadable)
    if unreadable > MAX_UNREADABLE_PAGES and unreadable * 100 > pages * MAX_UNREADABLE_PERCENT:
        raise RunFailed(INCOMPLETE, f"{number(unreadable)} of {counted(pages, 'page')} could not be read.")


def _sweep(state: RunState) -> int:
    """Remove the documents of lost pages.

    Returns:
        The number of removed documents.
    """
    # ``complete`` may have changed in SQL since the run was loaded.
    state.run, _, _ = state.control.retry(lambda: load_run(state.parts.database, state.claim))
    if not state.run.complete:
        _abandon_sync(state)
        return 0
    if state.source.kind == "feed":
        _keep_documents_of_feed(state)
    assert state.run.sync_id is not None
    syncs, site, sync_id = state.parts.syncs, state.site, state.run.sync_id
    percent = state.run.options.get("max_removed_percent", DEFAULT_MAX_REMOVED_PERCENT)
    removed = state.control.retry(lambda: syncs.finish(site.account_id, site.id, sync_id, percent))
    if state.source.kind != "feed":
        state.retry(forget_lost_pages)
    return removed


def _keep_documents_of_feed(state: RunState) -> None:
    # A feed lists only its newest entries; older pages still exist.
    after = ""
    while lost := state.retry(lost_documents, after):
        confirm_documents(state, [document_id for _, document_id in lost])
        after = lost[-1][0]


def _abandon_sync(state: RunState) -> None:
    sync_id = state.run.sync_id
    if sync_id is None:
        return
    syncs, site = state.parts.syncs, state.site
    try:
        state.control.retry(lambda: syncs.abandon(site.account_id, site.id, sync_id))
    except ApiError as error:
        # If the sync or the site is gone, there is nothing to abandon.
        if error.code not in (ErrorCode.SYNC_NOT_FOUND, ErrorCode.SITE_NOT_FOUND):
            raise


def _end(state: RunState, status: str, *, error: dict[str, str] | None = None, removed: int = 0) -> str:
    state.retry(store_end, status, error, removed)
    ENDED_RUNS.labels(status).inc()
    # After the end is stored, since this takes a while and may be interrupted.
    state.retry(delete_unlisted)
    return status


STEP = 500


def seed(state: RunState) -> None:
    """Store the URLs to start with, or add the posts of a blog.

    Raises:
        RunFailed: The source cannot be read.
    """
    url = state.source.url
    if state.urls is not None:
        _add_entries(state, map(Listed, state.urls), depth=0)
    elif state.source.kind == "website":
        # The start page precedes all pages with a date in a sitemap.
        state.retry(add_discovered, [DiscoveredUrl(url, 0, modified=LATEST_CHANGE)])
        sitemaps = _sitemaps(state)
        found_on = sitemaps[0] if len(sitemaps) == 1 else None
        _add_entries(state, _walk(state, sitemaps), depth=1, found_on=found_on)
    elif state.source.kind == "sitemap":
        _add_entries(state, _walk(state, [url]), depth=0, found_on=url)
    elif state.source.kind == "feed":
        try:
            feed = fetch_feed(state.visitor.fetch_listing, url, state.parts.reader.read_feed)
            _add_entries(state, map(Listed, feed), depth=0, found_on=url)
        except NotIndexed as error:
            raise RunFailed(error.reason, error.message) from error
    else:
        add_posts(state)


def _walk(state: RunState, sitemaps: Iterable[str]) -> Iterable[Listed]:
    return walk_sitemaps(
        state.visitor.fetch_listing,
        sitemaps,
        lambda url, error: _report_failed_sitemap(state, url, error),
        state.parts.reader.read_sitemap,
    )


def _add_entries(state: RunState, entries: Iterable[Listed], *, depth: int, found_on: str | None = None) -> None:
    step: list[DiscoveredUrl] = []
    for entry in entries:
        step.append(DiscoveredUrl(entry.url, depth, found_on, entry.modified))
        if len(step) == STEP:
            state.retry(add_discovered, step)
            state.control.check()
            step = []
    state.retry(add_discovered, step)


def _sitemaps(state: RunState) -> list[str]:
    """Return the sitemaps that the host's robots.txt lists, and ``/sitemap.xml``."""
    url = state.source.url
    try:
        with guarded("list", parse_url("/robots.txt", url).href):
            listed = state.visitor.robots.rules(url).sitemaps(url)
    except NotIndexed:
        state.retry(change_run, complete=False)
        return []
    return list(dict.fromkeys((*listed, _default_sitemap(state))))


def _default_sitemap(state: RunState) -> str:
    return parse_url("/sitemap.xml", state.source.url).href


def _report_failed_sitemap(state: RunState, url: str, error: NotIndexed) -> None:
    """Report a sitemap that cannot be read. Unless it is permanently gone, the run doesn't remove documents."""
    if url == state.source.url and state.source.kind == "sitemap":
        raise RunFailed(error.reason, error.message)
    is_guess = state.source.kind == "website" and url == _default_sitemap(state)
    failure = is_failure(error.reason)
    if is_guess and (error.reason == Reason.BAD_SOURCE or not failure):
        return  # The host has no sitemap at this URL.
    if failure:
        state.retry(change_run, complete=False)
    add_outcome(state, Outcome(url, "failed" if failure else "skipped", error.reason))
