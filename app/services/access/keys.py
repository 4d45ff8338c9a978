"""API keys of a site."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Key, Site
from app.plans import QUOTA_REJECTIONS, PlanLimits
from app.services.access.rights import Rights, read_scopes, require_cover, require_site, rights_of
from app.services.collections import get_collection
from app.services.sites import count_keys, end_engine_credentials, get_account, get_site, owned
from app.storage.database import ROW_LOCK, read_page
from app.tokens import hash_token, is_key_id, make_key_id, make_token
from app.wording import counted


def key_not_found() -> ApiError:
    """Return the 404 for a key that does not exist or belongs to another account."""
    return ApiError(ErrorCode.KEY_NOT_FOUND, "Key not found.")


def get_key(
    session: Session,
    account_id: int,
    key_id: str,
    *,
    site_id: int | None = None,
    of_collection: bool = False,
    lock: bool = False,
) -> Key:
    """Load a key for a caller.

    Args:
        site_id: The site in the request's path, if any; the key must belong to it.
        of_collection: Whether the path names a collection instead.

    Raises:
        ApiError: 404, ``site_not_found`` if the site does not belong to the caller, else ``key_not_found``.
    """
    if site_id is not None:
        get_holder(session, account_id, site_id, of_collection=of_collection)
    # Otherwise, a NUL in the path would reach the database, which rejects it with an error.
    if not is_key_id(key_id):
        raise key_not_found()
    query = select(Key).join(Site).where(Key.id == key_id, owned(account_id))
    if site_id is not None:
        query = query.where(Key.site_id == site_id)
    key = session.scalar(query.with_for_update(of=Key, **ROW_LOCK) if lock else query)
    if key is None:
        raise key_not_found()
    return key


def get_holder(session: Session, account_id: int, site_id: int, *, of_collection: bool) -> Site:
    """Load the site or the collection that keys belong to.

    Raises:
        ApiError: 404.
    """
    return (get_collection if of_collection else get_site)(session, account_id, site_id)


def list_keys(
    session: Session, account_id: int, site_id: int, *, limit: int, offset: int, of_collection: bool = False
) -> tuple[Sequence[Key], int]:
    """Return one page of a site's keys, oldest first, and their total number.

    Raises:
        ApiError: 404.
    """
    site = get_holder(session, account_id, site_id, of_collection=of_collection)
    oldest = select(Key).where(Key.site_id == site.id).order_by(Key.created_at, Key.id)
    return read_page(session, oldest, limit=limit, offset=offset)


def find_key_by_hash(session: Session, account_id: int, site_id: int, token_hash: str) -> Key | None:
    """Return a site's key by the hash of its current token."""
    return session.scalar(
        select(Key).where(Key.token_hash == token_hash, Key.account_id == account_id, Key.site_id == site_id)
    )


def find_box_key(session: Session, site_id: int) -> Key | None:
    """Return the public key for a site's search box: the oldest usable key whose token is stored."""
    return session.scalar(
        select(Key)
        .where(
            Key.site_id == site_id,
            Key.type == "public",
            Key.token.is_not(None),
            Key.active,
            Key.expires_at.is_(None) | (Key.expires_at > now()),
        )
        .order_by(Key.created_at, Key.id)
        .limit(1)
    )


def find_sighting(session: Session, site_id: int) -> tuple[str, datetime] | None:
    """Return the host of the page that last used one of a site's public keys, and the time."""
    row = session.execute(
        select(Key.seen_host, Key.seen_at)
        .where(Key.site_id == site_id, Key.seen_at.is_not(None))
        .order_by(Key.seen_at.desc())
        .limit(1)
    ).first()
    return None if row is None else (row.seen_host, row.seen_at)


def is_box_used(session: Session, account_id: int) -> bool:
    """Whether a web page ever used a public key of the account. Previews in the dashboard do not count."""
    used = select(Key.id).join(Site).where(owned(account_id), Key.type == "public", Key.seen_at.is_not(None))
    return session.scalar(used.limit(1)) is not None


