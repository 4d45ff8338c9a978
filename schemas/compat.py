"""Requests and responses of the APIs compatible with other search services: agents' tools, Algolia, Google."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from marshmallow import EXCLUDE, Schema, ValidationError, fields

from schemas.base import BodySchema, LenientBodySchema, QuerySchema
from schemas.fields import Text, WholeNumber
from schemas.gateway import MAX_NAMES, MAX_TAG_LENGTH, FilterField, Names
from schemas.search import MAX_FILTER_LENGTH, MAX_NAMES_LENGTH, MAX_QUERY_BYTES
from schemas.validation.documents import MAX_ID_LENGTH, MAX_URL_LENGTH
from schemas.validation.problems import Problem

MAX_TOOL_HITS = 10
MAX_VALUE_LENGTH = 500


class SearchArgumentsSchema(BodySchema):
    """Arguments of ``search``."""

    query = Text(required=True, trim=True, min_length=1, max_bytes=MAX_QUERY_BYTES)
    limit = WholeNumber(low=1, high=MAX_TOOL_HITS, load_default=5)
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


MAX_ALGOLIA_REQUESTS = 10
MAX_ALGOLIA_HITS = 100
MAX_ALGOLIA_PAGE = 100_000
MAX_ELLIPSIS_LENGTH = 20


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
    page = _Number(high=MAX_ALGOLIA_PAGE, load_default=0, metadata={"description": "Page number, from 0."})
    hitsPerPage = _Number(low=0, high=MAX_ALGOLIA_HITS, load_default=20)
    filters = Text(
        load_default="",
        max_length=MAX_FILTER_LENGTH,
        metadata={"description": "`lang:en AND (version:2.1 OR NOT price > 10)`."},
    )
    facetFilters = _Filters(load_default="")
    numericFilters = _Filters(load_default="")
    facets = _NamesOrText(load_default=list)
    attributesToRetrieve = _NamesOrText(
        load_default=lambda: ["*"],
        metadata={"description": "Fields of the hits; `*` for all, `-content` for all but one."},
    )
    attributesToHighlight = _NamesOrText(
        load_default=lambda: ["*"], metadata={"description": "Fields of `_highlightResult`; `*` for all texts."}
    )
    attributesToSnippet = _NamesOrText(
        load_default=list, metadata={"description": "Fields of `_snippetResult`, with their words: `content:20`."}
    )
    snippetEllipsisText = Text(load_default="…", max_length=MAX_ELLIPSIS_LENGTH)
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
    if not isinstance(requests, list) or not 1 <= len(requests) <= MAX_ALGOLIA_REQUESTS:
        problem = Problem(f"must be an array of 1 to {MAX_ALGOLIA_REQUESTS} searches", "type")
        raise ValidationError({"requests": [problem]})
    return requests


class AlgoliaHitSchema(Schema):
    """A page with its fields; or, for DocSearch, a section of a page with the titles above it in `hierarchy`."""

    class Meta:
        unknown = "include"

    objectID = fields.String(required=True)
    url = fields.String(metadata={"description": "Absolute URL."})
    title = fields.String()
    content = fields.String(allow_none=True)
    hierarchy = fields.Dict(
        metadata={"description": "`lvl0` to `lvl6`, as far as the page has that many levels. Only for DocSearch."}
    )
    highlightResult = fields.Dict(
        data_key="_highlightResult",
        metadata={"description": "Each text with its matches marked: `value`, `matchLevel`, and `matchedWords`."},
    )
    snippetResult = fields.Dict(
        data_key="_snippetResult", metadata={"description": "As `_highlightResult`, but cropped around the matches."}
    )


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
        required=True, metadata={"description": "ID of the search, which clicks can refer to for 24 hours."}
    )
    facets = fields.Dict(metadata={"description": "Number of matches per value of each field, if requested."})


class AlgoliaAnswersSchema(Schema):
    """The results of each search."""

    results = fields.List(fields.Nested(AlgoliaAnswerSchema), required=True)


class AlgoliaErrorSchema(Schema):
    """The body of every error of this API."""

    message = fields.String(required=True)
    status = fields.Integer(required=True)


MAX_GOOGLE_RESULTS = 100
"""Maximum number of results for a query, over all pages."""
_DATE_RESTRICT = re.compile(r"([dwmy])\[?([1-9][0-9]{0,3})\]?", re.ASCII)


class DateRestrict(fields.Field[tuple[str, int]]):
    """``d5``, ``w2``, ``m6``, or ``y1``: unit and number."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> tuple[str, int]:
        match = _DATE_RESTRICT.fullmatch(value)
        if match is None:
            raise ValidationError([Problem("must be d, w, m, or y followed by a number, such as d5", "invalid")])
        return match[1], int(match[2])


