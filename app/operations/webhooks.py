"""The webhooks of an account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.crawl.sources.checks import check_receiver
from app.models import Webhook, WebhookDelivery
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.webhooks import queue, webhooks
from app.services.webhooks.signing import secret_of


def create_webhook(runtime: Runtime, caller: Caller, fields: Mapping[str, Any]) -> tuple[Webhook, str]:
    """Add a webhook; gives it and its secret.

    Raises:
        ApiError: 400 for an address where nothing is sent; 403 if the account has all that it may have.
    """
    fields = _checked(runtime, fields)
    with runtime.database.write() as session:
        webhook = webhooks.create_webhook(session, caller.account.id, **fields)
    return webhook, secret_of(webhook.id, runtime.settings.secret_key)


def update_webhook(runtime: Runtime, caller: Caller, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
    """Change a webhook.

    Raises:
        ApiError: 404; 400 for an address where nothing is sent.
    """
    changes = _checked(runtime, changes)
    with runtime.database.write() as session:
        return webhooks.update_webhook(session, caller.account.id, webhook_id, changes)


def delete_webhook(runtime: Runtime, caller: Caller, webhook_id: str) -> None:
    """Remove a webhook with its deliveries.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        webhooks.delete_webhook(session, caller.account.id, webhook_id)


def redeliver(runtime: Runtime, caller: Caller, webhook_id: str, delivery_id: str) -> WebhookDelivery:
    """Have a delivery sent once more.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        webhook = webhooks.get_webhook(session, caller.account.id, webhook_id, lock=True)
        return queue.redeliver(session, webhook, delivery_id)


def _checked(runtime: Runtime, fields: Mapping[str, Any]) -> dict[str, Any]:
    private_addresses = runtime.settings.crawl_private_addresses
    checked = {"url": check_receiver(fields["url"], private_addresses=private_addresses)} if "url" in fields else {}
    return {**fields, **checked}
