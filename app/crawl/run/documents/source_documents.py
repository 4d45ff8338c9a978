"""Writing a source's documents: what the plan or the site has no room for is left out, never the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.crawl.run.documents.page_documents import without_fields
from app.errors import ApiError, ErrorCode
from app.models import Site, Source
from app.plans import PlanLimits, PlanTable
from app.services.indexing.documents import DocumentWriter
from app.services.indexing.stored_documents import ids_from, known_ids
from app.services.site_fields import TooManySiteFields, kinds_of
from app.services.sites import count_documents, limits_of_account
from app.storage.database import Database
from schemas.validation.documents import ValidDocument


@dataclass(frozen=True, slots=True)
class SourceDocuments:
    """The documents of one source.

    Attributes:
        sync_id: The running sync that sees what is written; ``None`` for a run of some addresses.
    """

    database: Database
    writer: DocumentWriter
    plans: PlanTable
    account_id: int
    source: Source
    sync_id: str | None

    def put(self, documents: Sequence[ValidDocument]) -> set[str]:
        """Add or replace documents with distinct ids; gives the ids of new ones that the plan has no room for.

        Raises:
            ApiError: 404 for the site or the sync; 403 when the site is paused.
            BackendUnavailable: They are stored but not searchable yet; to be called again.
        """
        limits = self._limits()
        try:
            self._put(limits, documents)
        except ApiError as error:
            if error.code is not ErrorCode.DOCUMENT_LIMIT_REACHED:
                raise
            return self._put_what_fits(limits, documents)
        return set()

    def _put_what_fits(self, limits: PlanLimits, documents: Sequence[ValidDocument]) -> set[str]:
        with self.database.read() as session:
            known = known_ids(session, self.source.site_id, [document.id for document in documents])
        self._put(limits, [document for document in documents if document.id in known])
        fresh = [document for document in documents if document.id not in known]
        while fresh:
            room = self.room(limits)
            if room is None or room > 0:
                fitting = fresh if room is None else fresh[:room]
                try:
                    self._put(limits, fitting)
                except ApiError as error:
                    if error.code is not ErrorCode.DOCUMENT_LIMIT_REACHED:
                        raise
                    continue  # Others took the room meanwhile.
                fresh = fresh[len(fitting) :]
            else:
                return {document.id for document in fresh}
        return set()

    def _put(self, limits: PlanLimits, documents: Sequence[ValidDocument]) -> None:
        while documents:
            try:
                self.writer.put(
                    self.account_id, limits, self.source.site_id, documents, source=self.source.id, sync_id=self.sync_id
                )
            except TooManySiteFields as error:
                with self.database.read() as session:
                    known = set(kinds_of(session.get_one(Site, self.source.site_id)))
                surplus = {surplus.place for surplus in error.surplus}
                documents = [
                    without_fields(document, known) if place in surplus else document
                    for place, document in enumerate(documents)
                ]
            else:
                return

    def _limits(self) -> PlanLimits:
        return limits_of_account(self.database, self.plans, self.account_id)

    def room(self, limits: PlanLimits | None = None) -> int | None:
        """The number of further documents the plan allows; ``None`` without a limit."""
        limits = self._limits() if limits is None else limits
        if limits.documents is None:
            return None
        with self.database.read() as session:
            return max(0, limits.documents - count_documents(session, self.account_id))

    def remove(self, ids: Sequence[str]) -> int:
        """Remove those of ``ids`` that are the source's; gives how many.

        Raises:
            ApiError: 404 for the site; 403 when it is paused.
            BackendUnavailable: They are removed here but perhaps still found; they will not be.
        """
        with self.database.read() as session:
            own = ids_from(session, self.source.site_id, self.source.id, ids)
        return self.writer.remove_ids(self.account_id, self.source.site_id, list(own)) if own else 0
