"""Results of searches: hits and why they match, effects of rules, counts, and warnings."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from backends.base import VARIANT_KINDS, Matched
from schemas.fields import RowNumber


class FormattedSectionSchema(Schema):
    """Title and text of a section, HTML-escaped and with matches in `<em>`."""

    title = fields.String(required=True)
    content = fields.String(required=True)


class SectionHitSchema(Schema):
    """A section of a page that matches the query."""

    anchor = fields.String(required=True, metadata={"description": "The fragment of its URL, without `#`."})
    title = fields.String(required=True)
    path = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "Titles of its enclosing sections, the outermost first."},
    )
    url = fields.String(required=True, metadata={"description": "The page's URL with the anchor."})
    formatted = fields.Nested(
        FormattedSectionSchema, data_key="_formatted", metadata={"description": "With `highlight` only."}
    )


class HitSections(fields.List[Any]):
    """Sections, or the value of a custom field with that name."""


class ExplainedClicksSchema(Schema):
    """The effect of clicks on a hit."""

    moved_up = fields.Integer(
        required=True, metadata={"description": "Number of positions moved up; negative for down."}
    )
    gain = fields.Float(
        required=True,
        metadata={
            "description": "Gain from its own clicks, from 0 to 3 positions. The hit passes another if its gain is "
            "greater by at least the distance between them."
        },
    )


class ExplainedWordSchema(Schema):
    """A match of a query word in a hit, once per field and word form."""

    word = fields.String(
        required=True, metadata={"description": "The word as typed, in lower case and without accents."}
    )
    variant = fields.String(required=True, metadata={"description": "The form in the document."})
    kind = fields.String(required=True, metadata={"enum": list(VARIANT_KINDS)})
    field = fields.String(required=True)


class SignalSchema(Schema):
    """A factor in a score."""

    name = fields.String(
        required=True,
        metadata={"description": "Name of the signal, such as `words`, `exact_title`, `recency`, or `rank`."},
    )
    share = fields.Float(required=True, metadata={"description": "A factor; `score` is the product of all factors."})


class ExplainedMeaningSchema(Schema):
    """Reasons for the position of a hit that was ranked by words and by meaning."""

    place_by_words = fields.Integer(
        required=True,
        metadata={"description": "The position by words alone, from 1, among the hits that are not pinned."},
    )
    cosine = fields.Float(
        required=True,
        allow_none=True,
        metadata={
            "description": "Cosine similarity of query and document; null while the document has no vector and is "
            "ranked with the average of the others."
        },
    )
    score = fields.Float(
        required=True,
        metadata={"description": "0.2 / (1 + log₂ position) + 0.8 · cosine: the first 100 hits are ordered by it."},
    )


class ExplanationSchema(Schema):
    """Reasons for a hit's position that the engine reports."""

    pinned = fields.Boolean(metadata={"description": "Whether the hit is pinned to its position."})
    score = fields.Float(
        allow_none=True,
        metadata={
            "description": "The score by words and ranks. Hits are ordered by it, except as explained by `pinned`, "
            "`meaning`, `clicks`, `preferred_over`, `has_phrase`, and `beyond_ranks`. Null for pinned hits and if "
            "hits are not ordered by relevance."
        },
    )
    relaxation = fields.String(
        metadata={"description": "How much of the query had to match: `all_terms`, `any_term`, …"}
    )
    words = fields.List(fields.Nested(ExplainedWordSchema))
    clicks = fields.Nested(
        ExplainedClicksSchema,
        metadata={"description": "Present if clicks on this hit or on other hits moved it."},
    )
    meaning = fields.Nested(
        ExplainedMeaningSchema, metadata={"description": "Present if hits were ranked by meaning as well as by words."}
    )
    preferred_over = fields.String(
        metadata={
            "description": "ID of the hit that it replaces: of the hits with this value of `distinct`, that one "
            "matches best, but the search settings prefer this one."
        }
    )
    has_phrase = fields.Boolean(
        metadata={
            "description": "Whether the hit contains the quoted words, if they are optional. Hits that contain them "
            "come before all others, regardless of their scores."
        }
    )
    beyond_ranks = fields.Boolean(
        metadata={
            "description": "Present if the hit is beyond those that ranks reorder; its own rank then has no effect."
        }
    )
    signals = fields.List(fields.Nested(SignalSchema))
    rank = fields.Float(metadata={"description": "The sum of all applicable ranks, limited to ±5."})
    engine = fields.Dict(metadata={"description": "The search server's own explanation of the hit."})
    limits = fields.String(metadata={"description": "Limits of this search engine regarding ranks and recency."})


