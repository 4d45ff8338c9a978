"""Sources of a site, their deploy hooks and configurations, and the preview of a page."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load

from schemas.base import BodySchema, PagedSchema, QuerySchema, SuccessSchema, UpdateSchema
from schemas.fields import Flag, Glob, Instant, ItemList, RowNumber, Text, WholeNumber
from schemas.request_headers import Headers
from schemas.sites import SiteUrl
from schemas.source_runs import RunSchema
from schemas.validation.problems import Problem
from schemas.validation.sites import (
    MAX_RULES,
    MAX_SET_FIELDS,
    MAX_SET_LENGTH,
    name_problem,
    path_problem,
    rule_problems,
    set_problems,
)

KINDS = ("website", "sitemap", "feed", "wordpress")
RENDER_MODES = ("never", "auto", "always")
SCHEDULES = ("none", "hourly", "daily", "weekly")
SOURCE_STATUSES = ("idle", "queued", "running", "failed")
CONFIG_FORMATS = ("docsearch",)
SELECTORS = ("content", "title", "remove")

MAX_GLOBS = 50
MAX_SELECTOR_LENGTH = 500
MAX_PLACE_LENGTH = 200


class SelectorsSchema(BodySchema):
    """CSS selectors for a page's text and title, and for elements to ignore."""

    content = Text(
        trim=True,
        max_length=MAX_SELECTOR_LENGTH,
        metadata={"title": "Content", "description": "Elements with the text. Default: detected automatically."},
    )
    title = Text(
        trim=True,
        max_length=MAX_SELECTOR_LENGTH,
        metadata={"title": "Title", "description": "Element with the title. Default: the page's title."},
    )
    remove = Text(
        trim=True,
        max_length=MAX_SELECTOR_LENGTH,
        metadata={"title": "Leave out", "description": "Elements to ignore."},
    )

    @post_load
    def _drop_empty(self, data: dict[str, str], **kwargs: Any) -> dict[str, str]:
        return {name: selector for name, selector in data.items() if selector}


class FieldName(Text):
    """The name of a custom field."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        problem = name_problem(name)
        if problem is not None:
            raise ValidationError([problem])
        return name


class PathPattern(Glob):
    """A pattern of paths, in which ``{name}`` matches one segment."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        path = super()._deserialize(value, attr, data, **kwargs)
        problem = path_problem(path)
        if problem is not None:
            raise ValidationError([problem])
        return path