def create_key(
    session: Session,
    account_id: int,
    limits: PlanLimits,
    secret: str,
    site_id: int,
    *,
    name: str,
    type: str,
    expires_at: datetime | None,
    scopes: list[str] | None = None,
    site_only: bool = False,
    allowed_origins: list[str] | None = None,
    caller_rights: Rights | None,
    of_collection: bool = False,
) -> tuple[Key, str]:
    """Create a key. Returns it and its token, which is stored only for public keys.

    Args:
        caller_rights: Rights of the calling key or of an editor; ``None`` for owners.

    Raises:
        ApiError: 404 for the site; 400 for an expiry in the past; 403 at the plan's limit, or for more rights than
            ``caller_rights``.
    """
    _reject_past(expires_at)
    _reject_unsuitable(type, scopes, site_only, allowed_origins)
    site = get_holder(session, account_id, site_id, of_collection=of_collection)
    if of_collection and type == "private":
        raise field_error("type", "unsuitable", "must be public or search for a collection; private keys are for sites")
    require_cover(caller_rights, rights_of(type, read_scopes(scopes), site_only, site.id), "create")
    # The lock keeps concurrent requests from exceeding the plan's limit together.
    get_account(session, account_id, lock=True)
    if limits.keys is not None and count_keys(session, account_id) >= limits.keys:
        QUOTA_REJECTIONS.labels("keys").inc()
        raise ApiError(
            ErrorCode.KEY_LIMIT_REACHED,
            f"The plan allows {counted(limits.keys, 'key')}; delete one or change the plan.",
        )
    token = make_token(type)
    moment = now()
    key = Key(
        id=make_key_id(),
        account_id=account_id,
        site_id=site.id,
        name=name,
        type=type,
        token_hash=hash_token(token, secret),
        last4=token[-4:],
        # Public tokens are visible in web pages anyway, and the dashboard shows them again.
        token=token if type == "public" else None,
        expires_at=expires_at,
        scopes=scopes,
        site_only=site_only,
        allowed_origins=allowed_origins,
        created_at=moment,
        updated_at=moment,
    )
    session.add(key)
    session.flush()
    return key, token


def update_key(
    session: Session,
    account_id: int,
    site_id: int,
    key_id: str,
    changes: dict[str, Any],
    *,
    caller_rights: Rights | None,
    of_collection: bool = False,
) -> Key:
    """Change a key. An earlier expiry revokes its engine keys, which could otherwise outlive it.

    Any caller that may change keys may rename and narrow a key. Adding scopes, sites, or lifetime requires all rights
    that the key has before and after the change.

    Args:
        changes: ``name``, ``expires_at``, ``scopes``, ``site_only``, and ``allowed_origins``.
        caller_rights: As in :func:`create_key`.

    Raises:
        ApiError: 404; 400 for a changed type, an expiry in the past, or a setting that this type does not support; 403
            for widening a key that has, or would have, more rights than ``caller_rights``.
    """
    _reject_past(changes.get("expires_at"))
    key = get_key(session, account_id, key_id, site_id=site_id, of_collection=of_collection, lock=True)
    before = _rights_of(key)
    if changes.get("type", key.type) != key.type:
        raise field_error("type", "immutable", "cannot be changed; create a new key")
    for name in ("name", "scopes", "site_only", "allowed_origins"):
        if name in changes:
            setattr(key, name, changes[name])
    _reject_unsuitable(key.type, key.scopes, key.site_only, key.allowed_origins)
    after = _rights_of(key)
    # A longer life is a kind of widening, because the key's rights last longer.
    extends_expiry = "expires_at" in changes and _is_earlier(key.expires_at, changes["expires_at"])
    if extends_expiry or not before.cover(after):
        # Both, because the change may narrow some rights while it widens others.
        require_cover(caller_rights, before, "widen")
        require_cover(caller_rights, after, "widen")
    if "expires_at" in changes:
        if _is_earlier(changes["expires_at"], key.expires_at):
            _end_engine_credentials(session, key)
        key.expires_at = changes["expires_at"]
    key.updated_at = now()
    session.flush()
    return key


def toggle_key(
    session: Session, account_id: int, key_id: str, *, active: bool | None, caller_rights: Rights | None
) -> Key:
    """Enable or disable a key, or flip its state. Disabling revokes its engine keys.

    Args:
        caller_rights: As in :func:`create_key`. A key restricted to its own site cannot toggle keys of other sites.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for enabling a key with more rights than ``caller_rights``, or for
            another site's key.
    """
    key = get_key(session, account_id, key_id, lock=True)
    if caller_rights is not None:
        require_site(caller_rights, key.site_id)
    activate = not key.active if active is None else active
    if activate and not key.active:
        # Only enabling is checked: disabling adds no rights, and must be possible in an emergency.
        require_cover(caller_rights, _rights_of(key), "enable")
    _reject_expired(key, "toggled")
    key.active = activate
    if not key.active:
        _end_engine_credentials(session, key)
    key.updated_at = now()
    session.flush()
    return key


