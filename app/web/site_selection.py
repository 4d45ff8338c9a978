"""Which site a key's request is about."""

from __future__ import annotations

from app.errors import ApiError, ErrorCode, field_error
from app.runtime import runtime
from app.services.access.credentials import SiteRecord, site_record
from app.services.sites import get_site, site_inactive
from app.web.auth import Caller
from app.web.permissions import other_site, refuse_other_site


def choose_searched_site(caller: Caller, site_id: int | None) -> SiteRecord:
    """The site a key may search: a search key its own, a private key any of its account, unless it is ``site_only``.

    Raises:
        ApiError: 404 for nobody's or another account's site, 403 for another site of the account with a
            key that is for its own alone, or a paused site.
    """
    key = caller.key
    assert key is not None
    wanted = key.site_id if site_id is None else site_id
    site = _site(caller, wanted)
    if wanted != key.site_id and key.site_only:
        raise other_site()
    if wanted != key.site_id and key.type != "private":
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "A search key can search only its own site; use that site's key or a private key.",
        )
    if not site.active:
        raise site_inactive()
    return site


def _site(caller: Caller, site_id: int) -> SiteRecord:
    """The site from the cached account, loaded at first use."""
    site = caller.account.sites.get(site_id)
    if site is None:
        with runtime().database.read() as session:
            site = site_record(get_site(session, caller.account.id, site_id))
        caller.account.sites[site_id] = site
    return site


def choose_written_site(caller: Caller, in_query: int | None, in_body: int | None) -> int:
    """The site whose documents are meant: a private key's own unless named in the query or the body.

    Raises:
        ApiError: 400 if both name one and differ, or a session names none; 403 for another site of the account with a
            key that is for its own alone.
    """
    if in_query is not None and in_body is not None and in_query != in_body:
        raise field_error("site_id", "conflict", "in the query and in the body differ")
    named = in_body if in_query is None else in_query
    if named is not None:
        refuse_other_site(caller, named)
        return named
    if caller.key is None:
        raise field_error("site_id", "required", "is required")
    return caller.key.site_id


def choose_reported_site(caller: Caller, site_id: int | None) -> int | None:
    """The site whose statistics are meant; ``None`` for all of the account, unless the key is for its own alone.

    Raises:
        ApiError: 403 for another site of the account with such a key.
    """
    if site_id is None:
        return caller.only_site_id
    refuse_other_site(caller, site_id)
    return site_id


def own_site(caller: Caller) -> SiteRecord:
    """The site of the caller's own key."""
    assert caller.key is not None
    return _site(caller, caller.key.site_id)