class _Absent(fields.Field[None]):
    """An unsupported parameter, which is rejected so that callers notice."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> None:
        if value:
            raise ValidationError([Problem("is not supported", "unsupported")])


def _words(description: str) -> Text:
    return Text(load_default="", max_bytes=MAX_QUERY_BYTES, trim=True, metadata={"description": description})


class CustomSearchQuerySchema(QuerySchema):
    """Parameters of Custom Search. Google's other parameters have no effect."""

    key = fields.String(required=True, metadata={"description": "A public or search key of the site."})
    q = _words("Search query.")
    cx = Text(load_default="", max_length=200, metadata={"description": "Any text; the key determines the site."})
    num = WholeNumber(low=1, high=10, load_default=10, metadata={"description": "Results per page."})
    start = WholeNumber(
        low=1, high=MAX_GOOGLE_RESULTS, load_default=1, metadata={"description": "Number of the first result, from 1."}
    )
    sort = Text(
        load_default="",
        max_length=MAX_NAMES_LENGTH,
        metadata={"description": "`date`, `date:a`, or a range, such as `date:r:20240101:20240630`."},
    )
    dateRestrict = DateRestrict(
        load_default=None,
        metadata={"type": "string", "description": "Only documents of the last days, weeks, months, or years: `d5`."},
    )
    fileType = Text(load_default="", max_length=100, metadata={"description": "Only files of this type: `pdf`."})
    siteSearch = Text(
        load_default="",
        max_length=255,
        metadata={"description": "Only pages of this host, or with this URL prefix: `example.com/docs`."},
    )
    siteSearchFilter = Text(
        load_default="i",
        choices=("i", "e"),
        metadata={"description": "Whether to include (`i`) or exclude (`e`) the pages that `siteSearch` selects."},
    )
    exactTerms = _words("A phrase that documents must contain.")
    excludeTerms = _words("A word or phrase that documents must not contain.")
    orTerms = _words("Words of which documents must contain at least one, as typed.")
    hq = _words("Additional words to search for.")
    lr = Text(
        load_default="",
        max_length=200,
        metadata={"description": "Only documents in this language: `lang_de`, or several: `lang_de|lang_fr`."},
    )
    alt = Text(load_default="json", choices=("json",))
    callback = _Absent(
        metadata={
            "type": "string",
            "description": "Not supported, and not needed: pages of any origin may call the API.",
        }
    )
    searchType = _Absent(metadata={"type": "string", "description": "Not supported."})


class _Listed(Schema):
    class Meta:
        unknown = "include"


class CustomSearchResultSchema(_Listed):
    """A matching document."""

    kind = fields.String(required=True, metadata={"enum": ["customsearch#result"]})
    title = fields.String(required=True)
    htmlTitle = fields.String(required=True, metadata={"description": "The title, HTML-escaped, matches in `<b>`."})
    link = fields.String(required=True, metadata={"description": "The page's absolute URL."})
    displayLink = fields.String(required=True, metadata={"description": "The page's host."})
    snippet = fields.String(required=True)
    htmlSnippet = fields.String(required=True, metadata={"description": "The snippet, matches in `<b>`."})
    formattedUrl = fields.String(required=True)
    htmlFormattedUrl = fields.String(required=True)
    mime = fields.String()
    fileFormat = fields.String()
    pagemap = fields.Dict(metadata={"description": "The document's custom fields as `metatags`, and its image."})


class CustomSearchPageSchema(_Listed):
    """A page of results, described by the parameters that request it."""

    title = fields.String(required=True)
    totalResults = fields.String(required=True)
    searchTerms = fields.String(required=True)
    count = fields.Integer(required=True)
    startIndex = fields.Integer(required=True)
    inputEncoding = fields.String(required=True)
    outputEncoding = fields.String(required=True)
    safe = fields.String(required=True)
    cx = fields.String(required=True)


class CustomSearchPagesSchema(Schema):
    """This page of results, and the previous and next pages, if any."""

    previousPage = fields.List(fields.Nested(CustomSearchPageSchema))
    request = fields.List(fields.Nested(CustomSearchPageSchema), required=True)
    nextPage = fields.List(fields.Nested(CustomSearchPageSchema))


class CustomSearchInformationSchema(Schema):
    """Search time and total number of results."""

    searchTime = fields.Float(required=True, metadata={"description": "Seconds."})
    formattedSearchTime = fields.String(required=True)
    totalResults = fields.String(required=True)
    formattedTotalResults = fields.String(required=True)


class CustomSearchTemplateSchema(Schema):
    """URL template of this API, in OpenSearch's format."""

    type = fields.String(required=True)
    template = fields.String(required=True)


class CustomSearchSpellingSchema(Schema):
    """The corrected query that was searched."""

    correctedQuery = fields.String(required=True)
    htmlCorrectedQuery = fields.String(required=True)


class CustomSearchAnswerSchema(Schema):
    """A page of results, best first."""

    kind = fields.String(required=True, metadata={"enum": ["customsearch#search"]})
    url = fields.Nested(CustomSearchTemplateSchema, required=True)
    queries = fields.Nested(CustomSearchPagesSchema, required=True)
    context = fields.Dict(required=True)
    searchInformation = fields.Nested(CustomSearchInformationSchema, required=True)
    spelling = fields.Nested(CustomSearchSpellingSchema)
    items = fields.List(
        fields.Nested(CustomSearchResultSchema), metadata={"description": "Absent if there are no results."}
    )


class CustomSearchProblemSchema(Schema):
    """A problem with a request."""

    message = fields.String(required=True)
    domain = fields.String(required=True)
    reason = fields.String(required=True)


class CustomSearchErrorDetailsSchema(_Listed):
    """An error in the format of Google's APIs."""

    code = fields.Integer(required=True, metadata={"description": "The HTTP status."})
    message = fields.String(required=True)
    errors = fields.List(fields.Nested(CustomSearchProblemSchema), required=True)
    status = fields.String(required=True)


class CustomSearchErrorSchema(Schema):
    """The body of every error of Custom Search."""

    error = fields.Nested(CustomSearchErrorDetailsSchema, required=True)
