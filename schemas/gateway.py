"""Requests, responses, and errors of the gateway, Meilisearch's search API. Names are Meilisearch's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
from marshmallow import Schema, ValidationError, fields

from schemas.base import BodySchema, LenientBodySchema
from schemas.fields import Flag, Number, Text, WholeNumber
from schemas.search import MAX_FILTER_LENGTH, MAX_QUERY_BYTES, MAX_SECTIONS_OF_HIT
from schemas.search_results import EffectsSchema, FacetStatsSchema, HitSchema, MatchedSchema
from schemas.suggestions import (
    DEFAULT_SUGGESTIONS,
    LIMIT_DESCRIPTION,
    MAX_SUGGESTIONS,
    PREFIX_DESCRIPTION,
    SuggestionSchema,
)
from schemas.validation.problems import UNKNOWN, Problem, walk

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


class EngineSearchSchema(BodySchema):
    """One search. With `page` or `hitsPerPage`, the response has page numbers; otherwise, `limit` and `offset`."""

    rejected_nulls = ()

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
    suggestions = WholeNumber(
        high=MAX_SUGGESTIONS,
        load_default=0,
        metadata={
            "description": "Maximum number of suggestions to return with the hits, as `/engine/suggest` does. Not in "
            "Meilisearch's API."
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


class FederationOptionsSchema(BodySchema):
    """Options of a query in a federated search."""

    rejected_nulls = ()

    weight = Number(low=0, high=1000, load_default=1.0, metadata={"description": "Factor for the scores of its hits."})


class EngineQuerySchema(EngineSearchSchema):
    """One of several searches."""

    indexUid = Text(required=True, max_length=_NAME_LENGTH)
    federationOptions = fields.Nested(FederationOptionsSchema, load_default=None)


class FacetsByIndex(fields.Field[dict[str, list[str]]]):
    """Names of facets, by index."""

    def __init__(self, **kwargs: Any):
        names = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NAMES}
        super().__init__(metadata={"type": "object", "additionalProperties": names}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, list[str]]:
        if not isinstance(value, dict):
            raise ValidationError([Problem("must be an object of arrays", "type")])
        if len(value) > MAX_QUERIES:
            raise ValidationError([Problem(f"must have at most {MAX_QUERIES} members", "too_long")])
        names = Names()
        return {str(index): names.deserialize(listed) or [] for index, listed in value.items() if listed is not None}


class MergeFacetsSchema(BodySchema):
    """How to return the facets of all indexes together."""

    rejected_nulls = ()

    maxValuesPerFacet = WholeNumber(low=1, high=100, load_default=100)


class FederationSchema(BodySchema):
    """Page and facets of a federated search."""

    rejected_nulls = ()

    limit = WholeNumber(high=MAX_HITS, load_default=20, metadata={"description": "Maximum number of hits."})
    offset = WholeNumber(load_default=0, metadata={"description": "Number of hits to skip."})
    facetsByIndex = FacetsByIndex(load_default={})
    mergeFacets = fields.Nested(
        MergeFacetsSchema,
        load_default=None,
        metadata={"description": "Return `facetDistribution` in place of `facetsByIndex`."},
    )


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


class EngineMultiSearchSchema(BodySchema):
    """Several searches, with results in the same order; or, with `federation`, one search with one list of hits."""

    rejected_nulls = ()

    queries = Queries(required=True)
    federation = fields.Nested(FederationSchema, load_default=None)


class EngineSuggestSchema(BodySchema):
    """The text typed so far."""

    rejected_nulls = ()

    q = Text(load_default="", max_bytes=MAX_QUERY_BYTES, metadata={"description": PREFIX_DESCRIPTION})
    limit = WholeNumber(
        low=1, high=MAX_SUGGESTIONS, load_default=DEFAULT_SUGGESTIONS, metadata={"description": LIMIT_DESCRIPTION}
    )
    filter = FilterField(
        load_default="",
        metadata={"description": "Filter that documents with suggested titles must match, as in searches."},
    )


class EngineFacetSearchSchema(LenientBodySchema):
    """A search among the values of one facet. Other fields of a search are ignored."""

    rejected_nulls = ()

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


_WHOLE = re.compile(r"-?[0-9]{1,20}", re.ASCII)


def read_query_string(schema: type[Schema], arguments: Mapping[str, str]) -> dict[str, Any]:
    """Convert a query string's parameters to JSON values; the schema rejects values that cannot be converted.

    Lists are names separated by commas; a filter may also be a JSON array.
    """
    known_names = schema._declared_fields
    return {name: _typed(known_names.get(name), text) for name, text in arguments.items()}


def _typed(field: Any, text: str) -> Any:
    if isinstance(field, WholeNumber):
        return int(text) if _WHOLE.fullmatch(text) else text
    if isinstance(field, Flag):
        return {"true": True, "false": False}.get(text, text)
    if isinstance(field, Names):
        return [part.strip() for part in text.split(",")] if text else []
    if isinstance(field, FilterField) and text.lstrip().startswith("["):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def query_parameters(schema: type[Schema]) -> list[dict[str, Any]]:
    """Return the query string's parameters for the OpenAPI document."""
    parameters = []
    for name, field in schema._declared_fields.items():
        shape: dict[str, Any] = {"type": "string"}
        description = field.metadata.get("description", "")
        if isinstance(field, WholeNumber):
            shape = {"type": "integer", "minimum": field.low, "maximum": field.high}
        elif isinstance(field, Flag):
            shape = {"type": "boolean", **{key: field.metadata[key] for key in ("enum",) if key in field.metadata}}
        elif isinstance(field, Names):
            description = f"{description} Separate names with commas.".strip()
        elif isinstance(field, FilterField):
            description = "An expression, or a JSON array of them."
        elif isinstance(field, Text):
            shape |= {key: field.metadata[key] for key in ("maxLength", "enum") if key in field.metadata}
        parameters.append(
            {"in": "query", "name": name, "schema": shape, **({"description": description} if description else {})}
        )
    return parameters


