"""Permissions of identified callers, and the site of a key's request.

A key's permissions depend on its kind, scopes, site, and the page that sends it; a member's depend on the role.
"""

from __future__ import annotations

from dataclasses import replace

from flask import Request

from app.errors import ApiError, ErrorCode, field_error
from app.runtime import runtime
from app.services.access.callers import Caller, MemberRecord
from app.services.access.credentials import SearchedSite, SiteRecord, load_site_record
from app.services.access.rights import Role, format_scopes, other_site
from app.services.sites import account_suspended, get_site, site_inactive, site_not_found
from app.web.policy import OperationPolicy


def find_permission_error(req: Request, policy: OperationPolicy, caller: Caller) -> ApiError | None:
    """Return the 403 for a caller who may not use the operation, or ``None``."""
    key, is_open = caller.key, policy.access.anyone
    if not is_open and caller.account.suspension is not None:
        return account_suspended(caller.account.suspension)
    if not is_open and key is not None and caller.account.sites[key.site_id].deleted:
        return site_inactive(deleted=True)
    if key is not None and key.allowed_origins is not None:
        # Programs other than browsers send no origin. The list restricts only web pages.
        origin = req.environ.get("HTTP_ORIGIN")
        if origin is not None and not key.allowed_origins.allow(origin):
            return ApiError(
                ErrorCode.ORIGIN_NOT_ALLOWED,
                "Pages of this origin may not use the key; add the origin to the key's allowed_origins.",
            )
    if not (is_open or getattr(policy.access, caller.kind)):
        return _wrong_kind(policy, caller)
    if caller.member is not None and not is_open:
        return _lacking_role(caller.member, policy.role_for(req.method))
    if key is None:
        return None
    if key.scopes is not None and policy.scope is not None and policy.scope not in key.scopes:
        return ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            f"The key lacks {format_scopes(frozenset({policy.scope}))}; add it to the key, or use another key.",
        )
    if key.site_only and policy.whole_account:
        return ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "The key is limited to its own site, but this operation affects the whole account; "
            "use a key without site_only.",
        )
    return None


def _lacking_role(member: MemberRecord, needed: Role) -> ApiError | None:
    if member.role.covers(needed):
        return None
    return ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION,
        f"Your role in this account is {member.role}; this operation requires the role {needed}.",
    )


def _wrong_kind(policy: OperationPolicy, caller: Caller) -> ApiError:
    """Return the 403 for a caller of the wrong kind, with advice."""
    if policy.access.operator:
        message = "Only the operator of this service can do this, with the operator token."
    elif policy.searches and caller.kind == "public":
        message = (
            "A public key cannot search here. Call GET /v1/client-info with it and search the engine it names "
            "directly, or use a search key."
        )
    else:
        fitting = next((kind for kind in ("private", "search", "public") if getattr(policy.access, kind)), None)
        message = (
            f"A {caller.kind} key cannot do this; use a {fitting} key."
            if fitting
            else "Keys cannot do this; log in as a member."
        )
    return ApiError(ErrorCode.INSUFFICIENT_PERMISSION, message)


def reject_other_site(caller: Caller, site_id: int) -> None:
    """Reject other sites of the account for a key that is limited to its own site.

    Unknown sites and sites of other accounts pass this check; loading them later raises a 404.

    Raises:
        ApiError: 403.
    """
    own_site_id = caller.only_site_id
    if own_site_id is None or site_id == own_site_id:
        return
    try:
        with runtime().database.read() as session:
            # An unknown site is not rejected here, so that the operation reports it as not found.
            get_site(session, caller.account.id, site_id, include_deleted=True)
    except ApiError:
        return
    raise other_site()


def choose_searched_site(caller: Caller, site_id: int | None) -> SiteRecord:
    """Return the site to search: the key's own site or collection, a site of the key's collection, or any site of the
    account for an unrestricted private key.

    Raises:
        ApiError: 404 for an unknown site, another account's, or one that the key's collection does not search; 403 for
            another site of the account with a key that is limited to its own site, or for a paused site.
    """
    key = caller.key
    assert key is not None
    own = _site(caller, key.site_id)
    if own.searched_sites is not None:
        return own if site_id is None else _searched_alone(own, own.searched_sites, site_id)
    requested_id = key.site_id if site_id is None else site_id
    site = _site(caller, requested_id)
    if site.searched_sites is not None:  # A collection is searched with its own keys.
        raise site_not_found()
    if requested_id != key.site_id and key.site_only:
        raise other_site()
    if requested_id != key.site_id and key.type != "private":
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "A search key can search only its own site; use that site's key or a private key.",
        )
    if not site.active:
        raise site_inactive(deleted=site.deleted)
    return site


def _searched_alone(collection: SiteRecord, searched_sites: tuple[SearchedSite, ...], site_id: int) -> SiteRecord:
    """Return a collection that searches only one of its sites.

    Raises:
        ApiError: 404.
    """
    only = tuple(site for site in searched_sites if site.record.id == site_id)
    if not only:
        raise site_not_found()
    return replace(collection, searched_sites=only)


def _site(caller: Caller, site_id: int) -> SiteRecord:
    """Return the site from the cached account, loaded on first use."""
    site = caller.account.sites.get(site_id)
    if site is None:
        with runtime().database.read() as session:
            loaded = get_site(session, caller.account.id, site_id, include_deleted=True, or_collection=True)
            site = load_site_record(session, loaded)
        caller.account.sites[site_id] = site
    return site


def choose_written_site(caller: Caller, in_query: int | None, in_body: int | None) -> int:
    """Return the site to write documents to: from the query or the body, otherwise the private key's own site.

    Raises:
        ApiError: 400 for conflicting sites, or if a session doesn't specify one; 403 for another site of the account
            with a key that is limited to its own site.
    """
    if in_query is not None and in_body is not None and in_query != in_body:
        raise field_error("site_id", "conflict", "has different values in the query and in the body")
    requested_id = in_body if in_query is None else in_query
    if requested_id is not None:
        reject_other_site(caller, requested_id)
        return requested_id
    if caller.key is None:
        raise field_error("site_id", "required", "is required")
    return caller.key.site_id


def choose_reported_site(caller: Caller, site_id: int | None) -> int | None:
    """Return the site to report statistics for; ``None`` for all sites of the account.

    A key that is limited to its own site gets the statistics of that site.

    Raises:
        ApiError: 403 for another site of the account, if the key is limited to its own site.
    """
    if site_id is None:
        return caller.only_site_id
    reject_other_site(caller, site_id)
    return site_id


def own_site(caller: Caller) -> SiteRecord:
    """Return the site of the caller's own key."""
    assert caller.key is not None
    return _site(caller, caller.key.site_id)
