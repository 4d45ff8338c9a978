"""Links that end the weekly digest, for whoever has the mail: signed, good for ever, and known to belong to it."""

from __future__ import annotations

import hashlib

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy.orm import Session

from app.models import Account
from app.storage.database import ROW_LOCK

PATH = "/digest/unsubscribe"


def unsubscribe_url(public_url: str, secret: str, account_id: int) -> str:
    """The link of an account."""
    token = _serializer(secret).dumps(account_id)
    return f"{public_url}{PATH}?token={token if isinstance(token, str) else token.decode()}"


def read_token(token: str, secret: str) -> int | None:
    """The account whose link it is; ``None`` if it is none of ours."""
    try:
        account_id = _serializer(secret).loads(token)
    except BadData:
        return None
    return account_id if isinstance(account_id, int) else None


def unsubscribe(session: Session, account_id: int) -> None:
    """Send an account no more digests; harmless if it gets none or is gone."""
    account = session.get(Account, account_id, with_for_update=ROW_LOCK)
    if account is not None:
        account.weekly_digest = False


def _serializer(secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt="weekly-digest", signer_kwargs={"digest_method": hashlib.sha256})
