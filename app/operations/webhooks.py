"""Creating and changing webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.crawl.sources.checks import check_receiver
from app.models import Webhook
from app.operations import write
from app.runtime import Runtime
from app.services import webhooks
from app.services.access.callers import Caller
from app.services.webhook_delivery import secret_of


def create_webhook(runtime: Runtime, caller: Caller, fields: Mapping[str, Any]) -> tuple[Webhook, str]:
    """Create a webhook. Returns the webhook and its secret.

    Raises:
        ApiError: 400 for a URL that is not allowed; 403 if the account has reached its limit.
    """
    webhook = write(runtime, caller, webhooks.create_webhook, **_checked(runtime, fields))
    return webhook, secret_of(webhook.id, runtime.settings.secret_key)


def update_webhook(runtime: Runtime, caller: Caller, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
    """Change a webhook.

    Raises:
        ApiError: 404; 400 for a URL that is not allowed.
    """
    return write(runtime, caller, webhooks.update_webhook, webhook_id, _checked(runtime, changes))


def _checked(runtime: Runtime, fields: Mapping[str, Any]) -> dict[str, Any]:
    private_addresses = runtime.settings.crawl_private_addresses
    checked = {"url": check_receiver(fields["url"], private_addresses=private_addresses)} if "url" in fields else {}
    return {**fields, **checked}
