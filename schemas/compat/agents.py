"""Requests from AI agents: arguments of tools, and the page to return."""

from __future__ import annotations

from schemas.base import BodySchema, QuerySchema
from schemas.fields import Text, WholeNumber
from schemas.search import MAX_FILTER_LENGTH, MAX_QUERY_BYTES
from schemas.validation.documents import MAX_ID_LENGTH, MAX_URL_LENGTH

MAX_HITS = 10
MAX_VALUE_LENGTH = 500


class SearchArgumentsSchema(BodySchema):
    """Arguments of ``search``."""

    query = Text(required=True, trim=True, min_length=1, max_bytes=MAX_QUERY_BYTES)
    limit = WholeNumber(low=1, high=MAX_HITS, load_default=5)
    filters = Text(load_default="", trim=True, max_length=MAX_FILTER_LENGTH)
    section = Text(load_default="", trim=True, max_length=MAX_VALUE_LENGTH)


class FetchArgumentsSchema(BodySchema):
    """Arguments of ``fetch``: exactly one of ``id`` and ``url``."""

    id = Text(load_default=None, min_length=1, max_length=MAX_ID_LENGTH)
    url = Text(load_default=None, trim=True, min_length=1, max_length=MAX_URL_LENGTH)
    offset = WholeNumber(load_default=0)


class PageQuerySchema(QuerySchema):
    """The page to return as Markdown."""

    url = Text(
        required=True,
        trim=True,
        min_length=1,
        max_length=MAX_URL_LENGTH,
        metadata={"description": "The page's URL, absolute or as a path on the site."},
    )
