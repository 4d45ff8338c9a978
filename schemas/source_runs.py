"""Runs of sources, and their results: crawled and skipped pages, and dead links."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import BodySchema, LenientBodySchema, PagedSchema, QuerySchema, SuccessSchema
from schemas.fields import Instant, ItemList, WholeNumber
from schemas.sites import SiteUrl

RUN_STATUSES = ("queued", "running", "finished", "failed", "cancelled")
LOOKUP_STATUSES = ("indexed", "left_out", "not_seen", "removed")
MAX_RUN_URLS = 100


class RunErrorSchema(Schema):
    """The reason why a run failed."""

    code = fields.String(
        required=True,
        metadata={
            "description": "A reason such as `timeout`, an error code such as `sync_removes_too_much`, or "
            "`incomplete`: many pages temporarily could not be read."
        },
    )
    message = fields.String(required=True)


class RunSchema(Schema):
    """One run of a source. `found` is the sum of `indexed`, `unchanged`, `skipped`, and `failed`."""

    id = fields.String(required=True)
    status = fields.String(required=True, metadata={"enum": list(RUN_STATUSES)})
    started_at = Instant(required=True, allow_none=True)
    finished_at = Instant(required=True, allow_none=True)
    found = fields.Integer(required=True, metadata={"description": "Number of processed URLs."})
    indexed = fields.Integer(required=True, metadata={"description": "New or changed pages."})
    unchanged = fields.Integer(required=True, metadata={"description": "Unchanged pages."})
    removed = fields.Integer(
        required=True, metadata={"description": "Documents removed because their page no longer exists."}
    )
    failed = fields.Integer(required=True, metadata={"description": "URLs without a usable response."})
    skipped = fields.Integer(required=True, metadata={"description": "URLs skipped for a reason."})
    rendered = fields.Integer(required=True, metadata={"description": "Pages that a browser rendered; see `render`."})
    error = fields.Nested(RunErrorSchema, required=True, allow_none=True)


class RunRequestSchema(BodySchema):
    """Limits of a run; without a body, the run is complete."""

    urls = ItemList(
        SiteUrl(),
        low=1,
        high=MAX_RUN_URLS,
        load_default=None,
        metadata={"description": "Only these URLs; no links are followed and nothing else is removed."},
    )
    max_removed_percent = WholeNumber(
        high=100,
        load_default=None,
        metadata={
            "description": "Maximum percentage of the source's documents that the run may remove. Default: `20`."
        },
    )


class HookSchema(LenientBodySchema):
    """URLs sent to a deploy hook. Other fields are ignored."""

    urls = ItemList(
        SiteUrl(), low=1, high=MAX_RUN_URLS, load_default=None, metadata={"description": "Only these URLs."}
    )


class RunAnswerSchema(SuccessSchema):
    """A run that was requested or canceled."""

    run = fields.Nested(RunSchema, required=True)


class RunListSchema(PagedSchema):
    """Runs, newest first."""

    runs = fields.List(fields.Nested(RunSchema), required=True)


class RunPageSchema(Schema):
    """A skipped URL, or an indexed page with a remark."""

    url = fields.String(required=True)
    reason = fields.String(required=True)
    indexed = fields.Boolean(metadata={"description": "True if the page is indexed, and `reason` is a remark."})
    found_on = fields.List(
        fields.String(), metadata={"description": "The page, sitemap, or feed that first linked to it, if any."}
    )
    document = fields.String(metadata={"description": "For a duplicate, the ID of the document with the same text."})


class PageLookupQuerySchema(QuerySchema):
    """The URL to look up."""

    url = SiteUrl(required=True, metadata={"title": "Address"})


class PageLookupSchema(Schema):
    """State of a URL."""

    url = fields.String(required=True)
    status = fields.String(required=True, metadata={"enum": list(LOOKUP_STATUSES)})
    reason = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Reason why it is not indexed, if known; see Sources, Reasons."},
    )
    last_seen = Instant(
        required=True,
        allow_none=True,
        metadata={"description": "Time of the last crawl, or of the last write of its document."},
    )
    found_on = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "At most 10 pages, sitemaps, and feeds that link to it."},
    )
    document = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "ID of its document; for a duplicate, of the one with the same text."},
    )


class DeadLinkSchema(Schema):
    """A link from the site's own pages to a missing page."""

    url = fields.String(required=True)
    status = fields.Integer(required=True, metadata={"enum": [404, 410]})
    found_on = fields.List(
        fields.String(),
        required=True,
        metadata={
            "description": "At most 10 pages, sitemaps, and feeds that link to it; empty if one of several sitemaps "
            "lists it."
        },
    )


class DeadLinkListSchema(PagedSchema):
    """Dead links, in the order of discovery."""

    dead_links = fields.List(fields.Nested(DeadLinkSchema), required=True)
    run_id = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "The run that found them; `null` if no run has read pages yet."},
    )


class RunShowSchema(PagedSchema):
    """One run, the URLs that it did not index, and indexed pages with a remark."""

    run = fields.Nested(RunSchema, required=True)
    pages = fields.List(fields.Nested(RunPageSchema), required=True)