class EngineErrorSchema(Schema):
    """The body of every error below `/engine`."""

    message = fields.String(required=True)
    code = fields.String(required=True)
    type = fields.String(required=True, metadata={"enum": ["invalid_request", "auth", "internal", "system"]})
    link = fields.String(required=True)


class EngineHealthSchema(Schema):
    """The gateway is available."""

    status = fields.String(required=True, metadata={"enum": ["available"]})


class FederationDetailsSchema(Schema):
    """Origin of a hit of a federated search."""

    indexUid = fields.String(required=True)
    queriesPosition = fields.Integer(required=True)
    weightedRankingScore = fields.Float(
        required=True,
        metadata={"description": "From 0 to 1, times the query's weight."},
    )


class EngineHitSchema(HitSchema):
    """A matching document with the requested fields."""

    class Meta:
        unknown = "include"

    id = fields.String()
    title = fields.String()
    url = fields.String()
    excerpt = fields.String()
    content = fields.String()
    formatted = fields.Dict(
        data_key="_formatted",
        metadata={
            "description": "The fields as strings, matches highlighted, cropped as requested. **Not HTML-escaped.**"
        },
    )
    federation = fields.Nested(FederationDetailsSchema, data_key="_federation")
    matchesPosition = fields.Dict(
        data_key="_matchesPosition",
        metadata={"description": "Matches in each field: `start` and `length` in bytes, and `indices` for lists."},
    )


class EngineMetadataSchema(MatchedSchema):
    """Metadata of a search, if the request has the header `Meili-Include-Metadata: true`."""

    query = fields.String(required=True)
    queryUid = fields.String(
        required=True, metadata={"description": "ID of the search, which clicks can refer to for 24 hours."}
    )
    indexUid = fields.String(required=True)
    primaryKey = fields.String(required=True)


