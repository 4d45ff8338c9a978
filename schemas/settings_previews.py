"""Effects of search settings: previews of unsaved settings, and the ranking learned from clicks."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from schemas.base import BodySchema
from schemas.documents import WarningSchema
from schemas.fields import ItemList, Text
from schemas.search import MAX_QUERY_BYTES
from schemas.search_settings import SearchSettingsSchema
from schemas.validation.problems import Problem

MAX_PREVIEWED_QUERIES = 50
MAX_PREVIEWED_BYTES = 4096


class LearnedDocumentSchema(Schema):
    """A document that moves up because of clicks."""

    id = fields.String(required=True)
    gain = fields.Float(
        required=True,
        metadata={
            "description": "Gain from its clicks, from 0 to 3 positions. The hit passes another if its gain is "
            "greater by at least the distance between them."
        },
    )


class LearnedQuerySchema(Schema):
    """A query whose results are reordered by clicks."""

    query = fields.String(required=True)
    documents = fields.List(
        fields.Nested(LearnedDocumentSchema),
        required=True,
        metadata={"description": "At most 20, largest gain first."},
    )


class LearnedClicksSchema(Schema):
    """The ranking changes learned from a site's clicks."""

    queries = fields.List(
        fields.Nested(LearnedQuerySchema), required=True, metadata={"description": "In alphabetical order."}
    )


class PreviewedQuery(Text):
    """A query to preview."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        query = super()._deserialize(value, attr, data, **kwargs)
        if not query.strip():
            raise ValidationError([Problem("must not be empty", "too_short")])
        return query


class SettingsPreviewSchema(BodySchema):
    """Unsaved search settings to preview."""

    settings = fields.Nested(SearchSettingsSchema, required=True)
    queries = ItemList(
        PreviewedQuery(max_bytes=MAX_QUERY_BYTES),
        low=1,
        high=MAX_PREVIEWED_QUERIES,
        metadata={
            "description": f"The queries to preview, at most {MAX_PREVIEWED_BYTES:,} bytes in total. Default: last "
            "week's 50 most frequent queries, up to that total."
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def _check_bytes(self, data: dict[str, Any], **kwargs: Any) -> None:
        if sum(len(query.encode()) for query in data.get("queries", ())) > MAX_PREVIEWED_BYTES:
            problem = Problem(f"can have at most {MAX_PREVIEWED_BYTES:,} bytes in total", "too_long")
            raise ValidationError({"queries": [problem]})


class PreviewedDocumentSchema(Schema):
    """A document found by a query."""

    id = fields.String(required=True)
    title = fields.String(required=True)


class QueryPreviewSchema(Schema):
    """The current and the future results of a query: at most ten documents each, best first."""

    query = fields.String(required=True)
    before = fields.List(fields.Nested(PreviewedDocumentSchema), required=True)
    after = fields.List(fields.Nested(PreviewedDocumentSchema), required=True)
    changed = fields.Boolean(required=True)


class SettingsPreviewAnswerSchema(Schema):
    """The changes that the settings would make. Nothing is saved."""

    queries = fields.List(fields.Nested(QueryPreviewSchema), required=True)
    warnings = fields.List(
        fields.Nested(WarningSchema),
        metadata={
            "description": "Pinned and hidden IDs of missing documents (`unknown_document`); queries whose preview "
            "does not include changed synonyms, which the search engine applies when they are saved "
            "(`preview_incomplete`); settings that the search engine does not support (`engine_limit`); with "
            "`semantic`, a missing embedder (`semantic_unavailable`) or the number of documents that have no vector "
            "yet (`vectors_missing`), which previewing computes."
        },
    )
