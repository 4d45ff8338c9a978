"""Whether a known caller may do what they ask: by the kind of key, its scopes, its site, and the page that
sends it; by a member's role."""

from __future__ import annotations

from flask import Request

from app.errors import ApiError, ErrorCode
from app.runtime import runtime
from app.services.access.rights import told_scopes
from app.services.access.roles import Role
from app.services.sites import get_site
from app.web.auth import Caller, MemberRecord
from app.web.policy import OperationPolicy


def find_refusal(req: Request, policy: OperationPolicy, caller: Caller) -> ApiError | None:
    """The 403 for a caller whom the operation is not for; ``None`` if they may go on."""
    key = caller.key
    if key is not None and key.allowed_origins is not None:
        origin = req.environ.get("HTTP_ORIGIN")
        if origin is not None and not key.allowed_origins.allow(origin):
            return ApiError(
                ErrorCode.ORIGIN_NOT_ALLOWED,
                "Pages of this origin may not use the key; add the origin to the key's allowed_origins.",
            )
    if not policy.access.allows(caller):
        return _wrong_kind(policy, caller)
    if caller.member is not None and not policy.access.anyone:
        return _lacking_role(caller.member, policy.role_for(req.method))
    if key is None:
        return None
    if key.scopes is not None and policy.scope is not None and policy.scope not in key.scopes:
        return ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            f"The key lacks {told_scopes(frozenset({policy.scope}))}; add it to the key, or use another key.",
        )
    if key.site_only and policy.whole_account:
        return ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "The key is for its own site only, and this is about the whole account; use a key without site_only.",
        )
    return None


def _lacking_role(member: MemberRecord, needed: Role) -> ApiError | None:
    """The 403 for a member whose role does not suffice."""
    if member.role.covers(needed):
        return None
    return ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION,
        f"Your role in this account is {member.role}; this needs the role {needed}.",
    )


def _wrong_kind(policy: OperationPolicy, caller: Caller) -> ApiError:
    """The 403 for a key of the wrong kind, with what to do instead."""
    if policy.searches:
        message = (
            "A public key cannot search here. Call GET /v1/client-info with it and search the engine it names "
            "directly, or use a search key."
        )
    else:
        message = f"A {caller.kind} key cannot do this; use a private key."
    return ApiError(ErrorCode.INSUFFICIENT_PERMISSION, message)


def refuse_other_site(caller: Caller, site_id: int) -> None:
    """Refuse another site of the account with a key that is for its own site only.

    A site that does not exist, or is another account's, passes: it is not found by whoever looks for it next.

    Raises:
        ApiError: 403.
    """
    own = caller.only_site_id
    if own is None or site_id == own:
        return
    try:
        with runtime().database.read() as session:
            get_site(session, caller.account.id, site_id)
    except ApiError:
        return
    raise other_site()


def other_site() -> ApiError:
    """The 403 for another site of the account with a key that is for its own site only."""
    return ApiError(
        ErrorCode.INSUFFICIENT_PERMISSION, "The key is for its own site only; use a key of that site, or one for all."
    )
