"""Writing outcomes in batches: first the documents, then the pages, their links, and the run's counts.

Documents and outcomes are written in two transactions. Once the second transaction commits, a page is done, and a
process that continues a killed run does not read it again. If the process was killed between the two transactions, the
page is read again and becomes the same document.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.run.outcomes import Outcome
from app.crawl.run.page_documents import without_fields
from app.crawl.run.state import Batch, RunState
from app.crawl.run.stored_run import store_outcomes
from app.crawl.sources.runs import IN_INDEX
from app.errors import ApiError, ErrorCode
from app.models import Site
from app.plans import PlanLimits
from app.services.indexing.stored_documents import ids_from, known_ids
from app.services.site_fields import TooManySiteFields, kinds_of
from app.services.sites import count_documents, limits_of_account
from schemas.validation.documents import ValidDocument

MAX_PAGES, MAX_BYTES, MAX_LINKS, MAX_SECONDS = 200, 4_194_304, 10_000, 5.0
"""Limits of a batch: pages, bytes of documents, discovered URLs, and seconds since its first outcome."""


def add_outcome(state: RunState, outcome: Outcome) -> None:
    """Add an outcome to the batch."""
    batch = state.batch
    if not batch.outcomes:
        batch.started_at = time.monotonic()
    batch.outcomes[outcome.url] = outcome
    batch.links += len(outcome.discovered)
    if outcome.document is not None:
        batch.bytes += len(outcome.document.body)
        batch.url_by_document[outcome.document.id] = outcome.url
    elif outcome.confirmed_id is not None:
        # Unchanged pages count, too: a later page with the same ID is their duplicate.
        batch.url_by_document[outcome.confirmed_id] = outcome.url
    if outcome.text_digest is not None:
        batch.url_by_text[outcome.text_digest] = outcome.url
    if outcome.status in IN_INDEX:
        state.indexed_count += 1


def batched_duplicate(state: RunState, url: str, document_id: str, text_digest: bytes) -> str | None:
    """Return the URL of another page in the batch that becomes a document with the same ID or text, if any."""
    duplicate = state.batch.url_by_text.get(text_digest) or state.batch.url_by_document.get(document_id)
    return None if duplicate == url else duplicate


def batch_is_full(state: RunState) -> bool:
    """Whether the batch should be written."""
    batch = state.batch
    return bool(batch.outcomes) and (
        len(batch.outcomes) >= MAX_PAGES
        or batch.bytes >= MAX_BYTES
        or batch.links >= MAX_LINKS
        or time.monotonic() - batch.started_at >= MAX_SECONDS
    )


def write_batch(state: RunState) -> bool:
    """Write the batch, unless it is empty.

    Returns:
        Whether there was anything to write.

    Raises:
        RunLost: Another process has the run; the second transaction was rolled back.
        RunInterrupted, RunCanceled: The run was stopped while the database or the engine was unavailable.
        ApiError: 404 for the site or the sync; 403 when the site is paused.
    """
    outcomes = list(state.batch.outcomes.values())
    if not outcomes:
        return False
    try:
        with guarded("writing", f"a batch of run {state.run.id}"):
            _store(state, outcomes)
    except NotIndexed:
        for outcome in outcomes:
            _store_alone(state, outcome)
    # Only after both transactions, so that an interrupted batch can still be written when the run stops.
    state.batch = Batch()
    return True


def _store(state: RunState, outcomes: Sequence[Outcome]) -> None:
    rejected_ids = _write_documents(state, outcomes)
    # The whole run stops adding documents, since every later batch would be rejected, too.
    if rejected_ids:
        state.plan_is_full = True
        state.indexed_count -= len(rejected_ids)
    outcomes = [
        _rejected(outcome) if outcome.document is not None and outcome.document.id in rejected_ids else outcome
        for outcome in outcomes
    ]
    state.retry(store_outcomes, outcomes, state.batch.rendered)
    state.batch.rendered = 0


def _store_alone(state: RunState, outcome: Outcome) -> None:
    """Store one outcome of a batch that cannot be stored as a whole, or report its page as failed."""
    try:
        with guarded("writing", outcome.url):
            _store(state, [outcome])
    except NotIndexed as error:
        state.indexed_count -= outcome.status in IN_INDEX
        document_id = outcome.document.id if outcome.document is not None else outcome.confirmed_id
        kept_id = outcome.obsolete_id or document_id
        _store(state, [Outcome(outcome.url, "failed", error.reason, confirmed_id=kept_id)])


def _rejected(outcome: Outcome) -> Outcome:
    return replace(outcome, status="skipped", reason=Reason.QUOTA, document=None, page=None, forget=True)


def _write_documents(state: RunState, outcomes: Sequence[Outcome]) -> set[str]:
    documents = {outcome.document.id: outcome.document for outcome in outcomes if outcome.document is not None}
    rejected_ids = state.retry(put_documents, list(documents.values())) if documents else set()
    if state.run.sync_id is None:
        # A run of single pages has no sync that removes obsolete documents at its end.
        obsolete = [outcome.obsolete_id for outcome in outcomes if outcome.obsolete_id is not None]
        state.retry(_remove_documents, [document_id for document_id in obsolete if document_id not in documents])
    else:
        confirm_documents(state, [outcome.confirmed_id for outcome in outcomes if outcome.confirmed_id is not None])
    return rejected_ids


def confirm_documents(state: RunState, ids: Sequence[str]) -> None:
    """Mark documents as current, so that the final sweep of the run does not remove them."""
    sync_id = state.run.sync_id
    if sync_id is not None and ids:
        syncs, site = state.parts.syncs, state.site
        state.control.retry(lambda: syncs.mark_seen(site.account_id, site.id, sync_id, list(ids)))


# Functions that may be repeated; callers retry them.


def put_documents(state: RunState, documents: Sequence[ValidDocument]) -> set[str]:
    """Add or replace documents with distinct IDs.

    Returns:
        The IDs of new documents that exceed the plan's limit.

    Raises:
        ApiError: 404 for the site or the sync; 403 when the site is paused.
        BackendUnavailable: The documents are stored but not searchable yet; call this again.
    """
    limits = _limits(state)
    try:
        _put(state, limits, documents)
    except ApiError as error:
        if error.code is not ErrorCode.DOCUMENT_LIMIT_REACHED:
            raise
        # The plan's limit rejects a whole batch, so the documents that still fit are written separately.
        return _put_within_limit(state, limits, documents)
    return set()


def _put_within_limit(state: RunState, limits: PlanLimits, documents: Sequence[ValidDocument]) -> set[str]:
    with state.parts.database.read() as session:
        stored_ids = known_ids(session, state.site.id, [document.id for document in documents])
    # Replacing documents needs no room in the plan.
    _put(state, limits, [document for document in documents if document.id in stored_ids])
    new_documents = [document for document in documents if document.id not in stored_ids]
    while new_documents:
        documents_left = documents_left_in_plan(state, limits)
        if documents_left == 0:
            return {document.id for document in new_documents}
        fitting = new_documents[:documents_left]
        try:
            _put(state, limits, fitting)
        except ApiError as error:
            if error.code is not ErrorCode.DOCUMENT_LIMIT_REACHED:
                raise
            continue  # Another writer of the account has used the room in the meantime.
        new_documents = new_documents[len(fitting) :]
    return set()


def _put(state: RunState, limits: PlanLimits, documents: Sequence[ValidDocument]) -> None:
    parts, site = state.parts, state.site
    while documents:
        try:
            parts.writer.put(
                site.account_id, limits, site.id, documents, source=state.source.id, sync_id=state.run.sync_id
            )
        except TooManySiteFields as error:
            with parts.database.read() as session:
                # Documents with too many new fields keep only fields that the site already has.
                site_fields = set(kinds_of(session.get_one(Site, site.id)))
            surplus = {rejected.index for rejected in error.rejected}
            documents = [
                without_fields(document, site_fields) if index in surplus else document
                for index, document in enumerate(documents)
            ]
        else:
            return


def _limits(state: RunState) -> PlanLimits:
    return limits_of_account(state.parts.database, state.parts.plans, state.site.account_id)


def documents_left_in_plan(state: RunState, limits: PlanLimits | None = None) -> int | None:
    """Return the number of documents that can still be added under the plan; ``None`` without a limit."""
    limits = _limits(state) if limits is None else limits
    if limits.documents is None:
        return None
    with state.parts.database.read() as session:
        return max(0, limits.documents - count_documents(session, state.site.account_id))


def _remove_documents(state: RunState, ids: Sequence[str]) -> None:
    """Remove documents, except documents that the source no longer owns.

    Raises:
        ApiError: 404 for the site; 403 when it is paused.
        BackendUnavailable: The documents are removed but may remain searchable for a while.
    """
    with state.parts.database.read() as session:
        owned_ids = ids_from(session, state.site.id, state.source.id, ids)
    if owned_ids:
        state.parts.writer.remove_ids(state.site.account_id, state.site.id, list(owned_ids))
