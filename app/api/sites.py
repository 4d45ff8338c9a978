"""Sites."""

from __future__ import annotations

from typing import Any

from app.api.views import describe_site, merge_options, site_form
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import sites as site_operations
from app.runtime import runtime
from app.services import sites
from app.services.access.rights import Role
from app.web.auth import MANAGING
from app.web.callers import current_caller, load_site
from app.web.policy import OperationPolicy
from schemas.base import NothingSchema, SuccessSchema
from schemas.forms import FormAnswerSchema, SiteFormAnswerSchema
from schemas.sites import (
    PageQuerySchema,
    SiteAnswerSchema,
    SiteCreateSchema,
    SiteDeleteBodySchema,
    SiteDeleteQuerySchema,
    SiteListSchema,
    SiteShowSchema,
    SiteUpdateSchema,
)
from schemas.validation.keys import Scope

blp = ApiBlueprint("sites", __name__, description="Sites of the account. Each has its own index and keys.")

_POLICY = OperationPolicy(MANAGING, Scope.SITES)
_ERRORS = (ErrorCode.SITE_NOT_FOUND,)


@blp.route("/sites", methods=["GET"])
@blp.operation("listSites", _POLICY)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, SiteListSchema)
def list_sites(page: dict[str, Any]) -> dict[str, Any]:
    """List the account's sites, oldest first."""
    caller = current_caller()
    with runtime().database.read() as session:
        listed, total = sites.list_sites(session, caller.account.id, **page, only=caller.only_site_id)
        return {"sites": [describe_site(site, caller) for site in listed], "total": total, **page}


@blp.route("/sites", methods=["POST"])
@blp.operation(
    "createSite",
    OperationPolicy(MANAGING, Scope.SITES, whole_account=True),
    errors=(ErrorCode.SITE_LIMIT_REACHED,),
    body=True,
)
@blp.arguments(SiteCreateSchema)
@blp.response(201, SiteAnswerSchema)
def create_site(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a site."""
    caller = current_caller()
    site = site_operations.create_site(runtime(), caller, fields)
    return {"success": True, "site": describe_site(site, caller)}, 201, {"Location": f"/sites/{site.id}"}


@blp.route("/sites/create", methods=["GET"])
@blp.operation("showSiteCreateForm", OperationPolicy(MANAGING, Scope.SITES, whole_account=True, role=Role.EDITOR))
@blp.response(200, FormAnswerSchema)
def show_create_form() -> dict[str, Any]:
    """Get the form for creating a site."""
    return {"form": site_form(current_caller(), None)}


@blp.route("/sites/<int(signed=True):site_id>", methods=["GET"])
@blp.operation("showSite", _POLICY, errors=_ERRORS)
@blp.response(200, SiteShowSchema)
def show_site(site_id: int) -> dict[str, Any]:
    """Get a site."""
    caller = current_caller()
    with runtime().database.read() as session:
        return {"site": describe_site(sites.get_site(session, caller.account.id, site_id), caller)}


@blp.route("/sites/<int(signed=True):site_id>/edit", methods=["GET"])
@blp.operation("showSiteEditForm", OperationPolicy(MANAGING, Scope.SITES, role=Role.EDITOR), errors=_ERRORS)
@blp.response(200, SiteFormAnswerSchema)
def show_edit_form(site_id: int) -> dict[str, Any]:
    """Get the form for editing a site, with current values."""
    caller = current_caller()
    site = load_site(site_id)
    return {"form": site_form(caller, site), "site": describe_site(site, caller)}


@blp.put_and_patch(
    "/sites/<int(signed=True):site_id>",
    ("updateSite", "patchSite"),
    _POLICY,
    _ERRORS,
    SiteUpdateSchema,
    SiteAnswerSchema,
)
def update_site(changes: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Change a site. Omitted fields stay unchanged; `active: false` pauses it."""
    caller = current_caller()
    site = site_operations.update_site(runtime(), caller, site_id, changes)
    return {"success": True, "site": describe_site(site, caller)}


@blp.route("/sites/<int(signed=True):site_id>", methods=["DELETE"])
@blp.operation("deleteSite", _POLICY, errors=_ERRORS, body=True)
@blp.undocumented_body(SiteDeleteBodySchema)
@blp.arguments(SiteDeleteQuerySchema, location="query")
@blp.response(200, SuccessSchema)
def delete_site(body: dict[str, Any], query: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Delete a site. It can be restored for 30 days; `purge=true` deletes it and all its data immediately.

    Send `name` and `purge` as query parameters or in the body.
    """
    site_operations.delete_site(runtime(), current_caller(), site_id, **merge_options(query, body))
    return {"success": True}


@blp.route("/sites/<int(signed=True):site_id>/restore", methods=["POST"])
@blp.operation(
    "restoreSite",
    _POLICY,
    errors=(
        ErrorCode.SITE_NOT_FOUND,
        ErrorCode.SITE_LIMIT_REACHED,
        ErrorCode.KEY_LIMIT_REACHED,
        ErrorCode.DOCUMENT_LIMIT_REACHED,
    ),
    body=True,
)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, SiteAnswerSchema)
def restore_site(nothing: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Restore a deleted site with its keys, documents, and statistics. Other sites stay unchanged."""
    caller = current_caller()
    return {"success": True, "site": describe_site(site_operations.restore_site(runtime(), caller, site_id), caller)}
