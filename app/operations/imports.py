"""Importing files as documents. Documents are written in batches; invalid lines are reported and skipped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.values import NotIndexed
from app.errors import ApiError, ErrorCode, field_error
from app.importers.fields import read_column_map
from app.importers.formats import read_file
from app.importers.records import BadLine, ByteStream, Read, Record, UnreadableFile
from app.operations.attempts import count_attempt
from app.plans import PlanLimits
from app.runtime import Runtime
from app.services import sites
from app.services.access.callers import Caller
from app.services.indexing.documents import DocumentWriter
from app.services.site_fields import TooManySiteFields
from app.services.usage.quota import read_pages_window
from app.wording import counted, number
from schemas.validation.documents import RECOMMENDED_BATCH, DocumentProblems, ValidDocument, read_document
from schemas.validation.problems import MAX_PROBLEMS, Problem


class ImportInterrupted(Exception):
    """An import ended early.

    Attributes:
        outcome: The outcome up to that point. ``__cause__`` is the reason.
    """

    def __init__(self, outcome: ImportOutcome):
        super().__init__("the import ended early")
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class SentFile:
    """An uploaded file with its description.

    Attributes:
        form: One of the formats of :mod:`app.importers.formats`, or :data:`ONE_PAGE`.
        columns: Column map, in the format of :func:`app.importers.fields.read_column_map`.
        url: For a file that is one page, the page's URL, absolute or relative to the site's URL.
        content_type: For a file that is one page, its content type.
    """

    stream: ByteStream
    form: str
    columns: str
    url: str = ""
    content_type: str = ""


ONE_PAGE = "file"
"""Format of a file that is one page, which is read in the same way as crawled pages."""

MAX_SKIPPED_LINES = 10_000
"""Maximum number of invalid lines before an import stops, because checking a line costs more than sending it."""


def import_file(runtime: Runtime, caller: Caller, site_id: int, file: SentFile) -> ImportOutcome:
    """Import a file of documents, or a file that becomes one page.

    Raises:
        ApiError: 400 for an unreadable file or missing columns; 404; 403 for a paused site or a full plan; 429 after
            too many files that are one page; 503. The message reports what was indexed before the error.
    """
    outcome = ImportOutcome()
    try:
        column_map = read_column_map(file.columns)
        with runtime.database.read() as session:
            site = sites.get_site(session, caller.account.id, site_id)
            if not site.active:
                raise sites.site_inactive()
            site_url = site.url
        limits = caller.account.limits
        max_fields = runtime.settings.max_site_fields
        job = FileImport(
            runtime.writer,
            caller.account.id,
            limits,
            site_id,
            max_fields,
            max_skipped=MAX_SKIPPED_LINES,
            outcome=outcome,
        )
        if file.form == ONE_PAGE:
            count_attempt(runtime, [read_pages_window(caller.account.id)], "pages")
            job.run([_read_page(file, site_url)])
        else:
            job.run(read_file(file.stream, file.form, column_map))
    except Exception as error:  # noqa: BLE001 - after any error, the response reports what was done before.
        cause = _unreadable(error) if isinstance(error, UnreadableFile) else error
        raise ImportInterrupted(outcome) from cause
    return outcome


def _read_page(file: SentFile, site_url: str) -> Record:
    if not file.url:
        raise field_error("url", "required", "is required for a file that is one page")
    # Reading pages needs some 20 MB of memory, so only processes that read such files load it.
    from app.crawl.run.page_documents import read_uploaded_file

    try:
        address = normalize_url(file.url, site_url)
    except ValueError as error:
        raise field_error("url", "invalid_url", "must be an http or https URL, or a path on the site") from error
    try:
        return Record(1, read_uploaded_file(file.stream.read(), file.content_type, address).fields)
    except NotIndexed as error:
        raise field_error("file", error.reason, f"cannot be read as a page: {error.message.rstrip('.')}") from error


def _unreadable(error: UnreadableFile) -> ApiError:
    return field_error(error.field, error.problem.code, str(error.problem))


BATCH_BYTES = 8 * 1024 * 1024
"""Size in bytes at which a batch is written even if it has fewer than :data:`RECOMMENDED_BATCH` documents."""


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A problem in a skipped line or record.

    Attributes:
        line: Number of the line on which the record begins, from 1.
        field: The invalid field; ``None`` for the line as a whole.
        problem: A predicate that follows the field's name.
        record: Number of the record in the file, from 1, for formats with several records on a line.
    """

    line: int
    field: str | None
    problem: Problem
    record: int | None = None

    @property
    def location(self) -> str:
        """Location of the problem for people: ``line 4``, or ``record 12 (line 4)``."""
        line = f"line {number(self.line)}"
        return line if self.record is None else f"record {number(self.record)} ({line})"

    @property
    def message(self) -> str:
        return f"{self.field or 'document'} {self.problem}"