class SetFields(fields.Field[dict[str, str]]):
    """Custom fields and their values, in which ``{name}`` is replaced with the matching segment of the path."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise ValidationError([Problem("must be a JSON object", "type")])
        if not 1 <= len(value) <= MAX_SET_FIELDS:
            code = "too_long" if value else "too_short"
            raise ValidationError([Problem(f"must have 1 to {MAX_SET_FIELDS} fields", code)])
        problems = set_problems(value)
        if problems:
            raise ValidationError(problems)
        return {name: text.strip() for name, text in value.items()}


_SET = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": MAX_SET_LENGTH},
    "description": "Fields and their values; `{version}` stands for the matching segment of the path.",
}


class FieldRuleSchema(BodySchema):
    """A rule for custom fields, based on a page's URL (`path`, `set`) or on its content.

    The latter has `name` and one of `selector`, `json_ld`, and `meta`.
    """

    path = PathPattern(
        metadata={"description": "Pattern of path and query; `*` matches any characters, `{version}` one segment."}
    )
    set_ = SetFields(data_key="set", attribute="set", metadata=dict(_SET))
    name = FieldName(metadata={"description": "The field that gets the value."})
    selector = Text(
        trim=True,
        min_length=1,
        max_length=MAX_SELECTOR_LENGTH,
        metadata={"description": "CSS selector of the elements with the value."},
    )
    json_ld = Text(
        trim=True,
        min_length=1,
        max_length=MAX_PLACE_LENGTH,
        metadata={
            "description": "Path of the value in the page's JSON-LD: names separated by dots, such as `offers.price`."
        },
    )
    meta = Text(
        trim=True, min_length=1, max_length=MAX_PLACE_LENGTH, metadata={"description": "The name of a `meta` element."}
    )
    attribute = Text(
        trim=True,
        min_length=1,
        max_length=MAX_PLACE_LENGTH,
        metadata={"description": "Attribute that contains the value. Default: the element's text."},
    )
    all_ = Flag(
        data_key="all",
        attribute="all",
        metadata={"description": "Whether the field contains all values as a list. Default: only the first value."},
    )

    @post_load
    def _check_form(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        problems = rule_problems(data)
        if problems:
            raise ValidationError(problems)
        return data


def _rules(**kwargs: Any) -> ItemList:
    return ItemList(
        fields.Nested(FieldRuleSchema),
        high=MAX_RULES,
        data_key="fields",
        attribute="fields",
        metadata={
            "title": "Fields",
            "description": "Rules for custom fields. The first rule for a field applies.",
        },
        **kwargs,
    )


def _globs(**kwargs: Any) -> ItemList:
    return ItemList(Glob(), high=MAX_GLOBS, **kwargs)


_INCLUDE = {
    "title": "Only these pages",
    "description": "Patterns of path and query; `*` matches any characters. Other URLs are excluded. The start page is "
    "always followed.",
}
_EXCLUDE = {
    "title": "Not these pages",
    "description": "Patterns of URLs to exclude, even if `include` matches.",
}
_HEADERS = {
    "title": "Request headers",
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "Sent only to the source's host, for sites behind a password. Never returned.",
}
_SCHEDULE = {"title": "Schedule", "description": "Interval between crawls of the source."}
_MAX_PAGES = {"title": "Maximum pages", "description": "Maximum number of indexed pages of the source; null: no limit."}
_RENDER = {
    "title": "JavaScript",
    "description": "Pages that a browser renders before they are read: `auto`, those with scripts and little text; "
    "`always`, all with scripts. Without a browser, `always` is rejected.",
}
_MAX_DEPTH = {
    "title": "Maximum depth",
    "description": "Maximum number of links to follow from the start page; null: no limit.",
}


class SourceCreateSchema(BodySchema):
    """A new source. Its first run is queued immediately."""

    kind = Text(required=True, choices=KINDS, metadata={"title": "Kind"})
    url = SiteUrl(
        required=True,
        bare=True,
        metadata={
            "title": "Address",
            "description": "On the site's host or below its registrable domain. Without a scheme, https is tried, "
            "then http.",
        },
    )
    schedule = Text(choices=SCHEDULES, load_default="none", metadata=dict(_SCHEDULE))
    include = _globs(load_default=list, metadata=dict(_INCLUDE))
    exclude_ = _globs(load_default=list, metadata=dict(_EXCLUDE), data_key="exclude", attribute="exclude")
    selectors = fields.Nested(SelectorsSchema, load_default=dict, metadata={"title": "CSS selectors"})
    fields_ = _rules(load_default=list)
    max_pages = WholeNumber(low=1, allow_none=True, load_default=None, metadata=dict(_MAX_PAGES))
    max_depth = WholeNumber(allow_none=True, load_default=None, metadata=dict(_MAX_DEPTH))
    render = Text(choices=RENDER_MODES, load_default="auto", metadata=dict(_RENDER))
    headers = Headers(load_default=dict, metadata=dict(_HEADERS))


class SourceUpdateSchema(UpdateSchema):
    """Changes to a source. Omitted fields stay unchanged. `kind` cannot change."""

    kind = Text(choices=KINDS, metadata={"title": "Kind"})
    url = SiteUrl(bare=True, metadata={"title": "Address"})
    schedule = Text(choices=SCHEDULES, metadata=dict(_SCHEDULE))
    include = _globs(metadata=dict(_INCLUDE))
    exclude_ = _globs(metadata=dict(_EXCLUDE), data_key="exclude", attribute="exclude")
    selectors = fields.Nested(SelectorsSchema, metadata={"title": "CSS selectors"})
    fields_ = _rules()
    max_pages = WholeNumber(low=1, allow_none=True, metadata=dict(_MAX_PAGES))
    max_depth = WholeNumber(allow_none=True, metadata=dict(_MAX_DEPTH))
    render = Text(choices=RENDER_MODES, metadata=dict(_RENDER))
    headers = Headers(metadata=dict(_HEADERS))


_KEEP_DOCUMENTS = {
    "description": "Whether to keep its documents, as if they had been sent through the API. Default: false."
}


class SourceDeleteQuerySchema(QuerySchema):
    """Parameters for deleting a source."""

    keep_documents = Flag(metadata=dict(_KEEP_DOCUMENTS))


class SourceDeleteSchema(BodySchema):
    """Parameters for deleting a source, in a body."""

    keep_documents = Flag(metadata=dict(_KEEP_DOCUMENTS))


class SourceSchema(Schema):
    """A source tells the crawler where to find a site's pages."""

    id = fields.String(required=True)
    site_id = RowNumber(required=True)
    kind = fields.String(required=True, metadata={"enum": list(KINDS)})
    url = fields.String(required=True)
    schedule = fields.String(required=True, metadata={"enum": list(SCHEDULES)})
    include = fields.List(fields.String(), required=True)
    exclude_ = fields.List(fields.String(), required=True, data_key="exclude", attribute="exclude")
    selectors = fields.Nested(SelectorsSchema, required=True)
    fields_ = fields.List(fields.Nested(FieldRuleSchema), required=True, data_key="fields", attribute="fields")
    max_pages = fields.Integer(required=True, allow_none=True)
    max_depth = fields.Integer(required=True, allow_none=True)
    render = fields.String(required=True, metadata={"enum": list(RENDER_MODES)})
    status = fields.String(required=True, metadata={"enum": list(SOURCE_STATUSES)})
    last_run = fields.Nested(RunSchema, required=True, allow_none=True)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    hook_url = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "A `POST` to it queues a run. Null for viewers, as the URL lets anyone start a run."},
    )


