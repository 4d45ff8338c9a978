"""A site's search settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from backends.analysis.normalization import terms_of
from backends.filters import count_values, parse_filter
from backends.languages import LANGUAGES
from backends.standard_fields import TEXT_FIELDS
from schemas.base import BodySchema
from schemas.documents import WarningSchema
from schemas.fields import FieldName, Flag, ItemList, NormalText, Number, Text, WholeNumber, check_stars
from schemas.search import MAX_QUERY_BYTES
from schemas.search_rules import MAX_BOOSTS, MAX_LINKS, BoostSchema, LinkSchema, RecencySchema, Rules
from schemas.validation.problems import Problem

MAX_GROUPS = 500
MAX_GROUP_WORDS = 50
MAX_SYNONYMS = 10_000
MAX_RULE_WORDS = 1_000
MAX_RULE_DOCUMENTS = 1_000
MAX_FILTER_VALUES = 500
MAX_STOP_WORDS = 1000
MAX_WORD_LENGTH = 100
MAX_PINNED_QUERIES = 500
MAX_PINNED_IDS = 50
MAX_HIDDEN_SUGGESTIONS = 500
MAX_PREFERRED_LENGTH = 100
MAX_WEIGHT = 10.0
MAX_INSTRUCTIONS_LENGTH = 500
MAX_POPULAR_LINKS = 5
WEIGHTED_FIELDS = TEXT_FIELDS


class HiddenSuggestion(NormalText):
    """A pattern of suggestions to hide, in normal form; ``*`` matches any text."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        check_stars(text)
        return text


def _word(**options: Any) -> Text:
    return Text(min_length=1, max_length=MAX_WORD_LENGTH, trim=True, **options)


class OneWaySynonymsSchema(BodySchema):
    """One-way synonyms: a search for one word or phrase also finds the others, but not vice versa."""

    from_ = _word(data_key="from", attribute="from", required=True, metadata={"description": "The word in the query."})
    to = ItemList(
        _word(),
        low=1,
        high=MAX_GROUP_WORDS,
        required=True,
        metadata={"description": "Words that the search also finds."},
    )


class SynonymsEntry(fields.Field[Any]):
    """A list of words or phrases that mean the same, or a JSON object for one-way synonyms."""

    default_error_messages = Text.default_error_messages
    group = ItemList(_word(), low=2, high=MAX_GROUP_WORDS)
    one_way = fields.Nested(OneWaySynonymsSchema)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, dict):
            return self.one_way.deserialize(value)
        if isinstance(value, list):
            return self.group.deserialize(value)
        raise ValidationError([Problem("must be a list or a JSON object", "type")])


def _words_in(synonyms: Iterable[Any]) -> int:
    """Return the number of words and phrases in entries of synonyms."""
    return sum(1 + len(entry["to"]) if isinstance(entry, dict) else len(entry) for entry in synonyms)


class PinnedSchema(BodySchema):
    """Documents to pin to the top of a query's results."""

    query = NormalText(required=True, max_bytes=MAX_QUERY_BYTES)
    ids = ItemList(Text(min_length=1, max_length=512), low=1, high=MAX_PINNED_IDS, required=True)


class HiddenSchema(PinnedSchema):
    """Documents to exclude from a query's results."""


class WeightsSchema(BodySchema):
    """Weight of each field; 1 when absent."""

    title = Number(low=0, high=MAX_WEIGHT)
    excerpt = Number(low=0, high=MAX_WEIGHT)
    content = Number(low=0, high=MAX_WEIGHT)


class PreferredSchema(BodySchema):
    """Rule for choosing the hit of each `distinct` value."""

    field = FieldName(required=True, metadata={"description": "The field that decides."})
    value = Text(
        required=True,
        trim=True,
        min_length=1,
        max_length=MAX_PREFERRED_LENGTH,
        metadata={"description": "Required value; `latest` selects the highest version among these hits."},
    )