class EngineAnswerSchema(EffectsSchema):
    """Hits, best first, with `limit`, `offset`, and `estimatedTotalHits`, or with page numbers."""

    hits = fields.List(fields.Nested(EngineHitSchema), required=True)
    query = fields.String(required=True)
    processingTimeMs = fields.Integer(required=True)
    requestUid = fields.String(required=True)
    limit = fields.Integer()
    offset = fields.Integer()
    estimatedTotalHits = fields.Integer()
    page = fields.Integer()
    hitsPerPage = fields.Integer()
    totalPages = fields.Integer()
    totalHits = fields.Integer()
    facetDistribution = fields.Dict(
        keys=fields.String(), values=fields.Dict(keys=fields.String(), values=fields.Integer())
    )
    facetStats = fields.Dict(keys=fields.String(), values=fields.Nested(FacetStatsSchema))
    metadata = fields.Nested(EngineMetadataSchema)
    suggestions = fields.List(
        fields.Nested(SuggestionSchema),
        metadata={"description": "With `suggestions`; absent while they are unavailable."},
    )


class EngineQueryAnswerSchema(EngineAnswerSchema):
    """Hits, with the index they belong to."""

    indexUid = fields.String(required=True)


class FacetsOfIndexSchema(Schema):
    """Facets of one index."""

    distribution = fields.Dict(
        required=True, keys=fields.String(), values=fields.Dict(keys=fields.String(), values=fields.Integer())
    )
    stats = fields.Dict(required=True, keys=fields.String(), values=fields.Nested(FacetStatsSchema))


class EngineMultiAnswerSchema(EngineAnswerSchema):
    """The results of each query; or, with `federation`, one list of hits, each with `_federation`."""

    results = fields.List(fields.Nested(EngineQueryAnswerSchema))
    hits = fields.List(fields.Nested(EngineHitSchema))
    query = fields.String()
    processingTimeMs = fields.Integer()
    requestUid = fields.String()
    facetsByIndex = fields.Dict(keys=fields.String(), values=fields.Nested(FacetsOfIndexSchema))


class EngineFacetHitSchema(Schema):
    """A value and its number of matching documents."""

    value = fields.String(required=True)
    count = fields.Integer(required=True)


class EngineFacetAnswerSchema(Schema):
    """Values of the facet, by count, then value; at most 100."""

    facetHits = fields.List(fields.Nested(EngineFacetHitSchema), required=True)
    facetQuery = fields.String(required=True, allow_none=True)
    processingTimeMs = fields.Integer(required=True)


_OWN_CODES = {
    ("indexUid", "required"): "missing_index_uid",
    ("indexUid", ""): "invalid_index_uid",
    ("facetName", "required"): "missing_facet_search_facet_name",
    ("facetName", ""): "invalid_facet_search_facet_name",
    ("facetQuery", ""): "invalid_facet_search_facet_query",
    ("queries", ""): "bad_request",
    ("federation", ""): "bad_request",
    ("federation.limit", ""): "invalid_search_limit",
    ("federation.offset", ""): "invalid_search_offset",
    ("federation.facetsByIndex", ""): "invalid_multi_search_facets_by_index",
    ("federation.mergeFacets", ""): "invalid_multi_search_merge_facets",
    ("federation.mergeFacets.maxValuesPerFacet", ""): "invalid_multi_search_max_values_per_facet",
    ("federationOptions", ""): "bad_request",
    ("federationOptions.weight", ""): "invalid_multi_search_weight",
    ("", ""): "bad_request",
}
_PATH = re.compile(r"(?P<place>queries\[\d+\])?\.?(?P<field>[^.\[]*)(?P<rest>.*)", re.DOTALL)


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return Meilisearch's code and a message for the first problem."""
    path, problem = next(walk(error.messages))
    match = _PATH.fullmatch(path)
    prefix, field = ("", path) if match is None else (match["place"] or "", match["field"])
    within = f" inside `.{prefix}`" if prefix else ""
    if problem.code == "unknown":
        hint = problem.removeprefix(UNKNOWN)
        return "bad_request", f"Unknown field `{field[:100]}`{within}{hint or '.'}"
    keys = (field, problem.code), (field + ("" if match is None else match["rest"]), ""), (field, "")
    code = next((_OWN_CODES[key] for key in keys if key in _OWN_CODES), f"invalid_search_{_snake(field)}")
    if problem.code == "required":
        return code, f"Missing field `{field}`{within}."
    where = f" at `.{path}`" if path else ""
    return code, f"Invalid value{where}: it {problem}."


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
