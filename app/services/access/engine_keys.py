"""Keys for direct engine access: signed gateway tokens, and credentials that an engine issues.

A gateway token contains its holder and expiry, signed with the server's secret. It becomes invalid when the API key's
``token_version`` or the site's ``public_epoch`` changes, both read from SQL under the account's credential version.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EngineCredential, Key, Site
from app.services.access.credentials import KeyRecord, SiteRecord
from app.storage.database import ROW_LOCK, Database
from backends.base import SearchBackend

LIFETIME = timedelta(hours=24)
"""Lifetime of an engine key."""
PREVIEW_LIFETIME = timedelta(hours=12)
"""Lifetime of an engine key for the preview of a site's search box."""


@dataclass(frozen=True, slots=True)
class EngineClaims:
    """Claims of a gateway token.

    Attributes:
        key_id: The API key it was issued for; ``None`` for the site's public engine key.
        version: The key's ``token_version`` or the site's ``public_epoch`` at issue.
        expires_at: Unix seconds.
        is_preview: Whether a member got it for the preview of the site's search box.
    """

    account_id: int
    site_id: int
    key_id: str | None
    version: int
    expires_at: int
    is_preview: bool = False


@lru_cache(maxsize=8)
def _serializer(secret: str) -> URLSafeSerializer:
    # The salt separates these tokens from everything else signed with the secret.
    return URLSafeSerializer(secret, salt="engine-key", signer_kwargs={"digest_method": hashlib.sha256})


def sign(claims: EngineClaims, secret: str) -> str:
    """Return the token for ``claims``."""
    parts = [claims.account_id, claims.site_id, claims.key_id, claims.version, claims.expires_at]
    token = _serializer(secret).dumps([*parts, True] if claims.is_preview else parts)
    return token if isinstance(token, str) else token.decode()


def read(token: str, secret: str) -> EngineClaims | None:
    """Return the claims of a token if its signature is valid and it has not expired."""
    claims = _verified(token, secret)
    return claims if claims is not None and claims.expires_at > now().timestamp() else None


@lru_cache(maxsize=1024)  # Verifying takes 100 calls, and pages of a site send the same token with each keystroke.
def _verified(token: str, secret: str) -> EngineClaims | None:
    # Longer than any issued token. Do not spend time on its signature.
    if len(token) > 512:
        return None
    try:
        claims = EngineClaims(*_serializer(secret).loads(token))
    except (BadData, TypeError):
        return None
    # The last base64 character has unused bits, so several spellings decode alike. Accept only the canonical one. The
    # signature covers the spelling of the claims, but not its own.
    signature = token.rpartition(".")[2]
    if base64_encode(base64_decode(signature)).decode() != signature:
        return None
    return claims


def gateway_keys(key: KeyRecord, site: SiteRecord, secret: str) -> tuple[str, str]:
    """Return two gateway tokens: the engine key of an API key, and the site's public engine key.

    If the API key has allowed origins, its own engine key is returned twice, so that the origins always apply.
    """
    expires_at = now() + LIFETIME
    # Every search checks the API key's expiry, but not the end of a rotation's overlap, so the token must end with it.
    own_end = _end_with(key, expires_at) if key.was_rotated else expires_at
    own = EngineClaims(site.account_id, site.id, key.id, key.token_version, int(own_end.timestamp()))
    if key.allowed_origins is not None:
        return sign(own, secret), sign(own, secret)
    public = EngineClaims(site.account_id, site.id, None, site.public_epoch, int(expires_at.timestamp()))
    return sign(own, secret), sign(public, secret)


def preview_key(account_id: int, site_id: int, public_epoch: int, secret: str) -> str:
    """Return a gateway token for the preview of a site's search box, which only members of the account see.

    It works on the service's own pages even if the public key of the box is restricted to other origins. Its searches
    are neither charged nor recorded.
    """
    expires_at = now() + PREVIEW_LIFETIME
    return sign(EngineClaims(account_id, site_id, None, public_epoch, int(expires_at.timestamp()), True), secret)


def _end_with(key: KeyRecord, expires_at: datetime) -> datetime:
    """Return ``expires_at``, or the expiry of the API key's token if it is earlier."""
    return expires_at if key.usable_until is None else min(expires_at, key.usable_until)


class CredentialsStopped(Exception):
    """The key or the site changed while an engine credential was being issued. The caller must retry."""


def direct_keys(database: Database, engine: SearchBackend, key: KeyRecord, site: SiteRecord) -> tuple[str, str]:
    """Return the two keys of :func:`gateway_keys` as credentials issued by the engine, recorded for revocation.

    Raises:
        CredentialsStopped: The key or the site changed meanwhile.
        BackendUnavailable: The engine cannot issue credentials now.
    """
    expires_at = now() + LIFETIME
    own = _issue(database, engine, site, f"{key.id}-v{key.token_version}", _end_with(key, expires_at), key)
    if key.allowed_origins is not None:
        return own, own
    public = _issue(database, engine, site, f"site-{site.id}-p{site.public_epoch}", expires_at, None)
    return own, public


def _issue(
    database: Database,
    engine: SearchBackend,
    site: SiteRecord,
    holder: str,
    expires_at: datetime,
    key: KeyRecord | None,
) -> str:
    # Issued outside the transaction, so that no lock is held during a network call. Whether the holder is still valid
    # is checked afterwards, under locks.
    credential = engine.issue_credential(site.engine_index, holder, expires_at)
    with database.read() as session:
        # The usual case, without a write: the holder's earlier keys are already recorded under the same reference.
        if _is_recorded(session, engine, holder, site.engine_index):
            return credential.token
    with database.write() as session:
        is_valid = _holder_is_valid(session, site, key)
        if is_valid:
            _record(session, engine, site, holder, key, credential.reference)
    if not is_valid:
        # Revoked here, since it was never recorded and nothing else would revoke it.
        engine.revoke_credential(credential.reference)
        raise CredentialsStopped
    return credential.token


def _is_recorded(session: Session, engine: SearchBackend, holder: str, index: str) -> bool:
    query = select(EngineCredential.id).where(
        EngineCredential.engine == engine.identity,
        EngineCredential.holder == holder,
        EngineCredential.index_name == index,
    )
    return session.scalar(query) is not None


def _holder_is_valid(session: Session, site: SiteRecord, key: KeyRecord | None) -> bool:
    """Whether the holder of the credential is still valid. Locks the rows that could invalidate it."""
    stored_site = session.get(Site, site.id, with_for_update=ROW_LOCK)
    if stored_site is None or not stored_site.active or stored_site.engine_index != site.engine_index:
        return False
    if key is None:
        return stored_site.public_epoch == site.public_epoch
    stored_key = session.get(Key, key.id, with_for_update={**ROW_LOCK, "of": Key})
    return stored_key is not None and stored_key.active and stored_key.token_version == key.token_version


def _record(
    session: Session, engine: SearchBackend, site: SiteRecord, holder: str, key: KeyRecord | None, reference: str
) -> None:
    insert: Any = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    session.execute(
        insert(EngineCredential.__table__)
        .values(
            site_id=site.id,
            key_id=None if key is None else key.id,
            engine=engine.identity,
            holder=holder,
            index_name=site.engine_index,
            reference=reference,
            created_at=now(),
        )
        # Two processes may issue a credential for one holder at once. Both have the same reference, so one row revokes
        # both.
        .on_conflict_do_nothing(index_elements=["engine", "holder", "index_name"])
    )