class HitSchema(Schema):
    """A matching document, including its custom fields.

    Without `fields`, the five standard fields are always present; a field that the document lacks is empty.
    """

    class Meta:
        unknown = "include"

    id = fields.String(required=True)
    title = fields.String()
    url = fields.String()
    excerpt = fields.String()
    content = fields.String()
    author = fields.String()
    date = fields.String()
    sections = HitSections(
        fields.Nested(SectionHitSchema),
        metadata={
            "description": "With the parameter `sections`, the matching sections, best first; empty if the beginning "
            "of the page matches best. Otherwise, the document's own field of that name, if it has one.",
        },
    )
    site = fields.Raw(
        metadata={
            "description": 'In hits of a collection, the hit\'s site: `{"id": 7, "label": "Manual"}`. Otherwise, the '
            "document's own field of that name, if it has one."
        }
    )
    formatted = fields.Dict(
        data_key="_formatted",
        metadata={"description": "The same fields with matches in `<em>`, everything else HTML-escaped."},
    )
    explain = fields.Nested(ExplanationSchema, data_key="_explain", metadata={"description": "With `explain` only."})


class SearchNoticeSchema(Schema):
    """A notice of the site's owner, to show above the results as plain text."""

    text = fields.String(required=True)
    url = fields.String(metadata={"description": "Target of the notice: an http or https URL, or a path."})


class SearchLinkSchema(Schema):
    """A link to show if nothing was found."""

    text = fields.String(required=True)
    url = fields.String(required=True, metadata={"description": "An http or https URL, or a path."})


class AnswerSchema(Schema):
    """A passage that answers a question, quoted from a document."""

    text = fields.String(
        required=True, metadata={"description": "Whole sentences, at most 300 characters; plain text, not HTML."}
    )
    id = fields.String(required=True, metadata={"description": "The ID of the quoted document."})
    url = fields.String(required=True, metadata={"description": "The URL of the quoted document."})
    anchor = fields.String(required=True, metadata={"description": "Anchor of the quoted section; empty for none."})


class EffectsSchema(Schema):
    """Effects of a site's rules and settings on a search, apart from its hits. Members without a value are absent."""

    rules = fields.List(
        fields.String(), metadata={"description": "IDs of the rules that apply, in order; absent if none does."}
    )
    redirect = fields.String(
        metadata={"description": "URL or path that a rule redirects the visitor to, instead of showing results."}
    )
    notice = fields.Nested(SearchNoticeSchema)
    no_results_links = fields.List(
        fields.Nested(SearchLinkSchema),
        metadata={
            "description": "The links from the search settings, and popular pages if the settings allow them; present "
            "only if nothing was found."
        },
    )
    # Schemas have a member of the name ``partial``.
    unavailable_sites = fields.List(
        RowNumber(),
        data_key="partial",
        metadata={"description": "IDs of the sites of a collection whose engine did not respond in time."},
    )
    answer = fields.Nested(
        AnswerSchema,
        metadata={
            "description": "Present on the first page of results for a question, if the site shows answers and a "
            "passage of the first hit contains at least 70 % of its words by weight, not counting stop words."
        },
    )


class FacetStatsSchema(Schema):
    """Smallest and largest value of a numeric or date field; dates are in Unix seconds."""

    min = fields.Float(required=True)
    max = fields.Float(required=True)


class SearchWarningSchema(Schema):
    """A notice that is not an error."""

    code = fields.String(required=True, metadata={"enum": ["unknown_parameter"]})
    field = fields.String(required=True, metadata={"description": "Name of the unknown parameter."})
    did_you_mean = fields.String(metadata={"description": "Name of the parameter that was probably meant."})


class MatchedSchema(Schema):
    """The words of the query that the best documents contain, and the corrections."""

    matched = fields.String(
        required=True,
        metadata={
            "enum": [match.value for match in Matched],
            "description": "`all`: a document has every word. `some`: no document has every word. `corrected`: a "
            "document has every word, after words that occur in no document were replaced.",
        },
    )
    corrected_query = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "The corrected query; null unless `matched` is `corrected`."},
    )


class SearchResultsSchema(EffectsSchema, MatchedSchema):
    """One page of hits, best first."""

    hits = fields.List(fields.Nested(HitSchema), required=True)
    estimatedTotalHits = fields.Integer(
        required=True,
        metadata={"description": "Number of matches; with `distinct`, the number of groups, exact up to 1,000."},
    )
    processingTimeMs = fields.Integer(required=True)
    query = fields.String(required=True)
    query_id = fields.String(
        required=True, metadata={"description": "ID of the search, which clicks can refer to for 24 hours."}
    )
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)
    facetDistribution = fields.Dict(
        keys=fields.String(),
        values=fields.Dict(keys=fields.String(), values=fields.Integer()),
        metadata={"description": "Number of matches per value of each field; present if facets were requested."},
    )
    facetStats = fields.Dict(keys=fields.String(), values=fields.Nested(FacetStatsSchema))
    warnings = fields.List(
        fields.Nested(SearchWarningSchema),
        metadata={"description": "Unknown query parameters; absent if there are none."},
    )


class RemainingQuotaSchema(Schema):
    """Today's remaining searches."""

    daily_limit = fields.Integer(required=True)
    used_today = fields.Integer(required=True)
    unlimited = fields.Boolean(required=True)


class SearchAnswerSchema(Schema):
    """A search result."""

    results = fields.Nested(SearchResultsSchema, required=True)
    remaining_quota = fields.Nested(RemainingQuotaSchema, required=True)
