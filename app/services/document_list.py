"""A site's documents, most recently changed first, read page by page or all together.

Every change of a document raises its revision. The list is read from the highest revision down, so documents that
change meanwhile move to the part that was already read. No document is listed twice, and no unchanged document is
skipped.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

import orjson
from sqlalchemy.orm import Session

from app.clock import isoformat
from app.errors import ApiError, field_error
from app.models import API_SOURCE, Site
from app.models.base import from_microseconds
from app.services.indexing.stored_documents import (
    ListPosition,
    StoredBody,
    count_from,
    newest_rows,
    next_source,
    parts_by_size,
    read_bodies,
)
from app.services.search.budget import ResponseBudget
from app.services.search.search import rejected
from app.services.site_fields import kinds_of
from app.storage.database import Database
from backends.errors import BackendRejected
from backends.filters import parse_filter
from backends.matching import Predicate, compile_matching
from schemas.validation.documents import MAX_ID_LENGTH

MAX_SOURCES = 100

STEP = 500
"""Maximum number of rows read in one transaction."""

_INT64 = range(2**63)


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of documents.

    Attributes:
        source: Only documents of this source; ``None`` for all.
        ids: Only these documents; ``None`` for all.
        filters: Filter expression, ``""`` for none.
        matches: The same expression, compiled.
    """

    site_id: int
    source: str | None = None
    ids: Sequence[str] | None = None
    filters: str = ""
    matches: Predicate | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position at which a list continues.

    Attributes:
        total: Number of documents when the first page was read.
    """

    total: int
    position: ListPosition

    def encode(self, selection: Selection) -> str:
        """Return the cursor as text, valid for this selection only."""
        content = orjson.dumps([_digest(selection), self.total, self.position.revision, self.position.id])
        return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")

    @staticmethod
    def decode(text: str, selection: Selection) -> Cursor:
        """Return the cursor for ``text``.

        Raises:
            ApiError: 400 if the cursor is invalid or belongs to another list.
        """
        try:
            # Cursors are sent without base64 padding.
            padded = text + "=" * (-len(text) % 4)
            digest, total, revision, identifier = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        except (binascii.Error, ValueError, TypeError) as error:
            raise _bad_cursor() from error
        numbers = all(isinstance(value, int) and value in _INT64 for value in (total, revision))
        if not numbers or not isinstance(identifier, str) or len(identifier) > MAX_ID_LENGTH or "\x00" in identifier:
            raise _bad_cursor()
        if digest != _digest(selection):
            raise field_error("cursor", "conflict", "belongs to a list with another site, source, or filter")
        return Cursor(total, ListPosition(revision, identifier))


def _bad_cursor() -> ApiError:
    return field_error("cursor", "invalid", "is not a cursor; use next_cursor of the previous page")


def _digest(selection: Selection) -> str:
    content = orjson.dumps([selection.site_id, selection.source, selection.filters])
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class DocumentListPage:
    """A page of a list, without its documents.

    Attributes:
        total: Number of documents when the first page was read.
        next_cursor: Cursor of the next page; ``None`` on the last page.
    """

    total: int
    next_cursor: str | None


AddDocument = Callable[[StoredBody], bool]
"""Function that adds a document to a page. It returns ``False`` if the document does not fit."""


def select_documents(
    site: Site, *, source: str | None = None, ids: Sequence[str] | None = None, filters: str = ""
) -> Selection:
    """Select documents of a site.

    Raises:
        ApiError: 400 ``invalid_filter``.
    """
    filters = filters.strip()
    if not filters:
        return Selection(site.id, source, ids)
    try:
        return Selection(site.id, source, ids, filters, compile_matching(parse_filter(filters), kinds_of(site)))
    except BackendRejected as error:
        raise rejected(error) from error


def read_page(
    database: Database, site: Site, selection: Selection, cursor: Cursor | None, limit: int, add: AddDocument
) -> DocumentListPage:  # fmt: skip
    """Read one page of a list.

    Args:
        site: The site, freshly loaded.
        limit: Maximum number of documents on the page. Documents selected by ID are all on one page.
    """
    count = matched = 0
    last: ListPosition | None = None
    is_full = False
    limit = limit if selection.ids is None else len(selection.ids)
    counts_matches = cursor is None and (selection.matches is not None or selection.ids is not None)
    rows_at_once = STEP if selection.matches is not None else min(limit + 1, STEP)
    for document in walk(database, selection, None if cursor is None else cursor.position, rows_at_once):
        matched += 1
        is_full = is_full or count == limit or not add(document)
        if not is_full:
            count += 1
            last = ListPosition(document.revision, document.id)
        elif not counts_matches:
            break
    if cursor is None:
        cursor = Cursor(matched if counts_matches else _count(database, site, selection), ListPosition(0, ""))
    next_cursor = Cursor(cursor.total, last).encode(selection) if is_full and last is not None else None
    return DocumentListPage(cursor.total, next_cursor)


def encode_into(
    documents: list[bytes], budget: ResponseBudget, fields_to_return: Set[str] | None, *, may_end_early: bool
) -> AddDocument:  # fmt: skip
    """Return a function that adds documents to a response as JSON.

    Args:
        budget: Remaining size of the response.
        fields_to_return: Fields of the documents; ``None`` for all.
        may_end_early: Whether the page may end when the response is full; at least one document must fit.

    Raises:
        ApiError: 400 ``answer_too_large``, when the returned function is called.
    """

    def add(document: StoredBody) -> bool:
        encoded = encode(document, fields_to_return)
        if documents and may_end_early and not budget.fits(len(encoded)):
            return False
        budget.spend(len(encoded))
        documents.append(encoded)
        return True

    return add


def _count(database: Database, site: Site, selection: Selection) -> int:
    if selection.source is None:
        return site.document_count
    with database.read() as session:
        return count_from(session, selection.site_id, selection.source)


def walk(
    database: Database, selection: Selection, before: ListPosition | None = None, rows_at_once: int = STEP
) -> Iterator[StoredBody]:
    """Yield the documents of a selection, most recently changed first.

    The caller may consume them slowly: no transaction stays open meanwhile, and few bodies are in memory.
    """
    while True:
        with database.read() as session:
            rows = newest_rows(session, selection.site_id, selection.source, selection.ids, before, rows_at_once)
        revisions = {position.id: position.revision for position, _ in rows}
        for part in parts_by_size([(position.id, size) for position, size in rows]):
            with database.read() as session:
                documents = list(read_bodies(session, selection.site_id, part))
            for document in documents:
                # A document that changed since its row was read has moved in the list.
                is_there = document.revision == revisions[document.id]
                if is_there and (selection.matches is None or selection.matches(orjson.loads(document.body))):
                    yield document
        if len(rows) < rows_at_once:
            return
        before = rows[-1][0]


def walk_ids(database: Database, selection: Selection) -> Iterator[str]:
    """Yield the IDs of a selection. Without a filter, no body is read."""
    if selection.matches is not None:
        yield from (document.id for document in walk(database, selection))
        return
    before = None
    while True:
        with database.read() as session:
            rows = newest_rows(session, selection.site_id, selection.source, selection.ids, before, STEP)
        yield from (position.id for position, _ in rows)
        if len(rows) < STEP:
            return
        before = rows[-1][0]


def encode(document: StoredBody, fields_to_return: Set[str] | None = None) -> bytes:
    """Return a document as JSON, with its source and time of change. Decodes it only to select fields."""
    about = {"_source": document.origin.source, "_updated_at": _time_text(document.changed_at)}
    if fields_to_return is not None:
        fields = {name: value for name, value in orjson.loads(document.body).items() if name in fields_to_return}
        return orjson.dumps({**fields, **about})
    return document.body[:-1] + b"," + orjson.dumps(about)[1:]


@lru_cache(maxsize=16)
def _time_text(microseconds: int) -> str:
    """Format a time. Cached, because all documents of a batch have the same time."""
    return isoformat(from_microseconds(microseconds))


def list_source_names(session: Session, site_id: int) -> list[str]:
    """Return up to :data:`MAX_SOURCES` sources of a site's documents, ``api`` first."""
    names = [API_SOURCE]
    while len(names) < MAX_SOURCES:
        name = next_source(session, site_id, names[-1] if len(names) > 1 else "")
        if name is None:
            break
        names.append(name)
    return names
