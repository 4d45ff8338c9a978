"""Requests of the gateway, Meilisearch's search API. Names are Meilisearch's."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, pre_load

from schemas.base import BodySchema, LenientBodySchema
from schemas.fields import Flag, Text, WholeNumber
from schemas.search import MAX_FILTER_LENGTH, MAX_QUERY_BYTES, MAX_SECTIONS_OF_HIT
from schemas.suggestions import DEFAULT_SUGGESTIONS, LIMIT_DESCRIPTION, MAX_SUGGESTIONS, PREFIX_DESCRIPTION
from schemas.validation.problems import Problem

MAX_QUERIES = 10
MAX_HITS = 101
"""Maximum number of hits per page. Search boxes request one more than they show, to detect another page."""

MAX_NAMES = 100
MAX_TAG_LENGTH = 200
_NAME_LENGTH = 200

FilterValue = str | list[str | list[str]]


class Names(fields.Field[list[str]]):
    """A list of strings.

    Args:
        alone: A string that is also accepted on its own, without a list.
    """

    default_error_messages = Text.default_error_messages

    def __init__(self, *, alone: str | None = None, **kwargs: Any):
        listed: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NAMES}
        shape = listed if alone is None else {"oneOf": [listed, {"const": alone}]}
        super().__init__(metadata={**shape, **kwargs.pop("metadata", {})}, **kwargs)
        self.alone = alone

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if self.alone is not None and value == self.alone:
            return [self.alone]
        if not isinstance(value, list):
            raise ValidationError([Problem("must be an array of strings", "type")])
        if len(value) > MAX_NAMES:
            raise ValidationError([Problem(f"must have at most {MAX_NAMES} members", "too_long")])
        text = Text(max_length=_NAME_LENGTH)
        return [str(text.deserialize(member)) for member in value]


class FilterField(fields.Field[FilterValue]):
    """An expression, or an array of expressions combined by AND; a nested array combines its members by OR."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> FilterValue:
        text = Text()
        if isinstance(value, str):
            filters: FilterValue = str(text.deserialize(value))
            length = len(filters)
        elif isinstance(value, list):
            filters = [
                [str(text.deserialize(inner)) for inner in member] if isinstance(member, list)
                else str(text.deserialize(member))
                for member in value
            ]  # fmt: skip
            length = sum(len(member) if isinstance(member, str) else sum(map(len, member)) for member in filters)
        else:
            raise ValidationError([Problem("must be a string or an array", "type")])
        if length > MAX_FILTER_LENGTH:
            raise ValidationError([Problem(f"must have at most {MAX_FILTER_LENGTH} characters", "too_long")])
        return filters


class _WithoutNulls:
    """A request in which ``null`` counts as absent."""

    @pre_load
    def _null_is_absent(self, data: Any, **kwargs: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class EngineSearchSchema(_WithoutNulls, BodySchema):
    """One search. With `page` or `hitsPerPage`, the response has page numbers; otherwise, `limit` and `offset`."""

    q = Text(
        load_default="",
        max_bytes=MAX_QUERY_BYTES,
        metadata={"description": "Search query; empty matches every document."},
    )
    limit = WholeNumber(high=MAX_HITS, load_default=20, metadata={"description": "Maximum number of hits."})
    offset = WholeNumber(load_default=0, metadata={"description": "Number of hits to skip."})
    page = WholeNumber(load_default=None, metadata={"description": "Page number, from 1."})
    hitsPerPage = WholeNumber(high=MAX_HITS, load_default=None, metadata={"description": "Hits per page."})
    filter = FilterField(load_default="")
    facets = Names(
        load_default=None, alone="*", metadata={"description": "Fields whose values to count, or `*` for all."}
    )
    sort = Names(load_default=[], metadata={"description": "Up to three of `field:asc` or `field:desc`."})
    attributesToRetrieve = Names(load_default=["*"], alone="*")
    attributesToHighlight = Names(load_default=[], alone="*")
    highlightPreTag = Text(load_default="<em>", max_length=MAX_TAG_LENGTH)
    highlightPostTag = Text(load_default="</em>", max_length=MAX_TAG_LENGTH)
    attributesToCrop = Names(
        load_default=[], alone="*", metadata={"description": "For example `content`, `content:20`, or `*`."}
    )
    cropLength = WholeNumber(
        load_default=10, metadata={"description": "Length of a crop in words; 0 disables cropping."}
    )
    cropMarker = Text(load_default="…", max_length=MAX_TAG_LENGTH)
    attributesToSearchOn = Names(load_default=[], alone="*")
    matchingStrategy = Text(
        load_default="last",
        choices=("last", "all"),
        metadata={
            "description": "`last`: documents with some words follow the others. `all`: only documents with all words."
        },
    )
    sections = WholeNumber(
        high=MAX_SECTIONS_OF_HIT,
        load_default=0,
        metadata={
            "description": "Maximum number of sections per hit: matching parts of its page. Not in Meilisearch's API."
        },
    )
    distinct = Text(
        load_default=None,
        max_length=_NAME_LENGTH,
        trim=True,
        metadata={
            "description": "Field by whose value hits are grouped; only the best hit of each value is returned. "
            "Default: the site's search settings; empty for none."
        },
    )
    showMatchesPosition = Flag(load_default=False)
    showRankingScore = Flag(
        load_default=False,
        metadata={"enum": [False], "description": "Must be false: ranking scores are not supported."},
    )


class EngineQuerySchema(EngineSearchSchema):
    """One of several searches."""

    indexUid = Text(required=True, max_length=_NAME_LENGTH)


class Queries(fields.Field[list[dict[str, Any]]]):
    """The queries of a multi-search."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list):
            raise ValidationError([Problem("must be an array", "type")])
        if len(value) > MAX_QUERIES:
            raise ValidationError([Problem(f"must have at most {MAX_QUERIES} members", "too_long")])
        schema = EngineQuerySchema()
        queries: list[dict[str, Any]] = []
        for position, member in enumerate(value):
            try:
                queries.append(schema.load(member))
            except ValidationError as error:
                raise ValidationError({position: error.messages}) from error
        return queries


class EngineMultiSearchSchema(_WithoutNulls, BodySchema):
    """Several searches, with results in the same order."""

    queries = Queries(required=True)


class EngineSuggestSchema(_WithoutNulls, BodySchema):
    """The text typed so far."""

    q = Text(load_default="", max_bytes=MAX_QUERY_BYTES, metadata={"description": PREFIX_DESCRIPTION})
    limit = WholeNumber(
        low=1, high=MAX_SUGGESTIONS, load_default=DEFAULT_SUGGESTIONS, metadata={"description": LIMIT_DESCRIPTION}
    )
    filter = FilterField(
        load_default="",
        metadata={"description": "Filter that documents with suggested titles must match, as in searches."},
    )


class EngineFacetSearchSchema(_WithoutNulls, LenientBodySchema):
    """A search among the values of one facet. Other fields of a search are ignored."""

    facetName = Text(required=True, max_length=_NAME_LENGTH)
    facetQuery = Text(
        load_default=None,
        max_bytes=MAX_QUERY_BYTES,
        metadata={"description": "Prefix of a word in the values. Default: the most frequent values."},
    )
    q = Text(load_default="", max_bytes=MAX_QUERY_BYTES)
    filter = FilterField(load_default="")
    attributesToSearchOn = Names(load_default=[], alone="*")
    matchingStrategy = Text(load_default="last", choices=("last", "all"))
