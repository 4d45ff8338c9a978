"""Keys and webhooks of a site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.crawl.sources.checks import check_receiver
from app.models import Webhook, WebhookDelivery
from app.operations.changes import changing
from app.runtime import Runtime
from app.services.access import keys
from app.services.access.callers import Caller
from app.services.access.keys import KeyView
from app.services.webhooks import webhooks
from app.services.webhooks.delivery import secret_of


def create_key(runtime: Runtime, caller: Caller, site_id: int, fields: Mapping[str, Any]) -> tuple[KeyView, str]:
    """Create a key. Returns the key and its token.

    Raises:
        ApiError: 404; 400 for an expiry in the past; 403 at the plan's limit, or for rights that the caller lacks.
    """
    secret = runtime.settings.secret_key
    with changing(runtime, caller) as session:
        key, token = keys.create_key(
            session, caller.account.id, caller.account.limits, secret, site_id, **fields, caller_rights=caller.rights
        )
        return keys.view(key), token


def update_key(runtime: Runtime, caller: Caller, site_id: int, key_id: str, changes: dict[str, Any]) -> KeyView:
    """Change a key's name, expiry, scopes, site, or origins.

    Raises:
        ApiError: 404, 400; 403 for extending a key that has, or would get, more rights than the caller.
    """
    with changing(runtime, caller) as session:
        view = keys.view(
            keys.update_key(session, caller.account.id, site_id, key_id, changes, caller_rights=caller.rights)
        )
    runtime.run_engine_tasks()
    return view


def rotate_key(
    runtime: Runtime, caller: Caller, site_id: int, key_id: str, fields: dict[str, Any]
) -> tuple[KeyView, str]:
    """Give a key a new token.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for a key with more rights than the caller.
    """
    secret = runtime.settings.secret_key
    with changing(runtime, caller) as session:
        key, token = keys.rotate_key(
            session, caller.account.id, secret, site_id, key_id, **fields, caller_rights=caller.rights
        )
        view = keys.view(key)
    runtime.run_engine_tasks()
    return view, token


def toggle_key(runtime: Runtime, caller: Caller, key_id: str, active: bool | None) -> KeyView:
    """Disable or enable a key.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for enabling a key with more rights than the caller.
    """
    with changing(runtime, caller) as session:
        view = keys.view(
            keys.toggle_key(session, caller.account.id, key_id, active=active, caller_rights=caller.rights)
        )
    runtime.run_engine_tasks()
    return view


def dismiss_exposure(runtime: Runtime, caller: Caller, site_id: int, key_id: str) -> None:
    """Stop warning that web pages send a private key, until the key is rotated.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        keys.dismiss_exposure(session, caller.account.id, site_id, key_id)


def delete_key(runtime: Runtime, caller: Caller, site_id: int, key_id: str) -> None:
    """Delete a key.

    Raises:
        ApiError: 404.
    """
    with changing(runtime, caller) as session:
        keys.delete_key(session, caller.account.id, site_id, key_id)
    runtime.run_engine_tasks()


def create_webhook(runtime: Runtime, caller: Caller, fields: Mapping[str, Any]) -> tuple[Webhook, str]:
    """Create a webhook. Returns the webhook and its secret.

    Raises:
        ApiError: 400 for a URL that is not allowed; 403 if the account has reached its limit.
    """
    fields = _checked(runtime, fields)
    with runtime.database.write() as session:
        webhook = webhooks.create_webhook(session, caller.account.id, **fields)
    return webhook, secret_of(webhook.id, runtime.settings.secret_key)


def update_webhook(runtime: Runtime, caller: Caller, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
    """Change a webhook.

    Raises:
        ApiError: 404; 400 for a URL that is not allowed.
    """
    changes = _checked(runtime, changes)
    with runtime.database.write() as session:
        return webhooks.update_webhook(session, caller.account.id, webhook_id, changes)


def delete_webhook(runtime: Runtime, caller: Caller, webhook_id: str) -> None:
    """Delete a webhook with its deliveries.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        webhooks.delete_webhook(session, caller.account.id, webhook_id)


def redeliver(runtime: Runtime, caller: Caller, webhook_id: str, delivery_id: str) -> WebhookDelivery:
    """Send a delivery again.

    Raises:
        ApiError: 404.
    """
    with runtime.database.write() as session:
        webhook = webhooks.get_webhook(session, caller.account.id, webhook_id, lock=True)
        return webhooks.redeliver(session, webhook, delivery_id)


def _checked(runtime: Runtime, fields: Mapping[str, Any]) -> dict[str, Any]:
    private_addresses = runtime.settings.crawl_private_addresses
    checked = {"url": check_receiver(fields["url"], private_addresses=private_addresses)} if "url" in fields else {}
    return {**fields, **checked}
