"""Reports of clicks on results."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema

from schemas.base import BodySchema, LenientBodySchema
from schemas.documents import Identifier
from schemas.fields import Flag, Text, WholeNumber
from schemas.search import MAX_SESSION_LENGTH, QueryText
from schemas.validation.documents import MAX_ANCHOR_LENGTH, MAX_ID_LENGTH
from schemas.validation.problems import Problem

MAX_QUERY_ID_LENGTH = 4096


class ClickSchema(LenientBodySchema):
    """A click on a result of a search, which is identified by its `query_id` or its text."""

    query_id = Text(
        load_default=None,
        allow_none=True,
        min_length=1,
        max_length=MAX_QUERY_ID_LENGTH,
        metadata={
            "description": "The `query_id` of the search, at most 24 hours old. It takes precedence over `query`."
        },
    )
    query = QueryText(
        load_default=None,
        allow_none=True,
        metadata={"description": "The query of the search; required without `query_id`."},
    )
    id = Identifier(
        required=True,
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"description": "The ID of the clicked document; an integer is read as a string."},
    )
    site_id = WholeNumber(
        low=1,
        load_default=None,
        allow_none=True,
        metadata={
            "description": "The hit's `site.id`, for hits of a collection. Default: the first site of the collection "
            "that has the document."
        },
    )
    position = WholeNumber(
        low=1,
        load_default=None,
        allow_none=True,
        metadata={"description": "Its position among all results, from 1."},
    )
    anchor = Text(
        load_default=None,
        allow_none=True,
        min_length=1,
        max_length=MAX_ANCHOR_LENGTH,
        metadata={"description": "The anchor of the section that the click led to, if any."},
    )
    session_id = Text(
        load_default=None,
        allow_none=True,
        max_length=MAX_SESSION_LENGTH,
        metadata={"description": "The visitor's session. Without `query_id`, it connects the clicks of one search."},
    )

    @validates_schema
    def _check_search(self, data: dict[str, Any], **kwargs: Any) -> None:
        if data.get("query_id") is None and data.get("query") is None:
            raise ValidationError({"query_id": [Problem("is required, or query is", "required")]})


class LearningSchema(BodySchema):
    """Whether clicks should affect the order of results."""

    learn = Flag(required=True)
