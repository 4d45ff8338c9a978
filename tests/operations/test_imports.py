"""File imports: batches, and skipped lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from app.importers.records import BadLine, Read, Record
from app.operations import imports
from app.operations.imports import FileImport, ImportOutcome, LineProblem, progress_sentence
from app.plans import PlanLimits
from app.services.indexing.documents import BulkOutcome, DocumentWriter
from app.services.site_fields import TooManySiteFields, find_rejected
from schemas.validation.documents import ValidDocument
from schemas.validation.problems import Problem
from tests.callers import page

MAX_SITE_FIELDS = 2


class Writer:
    """Accepts batches, and limits the fields of a site as the real writer does."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.known: dict[str, ValidDocument] = {}

    def put(self, _account: int, _limits: PlanLimits, _site: int, documents: Sequence[ValidDocument]) -> BulkOutcome:
        names = {name for document in self.known.values() for name in document.kinds}
        rejected = find_rejected(documents, names, MAX_SITE_FIELDS)
        if rejected:
            raise TooManySiteFields(documents, rejected, MAX_SITE_FIELDS)
        self.batches.append([document.id for document in documents])
        created = sum(document.id not in self.known for document in documents)
        self.known |= {document.id: document for document in documents}
        return BulkOutcome(len(documents), created)


@pytest.fixture
def writer() -> Writer:
    return Writer()


def run(writer: Writer, *reads: Read) -> ImportOutcome:
    limits = cast(PlanLimits, None)
    job = FileImport(cast(DocumentWriter, writer), 1, limits, 1, MAX_SITE_FIELDS)
    job.run(reads)
    return job.outcome


def record(line: int, **fields: Any) -> Record:
    return Record(line, {**page(line), **fields})


def test_documents_are_imported_in_batches_of_a_thousand(writer: Writer) -> None:
    outcome = run(writer, *(record(line) for line in range(1, 2501)))

    assert [len(batch) for batch in writer.batches] == [1000, 1000, 500]
    assert (outcome.indexed, outcome.created, outcome.updated, outcome.skipped) == (2500, 2500, 0, 0)


def test_large_documents_are_imported_in_smaller_batches(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "BATCH_BYTES", 2500)

    run(writer, *(record(line, content="x" * 1000) for line in range(1, 6)))

    assert [len(batch) for batch in writer.batches] == [3, 2]


def test_repeated_id_replaces_the_pending_document_or_updates_the_stored_one(writer: Writer) -> None:
    waiting = run(writer, record(1, id="a"), record(2, id="b"), record(3, id="a"))
    again = run(writer, record(1, id="a"))

    assert writer.batches == [["b", "a"], ["a"]]
    assert (waiting.indexed, waiting.created) == (2, 2)
    assert (again.indexed, again.created, again.updated) == (1, 0, 1)


def test_skipped_lines_are_reported_in_order(writer: Writer) -> None:
    outcome = run(
        writer,
        record(1, one=1),
        record(2, two=2, three=3),
        Record(3, {"id": "x"}),
        BadLine(4, Problem("is not valid JSON", "invalid_json")),
        record(5, two=2),
    )

    assert writer.batches == [["page-1", "page-5"]]
    assert (outcome.indexed, outcome.skipped) == (2, 3)
    told = [(found.line, found.field, found.problem.code, found.message) for found in outcome.problems]
    assert told == [
        (2, None, "too_many_fields",
         "document has the new field 'three', but a site can have at most 2 distinct custom fields"),
        (3, "title", "required", "title is required"),
        (3, "content", "required", "content is required"),
        (3, "url", "required", "url is required"),
        (4, None, "invalid_json", "document is not valid JSON"),
    ]  # fmt: skip


def test_import_without_valid_documents_writes_nothing(writer: Writer) -> None:
    outcome = run(writer, Record(1, 5), record(2, one=1, two=2, three=3))

    assert writer.batches == []
    assert (outcome.indexed, outcome.skipped) == (0, 2)


def test_progress_message_states_the_documents_indexed_before_an_error() -> None:
    assert progress_sentence(ImportOutcome()) == ""
    assert progress_sentence(ImportOutcome(indexed=1)) == (
        " Before that, 1 document of the file was indexed; importing the file again replaces it."
    )
    assert " 1,200 documents of the file were indexed; importing" in progress_sentence(ImportOutcome(indexed=1200))


def test_problem_without_a_field_refers_to_the_document() -> None:
    assert LineProblem(3, None, Problem("is wrong", "x")).message == "document is wrong"
