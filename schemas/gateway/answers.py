"""Responses of the gateway. Names are Meilisearch's."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.search import EffectsSchema, FacetStatsSchema, HitSchema, MatchedSchema


class EngineErrorSchema(Schema):
    """The body of every error below `/engine`."""

    message = fields.String(required=True)
    code = fields.String(required=True)
    type = fields.String(required=True, metadata={"enum": ["invalid_request", "auth", "internal", "system"]})
    link = fields.String(required=True)


class EngineHealthSchema(Schema):
    """The gateway is available."""

    status = fields.String(required=True, metadata={"enum": ["available"]})


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
    matchesPosition = fields.Dict(
        data_key="_matchesPosition",
        metadata={"description": "Matches in each field: `start` and `length` in bytes, and `indices` for lists."},
    )


class EngineMetadataSchema(MatchedSchema):
    """Metadata of a search, if the request has the header `Meili-Include-Metadata: true`."""

    query = fields.String(required=True)
    queryUid = fields.String(
        required=True, metadata={"description": "The search's id, by which clicks refer to it for 24 hours."}
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


class EngineQueryAnswerSchema(EngineAnswerSchema):
    """Hits, with the index they belong to."""

    indexUid = fields.String(required=True)


class EngineMultiAnswerSchema(Schema):
    """The results of each query."""

    results = fields.List(fields.Nested(EngineQueryAnswerSchema), required=True)


class EngineFacetHitSchema(Schema):
    """A value and its number of matching documents."""

    value = fields.String(required=True)
    count = fields.Integer(required=True)


class EngineFacetAnswerSchema(Schema):
    """Values of the facet, by count, then value; at most 100."""

    facetHits = fields.List(fields.Nested(EngineFacetHitSchema), required=True)
    facetQuery = fields.String(required=True, allow_none=True)
    processingTimeMs = fields.Integer(required=True)
