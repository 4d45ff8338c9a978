"""Syncs of a source's documents."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields

from schemas.base import BodySchema, SuccessSchema
from schemas.fields import MAX_INT64, Flag, Instant, Text, WholeNumber
from schemas.validation.problems import Problem

CRAWLED_PREFIX = "src_"
"""Prefix of the IDs of crawled sources, which also serve as source names."""
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
