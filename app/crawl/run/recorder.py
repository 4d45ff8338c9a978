"""Writing down what became of pages, in batches: documents first, then the pages, their links, and the counts.

A page is done when the second transaction is: whoever continues a killed run reads it no more. Between the two, a page
that is read again is the same document again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.crawl.fetch.values import Reason
from app.crawl.run.documents.source_documents import SourceDocuments
from app.crawl.run.frontier import Found
from app.crawl.run.outcome import Outcome
from app.crawl.run.stored_run import StoredRun
from app.services.syncs import Syncs

MAX_PAGES, MAX_BYTES, MAX_SECONDS = 200, 4_194_304, 5.0
"""A batch is written when it has so many pages or bytes of documents, or is so old."""

MAX_LINKS = 10_000
"""And when it holds so many links."""


@dataclass(slots=True)
class _Batch:
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    by_text: dict[bytes, str] = field(default_factory=dict)
    by_document: dict[str, str] = field(default_factory=dict)
    bytes: int = 0
    links: int = 0
    begun: float = 0.0


class Recorder:
    """Collects the outcomes of one run and writes them.

    Args:
        judge: Gives the reason why an address is not to be read at all, for each that is found.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        stored: StoredRun,
        documents: SourceDocuments,
        syncs: Syncs,
        judge: Callable[[str], str | None],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._stored = stored
        self._documents = documents
        self._syncs = syncs
        self._judge = judge
        self._clock = clock
        self._batch = _Batch()
        self.plan_is_full = False
        """Whether documents were left out because the plan has no room."""

    def __contains__(self, url: str) -> bool:
        return url in self._batch.outcomes

    def find_like(self, url: str, document_id: str, text_digest: bytes) -> str | None:
        """Another page of the batch that becomes a document with the same id or text."""
        batch = self._batch
        found = batch.by_text.get(text_digest) or batch.by_document.get(document_id)
        return None if found == url else found

    def add(self, outcome: Outcome) -> None:
        """Take note of an outcome."""
        batch = self._batch
        if not batch.outcomes:
            batch.begun = self._clock()
        batch.outcomes[outcome.url] = outcome
        batch.links += len(outcome.found)
        if outcome.document is not None:
            batch.bytes += len(outcome.document.body)
            batch.by_document[outcome.document.id] = outcome.url
        elif outcome.seen is not None:
            batch.by_document[outcome.seen] = outcome.url
        if outcome.text_digest is not None:
            batch.by_text[outcome.text_digest] = outcome.url

    @property
    def is_full(self) -> bool:
        """Tell whether the batch should be written."""
        batch = self._batch
        return bool(batch.outcomes) and (
            len(batch.outcomes) >= MAX_PAGES
            or batch.bytes >= MAX_BYTES
            or batch.links >= MAX_LINKS
            or self._clock() - batch.begun >= MAX_SECONDS
        )

    def flush(self) -> bool:
        """Write the batch; gives whether there was anything to write.

        Raises:
            RunLost: Another process has the run; nothing of the second transaction was written.
            ApiError: 404 for the site or the sync; 403 when the site is paused.
        """
        if not self._batch.outcomes:
            return False
        outcomes = self._batch.outcomes
        refused = self._write_documents(list(outcomes.values()))
        if refused:
            self.plan_is_full = True
        settled = [_refused(outcome) if _id_of(outcome) in refused else outcome for outcome in outcomes.values()]
        self._stored.settle(settled, self._judge)
        self._batch = _Batch()
        return True

    def _write_documents(self, outcomes: Sequence[Outcome]) -> set[str]:
        """Write what changed and mark what did not; gives the ids that the plan has no room for."""
        documents = {outcome.document.id: outcome.document for outcome in outcomes if outcome.document is not None}
        refused: set[str] = set()
        if documents:
            refused = self._documents.put(list(documents.values()))
        seen = [outcome.seen for outcome in outcomes if outcome.seen is not None]
        gone = [outcome.gone for outcome in outcomes if outcome.gone is not None]
        if self._documents.sync_id is None:
            self._documents.remove([each for each in gone if each not in documents])
        elif seen:
            self.mark_seen(seen)
        return refused

    def mark_seen(self, ids: Sequence[str]) -> None:
        """Keep documents from being removed at the end of the run."""
        documents, sync_id = self._documents, self._documents.sync_id
        if sync_id is not None and ids:
            self._syncs.mark_seen(documents.account_id, documents.source.site_id, sync_id, list(ids))

    def add_found(self, found: Sequence[Found]) -> None:
        """Add addresses that no page led to.

        Raises:
            RunLost: Another process has the run.
        """
        if found:
            self._stored.add_found(found, self._judge)


def _id_of(outcome: Outcome) -> str | None:
    return None if outcome.document is None else outcome.document.id


def _refused(outcome: Outcome) -> Outcome:
    return replace(outcome, status="skipped", reason=Reason.QUOTA, document=None, page=None, forget=True)
