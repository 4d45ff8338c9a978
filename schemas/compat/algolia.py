"""Algolia's search API: requests and responses. Names are Algolia's.

Source: https://www.algolia.com/doc/rest-api/search/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from marshmallow import EXCLUDE, Schema, ValidationError, fields

from schemas.base import LenientBodySchema
from schemas.fields import Text, WholeNumber
from schemas.gateway.searches import MAX_NAMES, MAX_TAG_LENGTH, FilterField, Names
from schemas.search import MAX_FILTER_LENGTH, MAX_QUERY_BYTES
from schemas.validation.problems import Problem

MAX_REQUESTS = 10
MAX_HITS = 100
MAX_PAGE = 100_000


class _NamesOrText(Names):
    """Names as a list, as a JSON array in a string, or separated by commas."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if isinstance(value, str):
            value = _listed(value, [name.strip() for name in value.split(",") if name.strip()])
        return super()._deserialize(value, attr, data, **kwargs)


class _Filters(FilterField):
    """A filter expression, or an array of expressions, which may be JSON in a string."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return super()._deserialize(_listed(value, value), attr, data, **kwargs)


class _Number(WholeNumber):
    """An integer, which may be a string."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:20])
        return super()._deserialize(value, attr, data, **kwargs)


def _listed(value: Any, otherwise: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return otherwise
    return otherwise


class AlgoliaQuerySchema(LenientBodySchema):
    """Parameters of a search, as members or as a query string in `params`. Unknown parameters have no effect."""

    params = Text(
        load_default="", metadata={"description": "All parameters as a query string, as older clients send them."}
    )
    query = Text(load_default="", max_bytes=MAX_QUERY_BYTES, metadata={"description": "Search query."})
    page = _Number(high=MAX_PAGE, load_default=0, metadata={"description": "Page number, from 0."})
    hitsPerPage = _Number(low=0, high=MAX_HITS, load_default=20)
    filters = Text(
        load_default="",
        max_length=MAX_FILTER_LENGTH,
        metadata={"description": "`lang:en AND (version:2.1 OR NOT price > 10)`."},
    )
    facetFilters = _Filters(load_default="")
    numericFilters = _Filters(load_default="")
    facets = _NamesOrText(load_default=list)
    attributesToRetrieve = _NamesOrText(load_default=list)
    highlightPreTag = Text(load_default="<em>", max_length=MAX_TAG_LENGTH)
    highlightPostTag = Text(load_default="</em>", max_length=MAX_TAG_LENGTH)

    def load_query(self, raw: Any) -> dict[str, Any]:
        """Return the validated parameters of one search.

        Raises:
            ValidationError: ``raw`` is not an object, or a parameter is invalid.
        """
        if isinstance(raw, Mapping) and isinstance(raw.get("params"), str):
            raw = {**raw, **dict(parse_qsl(raw["params"], keep_blank_values=True, max_num_fields=MAX_NAMES))}
        if isinstance(raw, Mapping):
            raw = {name: value for name, value in raw.items() if value is not None}
        loaded: dict[str, Any] = self.load(raw, unknown=EXCLUDE)
        return loaded


class AlgoliaRequestSchema(AlgoliaQuerySchema):
    """One of several searches."""

    indexName = fields.String(required=True, metadata={"description": "Any name; the key determines the site."})


class AlgoliaRequestsSchema(LenientBodySchema):
    """Up to ten searches."""

    requests = fields.List(fields.Nested(AlgoliaRequestSchema), required=True)


def read_requests(body: Any) -> list[Any]:
    """Return the searches of a multi-search request.

    Raises:
        ValidationError: The list of searches is missing, too long, or empty.
    """
    requests = body.get("requests") if isinstance(body, Mapping) else None
    if not isinstance(requests, list) or not 1 <= len(requests) <= MAX_REQUESTS:
        raise ValidationError({"requests": [Problem(f"must be an array of 1 to {MAX_REQUESTS} searches", "type")]})
    return requests


class AlgoliaMarkedSchema(Schema):
    """A value of a hit with its matches marked and other text HTML-escaped."""

    value = fields.String(required=True)
    matchLevel = fields.String(required=True, metadata={"enum": ["none", "full"]})
    matchedWords = fields.List(fields.String(), required=True)


class AlgoliaMarkedHitSchema(Schema):
    """Title, titles above it, and text of a hit, with matches marked."""

    hierarchy = fields.Dict(keys=fields.String(), values=fields.Nested(AlgoliaMarkedSchema), required=True)
    content = fields.Nested(AlgoliaMarkedSchema)


class AlgoliaHitSchema(Schema):
    """A section of a page, or a page; includes the document's custom fields."""

    class Meta:
        unknown = "include"

    objectID = fields.String(required=True)
    url = fields.String(required=True)
    url_without_anchor = fields.String(required=True)
    anchor = fields.String(required=True, allow_none=True)
    type = fields.String(required=True, metadata={"enum": [*(f"lvl{level}" for level in range(1, 7)), "content"]})
    content = fields.String(required=True, allow_none=True)
    hierarchy = fields.Dict(
        required=True, metadata={"description": "`lvl0` to `lvl6`, as far as the page has that many levels."}
    )
    highlightResult = fields.Nested(AlgoliaMarkedHitSchema, required=True, data_key="_highlightResult")
    snippetResult = fields.Nested(AlgoliaMarkedHitSchema, required=True, data_key="_snippetResult")


class AlgoliaAnswerSchema(Schema):
    """Hits, best first."""

    hits = fields.List(fields.Nested(AlgoliaHitSchema), required=True)
    nbHits = fields.Integer(required=True, metadata={"description": "Number of matching pages."})
    page = fields.Integer(required=True)
    nbPages = fields.Integer(required=True)
    hitsPerPage = fields.Integer(required=True)
    exhaustiveNbHits = fields.Boolean(required=True)
    processingTimeMS = fields.Integer(required=True)
    query = fields.String(required=True)
    params = fields.String(required=True)
    index = fields.String(required=True)
    queryID = fields.String(
        required=True, metadata={"description": "The search's id, by which clicks refer to it for 24 hours."}
    )
    facets = fields.Dict(metadata={"description": "Number of matches per value of each field, if requested."})


class AlgoliaAnswersSchema(Schema):
    """The results of each search."""

    results = fields.List(fields.Nested(AlgoliaAnswerSchema), required=True)


class AlgoliaErrorSchema(Schema):
    """The body of every error of this API."""

    message = fields.String(required=True)
    status = fields.Integer(required=True)