@dataclass(slots=True)
class ImportOutcome:
    """Outcome of an import so far.

    Attributes:
        indexed: Number of documents written. An ID that occurs again in a later batch counts again.
        created: Number of written documents with new IDs.
        skipped: Number of skipped lines.
        problems: Problems of the first skipped lines.
    """

    indexed: int = 0
    created: int = 0
    skipped: int = 0
    problems: list[LineProblem] = field(default_factory=list)

    @property
    def updated(self) -> int:
        return self.indexed - self.created

    def skip(self, read: Read, problems: Iterable[tuple[str | None, Problem]]) -> None:
        """Record a skipped line."""
        self.skipped += 1
        unlisted = MAX_PROBLEMS - len(self.problems)
        self.problems.extend(
            LineProblem(read.line, name or None, problem, read.number)
            for name, problem in [*problems][: max(0, unlisted)]
        )


@dataclass(slots=True)
class FileImport:
    """One import of a file into a site.

    Attributes:
        limits: Limits of the plan.
        max_site_fields: Maximum number of distinct custom fields of a site.
        max_skipped: Maximum number of skipped lines before the import stops; ``None`` for no limit.
        outcome: Outcome so far, even if an error ends the import.
    """

    writer: DocumentWriter
    account_id: int
    limits: PlanLimits
    site_id: int
    max_site_fields: int
    max_skipped: int | None = None
    outcome: ImportOutcome = field(default_factory=ImportOutcome)
    _batch: dict[str, ValidDocument] = field(default_factory=dict)
    _reads: dict[str, Read] = field(default_factory=dict)
    _batch_bytes: int = 0

    def run(self, reads: Iterable[Read]) -> None:
        """Write all valid documents. If an ID occurs several times in a batch, the last document wins.

        Raises:
            ApiError: 404 for the site; 403 if it is paused or the plan's documents are exceeded; 400 for too many
                invalid lines.
            BackendUnavailable: The last batch is stored but may become searchable later.
            UnreadableFile: From ``reads``.
        """
        try:
            for read in reads:
                self._add(read)
            self._write()
        finally:
            # Documents with too many fields are reported only when their batch is written, after later lines.
            self.outcome.problems.sort(key=lambda each: (each.line, each.record or 0))

    def _add(self, read: Read) -> None:
        if isinstance(read, BadLine):
            self._skip(read, [(None, read.problem)])
            return
        try:
            document = read_document(read.value, read.line)
        except DocumentProblems as error:
            self._skip(read, error.problems)
            return
        # Removed first, so that the last document with an ID also takes its place in the order.
        self._batch.pop(document.id, None)
        self._batch[document.id] = document
        # Without the value, which the batch already contains in its final form.
        self._reads[document.id] = Record(read.line, None, read.number)
        self._batch_bytes += len(document.body)
        if len(self._batch) >= RECOMMENDED_BATCH or self._batch_bytes >= BATCH_BYTES:
            self._write()

    def _skip(self, read: Read, problems: Iterable[tuple[str | None, Problem]]) -> None:
        self.outcome.skip(read, problems)
        if self.max_skipped is not None and self.outcome.skipped > self.max_skipped:
            raise ApiError(
                ErrorCode.VALIDATION_FAILED,
                f"More than {counted(self.max_skipped, 'line')} cannot be imported; check the format. "
                f"The first one is {self.outcome.problems[0].location}: {self.outcome.problems[0].message}.",
            )

    def _write(self) -> None:
        while self._batch:
            documents = list(self._batch.values())
            try:
                written = self.writer.put(self.account_id, self.limits, self.site_id, documents)
            except TooManySiteFields as error:
                for rejected in error.rejected:
                    document = self._batch.pop(documents[rejected.index].id)
                    predicate = error.predicate(rejected, self.max_site_fields)
                    self._skip(self._reads[document.id], [(None, Problem(predicate, "too_many_fields"))])
            else:
                self.outcome.indexed += written.indexed
                self.outcome.created += written.created
                self._batch.clear()
                self._reads.clear()
                self._batch_bytes = 0


def progress_sentence(outcome: ImportOutcome) -> str:
    """Return a sentence about an interrupted import's progress, to append to the error; empty without progress."""
    if not outcome.indexed:
        return ""
    return (
        f" Before that, {counted(outcome.indexed, 'document')} of the file {'was' if outcome.indexed == 1 else 'were'} "
        f"indexed; importing the file again replaces {'it' if outcome.indexed == 1 else 'them'}."
    )
