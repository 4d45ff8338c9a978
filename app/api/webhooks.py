"""Webhooks of the account and their deliveries."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import webhooks as operations
from app.operations import write
from app.runtime import runtime
from app.services import webhooks
from app.services.access.rights import Role
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.policy import OperationPolicy
from schemas.base import NothingSchema, SuccessSchema
from schemas.sites import PageQuerySchema
from schemas.validation.keys import Scope
from schemas.webhooks import (
    DeliveryAnswerSchema,
    DeliveryListSchema,
    WebhookAnswerSchema,
    WebhookCreateSchema,
    WebhookListSchema,
    WebhookSecretSchema,
    WebhookShowSchema,
    WebhookUpdateSchema,
)

blp = ApiBlueprint("webhooks", __name__, description="Webhooks: your URLs that receive events.")

_POLICY = OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER)
_WEBHOOK = "/api/webhooks/<string:webhook_id>"
_ERRORS = (ErrorCode.WEBHOOK_NOT_FOUND,)


@blp.route("/api/webhooks", methods=["GET"])
@blp.operation("listWebhooks", _POLICY)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, WebhookListSchema)
def list_webhooks(page: dict[str, Any]) -> dict[str, Any]:
    """List the account's webhooks, oldest first."""
    with runtime().database.read() as session:
        listed, total = webhooks.list_webhooks(session, current_caller().account.id, **page)
    return {"webhooks": listed, "total": total, **page}


@blp.route("/api/webhooks", methods=["POST"])
@blp.operation("createWebhook", _POLICY, errors=(ErrorCode.WEBHOOK_LIMIT_REACHED,), body=True)
@blp.arguments(WebhookCreateSchema)
@blp.response(201, WebhookSecretSchema)
def create_webhook(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a webhook. Its events are signed with `secret`, which is never shown again."""
    webhook, secret = operations.create_webhook(runtime(), current_caller(), fields)
    headers = {"Cache-Control": "no-store", "Location": f"/api/webhooks/{webhook.id}"}
    return {"webhook": webhook, "secret": secret}, 201, headers


@blp.route(_WEBHOOK, methods=["GET"])
@blp.operation("showWebhook", _POLICY, errors=_ERRORS)
@blp.response(200, WebhookShowSchema)
def show_webhook(webhook_id: str) -> dict[str, Any]:
    """Get a webhook."""
    with runtime().database.read() as session:
        return {"webhook": webhooks.get_webhook(session, current_caller().account.id, webhook_id)}


@blp.put_and_patch(
    _WEBHOOK, ("updateWebhook", "patchWebhook"), _POLICY, _ERRORS, WebhookUpdateSchema, WebhookAnswerSchema
)
def update_webhook(changes: dict[str, Any], webhook_id: str) -> dict[str, Any]:
    """Change a webhook. Omitted fields stay unchanged. Turning a webhook off cancels its waiting deliveries."""
    webhook = operations.update_webhook(runtime(), current_caller(), webhook_id, changes)
    return {"success": True, "webhook": webhook}


@blp.route(_WEBHOOK, methods=["DELETE"])
@blp.operation("deleteWebhook", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def delete_webhook(webhook_id: str) -> dict[str, Any]:
    """Delete a webhook with its deliveries. Nothing more is sent to it."""
    write(runtime(), current_caller(), webhooks.delete_webhook, webhook_id)
    return {"success": True}


@blp.route(_WEBHOOK + "/deliveries", methods=["GET"])
@blp.operation("listDeliveries", _POLICY, errors=_ERRORS)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, DeliveryListSchema)
def list_deliveries(page: dict[str, Any], webhook_id: str) -> dict[str, Any]:
    """List a webhook's deliveries, newest first. The service keeps the last 50 and all waiting ones."""
    with runtime().database.read() as session:
        webhook = webhooks.get_webhook(session, current_caller().account.id, webhook_id)
        listed, total = webhooks.list_deliveries(session, webhook, **page)
    return {"deliveries": listed, "total": total, **page}


@blp.route(_WEBHOOK + "/deliveries/<string:delivery_id>/redeliver", methods=["POST"])
@blp.operation("redeliver", _POLICY, errors=(*_ERRORS, ErrorCode.DELIVERY_NOT_FOUND), body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, DeliveryAnswerSchema)
def redeliver(fields: dict[str, Any], webhook_id: str, delivery_id: str) -> dict[str, Any]:
    """Send a delivery again with the same ID, even if the webhook is turned off."""
    delivery = write(runtime(), current_caller(), webhooks.redeliver, webhook_id, delivery_id)
    return {"success": True, "delivery": delivery}
