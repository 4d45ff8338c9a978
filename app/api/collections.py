"""Collections of sites, and their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy.orm import Session

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.models import Site
from app.operations import change
from app.operations import collections as collection_operations
from app.operations import keys as key_operations
from app.runtime import runtime
from app.services import collections
from app.services.access import keys
from app.services.access.rights import Role
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.policy import OperationPolicy
from schemas.base import SuccessSchema
from schemas.collections import (
    CollectionAnswerSchema,
    CollectionCreateSchema,
    CollectionListSchema,
    CollectionShowSchema,
    CollectionUpdateSchema,
)
from schemas.keys import (
    KeyAnswerSchema,
    KeyCreateSchema,
    KeyListSchema,
    KeyRotateSchema,
    KeyShowSchema,
    KeyTokenAnswerSchema,
    KeyUpdateSchema,
)
from schemas.sites import PageQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("collections", __name__, description="Collections, each of which searches several sites as one.")

COLLECTION = "/api/collections/<int(signed=True):collection_id>"
_POLICY = OperationPolicy(MANAGING, Scope.SITES, whole_account=True)
_ERRORS = (ErrorCode.COLLECTION_NOT_FOUND,)
_SITE_ERRORS = (ErrorCode.COLLECTION_NOT_FOUND, ErrorCode.SITE_NOT_FOUND, ErrorCode.INVALID_FILTER)
_KEYS = OperationPolicy(MANAGING, Scope.KEYS, whole_account=True)
_KEY_ERRORS = (ErrorCode.COLLECTION_NOT_FOUND, ErrorCode.KEY_NOT_FOUND)
_NO_STORE = {"Cache-Control": "no-store"}


@blp.route("/api/collections", methods=["GET"])
@blp.operation("listCollections", _POLICY)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, CollectionListSchema)
def list_collections(page: dict[str, Any]) -> dict[str, Any]:
    """List the account's collections, oldest first."""
    with runtime().database.read() as session:
        listed, total = collections.list_collections(session, current_caller().account.id, **page)
        return {"collections": describe_collections(session, listed), "total": total, **page}


