"""Reading the pages of a run, breadth first.

Threads fetch and read pages; the thread of the run decides and writes. All progress is in SQL, so a process that
claims the run of a killed process continues with the waiting pages.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from app.crawl.fetch.addresses import route_of
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import Fetched, NotIndexed, Page, Reason, Selectors, TryLater, Validators
from app.crawl.fetch.wordpress import UnreadablePost, walk_posts
from app.crawl.run.decisions import (
    decide_canonical,
    decide_deferred,
    decide_error,
    decide_page,
    decide_redirected,
    decide_unchanged,
    has_document,
    is_remembered,
)
from app.crawl.run.frontier import next_page, read_record, read_status
from app.crawl.run.outcomes import DiscoveredUrl, Outcome, QueuedPage
from app.crawl.run.page_documents import field_rules, page_of_post
from app.crawl.run.recorder import add_outcome, batch_is_full, documents_left_in_plan, write_batch
from app.crawl.run.state import RunFailed, RunInterrupted, RunState
from app.crawl.run.stored_run import add_discovered, has_waiting_runs, name_branch
from app.crawl.run.titles import learn_titles
from app.crawl.run.visits.visitor import MAX_ATTEMPTS, RequestOrder, RequestPosition, too_many_attempts

FETCHERS = 2
"""Number of threads in a run that fetch and read pages: the maximum number of concurrent requests to one host."""

MAX_IN_FLIGHT = 2 * FETCHERS
"""Maximum number of pages handed to the threads at a time, so that no thread is idle during a decision."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A page that was fetched and read.

    Attributes:
        fetched: The response, without its body.
        page: The page's content; ``None`` if the page has not changed.
    """

    fetched: Fetched
    page: Page | None


@dataclass(slots=True)
class _Pass:
    """One pass over the waiting pages.

    Attributes:
        postponed: Pages whose host asked to wait, each with the value of ``started`` at which the page is due again.
        attempts: Number of rejected requests for each postponed page.
        started: Number of pages that were handed to the threads.
        only_deferred: Whether only deferred pages are left.
    """

    pool: ThreadPoolExecutor
    order: RequestOrder = field(default_factory=RequestOrder)
    in_flight: dict[Future[Reading | NotIndexed], QueuedPage] = field(default_factory=dict)
    postponed: deque[tuple[int, QueuedPage]] = field(default_factory=deque)
    attempts: Counter[str] = field(default_factory=Counter)
    started: int = 0
    only_deferred: bool = False


def read_pages(state: RunState) -> None:
    """Read the waiting pages and the pages that they lead to.

    Raises:
        RunInterrupted, RunCanceled, RunLost: The run was stopped.
        ApiError: 404 for the site or the sync; 403 when the site is paused.
    """
    current = _Pass(ThreadPoolExecutor(FETCHERS, thread_name_prefix="crawl"))
    try:
        while _start_pages(state, current) or _write_and_continue(state, current):
            # At most a second, so that a cancellation is noticed while a host is slow.
            for future in wait(current.in_flight, timeout=1.0, return_when=FIRST_COMPLETED).done:
                queued = current.in_flight.pop(future)
                with _one_page(state, queued):
                    indexed_before = state.indexed_count
                    _settle(state, current, queued, future.result())
                    _count_in_branch(state, queued, has_text=state.indexed_count > indexed_before)
            if batch_is_full(state):
                _write(state)
            state.control.check()
    finally:
        # Without waiting: a slow host must not delay the end of the run.
        current.pool.shutdown(wait=False, cancel_futures=True)


def add_posts(state: RunState) -> None:
    """Index the posts of a blog.

    Raises:
        RunFailed: The blog cannot be read.
    """
    rules = field_rules(state.source)
    try:
        for post in walk_posts(state.visitor.fetch_listing, state.source.url, state.parts.reader.read_posts):
            with _one_page(state, QueuedPage(post.url, 0)):
                if isinstance(post, UnreadablePost):
                    raise RuntimeError("The post cannot be read; the error is in the log.")
                _add_post(state, post.url, page_of_post(post, rules))
            if batch_is_full(state):
                _write(state)
            state.control.check()
    except NotIndexed as error:
        raise RunFailed(error.reason, error.message) from error


def _add_post(state: RunState, url: str, page: Page) -> None:
    """Index a page whose content came from an API, unless the run already has it."""
    if not (state.admission.is_in_scope(url) and state.admission.is_included(url)):
        state.retry(add_discovered, [DiscoveredUrl(url, 0)])
    elif url not in state.batch.outcomes and state.retry(read_status, url) in (None, "waiting"):
        add_outcome(state, decide_page(state, QueuedPage(url, 0), None, page))


@contextmanager
def _one_page(state: RunState, queued: QueuedPage) -> Iterator[None]:
    """Report the page as failed if there is a bug, so that it costs only this page."""
    try:
        with guarded("page", queued.url):
            yield
    except NotIndexed as error:
        add_outcome(state, decide_error(state, queued, error))


def _start_pages(state: RunState, current: _Pass) -> bool:
    """Hand pages to the threads, up to :data:`MAX_IN_FLIGHT`.

    Returns:
        Whether any page is in flight.
    """
    max_pages = state.source.max_pages
    while len(current.in_flight) < MAX_IN_FLIGHT:
        if max_pages is not None and state.indexed_count >= max_pages and state.batch.bytes:
            _write(state)  # The plan may reject pages of the batch, which then don't count.
        if max_pages is not None and state.indexed_count < max_pages <= state.indexed_count + len(current.in_flight):
            break  # The pages in flight may reach the limit.
        queued = _next_page(state, current)
        if queued is None:
            break
        if queued.url in state.batch.outcomes:
            continue  # A redirect led to the page before.
        with _one_page(state, queued):
            if queued.deferred and (outcome := decide_deferred(state, queued)) is not None:
                add_outcome(state, outcome)
            elif max_pages is not None and state.indexed_count >= max_pages:
                error = NotIndexed(Reason.EXCLUDED, "The source has reached its maximum number of pages.")
                add_outcome(state, decide_error(state, queued, error))
            elif (reason := _limit_reached(state, queued)) and not has_document(state, queued.url):
                add_outcome(state, Outcome(queued.url, "skipped", reason, forget=True))
            else:
                _start(state, current, queued, unconditional=queued.deferred is not None)
        if batch_is_full(state):
            _write(state)
    return bool(current.in_flight)


def _limit_reached(state: RunState, queued: QueuedPage) -> Reason | None:
    """Return the reason to skip a page unless it is a document, which the run keeps up to date in any case."""
    if state.plan_is_full:
        return Reason.QUOTA
    if state.branches.skips(queued):
        return Reason.NO_NEW_TEXT
    return Reason.MAX_REQUESTS if state.requests >= state.max_requests else None


def _start(state: RunState, current: _Pass, queued: QueuedPage, *, unconditional: bool) -> None:
    position = current.order.next_position(queued.url)
    current.in_flight[current.pool.submit(_read_page, state, queued, unconditional, position)] = queued
    current.started += 1
    state.requests += 1
    # The page may lead to pages that are not deferred, which take precedence again.
    current.only_deferred = False


def _next_page(state: RunState, current: _Pass) -> QueuedPage | None:
    postponed = current.postponed
    if postponed and postponed[0][0] <= current.started:
        return postponed.popleft()[1]
    queued = state.retry(next_page, deferred=current.only_deferred)
    return postponed.popleft()[1] if queued is None and postponed else queued


def _read_page(
    state: RunState, queued: QueuedPage, unconditional: bool, position: RequestPosition
) -> Reading | NotIndexed:
    """Fetch and read a page, in a thread of the pool.

    Args:
        unconditional: Whether to read the page even if it has not changed.
    """

    # The server confirms the application's only file, not the page that its scripts render for a route.
    route = route_of(queued.url)

    def stored_validators(url: str) -> Validators | None:
        record = None if unconditional or route else state.retry(read_record, url)
        if record is None or (record.document_id is not None and not record.document_exists):
            return None  # The document is gone and must be written again.
        if state.renderer is not None and (record.reason is not None or url == state.source.url):
            return None  # It may have been read before there was a browser to render it.
        validators = Validators(record.etag, record.last_modified)
        return validators if validators != Validators() else None

    def read(fetched: Fetched) -> Page:
        return state.parts.reader.read(fetched, Selectors(**state.source.selectors), field_rules(state.source))

    try:
        with guarded("page", queued.url):
            try:
                fetched = state.visitor.request_page(queued.url, stored_validators, position)
            finally:
                # Set even if no request was sent, because the next page of the host waits for this.
                position.requested.set()
            if fetched.status == 304:
                return Reading(fetched, None)
            if state.renderer is None:
                page = read(fetched)
            else:
                fetched, page = state.renderer.render(queued.url, fetched, read)
    except NotIndexed as error:
        return error
    # The body is dropped, because it may have megabytes and the reading may wait a while for its decision.
    return Reading(replace(fetched, body=b""), page)


def _write_and_continue(state: RunState, current: _Pass) -> bool:
    """Write the batch.

    Returns:
        Whether there may be further pages.
    """
    if _write(state):
        return True
    if current.only_deferred:
        return False
    # All other pages are settled, so the deferred ones can be compared with them.
    current.only_deferred = True
    return True


def _write(state: RunState) -> bool:
    """Write the batch, then update the state that depends on it.

    Returns:
        Whether there was anything to write.

    Raises:
        RunInterrupted: The run's turn is over and other runs are waiting.
    """
    if not write_batch(state):
        return False
    # Learned as early as possible, so that fewer documents must be written again at the end of the run.
    if not state.titles.prefix and not state.titles.suffix:
        state.titles = state.retry(learn_titles)
    if state.plan_is_full:
        # Since the plan was full, documents may have been deleted, or the plan changed.
        state.plan_is_full = state.retry(documents_left_in_plan) == 0
    # Between batches, when everything is in SQL and another process can continue the run without loss.
    if state.control.has_used_its_turn and state.retry(has_waiting_runs):
        raise RunInterrupted
    return True


def _postpone(current: _Pass, queued: QueuedPage) -> bool:
    """Postpone a page whose host asks to wait. The host may allow requests for other pages in the meantime.

    Returns:
        Whether the page may be requested again.
    """
    current.attempts[queued.url] += 1
    if current.attempts[queued.url] >= MAX_ATTEMPTS:
        del current.attempts[queued.url]
        return False
    # Not immediately: the pages that are already in flight would have to wait for the same host.
    current.postponed.append((current.started + MAX_IN_FLIGHT, queued))
    return True


def _settle(state: RunState, current: _Pass, queued: QueuedPage, reading: Reading | NotIndexed) -> None:
    if isinstance(reading, TryLater):
        if _postpone(current, queued):
            return
        reading = too_many_attempts(reading)
    if isinstance(reading, NotIndexed):
        add_outcome(state, decide_error(state, queued, reading))
        return
    if reading.page is None:
        _settle_unchanged(state, current, queued, reading.fetched)
        return
    fetched, page = reading.fetched, reading.page
    state.batch.rendered += fetched.rendered
    canonical = page.canonical
    requested_urls = {queued.url, fetched.url, *fetched.redirects}

    def settle(target: QueuedPage) -> None:
        if canonical is not None and canonical not in requested_urls:
            add_outcome(state, decide_canonical(state, target, fetched, page, canonical))
        else:
            add_outcome(state, decide_page(state, target, fetched, page))

    if fetched.url != queued.url and canonical != queued.url:
        _settle_redirected(state, current, queued, fetched.url, settle)
    else:
        settle(queued)


def _count_in_branch(state: RunState, queued: QueuedPage, *, has_text: bool) -> None:
    outcome = state.batch.outcomes.get(queued.url)
    if outcome is None or not state.follows_links:
        return
    branch = state.branches.add(queued, outcome, has_text=has_text)
    if branch is not None:
        # The branch may be a page of the batch.
        write_batch(state)
        state.retry(name_branch, branch)


def _settle_unchanged(state: RunState, current: _Pass, queued: QueuedPage, fetched: Fetched) -> None:
    record = state.retry(read_record, queued.url)
    if fetched.url != queued.url:
        target = state.retry(read_record, fetched.url)
        # If the target declares the requested URL as canonical, the response is the page of the requested URL.
        if target is None or target.reason != Reason.CANONICAL or target.links[:1] != (queued.url,):
            _settle_redirected(
                state,
                current,
                queued,
                fetched.url,
                lambda target: _settle_unchanged(state, current, target, fetched),
            )
            return
        if record is None or not record.document_exists:
            _start(state, current, queued, unconditional=True)
            return
    assert record is not None, "a condition was sent"
    outcome = decide_unchanged(state, queued, record)
    if outcome is None:
        _start(state, current, queued, unconditional=True)
    else:
        add_outcome(state, outcome)


def _settle_redirected(
    state: RunState, current: _Pass, queued: QueuedPage, target: str, settle: Callable[[QueuedPage], None]
) -> None:
    """Skip a URL that redirects, and settle its target with the response unless the target is already settled."""
    add_outcome(state, decide_redirected(state, queued, target))
    # The response is dropped here, although it was fetched: the target will be settled with its own.
    if target in state.batch.outcomes or any(page.url == target for page in current.in_flight.values()):
        return
    if state.retry(read_status, target) in (None, "waiting"):
        reason = state.admission.rejection_reason(target) if not is_remembered(state, target) else None
        if reason is None:
            settle(QueuedPage(target, queued.depth))
