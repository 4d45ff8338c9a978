"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from schemas.base import BodySchema, PagedSchema, SuccessSchema, UpdateSchema
from schemas.fields import Flag, Instant, ItemList, Text
from schemas.sites import SiteUrl
from schemas.validation.webhooks import EVENTS

DELIVERY_STATUSES = ("waiting", "delivered", "failed")


class Events(ItemList):
    """Events of a webhook, without duplicates, in the API's order."""

    def __init__(self, **kwargs: Any):
        super().__init__(Text(choices=EVENTS), low=1, high=100, metadata={"title": "Events"}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        events = super()._deserialize(value, attr, data, **kwargs)
        return [event for event in EVENTS if event in events]


def _url(**kwargs: Any) -> SiteUrl:
    description = "Where events are sent: http or https, on the public internet."
    return SiteUrl(metadata={"title": "URL", "description": description}, **kwargs)


class WebhookSchema(Schema):
    """A webhook, without its secret."""

    id = fields.String(required=True)
    url = fields.String(required=True)
    events = fields.List(fields.String(metadata={"enum": list(EVENTS)}), required=True)
    active = fields.Boolean(required=True)
    failing_since = Instant(
        required=True,
        allow_none=True,
        metadata={"description": "The first failure since the last delivery; null if there was none."},
    )
    created_at = Instant(required=True)
    updated_at = Instant(required=True)


class WebhookCreateSchema(BodySchema):
    """A new webhook."""

    url = _url(required=True)
    events = Events(required=True)
    active = Flag(load_default=True, metadata={"title": "Active"})


class WebhookUpdateSchema(UpdateSchema):
    """Changes to a webhook. Omitted fields stay unchanged."""

    url = _url()
    events = Events()
    active = Flag(metadata={"title": "Active"})


class WebhookSecretSchema(Schema):
    """A new webhook with its signing secret, which is never shown again."""

    webhook = fields.Nested(WebhookSchema, required=True)
    secret = fields.String(required=True)


class WebhookAnswerSchema(SuccessSchema):
    """The changed webhook."""

    webhook = fields.Nested(WebhookSchema, required=True)


class WebhookShowSchema(Schema):
    """One webhook."""

    webhook = fields.Nested(WebhookSchema, required=True)


class WebhookListSchema(PagedSchema):
    """Webhooks of the account, oldest first."""

    webhooks = fields.List(fields.Nested(WebhookSchema), required=True)


class DeliverySchema(Schema):
    """A delivery of an event to a webhook, with its result."""

    id = fields.String(required=True, metadata={"description": "The `webhook-id` of every attempt."})
    event = fields.String(required=True, metadata={"enum": list(EVENTS)})
    status = fields.String(required=True, metadata={"enum": list(DELIVERY_STATUSES)})
    attempts = fields.Integer(required=True, metadata={"description": "Time of its last search."})
    attempted_at = Instant(required=True, allow_none=True)
    next_attempt_at = Instant(required=True, allow_none=True, attribute="due_at")
    response_status = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "HTTP status of the last response; null if there was none."},
    )
    error = fields.String(required=True, allow_none=True)
    payload = fields.Raw(required=True, metadata={"description": "The request body.", "type": "object"})
    created_at = Instant(required=True)


class DeliveryListSchema(PagedSchema):
    """Deliveries of a webhook, newest first."""

    deliveries = fields.List(fields.Nested(DeliverySchema), required=True)


class DeliveryAnswerSchema(SuccessSchema):
    """The delivery to send again."""

    delivery = fields.Nested(DeliverySchema, required=True)
