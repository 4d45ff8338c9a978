"""Webhooks of the account. A short-lived cookie passes the secret of a new webhook to the next page."""

from __future__ import annotations

import hmac
import json
from functools import partial

from flask import Response

from app.errors import ApiError
from app.operations import webhooks as operations
from app.operations import write
from app.pages.actions import Action
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import SecretCookie, see_other
from app.pages.sites import read_paging
from app.runtime import runtime
from app.services import webhooks
from app.services.webhook_delivery import secret_of
from app.web.callers import current_caller
from schemas.validation.webhooks import EVENTS
from schemas.webhooks import WebhookCreateSchema, WebhookUpdateSchema

PATH = "/api/webhooks"
SECRET = SecretCookie("new_webhook")


def list_webhooks() -> Response:
    """Show the account's webhooks and, once, the secret of a new webhook."""
    return SECRET.show(_webhooks(), PATH)


def _webhooks(error: ApiError | None = None) -> str:
    secret, key = SECRET.read(), runtime().settings.secret_key
    with runtime().database.read() as session:
        listed, total = webhooks.list_webhooks(
            session, current_caller().account.id, limit=webhooks.MAX_WEBHOOKS, offset=0
        )
    fields = shown_fields(WebhookCreateSchema(), {"events": list(EVENTS)}, error, leave_out=("active",))
    return render(
        "webhooks.html",
        webhooks=listed,
        is_open=total < webhooks.MAX_WEBHOOKS,
        most=webhooks.MAX_WEBHOOKS,
        fields=fields,
        banner=banner_of(error, fields),
        secret=secret,
        new_webhook=next(
            (one for one in listed if hmac.compare_digest(secret_of(one.id, key).encode(), secret.encode())), None
        ),
    )


def create_webhook() -> Response:
    """Add a webhook."""
    refill_on_error(_webhooks)
    _, secret = operations.create_webhook(runtime(), current_caller(), read_form(WebhookCreateSchema()))
    return SECRET.see_other(PATH, secret)


def show_webhook(webhook_id: str, error: ApiError | None = None) -> str:
    """Show a webhook, its deliveries, and the form that edits it."""
    paging = read_paging()
    with runtime().database.read() as session:
        webhook = webhooks.get_webhook(session, current_caller().account.id, webhook_id)
        deliveries, total = webhooks.list_deliveries(session, webhook, **paging)
    values = {"url": webhook.url, "events": webhook.events}
    fields = shown_fields(WebhookUpdateSchema(), values, error, leave_out=("active",))
    return render(
        "webhook.html",
        webhook=webhook,
        deliveries=deliveries,
        total=total,
        paging=paging,
        kept=webhooks.MAX_FINISHED,
        pretty=partial(json.dumps, indent=2, ensure_ascii=False),
        fields=fields,
        banner=banner_of(error, fields),
    )


def update_webhook(webhook_id: str) -> Response:
    """Save a webhook, or turn it off or on."""
    refill_on_error(lambda error: show_webhook(webhook_id, error))
    changes = read_form(WebhookUpdateSchema())
    operations.update_webhook(runtime(), current_caller(), webhook_id, changes)
    states = {True: "webhook-on", False: "webhook-off", None: "webhook-updated"}
    return see_other(f"{PATH}/{webhook_id}", notice=states[changes.get("active")])


delete_webhook = Action(write, PATH, "webhook-deleted", step=webhooks.delete_webhook)
redeliver = Action(write, PATH + "/{webhook_id}", "redelivered", step=webhooks.redeliver)
