"""Google's Custom Search JSON API: requests and responses. Names are Google's.

Source: https://developers.google.com/custom-search/v1/reference/rest/v1/cse/list
"""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields

from schemas.base import QuerySchema
from schemas.fields import QueryWholeNumber, Text
from schemas.search import MAX_NAMES_LENGTH, MAX_QUERY_BYTES
from schemas.validation.problems import Problem

MAX_RESULTS = 100
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
    num = QueryWholeNumber(low=1, high=10, load_default=10, metadata={"description": "Results per page."})
    start = QueryWholeNumber(
        low=1, high=MAX_RESULTS, load_default=1, metadata={"description": "Number of the first result, from 1."}
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
    pagemap = fields.Dict(metadata={"description": "The document's further fields as `metatags`, and its image."})


class CustomSearchPageSchema(_Listed):
    """A page of results, with the parameters that request it."""

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
    """This page of results, and the previous and next ones, if any."""

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
