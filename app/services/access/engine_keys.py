"""Keys for searching the engine: the gateway's signed tokens, and the engine's own credentials.

A gateway token says whose it is and until when, signed with the server's secret. It stops with the
service key's ``token_version`` or the site's ``public_epoch``, both read from SQL under the account's
credential version.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.clock import now
from app.models import EngineCredential, Key, Site
from app.services.access.credentials import KeyRecord, SiteRecord
from app.storage.database import ROW_LOCK, Database
from backends.base import SearchBackend

LIFETIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class EngineClaims:
    """Claims of a gateway token.

    Attributes:
        key_id: The service key it belongs to; ``None`` for the site's public one.
        version: The key's ``token_version`` or the site's ``public_epoch`` when it was made.
        expires_at: Unix seconds.
    """

    account_id: int
    site_id: int
    key_id: str | None
    version: int
    expires_at: int


def _serializer(secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt="engine-key", signer_kwargs={"digest_method": hashlib.sha256})


def sign(claims: EngineClaims, secret: str) -> str:
    """The token for ``claims``."""
    token = _serializer(secret).dumps(
        [claims.account_id, claims.site_id, claims.key_id, claims.version, claims.expires_at]
    )
    return token if isinstance(token, str) else token.decode()


def read(token: str, secret: str) -> EngineClaims | None:
    """Read the claims of a token, if it is ours and has not expired."""
    if len(token) > 512:
        return None
    try:
        claims = EngineClaims(*_serializer(secret).loads(token))
    except (BadData, TypeError):
        return None
    # Base64 leaves bits of a signature's last letter unused; only the one way we write it is ours.
    if not hmac.compare_digest(sign(claims, secret).encode(), token.encode()):
        return None
    return claims if claims.expires_at > now().timestamp() else None


def gateway_keys(key: KeyRecord, site: SiteRecord, secret: str) -> tuple[str, str]:
    """The engine key of a service key and the public one, for the gateway.

    The public one is the site's, but of a key that names the origins allowed it is the key's own, which they bind too.
    """
    expires_at = now() + LIFETIME
    # When the service key itself expires is looked up at every search; that a token before a rotation ends is not.
    own_end = _end_with(key, expires_at) if key.was_rotated else expires_at
    own = EngineClaims(site.account_id, site.id, key.id, key.token_version, int(own_end.timestamp()))
    if key.allowed_origins is not None:
        return sign(own, secret), sign(own, secret)
    public = EngineClaims(site.account_id, site.id, None, site.public_epoch, int(expires_at.timestamp()))
    return sign(own, secret), sign(public, secret)


def _end_with(key: KeyRecord, expires_at: datetime) -> datetime:
    """``expires_at``, or when the service key's token ends if that is sooner."""
    return expires_at if key.usable_until is None else min(expires_at, key.usable_until)


class CredentialsStopped(Exception):
    """The key or the site changed while an engine credential was being made; ask again."""


def direct_keys(database: Database, engine: SearchBackend, key: KeyRecord, site: SiteRecord) -> tuple[str, str]:
    """The same as the engine's own credentials, noted so that they can be ended.

    Raises:
        CredentialsStopped: The key or the site is not what it was.
        BackendUnavailable: The engine makes none now.
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
    credential = engine.issue_credential(site.engine_index, holder, expires_at)
    with database.read() as session:
        if _is_noted(session, engine, holder, site.engine_index):
            return credential.token
    with database.write() as session:
        stands = _still_stands(session, site, key)
        if stands:
            _note(session, engine, site, holder, key, credential.reference)
    if not stands:
        engine.revoke_credential(credential.reference)
        raise CredentialsStopped
    return credential.token


def _is_noted(session: Session, engine: SearchBackend, holder: str, index: str) -> bool:
    query = select(EngineCredential.id).where(
        EngineCredential.engine == engine.identity,
        EngineCredential.holder == holder,
        EngineCredential.index_name == index,
    )
    return session.scalar(query) is not None


def _still_stands(session: Session, site: SiteRecord, key: KeyRecord | None) -> bool:
    """Tell whether nothing ended the credential's holder meanwhile; locks what would."""
    stored_site = session.get(Site, site.id, with_for_update=ROW_LOCK)
    if stored_site is None or not stored_site.active or stored_site.engine_index != site.engine_index:
        return False
    if key is None:
        return stored_site.public_epoch == site.public_epoch
    stored_key = session.get(Key, key.id, with_for_update={**ROW_LOCK, "of": Key})
    return stored_key is not None and stored_key.active and stored_key.token_version == key.token_version


def _note(
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
        .on_conflict_do_nothing(index_elements=["engine", "holder", "index_name"])
    )