class SearchSettingsSchema(BodySchema):
    """A site's search settings. PUT replaces all of them; absent fields get their defaults."""

    language = Text(
        load_default=None,
        allow_none=True,
        choices=tuple(sorted(LANGUAGES)),
        metadata={"title": "Language", "description": "ISO 639-1 code; null detects the language of each document."},
    )
    synonyms = ItemList(
        SynonymsEntry(),
        high=MAX_GROUPS,
        load_default=list,
        metadata={
            "title": "Synonyms",
            "description": "Groups of words or phrases that mean the same, and one-way synonyms; at most "
            f"{MAX_SYNONYMS:,} words and phrases in all.",
        },
    )
    stop_words = ItemList(
        _word(),
        high=MAX_STOP_WORDS,
        load_default=None,
        allow_none=True,
        metadata={"title": "Stop words", "description": "Words that need not match; null uses the language's list."},
    )
    pinned = ItemList(
        fields.Nested(PinnedSchema),
        high=MAX_PINNED_QUERIES,
        load_default=list,
        metadata={"title": "Pinned results", "description": "Documents to show first for a query, in order."},
    )
    hidden = ItemList(
        fields.Nested(HiddenSchema),
        high=MAX_PINNED_QUERIES,
        load_default=list,
        metadata={"title": "Hidden results", "description": "Documents to exclude for a query, even if pinned."},
    )
    weights = fields.Nested(
        WeightsSchema,
        load_default=dict,
        metadata={"title": "Field weights"},
    )
    suggestions_hidden = ItemList(
        HiddenSuggestion(max_bytes=MAX_QUERY_BYTES),
        high=MAX_HIDDEN_SUGGESTIONS,
        load_default=list,
        metadata={
            "title": "Hidden suggestions",
            "description": "Texts that are never suggested; `*` matches any text. Kept in normal form.",
        },
    )
    distinct = FieldName(
        load_default=None,
        allow_none=True,
        metadata={
            "title": "Group results by",
            "description": "Field by which hits are grouped unless a search sets another: only the best hit of each "
            "value is returned. Null for none.",
        },
    )
    preferred = fields.Nested(
        PreferredSchema,
        load_default=None,
        allow_none=True,
        metadata={
            "title": "Preferred results",
            "description": "Rule for choosing the hit of each `distinct` value; null for the best hit.",
        },
    )
    rules = Rules(
        load_default=list,
        metadata={
            "title": "Rules",
            "description": "Actions for certain searches. All matching rules apply, in order. Together they have at "
            f"most {MAX_RULE_WORDS:,} words to match with `words`, {MAX_RULE_DOCUMENTS:,} documents to pin and hide, "
            f"and, with `boosts`, {MAX_FILTER_VALUES:,} values in filters.",
        },
    )
    boosts = ItemList(
        fields.Nested(BoostSchema),
        high=MAX_BOOSTS,
        load_default=list,
        metadata={"title": "Ranks", "description": "Documents that move up or down in every search."},
    )
    rank_field = FieldName(
        load_default=None,
        allow_none=True,
        metadata={
            "title": "Field with ranks",
            "description": "Field with each document's own rank, from -5 to 5; null for none.",
        },
    )
    recency = fields.Nested(
        RecencySchema,
        load_default=None,
        allow_none=True,
        metadata={
            "title": "Recency",
            "description": "How strongly newer documents are preferred; null for a slight preference by `date`.",
        },
    )
    no_results_links = ItemList(
        fields.Nested(LinkSchema),
        high=MAX_LINKS,
        load_default=list,
        metadata={
            "title": "Links for searches without results",
            "description": "Links in the responses to searches without a hit.",
        },
    )

    no_results_popular = WholeNumber(
        high=MAX_POPULAR_LINKS,
        load_default=0,
        metadata={
            "title": "Popular pages for searches without results",
            "description": "Number of popular pages in the responses to searches without a hit, after the links of "
            "`no_results_links`; 0 for none.",
        },
    )
    learn_from_clicks = Flag(
        load_default=False,
        metadata={
            "title": "Learn from clicks",
            "description": "Whether documents that visitors click more often than expected for their position move "
            "up, by at most three positions. The ranking is updated every night.",
        },
    )
    answers = Flag(
        load_default=False,
        metadata={
            "title": "Answers",
            "description": "Whether the response to a question has an `answer`: the passage of the first "
            "hit that contains most of the question's words.",
        },
    )
    semantic = Flag(
        load_default=False,
        metadata={
            "title": "Meaning",
            "description": "Whether hits for queries that are sentences are ranked, and the sources of Ask chosen, by "
            "meaning as well as by words, if the operator has set up an embedder.",
        },
    )

    ask = Flag(
        load_default=False,
        metadata={
            "title": "Ask",
            "description": "Whether visitors can ask questions that a language model answers from the site's pages, if "
            "the operator has set one up.",
        },
    )
    ask_instructions = Text(
        load_default="",
        trim=True,
        max_length=MAX_INSTRUCTIONS_LENGTH,
        metadata={
            "title": "Instructions for answers",
            "description": "Instructions for the language model, such as the tone or the product's name.",
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def _check_totals(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Limit the total size of the lists, and therefore the cost of each search and preview."""
        rules, boosts = data["rules"], data["boosts"]
        words = [
            rule["when"]["query"] for rule in rules if rule["when"]["match"] == "words" and "query" in rule["when"]
        ]
        pages = [page for rule in rules for name in ("pin", "hide") for page in rule["do"].get(name, ())]
        parts = [part for rule in rules for part in (rule["when"], rule["do"], rule["do"].get("boost", {}))]
        filters = [part["filters"] for part in (*boosts, *parts) if "filters" in part]
        totals = (
            ("synonyms", _words_in(data["synonyms"]), MAX_SYNONYMS, "words and phrases"),
            ("rules", sum(len(terms_of(text)) for text in words), MAX_RULE_WORDS, "words to match with `words`"),
            ("rules", len(pages), MAX_RULE_DOCUMENTS, "documents to pin and hide"),
            (
                "rules",
                sum(count_values(parse_filter(text)) for text in filters),
                MAX_FILTER_VALUES,
                "values in filters, including those of boosts",
            ),
        )
        errors: dict[str, list[str]] = {}
        for name, count, maximum, items in totals:
            if count > maximum:
                problem = Problem(f"can have at most {maximum:,} {items} in total", "too_long")
                errors.setdefault(name, []).append(problem)
        if errors:
            raise ValidationError(errors)


class SearchSettingsAnswerSchema(Schema):
    """A site's search settings."""

    settings = fields.Nested(SearchSettingsSchema, required=True)


class SearchSettingsWrittenSchema(SearchSettingsAnswerSchema):
    """The saved settings, which apply from the next search on."""

    success = fields.Boolean(required=True)
    warnings = fields.List(
        fields.Nested(WarningSchema),
        metadata={
            "description": "Pinned and hidden IDs of missing documents (`unknown_document`), settings that the search "
            "engine does not support (`engine_limit`); with `semantic`, a missing embedder "
            "(`semantic_unavailable`) or the number of documents that have no vector yet (`vectors_missing`); with "
            "`ask`, a missing language model (`ask_unavailable`) or a plan without questions (`ask_not_in_plan`)."
        },
    )