class SourceAnswerSchema(SuccessSchema):
    """The written source."""

    source = fields.Nested(SourceSchema, required=True)


class SourceShowSchema(Schema):
    """One source."""

    source = fields.Nested(SourceSchema, required=True)


class ConfigQuerySchema(QuerySchema):
    """The format of a configuration."""

    format = Text(
        required=True, choices=CONFIG_FORMATS, metadata={"description": "Format of the file.", "example": "docsearch"}
    )


class ConfigAnswerSchema(SuccessSchema):
    """The sources created from a configuration. Their first runs are queued."""

    sources = fields.List(fields.Nested(SourceSchema), required=True)
    ignored = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "Settings without a counterpart here, as paths such as `start_urls[0].tags[1]`."},
    )


class SourceListSchema(PagedSchema):
    """Sources, oldest first."""

    sources = fields.List(fields.Nested(SourceSchema), required=True)


class PreviewSchema(BodySchema):
    """A page to preview."""

    url = SiteUrl(required=True, bare=True, metadata={"title": "Address"})
    selectors = fields.Nested(SelectorsSchema, load_default=dict, metadata={"title": "CSS selectors"})
    fields_ = _rules(load_default=None)
    headers = Headers(load_default=dict, metadata=dict(_HEADERS))
    render = Text(choices=RENDER_MODES, load_default=None, metadata=dict(_RENDER))


class PreviewAnswerSchema(Schema):
    """The document that the page would become, or the reason why it would not be indexed."""

    document = fields.Dict(required=True, allow_none=True)
    reason = fields.String(
        metadata={
            "description": "Why `document` is null; or `needs_browser`: runs render the page, unlike the preview."
        }
    )
