"""Documents, in batches and individually."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from marshmallow import INCLUDE, Schema, ValidationError, fields, validates_schema

from schemas.base import BodySchema, QuerySchema, SuccessSchema
from schemas.fields import MAX_INT64, Flag, Text, WholeNumber
from schemas.validation.documents import (
    MAX_BATCH,
    MAX_ID_LENGTH,
    MAX_URL_LENGTH,
    DocumentChange,
    DocumentProblems,
    ValidDocument,
    as_identifier,
    read_change,
    read_document,
)
from schemas.validation.problems import MAX_PROBLEMS, Problem, ProblemCount, printable_name

MAX_LISTED_IDS = 100
MAX_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Batch:
    """Valid documents with distinct IDs, and the number of documents sent."""

    documents: list[ValidDocument]
    sent_count: int


Read = TypeVar("Read", ValidDocument, DocumentChange)


def _read_all(raws: Any, read: Callable[[Any, int], Read]) -> Iterator[Read]:
    """Yield the validated members of a list, and report problems of all members, up to the maximum in a response.

    Raises:
        ValidationError: Raised at the end, or when validation stops.
    """
    if not isinstance(raws, list):
        raise ValidationError([Problem("must be a list of documents", "type")])
    if not raws:
        raise ValidationError([Problem("must contain at least one document", "too_short")])
    if len(raws) > MAX_BATCH:
        raise ValidationError([Problem(f"must contain at most {MAX_BATCH} documents", "batch_too_large")])
    errors: dict[Any, Any] = {}
    count = ProblemCount()
    for position, raw in enumerate(raws):
        try:
            yield read(raw, position)
        except DocumentProblems as problems:
            errors[position] = _located(problems, position, raw)
            count.add(errors[position])
            if count.is_full:
                break
    if errors:
        raise ValidationError(errors)


class DocumentsField(fields.Field[Batch]):
    """A batch of documents. If several have the same ID, the last one counts."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Batch:
        documents: dict[str, ValidDocument] = {}
        for document in _read_all(value, read_document):
            documents.pop(document.id, None)
            documents[document.id] = document
        return Batch(list(documents.values()), len(value))


class ChangesField(fields.Field[list[DocumentChange]]):
    """Changes of documents, in order."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[DocumentChange]:
        return list(_read_all(value, read_change))


def _located(error: DocumentProblems, position: int, raw: Any) -> dict[str, list[Problem]]:
    extra: dict[str, Any] = {"index": position}
    identifier = raw.get("id") if isinstance(raw, dict) else None
    if isinstance(identifier, str | int) and not isinstance(identifier, bool):
        extra["id"] = (
            printable_name(str(identifier)) if len(str(identifier)) > MAX_ID_LENGTH else _clean(str(identifier))
        )
    messages: dict[str, list[Problem]] = {}
    for name, problem in error.problems:
        messages.setdefault(name or "_schema", []).append(Problem(problem, problem.code, **extra))
    return messages


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


class DocumentSchema(Schema):
    """A document. Custom fields are stored, returned, and can be filtered and counted."""

    class Meta:
        unknown = INCLUDE

    id = fields.String(required=True, metadata={"minLength": 1, "maxLength": MAX_ID_LENGTH})
    title = fields.String(required=True)
    content = fields.String(required=True)
    url = fields.String(
        required=True,
        metadata={
            "minLength": 1,
            "maxLength": MAX_URL_LENGTH,
            "description": "An http or https URL, or a path that starts with one `/`.",
        },
    )
    excerpt = fields.String()
    author = fields.String()
    date = fields.String(metadata={"description": "ISO 8601 date or date-time."})


class BulkSchema(BodySchema):
    """A batch of documents to add or replace."""

    documents = DocumentsField(required=True)
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)


class SiteChoiceSchema(QuerySchema):
    """The parameter that selects one of the account's sites."""

    site_id = WholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site. Default: the key's site."},
    )


class BulkQuerySchema(SiteChoiceSchema):
    """Options of a batch."""

    sync = Text(
        load_default=None,
        max_length=MAX_NAME_LENGTH,
        metadata={"description": "The sync that these documents are part of; they belong to its source."},
    )
    format = Text(
        load_default="text",
        choices=("text", "html", "markdown"),
        metadata={
            "description": "Format of `title`, `content`, and `excerpt`. HTML and Markdown are converted to text."
        },
    )


class WarningSchema(Schema):
    """A notice that is not an error."""

    code = fields.String(required=True)
    message = fields.String(required=True)


class BulkAnswerSchema(SuccessSchema):
    """The batch is durable and searchable."""

    indexed = fields.Integer(required=True, metadata={"description": "Number of distinct IDs written."})
    created = fields.Integer(required=True)
    updated = fields.Integer(required=True)
    warnings = fields.List(fields.Nested(WarningSchema))


