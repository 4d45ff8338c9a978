"""Webhooks of the account, and what was sent to them."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import keys as webhook_operations
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.webhooks import webhooks
from app.web.auth import MANAGING
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from schemas.base import NothingSchema
from schemas.sites import PageQuerySchema, SuccessSchema
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

blp = ApiBlueprint("webhooks", __name__, description="Webhooks: addresses of yours that are told of events.")

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
        found, total = webhooks.list_webhooks(session, current_caller().account.id, **page)
    return {"webhooks": found, "total": total, **page}


@blp.route("/api/webhooks", methods=["POST"])
@blp.operation("createWebhook", _POLICY, errors=(ErrorCode.WEBHOOK_LIMIT_REACHED,), body=True)
@blp.arguments(WebhookCreateSchema)
@blp.response(201, WebhookSecretSchema)
def create_webhook(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a webhook. What is sent to it is signed with `secret`, which is never shown again."""
    webhook, secret = webhook_operations.create_webhook(runtime(), current_caller(), fields)
    headers = {"Cache-Control": "no-store", "Location": f"/api/webhooks/{webhook.id}"}
    return {"webhook": webhook, "secret": secret}, 201, headers


@blp.route(_WEBHOOK, methods=["GET"])
@blp.operation("showWebhook", _POLICY, errors=_ERRORS)
@blp.response(200, WebhookShowSchema)
def show_webhook(webhook_id: str) -> dict[str, Any]:
    """Get a webhook."""
    with runtime().database.read() as session:
        return {"webhook": webhooks.get_webhook(session, current_caller().account.id, webhook_id)}


def _update(webhook_id: str, changes: dict[str, Any]) -> dict[str, Any]:
    webhook = webhook_operations.update_webhook(runtime(), current_caller(), webhook_id, changes)
    return {"success": True, "webhook": webhook}


@blp.route(_WEBHOOK, methods=["PUT"])
@blp.operation("updateWebhook", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(WebhookUpdateSchema)
@blp.response(200, WebhookAnswerSchema)
def update_webhook(changes: dict[str, Any], webhook_id: str) -> dict[str, Any]:
    """Change a webhook. Omitted fields stay unchanged; what waits for one that is switched off is given up."""
    return _update(webhook_id, changes)


@blp.route(_WEBHOOK, methods=["PATCH"])
@blp.operation("patchWebhook", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(WebhookUpdateSchema)
@blp.response(200, WebhookAnswerSchema)
def patch_webhook(changes: dict[str, Any], webhook_id: str) -> dict[str, Any]:
    """Same as PUT."""
    return _update(webhook_id, changes)


@blp.route(_WEBHOOK, methods=["DELETE"])
@blp.operation("deleteWebhook", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def delete_webhook(webhook_id: str) -> dict[str, Any]:
    """Delete a webhook with its deliveries. Nothing more is sent to it."""
    webhook_operations.delete_webhook(runtime(), current_caller(), webhook_id)
    return {"success": True}


@blp.route(_WEBHOOK + "/deliveries", methods=["GET"])
@blp.operation("listDeliveries", _POLICY, errors=_ERRORS)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, DeliveryListSchema)
def list_deliveries(page: dict[str, Any], webhook_id: str) -> dict[str, Any]:
    """List a webhook's deliveries, newest first. The last 50 are kept, and those that wait."""
    with runtime().database.read() as session:
        webhook = webhooks.get_webhook(session, current_caller().account.id, webhook_id)
        found, total = webhooks.list_deliveries(session, webhook, **page)
    return {"deliveries": found, "total": total, **page}


@blp.route(_WEBHOOK + "/deliveries/<string:delivery_id>/redeliver", methods=["POST"])
@blp.operation("redeliver", _POLICY, errors=(*_ERRORS, ErrorCode.DELIVERY_NOT_FOUND), body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, DeliveryAnswerSchema)
def redeliver(fields: dict[str, Any], webhook_id: str, delivery_id: str) -> dict[str, Any]:
    """Send a delivery again, under the same id. Works for a webhook that is switched off, too."""
    delivery = webhook_operations.redeliver(runtime(), current_caller(), webhook_id, delivery_id)
    return {"success": True, "delivery": delivery}
