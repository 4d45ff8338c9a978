"""Sites."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields

from schemas.base import BodySchema, PagedSchema, QuerySchema, SuccessSchema, UpdateSchema
from schemas.fields import Flag, Instant, ItemList, RowNumber, Text, WholeNumber
from schemas.validation.problems import Problem
from schemas.validation.sites import complete_url, domain_of

MAX_DOMAINS = 10


class SiteUrl(Text):
    """An absolute http or https URL of at most 2048 characters.

    Args:
        bare: Whether the scheme may be missing; if it is, the caller must determine it.
    """

    def __init__(self, *, bare: bool = False, **kwargs: Any):
        if not bare:
            kwargs.setdefault("metadata", {}).setdefault("format", "uri")
        super().__init__(min_length=1, max_length=2048, trim=True, **kwargs)
        self.bare = bare

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        url = super()._deserialize(value, attr, data, **kwargs)
        try:
            domain_of(complete_url(url) if self.bare else url)
        except ValueError as error:  # Includes the UnicodeError of idna.
            raise ValidationError(
                [Problem("must be a web address, such as https://www.example.com", "invalid_url")]
            ) from error
        return url


class SiteUrls(ItemList):
    """Additional URLs of a site, without duplicates."""

    def __init__(self, **kwargs: Any):
        title = {"title": "Additional URLs"}
        super().__init__(SiteUrl(), high=MAX_DOMAINS, metadata={**title, **kwargs.pop("metadata", {})}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class SiteSchema(Schema):
    """A site."""

    id = RowNumber(required=True)
    name = fields.String(required=True)
    url = fields.String(required=True)
    domain = fields.String(required=True)
    domains = fields.List(fields.String(), required=True, metadata={"description": "The site's additional URLs."})
    index = fields.String(required=True, metadata={"description": "Name of the site's index."})
    active = fields.Boolean(required=True)
    agents = fields.Boolean(required=True, metadata={"description": "Whether agents may search and read it."})
    description = fields.String(
        required=True, metadata={"description": "Description of the site's topic, for AI agents."}
    )
    plan = fields.String(required=True)
    indexed_pages = fields.Integer(required=True, attribute="document_count")
    created_at = Instant(required=True)
    updated_at = Instant(required=True)


class SiteCreateSchema(BodySchema):
    """A new site."""

    name = Text(required=True, trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    url = SiteUrl(required=True, metadata={"title": "URL"})
    domains = SiteUrls(
        load_default=list,
        metadata={"description": "Additional URLs whose hosts sources may use; pages then have the field `domain`."},
    )


class SiteUpdateSchema(UpdateSchema):
    """Changes to a site. Omitted fields stay unchanged."""

    name = Text(trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    url = SiteUrl(metadata={"title": "URL"})
    domains = SiteUrls()
    active = Flag(metadata={"title": "Active"})
    agents = Flag(metadata={"title": "Agents", "description": "Whether agents may search and read the site."})
    description = Text(
        trim=True,
        max_length=500,
        metadata={"title": "Description", "description": "Description of the site's topic, for AI agents."},
    )


_NAME_OF_DELETED = {"description": "The site's name, as protection against deleting another site by mistake. Optional."}
_PURGE = {
    "description": "Whether to delete the site permanently, so that it cannot be restored. Also works for a "
    "deleted site. Default: false."
}


class SiteDeleteQuerySchema(QuerySchema):
    """Parameters for deleting a site."""

    name = Text(trim=True, max_length=100, metadata=dict(_NAME_OF_DELETED))
    purge = Flag(metadata=dict(_PURGE))


class SiteDeleteBodySchema(BodySchema):
    """Parameters for deleting a site, in a body."""

    name = Text(trim=True, max_length=100, metadata=dict(_NAME_OF_DELETED))
    purge = Flag(metadata=dict(_PURGE))


class SiteDeleteSchema(BodySchema):
    """The form for deleting a site on its page."""

    name = Text(required=True, trim=True, max_length=100, metadata={"title": "Name"})
    purge = Flag(load_default=False, metadata={"title": "Delete it permanently; it cannot be restored"})


class SiteAnswerSchema(SuccessSchema):
    """The written site."""

    site = fields.Nested(SiteSchema, required=True)


class SiteShowSchema(Schema):
    """One site."""

    site = fields.Nested(SiteSchema, required=True)


class PageQuerySchema(QuerySchema):
    """Paging of a list."""

    limit = WholeNumber(low=1, high=100, load_default=20)
    offset = WholeNumber(load_default=0)


class SiteListSchema(PagedSchema):
    """Sites, oldest first."""

    sites = fields.List(fields.Nested(SiteSchema), required=True)
