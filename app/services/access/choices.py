"""The choice among the accounts of one person, who has shown who they are, but not yet which they want."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from itsdangerous import BadData, URLSafeTimedSerializer

from app.models import Member
from app.tokens import hash_token

VALID_SECONDS = 600


def offer_members(members: Sequence[Member], secret: str) -> str:
    """A token for 10 minutes, with which one of these members may log in; it ends with their password."""
    return _serializer(secret).dumps({str(member.id): _proof(member, secret) for member in members})


def read_offer(token: str, secret: str) -> dict[int, str]:
    """Ids of the members that a token is for, with what :func:`is_offered` compares; none for a wrong or late one."""
    try:
        return {int(id): proof for id, proof in _serializer(secret).loads(token, max_age=VALID_SECONDS).items()}
    except BadData:
        return {}


def is_offered(member: Member, offer: dict[int, str], secret: str) -> bool:
    """Tell whether an offer is for this member, whose password is what it was then."""
    return offer.get(member.id) == _proof(member, secret)


def _proof(member: Member, secret: str) -> str:
    return hash_token(f"{member.id}:{member.password_hash}", secret)


def _serializer(secret: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt="choice of an account", signer_kwargs={"digest_method": hashlib.sha256})