@blp.route("/api/collections", methods=["POST"])
@blp.operation(
    "createCollection",
    _POLICY,
    errors=(ErrorCode.COLLECTION_LIMIT_REACHED, ErrorCode.SITE_NOT_FOUND, ErrorCode.INVALID_FILTER),
    body=True,
)
@blp.arguments(CollectionCreateSchema)
@blp.response(201, CollectionAnswerSchema)
def create_collection(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a collection of 1 to 10 sites."""
    collection = collection_operations.create_collection(runtime(), current_caller(), fields)
    return _changed(collection), 201, {"Location": f"/api/collections/{collection.id}"}


@blp.route(COLLECTION, methods=["GET"])
@blp.operation("showCollection", _POLICY, errors=_ERRORS)
@blp.response(200, CollectionShowSchema)
def show_collection(collection_id: int) -> dict[str, Any]:
    """Get a collection. `problems` lists its deleted and paused sites, which are not searched."""
    with runtime().database.read() as session:
        collection = collections.get_collection(session, current_caller().account.id, collection_id)
        return {"collection": describe_collections(session, [collection])[0]}


@blp.put_and_patch(
    COLLECTION,
    ("updateCollection", "patchCollection"),
    _POLICY,
    _SITE_ERRORS,
    CollectionUpdateSchema,
    CollectionAnswerSchema,
)
def update_collection(changes: dict[str, Any], collection_id: int) -> dict[str, Any]:
    """Change a collection. Omitted fields stay unchanged; `sites` replaces the list."""
    return _changed(change(runtime(), current_caller(), collections.update_collection, collection_id, changes))


@blp.route(COLLECTION, methods=["DELETE"])
@blp.operation("deleteCollection", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def delete_collection(collection_id: int) -> dict[str, Any]:
    """Delete a collection with its keys and analytics. Its sites stay as they are."""
    change(runtime(), current_caller(), collections.delete_collection, collection_id)
    return {"success": True}


@blp.route(COLLECTION + "/keys", methods=["GET"])
@blp.operation("listCollectionKeys", _KEYS, errors=_ERRORS)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, KeyListSchema)
def list_keys(page: dict[str, Any], collection_id: int) -> dict[str, Any]:
    """List a collection's keys, oldest first."""
    with runtime().database.read() as session:
        listed, total = keys.list_keys(session, current_caller().account.id, collection_id, **page, of_collection=True)
        return {"keys": listed, "total": total, **page}


@blp.route(COLLECTION + "/keys", methods=["POST"])
@blp.operation(
    "createCollectionKey", _KEYS, errors=(ErrorCode.COLLECTION_NOT_FOUND, ErrorCode.KEY_LIMIT_REACHED), body=True
)
@blp.arguments(KeyCreateSchema)
@blp.response(201, KeyTokenAnswerSchema)
def create_key(fields: dict[str, Any], collection_id: int) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a public or search key that searches the collection."""
    key, token = key_operations.create_key(runtime(), current_caller(), collection_id, fields, of_collection=True)
    response = {"success": True, "key": key, "api_key": token}
    return response, 201, {**_NO_STORE, "Location": f"/api/collections/{collection_id}/keys/{key.id}"}


@blp.route(COLLECTION + "/keys/<string:collection_key_id>", methods=["GET"])
@blp.operation(
    "showCollectionKey",
    OperationPolicy(MANAGING, Scope.KEYS, whole_account=True, role=Role.EDITOR),
    errors=_KEY_ERRORS,
)
@blp.response(200, KeyShowSchema)
def show_key(collection_id: int, collection_key_id: str) -> dict[str, Any]:
    """Get a key, with its token if it is public."""
    with runtime().database.read() as session:
        account_id = current_caller().account.id
        key = keys.get_key(session, account_id, collection_key_id, site_id=collection_id, of_collection=True)
        return {"key": key, **({} if key.token is None else {"api_key": key.token})}


@blp.put_and_patch(
    COLLECTION + "/keys/<string:collection_key_id>",
    ("updateCollectionKey", "patchCollectionKey"),
    _KEYS,
    _KEY_ERRORS,
    KeyUpdateSchema,
    KeyAnswerSchema,
)
def update_key(changes: dict[str, Any], collection_id: int, collection_key_id: str) -> dict[str, Any]:
    """Change a key. Omitted fields stay unchanged."""
    caller = current_caller()
    key = change(
        runtime(), caller, keys.update_key, collection_id, collection_key_id, changes,
        caller_rights=caller.rights, of_collection=True,
    )  # fmt: skip
    return {"success": True, "key": key}


@blp.route(COLLECTION + "/keys/<string:collection_key_id>", methods=["DELETE"])
@blp.operation("deleteCollectionKey", _KEYS, errors=_KEY_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def delete_key(collection_id: int, collection_key_id: str) -> dict[str, Any]:
    """Delete a key. It stops working immediately."""
    change(runtime(), current_caller(), keys.delete_key, collection_id, collection_key_id, of_collection=True)
    return {"success": True}


@blp.route(COLLECTION + "/keys/<string:collection_key_id>/rotate", methods=["POST"])
@blp.operation("rotateCollectionKey", _KEYS, errors=_KEY_ERRORS, body=True)
@blp.arguments(KeyRotateSchema, location="json_optional", required=False)
@blp.response(200, KeyTokenAnswerSchema)
def rotate_key(
    fields: dict[str, Any], collection_id: int, collection_key_id: str
) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Replace a key's token. The old one stops working immediately, or after `overlap_seconds`."""
    key, token = key_operations.rotate_key(
        runtime(), current_caller(), collection_id, collection_key_id, fields, of_collection=True
    )
    return {"success": True, "key": key, "api_key": token}, 200, _NO_STORE


def describe_collections(session: Session, listed: Sequence[Site]) -> list[dict[str, Any]]:
    """Return the representation of collections in responses."""
    problems = collections.find_problems(session, listed)
    return [
        {
            "id": collection.id,
            "name": collection.name,
            "index": collection.index,
            "sites": collection.searched_sites,
            "problems": [asdict(problem) for problem in problems[collection.id]],
            "created_at": collection.created_at,
            "updated_at": collection.updated_at,
        }
        for collection in listed
    ]


def _changed(collection: Site) -> dict[str, Any]:
    with runtime().database.read() as session:
        return {"success": True, "collection": describe_collections(session, [collection])[0]}
