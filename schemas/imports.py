"""Many documents at once: imports of files, and syncs, in which a client sends all documents of a source."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields

from schemas.base import BodySchema, QuerySchema, SuccessSchema
from schemas.fields import MAX_INT64, Flag, Instant, Text, WholeNumber
from schemas.validation.problems import Problem

FORMATS = {
    "wxr": "WordPress export (WXR)",
    "csv": "CSV",
    "jsonl": "JSON lines, or a JSON array",
    "algolia": "Algolia",
    "meilisearch": "Meilisearch",
    "typesense": "Typesense",
    "appsearch": "Elastic App Search",
    "file": "One page: PDF, Word, PowerPoint, Excel, OpenDocument, EPUB, HTML, Markdown, text",
}
"""Format name to its label for people."""
FORM_FORMATS = {**FORMATS, "docsearch": "Sources: a configuration of DocSearch’s scraper"}
"""Labels in the form, which also accepts configurations that become sources."""

MAX_MAP_LENGTH = 10_000
MAX_URL_LENGTH = 2_048


class ImportQuerySchema(QuerySchema):
    """The format of the file."""

    format = Text(
        required=True, choices=tuple(FORMATS), metadata={"description": "Format of the file.", "example": "jsonl"}
    )
    map = Text(
        load_default="",
        max_length=MAX_MAP_LENGTH,
        metadata={
            "description": "Columns that fill fields with other names, as `field=column`, separated by commas: "
            "`title=Headline,url=Link`. A column without a field, as in `=Notes`, is skipped. In JSON, a column is "
            "the path of a value: `author=author.name`.",
        },
    )

    url = Text(
        load_default="",
        max_length=MAX_URL_LENGTH,
        metadata={
            "description": "Required with `format=file`: the URL of the page that the file becomes, or its path on "
            "the site. Other formats ignore it.",
            "example": "/files/prices.pdf",
        },
    )


class ImportFormSchema(BodySchema):
    """The format of the file, as a form field beside the file."""

    format = Text(required=True, choices=tuple(FORM_FORMATS), metadata={"title": "Format"})
    map = Text(load_default="", max_length=MAX_MAP_LENGTH, metadata={"title": "Columns"})
    url = Text(load_default="", max_length=MAX_URL_LENGTH, metadata={"title": "Address"})


class LineProblemSchema(Schema):
    """The reason why a line was skipped."""

    line = fields.Integer(
        required=True, metadata={"description": "Line on which the document begins in the file, from 1."}
    )
    record = fields.Integer(
        metadata={
            "description": "The document's number in the file, from 1, if a line can contain several, as in an array."
        }
    )
    field = fields.String(
        required=True, allow_none=True, metadata={"description": "The invalid field; `null` for the line as a whole."}
    )
    code = fields.String(required=True)
    message = fields.String(required=True)


class ImportAnswerSchema(SuccessSchema):
    """The result of an import. The documents are durable and searchable."""

    indexed = fields.Integer(required=True, metadata={"description": "Number of documents written."})
    created = fields.Integer(required=True)
    updated = fields.Integer(required=True)
    skipped = fields.Integer(required=True, metadata={"description": "Number of skipped lines."})
    problems = fields.List(
        fields.Nested(LineProblemSchema),
        required=True,
        metadata={"description": "Problems of the skipped lines, at most 100."},
    )


CRAWLED_PREFIX = "src_"
"""Prefix of the ids of crawled sources, which also serve as source names."""

_NAME = re.compile(r"[a-z0-9_-]{1,64}", re.ASCII)


class SourceName(Text):
    """The name of a source whose documents a client sends."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        if not _NAME.fullmatch(name):
            raise ValidationError(
                [Problem("must have 1 to 64 lower-case letters, digits, underscores, and hyphens", "invalid")]
            )
        if name == "api" or name.startswith(CRAWLED_PREFIX):
            raise ValidationError(
                [Problem(f"must not be api or begin with {CRAWLED_PREFIX}; such names are reserved", "reserved")]
            )
        return name


class SyncBeginSchema(BodySchema):
    """The sync to start."""

    source = SourceName(
        required=True,
        metadata={
            "pattern": "^[a-z0-9_-]{1,64}$",
            "description": "Name of the documents' origin, which you choose. Not `api`, and not `src_…`.",
        },
    )
    replace = Flag(load_default=False, metadata={"description": "Whether a running sync of this source is abandoned."})
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)


class SyncFinishSchema(BodySchema):
    """A limit on the documents that a sync may remove."""

    max_removed_percent = WholeNumber(
        low=0,
        high=100,
        load_default=20,
        metadata={
            "description": "Maximum share of the source's documents that may be removed. Ten may always be removed."
        },
    )
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, load_default=None)


class SyncSchema(Schema):
    """A sync."""

    id = fields.String(required=True)
    source = fields.String(required=True)
    status = fields.String(required=True, metadata={"enum": ["running", "finished", "abandoned", "lapsed"]})
    seen = fields.Integer(required=True, metadata={"description": "Number of distinct documents seen so far."})
    removed = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "Number of documents removed so far; `null` before the sync is finished."},
    )
    started_at = Instant(required=True)
    ended_at = Instant(required=True, allow_none=True)


class SyncShowSchema(Schema):
    """A sync."""

    sync = fields.Nested(SyncSchema, required=True)


class SyncAnswerSchema(SuccessSchema):
    """The started sync."""

    sync = fields.Nested(SyncSchema, required=True)


class SyncFinishAnswerSchema(SuccessSchema):
    """The sync is finished."""

    removed = fields.Integer(required=True, metadata={"description": "Number of documents removed."})
