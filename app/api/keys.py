"""API keys."""

from __future__ import annotations

from typing import Any

from app.api.views import key_form
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import change, write
from app.operations import keys as operations
from app.runtime import runtime
from app.services.access import keys
from app.services.access.rights import Role
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.policy import OperationPolicy
from schemas.base import SuccessSchema
from schemas.forms import KeyFormAnswerSchema
from schemas.keys import (
    KeyAnswerSchema,
    KeyCreateSchema,
    KeyListSchema,
    KeyRotateSchema,
    KeyShowSchema,
    KeyToggleSchema,
    KeyTokenAnswerSchema,
    KeyUpdateSchema,
)
from schemas.sites import PageQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("keys", __name__, description="API keys of a site.")

SITE_KEYS = "/api/sites/<int(signed=True):site_id>/keys"
_POLICY = OperationPolicy(MANAGING, Scope.KEYS)
_ERRORS = (ErrorCode.SITE_NOT_FOUND, ErrorCode.KEY_NOT_FOUND)
# Responses with this header contain a key's token.
_NO_STORE = {"Cache-Control": "no-store"}


@blp.route(SITE_KEYS, methods=["GET"])
@blp.operation("listKeys", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, KeyListSchema)
def list_keys(page: dict[str, Any], site_id: int) -> dict[str, Any]:
    """List a site's keys, oldest first."""
    with runtime().database.read() as session:
        listed, total = keys.list_keys(session, current_caller().account.id, site_id, **page)
        return {"keys": listed, "total": total, **page}


@blp.route(SITE_KEYS, methods=["POST"])
@blp.operation("createKey", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.KEY_LIMIT_REACHED), body=True)
@blp.arguments(KeyCreateSchema)
@blp.response(201, KeyTokenAnswerSchema)
def create_key(fields: dict[str, Any], site_id: int) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a key. Its token is in `api_key`, and is never shown again unless the key is public."""
    key, token = operations.create_key(runtime(), current_caller(), site_id, fields)
    response = {"success": True, "key": key, "api_key": token}
    return response, 201, {**_NO_STORE, "Location": f"/api/sites/{site_id}/keys/{key.id}"}


@blp.route(SITE_KEYS + "/<string:key_id>", methods=["GET"])
@blp.operation("showKey", OperationPolicy(MANAGING, Scope.KEYS, role=Role.EDITOR), errors=_ERRORS)
@blp.response(200, KeyShowSchema)
def show_key(site_id: int, key_id: str) -> dict[str, Any]:
    """Get a key, with its token if it is public."""
    with runtime().database.read() as session:
        key = keys.get_key(session, current_caller().account.id, key_id, site_id=site_id)
        return {"key": key, **({} if key.token is None else {"api_key": key.token})}


@blp.route(SITE_KEYS + "/<string:key_id>/edit", methods=["GET"])
@blp.operation("showKeyEditForm", OperationPolicy(MANAGING, Scope.KEYS, role=Role.EDITOR), errors=_ERRORS)
@blp.response(200, KeyFormAnswerSchema)
def show_edit_form(site_id: int, key_id: str) -> dict[str, Any]:
    """Get the form for editing a key, with current values."""
    caller = current_caller()
    with runtime().database.read() as session:
        key = keys.get_key(session, caller.account.id, key_id, site_id=site_id)
        return {"form": key_form(caller, site_id, key), "key": key}


@blp.put_and_patch(
    SITE_KEYS + "/<string:key_id>",
    ("updateKey", "patchKey"),
    _POLICY,
    _ERRORS,
    KeyUpdateSchema,
    KeyAnswerSchema,
)
def update_key(changes: dict[str, Any], site_id: int, key_id: str) -> dict[str, Any]:
    """Change a key. Omitted fields stay unchanged."""
    caller = current_caller()
    key = change(runtime(), caller, keys.update_key, site_id, key_id, changes, caller_rights=caller.rights)
    return {"success": True, "key": key}


@blp.route(SITE_KEYS + "/<string:key_id>", methods=["DELETE"])
@blp.operation("deleteKey", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def delete_key(site_id: int, key_id: str) -> dict[str, Any]:
    """Delete a key. It stops working immediately."""
    change(runtime(), current_caller(), keys.delete_key, site_id, key_id)
    return {"success": True}


@blp.route(SITE_KEYS + "/<string:key_id>/rotate", methods=["POST"])
@blp.operation("rotateKey", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(KeyRotateSchema, location="json_optional", required=False)
@blp.response(200, KeyTokenAnswerSchema)
def rotate_key(fields: dict[str, Any], site_id: int, key_id: str) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Replace a key's token. The old one stops working immediately, or after `overlap_seconds`."""
    key, token = operations.rotate_key(runtime(), current_caller(), site_id, key_id, fields)
    return {"success": True, "key": key, "api_key": token}, 200, _NO_STORE


@blp.route(SITE_KEYS + "/<string:key_id>/exposure", methods=["DELETE"])
@blp.operation("dismissKeyExposure", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def dismiss_exposure(site_id: int, key_id: str) -> dict[str, Any]:
    """Dismiss the notice about a private key in a web page. Rotating the key also dismisses it."""
    write(runtime(), current_caller(), keys.dismiss_exposure, site_id, key_id)
    return {"success": True}


@blp.route("/api/keys/<string:key_id>/toggle", methods=["POST"])
@blp.operation("toggleKey", _POLICY, errors=(ErrorCode.KEY_NOT_FOUND,), body=True)
@blp.arguments(KeyToggleSchema, location="json_optional", required=False)
@blp.response(200, KeyAnswerSchema)
def toggle_key(fields: dict[str, Any], key_id: str) -> dict[str, Any]:
    """Disable an active key, or enable a disabled one. `active` in the body sets the state explicitly."""
    caller = current_caller()
    key = change(runtime(), caller, keys.toggle_key, key_id, active=fields["active"], caller_rights=caller.rights)
    return {"success": True, "key": key}