class Identifier(Text):
    """A document's ID; an integer is read as a string, as in bulk requests."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(as_identifier(value), attr, data, **kwargs)


class DestroySchema(BodySchema):
    """The document to remove."""

    id = Identifier(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"description": "The document's ID; an integer is read as a string. Required unless `?id=` is given."},
    )
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)


class DestroyQuerySchema(SiteChoiceSchema):
    """The document to remove as query parameters, for clients that cannot send a body with DELETE."""

    id = Text(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"description": "The document's ID, for clients that cannot send a body with DELETE."},
    )


class DestroyAnswerSchema(SuccessSchema):
    """The document is deleted."""

    deleted = fields.Integer(required=True)


class IdList(fields.List[str]):
    """IDs of documents."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str | None]:
        if not isinstance(value, list):
            raise ValidationError([Problem("must be a list of IDs", "type")])
        if not value:
            raise ValidationError([Problem("must contain at least one ID", "too_short")])
        if len(value) > MAX_BATCH:
            raise ValidationError([Problem(f"must contain at most {MAX_BATCH} IDs", "batch_too_large")])
        errors: dict[int, Any] = {}
        ids: list[str | None] = []
        for position, member in enumerate(value):
            try:
                ids.append(self.inner.deserialize(member))
            except ValidationError as error:
                errors[position] = error.messages
                if len(errors) > MAX_PROBLEMS:
                    break
        if errors:
            raise ValidationError(errors)
        return ids


class DocumentListQuerySchema(SiteChoiceSchema):
    """Parameters that select documents to list."""

    repeated = ("id",)

    limit = WholeNumber(
        low=1,
        high=1_000,
        load_default=20,
        metadata={"description": "Maximum number of documents per page. Ignored with `id` and for JSON lines."},
    )
    cursor = Text(
        load_default="",
        metadata={"description": "`next_cursor` of the previous page, with otherwise equal parameters."},
    )
    fields_ = Text(
        data_key="fields",
        attribute="fields",
        load_default="",
        metadata={"description": "Fields to return, separated by commas; unknown names are ignored. Default: all."},
    )
    filters = Text(
        load_default="",
        metadata={"description": "Filter in the portable syntax, which every engine supports: `section = visit`."},
    )
    source = Text(
        load_default="",
        max_length=MAX_NAME_LENGTH,
        metadata={"description": "Only documents of this source. `api` selects documents sent without a sync."},
    )
    id = fields.List(
        Text(min_length=1, max_length=MAX_ID_LENGTH),
        load_default=None,
        metadata={
            "maxItems": MAX_LISTED_IDS,
            "description": "Only these documents, if they exist; repeatable. Not with `cursor` or `filters`.",
        },
    )

    @validates_schema
    def _check_ids(self, data: dict[str, Any], **kwargs: Any) -> None:
        ids = data.get("id")
        if ids is None:
            return
        if len(ids) > MAX_LISTED_IDS:
            raise ValidationError([Problem(f"must not be repeated more than {MAX_LISTED_IDS} times", "too_long")], "id")
        for name in ("cursor", "filters"):
            if data.get(name, "").strip():
                raise ValidationError([Problem(f"cannot be combined with {name}", "conflict")], "id")


class ListedDocumentSchema(DocumentSchema):
    """A document, with its origin and the time of its last write."""

    _source = fields.String(
        required=True,
        metadata={"description": "Origin of the last write: `api`, a sync's source, or the ID of a crawled source."},
    )
    _updated_at = fields.DateTime(required=True, metadata={"description": "Time of the last write."})

    title = fields.String()
    content = fields.String()
    url = fields.String()


class DocumentListSchema(Schema):
    """Documents, last changed first."""

    documents = fields.List(fields.Nested(ListedDocumentSchema), required=True)
    total = fields.Integer(required=True, metadata={"description": "Number of documents when the first page was read."})
    next_cursor = fields.String(
        required=True, allow_none=True, metadata={"description": "Cursor of the next page; `null` on the last page."}
    )


class DocumentChangeSchema(Schema):
    """Fields of a document to replace. `null` removes a field."""

    class Meta:
        unknown = INCLUDE

    id = fields.String(required=True, metadata={"minLength": 1, "maxLength": MAX_ID_LENGTH})
    title = fields.String()
    content = fields.String()
    url = fields.String(metadata={"minLength": 1, "maxLength": MAX_URL_LENGTH})
    excerpt = fields.String(allow_none=True)
    author = fields.String(allow_none=True)
    date = fields.String(allow_none=True, metadata={"description": "ISO 8601 date or date-time."})


class ChangeDocumentsSchema(BodySchema):
    """Changes of documents."""

    documents = ChangesField(required=True)
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)


class ChangeAnswerSchema(SuccessSchema):
    """The changes are durable and searchable."""

    updated = fields.Integer(required=True, metadata={"description": "Number of distinct IDs changed."})


class DeleteDocumentsSchema(BodySchema):
    """The documents to remove: exactly one of `ids`, `filters`, and `all`."""

    ids = IdList(
        Identifier(min_length=1, max_length=MAX_ID_LENGTH),
        load_default=None,
        metadata={"minItems": 1, "maxItems": MAX_BATCH},
    )
    filters = Text(
        load_default=None,
        trim=True,
        min_length=1,
        metadata={"description": "Filter in the portable syntax, which every engine supports."},
    )
    all = Flag(load_default=None, metadata={"description": "`true` removes every document; it cannot be `false`."})
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)

    @validates_schema
    def _check_choice(self, data: dict[str, Any], **kwargs: Any) -> None:
        choices = [name for name in ("ids", "filters", "all") if data.get(name) is not None]
        if len(choices) != 1:
            raise ValidationError([Problem("must have exactly one of ids, filters, and all", "required")])
        if data.get("all") is False:
            raise ValidationError([Problem("must be true", "invalid_choice")], "all")


class DeleteAnswerSchema(SuccessSchema):
    """The documents are deleted."""

    deleted = fields.Integer(required=True, metadata={"description": "Number of deleted documents."})
