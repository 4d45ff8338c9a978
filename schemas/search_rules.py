"""Rules, ranks, and links in a site's search settings."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from backends.errors import BackendRejected
from backends.filters import MAX_FILTER_LENGTH, fields_of, parse_filter
from backends.globs import MAX_RANK_BYTES, star_count
from backends.matching import compile_matching
from schemas.base import BodySchema
from schemas.fields import FieldName, Flag, Glob, ItemList, NormalText, Text, WholeNumber
from schemas.search import MAX_QUERY_BYTES
from schemas.validation.documents import INVALID_DATE, MAX_URL_LENGTH, parse_instant, url_problem
from schemas.validation.problems import Problem

MAX_RULES = 200
MAX_RULE_IDS = 50
MAX_RULE_ID_LENGTH = 64
MAX_NOTICE_LENGTH = 500
MAX_BOOSTS = 50
MAX_RANK = 5
MAX_HALF_LIFE_DAYS = 36_500
MAX_LINKS = 5
MAX_LINK_LENGTH = 100
MATCHES = ("is", "starts", "contains", "words")


def _nested(schema: type[BodySchema], **kwargs: Any) -> fields.Nested:
    """Return a field for a required nested object. If it is missing, the problem has a code."""
    return fields.Nested(schema, error_messages=dict(Text.default_error_messages), **kwargs)


class FilterText(Text):
    """A condition in the portable filter grammar."""

    def __init__(self, **kwargs: Any):
        super().__init__(trim=True, min_length=1, max_length=MAX_FILTER_LENGTH, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            parsed = parse_filter(text)
            # A value that cannot be compared would make every search fail. Documents may later have any fields.
            compile_matching(parsed, {name: frozenset() for name in fields_of(parsed)})
        except BackendRejected as error:
            position = "" if error.position is None else f" at character {error.position}"
            # Messages about fields have no full stop at their end.
            message = f"is not valid{position}: {str(error).removesuffix('.')}"
            raise ValidationError([Problem(message, "invalid_filter")]) from error
        return text


class LinkTarget(Text):
    """An http or https URL, or a path."""

    def __init__(self, **kwargs: Any):
        super().__init__(trim=True, min_length=1, max_length=MAX_URL_LENGTH, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        url = super()._deserialize(value, attr, data, **kwargs)
        problem = url_problem(url)
        if problem is not None:
            raise ValidationError([problem])
        return url


class Moment(Text):
    """An ISO 8601 date or date-time, stored as sent."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            parse_instant(text)
        except ValueError as error:
            raise ValidationError([INVALID_DATE]) from error
        return text


class Rank(WholeNumber):
    """Rank that moves documents up or down."""

    def __init__(self) -> None:
        super().__init__(
            low=-MAX_RANK,
            high=MAX_RANK,
            required=True,
            metadata={
                "description": "Each step multiplies the score by 1.25. The ranks of all matching boosts are "
                "added, up to ±5."
            },
        )


class RuleConditionSchema(BodySchema):
    """Conditions of a rule: it applies if all of them are met. Without conditions, it always applies."""

    query = NormalText(max_bytes=MAX_QUERY_BYTES, metadata={"description": "Kept in normal form."})
    match = Text(
        choices=MATCHES,
        load_default="is",
        metadata={
            "description": "How the search must match `query`, in normal form: be equal to it, start with it, contain "
            "it, or contain all of its words, in any order and inflection."
        },
    )
    filters = FilterText(metadata={"description": "Conditions that the search's own filter must contain."})
    from_ = Moment(data_key="from", attribute="from", metadata={"description": "Start time, inclusive."})
    to = Moment(metadata={"description": "End time, exclusive."})

    @validates_schema(skip_on_field_errors=True)
    def _check_order(self, data: dict[str, Any], **kwargs: Any) -> None:
        first, last = data.get("from"), data.get("to")
        if first is not None and last is not None and parse_instant(first) >= parse_instant(last):
            raise ValidationError({"to": [Problem("must be after from", "out_of_range")]})


class RuleBoostSchema(BodySchema):
    """Documents that a rule moves up or down."""

    filters = FilterText(required=True)
    rank = Rank()


