"""Requests for searches."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from schemas.base import BodySchema, QuerySchema
from schemas.fields import MAX_INT64, Flag, Text, WholeNumber
from schemas.validation.problems import REQUIRED, Problem

MAX_QUERY_BYTES = 512
MAX_SESSION_LENGTH = 64
MAX_FILTER_LENGTH = 2000
MAX_NAMES_LENGTH = 2000
MAX_SECTIONS_OF_HIT = 5


class QueryText(Text):
    """The search text, as sent: at most 512 bytes and not blank."""

    def __init__(self, **kwargs: Any):
        kwargs.setdefault("metadata", {}).setdefault("minLength", 1)
        super().__init__(max_bytes=MAX_QUERY_BYTES, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not text.strip():
            raise ValidationError([REQUIRED])
        return text


class NamesOrList(Text):
    """A list of names, or names separated by commas. Lists are converted to comma-separated names."""

    def __init__(self, **kwargs: Any):
        super().__init__(max_length=MAX_NAMES_LENGTH, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if isinstance(value, list) and all(isinstance(member, str) for member in value):
            value = ",".join(value)
        if not isinstance(value, str):
            raise ValidationError([Problem("must be a string or a list of strings", "type")])
        return super()._deserialize(value, attr, data, **kwargs)


class SearchBodySchema(BodySchema):
    """The parameters of a search as a JSON body."""

    rejected_nulls = ("q",)

    q = QueryText(required=True, metadata={"description": "Search query; `*` matches every document."})
    site_id = WholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site to search. Default: the key's site."},
    )
    limit = WholeNumber(low=1, high=100, load_default=20, metadata={"description": "Results per page."})
    offset = WholeNumber(load_default=0, metadata={"description": "Number of results to skip."})
    page = WholeNumber(
        low=1, load_default=1, metadata={"description": "Page number; above 1 it takes precedence over `offset`."}
    )
    filters = Text(
        load_default="",
        max_length=MAX_FILTER_LENGTH,
        allow_none=True,
        metadata={
            "description": "Filter expression in the engine's syntax, such as `author = Ann AND date > 2024-01-01`."
        },
    )
    sort = NamesOrList(
        load_default="",
        metadata={"description": "Up to three fields, each with a direction: `date:desc,title:asc`."},
    )
    facets = NamesOrList(
        load_default="",
        metadata={"description": "Fields whose values to count: `author,category`, or `*` for all."},
    )
    fields_ = NamesOrList(
        data_key="fields",
        attribute="fields",
        load_default="",
        metadata={
            "description": "Fields of the hits: `title,url`. Default: all. `id` is always included; unknown names "
            "are ignored."
        },
    )
    highlight = Flag(load_default=False, metadata={"description": "Whether hits include `_formatted`."})
    session_id = Text(
        load_default=None,
        max_length=MAX_SESSION_LENGTH,
        metadata={"description": "The visitor's session. Keystrokes of one session are merged in analytics."},
    )
    sections = WholeNumber(
        high=MAX_SECTIONS_OF_HIT,
        load_default=0,
        metadata={"description": "Maximum number of sections per hit: parts of the page that match the query."},
    )
    distinct = Text(
        load_default=None,
        max_length=MAX_NAMES_LENGTH,
        trim=True,
        metadata={
            "description": "Field by whose value hits are grouped; only the best hit of each value is returned. "
            "Default: the site's search settings; empty for none."
        },
    )
    explain = Flag(
        load_default=False,
        metadata={"description": "Whether hits explain their position in `_explain`; not for search keys."},
    )


class SearchQuerySchema(QuerySchema, SearchBodySchema):  # type: ignore[misc]  # Both have a class Meta.
    """Parameters of a search in a query string."""
