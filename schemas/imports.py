"""Imports of files with documents."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import BodySchema, QuerySchema, SuccessSchema
from schemas.fields import Text

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
    """The format of the file, as a form field sent with the file."""

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
