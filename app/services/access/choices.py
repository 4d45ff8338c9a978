"""Logins of people who have shown who they are, and lack a code, or the choice among their accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Member
from app.tokens import hash_token, read_signed, sign

VALID_SECONDS = 600
_PURPOSE = "choice of an account"


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

    def find_members(self, session: Session) -> list[Member]:
        """Those of them who have the same password as then, oldest first."""
        found = session.scalars(select(Member).where(Member.id.in_(self.proofs)).order_by(Member.id))
        return [member for member in found if self.proofs[member.id] == _proof(member, self.secret)]


def offer_members(members: Sequence[Member], secret: str, *, needs_code: bool) -> str:
    """A token for 10 minutes, with which one of these members may log in; it ends with their password."""
    proofs = {str(member.id): _proof(member, secret) for member in members}
    return sign([needs_code, proofs], secret, _PURPOSE)


def read_offer(token: str, secret: str) -> Offer:
    """The offer that a token is for; one for nobody if it is wrong or late."""
    signed = read_signed(token, secret, _PURPOSE, VALID_SECONDS)
    if signed is None:
        return Offer(secret)
    needs_code, proofs = signed
    return Offer(secret, needs_code, {int(id): proof for id, proof in proofs.items()})


def _proof(member: Member, secret: str) -> str:
    return hash_token(f"{member.id}:{member.password_hash}", secret)
