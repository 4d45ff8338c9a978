"""Importing files as documents."""

from __future__ import annotations

from dataclasses import dataclass

from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.values import NotIndexed
from app.errors import ApiError, field_error
from app.importers.fields import read_column_map
from app.importers.formats import read_file
from app.importers.records import ByteStream, Record, UnreadableFile
from app.operations.attempts import count_attempt
from app.runtime import Runtime
from app.services import sites
from app.services.access.callers import Caller
from app.services.imports import FileImport, ImportOutcome
from app.services.usage.quota import read_pages_window


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
    """Import a file of documents, or a file that is one page.

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
    """Return the document for a file that is one page."""
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
        raise field_error("file", error.reason, f"cannot be read as a page: {error.message}") from error


def _unreadable(error: UnreadableFile) -> ApiError:
    return field_error(error.field, error.problem.code, str(error.problem))