class NoticeSchema(BodySchema):
    """A notice to show above the results, as plain text."""

    text = Text(trim=True, min_length=1, max_length=MAX_NOTICE_LENGTH, required=True)
    url = LinkTarget(metadata={"description": "Target URL or path."})


class RuleActionSchema(BodySchema):
    """Actions of a rule: at least one of these."""

    pin = ItemList(
        Text(min_length=1, max_length=512),
        low=1,
        high=MAX_RULE_IDS,
        metadata={"description": "IDs of documents to pin to the top, in order, if they match the search's filters."},
    )
    hide = ItemList(
        Text(min_length=1, max_length=512),
        low=1,
        high=MAX_RULE_IDS,
        metadata={"description": "IDs of documents to exclude, even if pinned."},
    )
    boost = _nested(RuleBoostSchema)
    filters = FilterText(metadata={"description": "Filter that all results must match."})
    replace = Text(
        trim=True,
        min_length=1,
        max_bytes=MAX_QUERY_BYTES,
        metadata={"description": "Query to search for instead. The first matching rule takes precedence."},
    )
    redirect = LinkTarget(
        metadata={"description": "URL or path that the search box opens. The first matching rule takes precedence."}
    )
    notice = _nested(NoticeSchema, metadata={"description": "The first matching rule takes precedence."})

    @validates_schema(skip_on_field_errors=True)
    def _check_something(self, data: dict[str, Any], **kwargs: Any) -> None:
        if not data:
            raise ValidationError([Problem(f"must have one of {', '.join(self.load_fields)}", "required")])


class RuleSchema(BodySchema):
    """A rule for certain searches."""

    id = Text(trim=True, min_length=1, max_length=MAX_RULE_ID_LENGTH, required=True)
    when = _nested(RuleConditionSchema, load_default=lambda: {"match": "is"})
    do = _nested(RuleActionSchema, required=True)
    enabled = Flag(load_default=True)


class Rules(ItemList):
    """Rules with distinct IDs, in order."""

    def __init__(self, **kwargs: Any):
        super().__init__(_nested(RuleSchema), high=MAX_RULES, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        rules = super()._deserialize(value, attr, data, **kwargs)
        rule_ids: set[str] = set()
        errors: dict[int, Any] = {}
        for position, rule in enumerate(rules):
            if rule["id"] in rule_ids:
                errors[position] = {"id": [Problem("is also the ID of another rule", "duplicate")]}
            rule_ids.add(rule["id"])
        if errors:
            raise ValidationError(errors)
        return rules


class RankedPath(Glob):
    """A glob of paths that every engine can match with all URLs of a site."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        path = super()._deserialize(value, attr, data, **kwargs)
        high = MAX_RANK_BYTES // max(1, star_count(path))
        if len(path.encode()) > high:
            raise ValidationError([Problem(f"must have at most {high} bytes for this number of *", "too_long")])
        return path


class BoostSchema(BodySchema):
    """Documents that move up or down in every search, selected by a path or a filter."""

    path = RankedPath(metadata={"description": "A pattern of paths, in which `*` matches any text: `/docs/*`."})
    filters = FilterText()
    rank = Rank()

    @validates_schema(skip_on_field_errors=True)
    def _check_one(self, data: dict[str, Any], **kwargs: Any) -> None:
        if ("path" in data) == ("filters" in data):
            raise ValidationError([Problem("must have either path or filters", "required")])


class RecencySchema(BodySchema):
    """Preference for newer documents."""

    field = FieldName(
        load_default="date",
        metadata={"description": "The field with the date: `date`, or one with ISO 8601 dates or Unix seconds."},
    )
    half_life_days = WholeNumber(
        low=1,
        high=MAX_HALF_LIFE_DAYS,
        required=True,
        metadata={"description": "Age at which half of the bonus remains. Documents dated today score 50 % more."},
    )


class LinkSchema(BodySchema):
    """A link to show if nothing was found."""

    text = Text(trim=True, min_length=1, max_length=MAX_LINK_LENGTH, required=True)
    url = LinkTarget(required=True)
