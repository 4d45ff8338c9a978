"""The choice among the accounts of one person, who has shown who they are, but not yet which they want."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from itsdangerous import BadData, URLSafeTimedSerializer

from app.models import Member
from app.tokens import hash_token

VALID_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Offer:
    """Members, of whom somebody may log in as one.

    Attributes:
        needs_code: Whether who has one-time codes has yet to show one.
        proofs: Ids, with what shows that the password is what it was then.
    """

    secret: str = field(repr=False)
    needs_code: bool = True
    proofs: Mapping[int, str] = field(default_factory=dict)

    def holds_for(self, member: Member) -> bool:
        """Tell whether the member is among them, with the same password."""
        return self.proofs.get(member.id) == _proof(member, self.secret)


def offer_members(members: Sequence[Member], secret: str, *, needs_code: bool) -> str:
    """A token for 10 minutes, with which one of these members may log in; it ends with their password."""
    proofs = {str(member.id): _proof(member, secret) for member in members}
    return str(_serializer(secret).dumps([needs_code, proofs]))


def read_offer(token: str, secret: str) -> Offer:
    """The offer that a token is for; one for nobody if it is wrong or late."""
    try:
        needs_code, proofs = _serializer(secret).loads(token, max_age=VALID_SECONDS)
    except BadData:
        return Offer(secret)
    return Offer(secret, needs_code, {int(id): proof for id, proof in proofs.items()})


def _proof(member: Member, secret: str) -> str:
    return hash_token(f"{member.id}:{member.password_hash}", secret)


def _serializer(secret: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt="choice of an account", signer_kwargs={"digest_method": hashlib.sha256})