def disable_keys(session: Session, account_id: int) -> None:
    """Disable all keys of a locked account and revoke their engine keys."""
    # Ordered like every function that locks several keys, to avoid deadlocks.
    owned = select(Key).where(Key.account_id == account_id).order_by(Key.id).with_for_update(of=Key, **ROW_LOCK)
    for key in session.scalars(owned).all():
        if not key.active:
            continue
        key.active = False
        key.updated_at = now()
        _end_engine_credentials(session, key)
    session.flush()


def rotate_key(
    session: Session,
    account_id: int,
    secret: str,
    site_id: int,
    key_id: str,
    *,
    overlap_seconds: int,
    caller_rights: Rights | None,
    of_collection: bool = False,
) -> tuple[Key, str]:
    """Give a key a new token. The old token stops working immediately, or after ``overlap_seconds``.

    Args:
        caller_rights: As in :func:`create_key`.

    Raises:
        ApiError: 404; 400 for an expired key; 403 for a key with more rights than ``caller_rights``.
    """
    key = get_key(session, account_id, key_id, site_id=site_id, of_collection=of_collection, lock=True)
    # Rotation returns the new token, so a caller could otherwise gain rights that it does not have.
    require_cover(caller_rights, _rights_of(key), "rotate")
    _reject_expired(key, "rotated")
    token = make_token(key.type)
    moment = now()
    key.previous_token_hash = key.token_hash if overlap_seconds else None
    key.previous_expires_at = moment + timedelta(seconds=overlap_seconds) if overlap_seconds else None
    key.token_hash = hash_token(token, secret)
    key.last4 = token[-4:]
    key.token = token if key.type == "public" else None
    # The exposed token is replaced, so the notice ends.
    key.exposed_at = key.exposed_origin = None
    key.exposure_dismissed = False
    key.updated_at = moment
    _end_engine_credentials(session, key)
    session.flush()
    return key, token


def dismiss_exposure(session: Session, account_id: int, site_id: int, key_id: str) -> None:
    """Stop reporting that web pages send a private key, until the key is rotated.

    Raises:
        ApiError: 404.
    """
    key = get_key(session, account_id, key_id, site_id=site_id, lock=True)
    key.exposure_dismissed = True


def delete_key(session: Session, account_id: int, site_id: int, key_id: str, *, of_collection: bool = False) -> None:
    """Delete a key.

    Raises:
        ApiError: 404.
    """
    key = get_key(session, account_id, key_id, site_id=site_id, of_collection=of_collection, lock=True)
    _end_engine_credentials(session, key)
    session.delete(key)
    session.flush()


def _rights_of(key: Key) -> Rights:
    return rights_of(key.type, read_scopes(key.scopes), key.site_only, key.site_id)


def _reject_unsuitable(type: str, scopes: list[str] | None, site_only: bool, allowed_origins: list[str] | None) -> None:
    """Reject restrictions that keys of this type do not enforce."""
    if type != "private" and scopes is not None:
        raise field_error("scopes", "unsuitable", "can only be set for a private key")
    if type != "private" and site_only:
        raise field_error("site_only", "unsuitable", "can only be set for a private key")
    if type != "public" and allowed_origins is not None:
        raise field_error("allowed_origins", "unsuitable", "can only be set for a public key")


def _end_engine_credentials(session: Session, key: Key) -> None:
    # Gateway tokens contain the version, so a new one invalidates all of them without a list of issued tokens.
    key.token_version += 1
    end_engine_credentials(session, key.site, key_id=key.id)


def _is_earlier(expires_at: datetime | None, before: datetime | None) -> bool:
    """Whether one expiry is earlier than another; ``None`` means that a key never expires."""
    return expires_at is not None and (before is None or expires_at < before)


def _reject_past(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= now():
        raise field_error("expires_at", "out_of_range", "must be in the future")


def _reject_expired(key: Key, action: str) -> None:
    if key.status == "expired":
        raise field_error("key", "expired", f"has expired and cannot be {action}; change expires_at first")
