"""Documents, in batches and one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, fields

from schemas.base import BodySchema, QuerySchema
from schemas.fields import QueryWholeNumber, Text, WholeNumber
from schemas.search import MAX_INT64
from schemas.validation.documents import (
    MAX_BATCH,
    MAX_ID_LENGTH,
    MAX_URL_LENGTH,
    DocumentProblems,
    ValidDocument,
    as_identifier,
    read_document,
)
from schemas.validation.problems import Problem, ProblemCount, shown_name


@dataclass(frozen=True, slots=True)
class Batch:
    """Valid documents with distinct ids, and how many were sent."""

    documents: list[ValidDocument]
    sent_count: int


class DocumentsField(fields.Field[Batch]):
    """A batch of documents. The problems of all documents are reported, as many as an answer lists.

    Duplicates of an id: the last one wins.
    """

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Batch:
        if not isinstance(value, list):
            raise ValidationError([Problem("must be a list of documents", "type")])
        if not value:
            raise ValidationError([Problem("must contain at least one document", "too_short")])
        if len(value) > MAX_BATCH:
            raise ValidationError([Problem(f"must contain at most {MAX_BATCH} documents", "batch_too_large")])
        errors: dict[Any, Any] = {}
        count = ProblemCount()
        documents: dict[str, ValidDocument] = {}
        for position, raw in enumerate(value):
            try:
                document = read_document(raw, position)
            except DocumentProblems as problems:
                errors[position] = _located(problems, position, raw)
                count.add(errors[position])
                if count.is_full:
                    break
            else:
                documents.pop(document.id, None)
                documents[document.id] = document
        if errors:
            raise ValidationError(errors)
        return Batch(list(documents.values()), len(value))


def _located(error: DocumentProblems, position: int, raw: Any) -> dict[str, list[Problem]]:
    extra: dict[str, Any] = {"index": position}
    identifier = raw.get("id") if isinstance(raw, dict) else None
    if isinstance(identifier, str | int) and not isinstance(identifier, bool):
        extra["id"] = shown_name(str(identifier)) if len(str(identifier)) > MAX_ID_LENGTH else _clean(str(identifier))
    messages: dict[str, list[Problem]] = {}
    for name, problem in error.problems:
        messages.setdefault(name or "_schema", []).append(Problem(problem, problem.code, **extra))
    return messages


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


class DocumentSchema(Schema):
    """A document. Further fields are kept, returned, filterable and facetable."""

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
    """Which of the account's sites."""

    site_id = QueryWholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site. Default: the key's site."},
    )


class WarningSchema(Schema):
    """Something worth knowing that was no error."""

    code = fields.String(required=True)
    message = fields.String(required=True)


class BulkAnswerSchema(Schema):
    """The batch is durable and searchable."""

    success = fields.Boolean(required=True)
    indexed = fields.Integer(required=True, metadata={"description": "Number of distinct ids written."})
    created = fields.Integer(required=True)
    updated = fields.Integer(required=True)
    warnings = fields.List(fields.Nested(WarningSchema))


class Identifier(Text):
    """A document's id; an integer is taken as its string, as on bulk."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(as_identifier(value), attr, data, **kwargs)


class DestroySchema(BodySchema):
    """The document to remove."""

    id = Identifier(
        load_default=None,
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"description": "The document's id; an integer is read as a string. Required unless `?id=` is given."},
    )
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)


class DestroyQuerySchema(SiteChoiceSchema):
    """The same as query parameters, for clients that drop the body of a DELETE."""

    id = Text(
        load_default=None,
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"description": "The document's id, for clients that cannot send a body with DELETE."},
    )


class DestroyAnswerSchema(Schema):
    """The document is gone."""

    success = fields.Boolean(required=True)
    deleted = fields.Integer(required=True)
