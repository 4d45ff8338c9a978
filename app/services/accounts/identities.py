"""Logins with an OpenID Connect provider: checking ID tokens, and linking identities to members."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Identity, Invitation, Member
from app.models import Session as Login
from app.services.access.keys import disable_keys
from app.services.access.sessions import end_other_sessions
from app.services.accounts.members import confirm_email, find_members, first_owner, is_same_mailbox
from app.services.accounts.oidc_provider import AnswerRefused, Provider
from app.services.accounts.one_time_codes import switch_off
from app.services.accounts.password_resets import end_resets

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
"""Signatures of which only the provider has the private key: neither ``none`` nor one with the client's secret."""
LEEWAY_SECONDS = 60
"""How far the provider's clock may be from this one's."""
MAX_SUBJECT = 255


@dataclass(frozen=True, slots=True)
class Person:
    """A person, as their provider knows them.

    Attributes:
        subject: What the provider calls them for ever.
        email: An address of which the provider says that it is theirs.
    """

    issuer: str
    subject: str
    email: str
    name: str


def read_person(provider: Provider, answer: Mapping[str, Any], nonce: str) -> Person:
    """The person whom the answer to a code is about.

    The e-mail is asked for if it is not in the token, as OpenID Connect Core 5.4 allows.

    Raises:
        AnswerRefused: Something is not as it must be; the message says what, for the person.
        ProviderUnavailable: The provider does not answer.
    """
    claims = _verified_claims(provider, answer.get("id_token"), nonce)
    told: Mapping[str, Any] = claims
    if "email" not in claims:
        told = provider.userinfo(str(answer.get("access_token", "")))
        if told.get("sub") != claims["sub"]:
            raise AnswerRefused("The provider told of another person.")
    email, name = told.get("email"), told.get("name", claims.get("name"))
    if not isinstance(email, str) or not email:
        raise AnswerRefused("The provider tells no e-mail address.")
    if told.get("email_verified") is not True:
        raise AnswerRefused("The provider has not verified your e-mail address; verify it there first.")
    shown = "".join(filter(str.isprintable, name)).strip()[:100] if isinstance(name, str) else ""
    return Person(provider.issuer, claims["sub"], email.strip(), shown or email.partition("@")[0][:100])


def _verified_claims(provider: Provider, token: Any, nonce: str) -> dict[str, Any]:
    if not isinstance(token, str):
        raise AnswerRefused("The provider sent no ID token.")
    try:
        try:
            claims = _decode(token, provider.keys())
        except (InvalidKeyIdError, BadSignatureError):
            # The provider may have changed its keys.
            claims = _decode(token, provider.keys(anew=True))
        _registry(provider).validate(claims)
    except (JoseError, ValueError, TypeError) as error:
        raise AnswerRefused(f"The provider's ID token is not valid ({_kind(error)}).") from error
    audience = claims["aud"]
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != provider.client_id:
        raise AnswerRefused("The provider's ID token is for somebody else.")
    if "azp" in claims and claims["azp"] != provider.client_id:
        raise AnswerRefused("The provider's ID token is for somebody else.")
    if not isinstance(claims["nonce"], str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
        raise AnswerRefused("The provider's ID token belongs to another login.")
    if not (0 < len(claims["sub"]) <= MAX_SUBJECT and claims["sub"].isprintable()):
        raise AnswerRefused("The provider does not say who you are.")
    return claims


def _decode(token: str, keys: KeySet) -> dict[str, Any]:
    # Providers add headers of their own; what `crit` names must still be known.
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    return dict(jwt.decode(token, keys, registry=registry).claims)


def _registry(provider: Provider) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        now=lambda: int(now().timestamp()),
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": provider.issuer},
        aud={"essential": True, "value": provider.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True},
    )


def _kind(error: Exception) -> str:
    return error.error if isinstance(error, JoseError) and error.error else "malformed"


def find_known(session: Session, issuer: str, subject: str) -> Sequence[Member]:
    """The members whom the provider's person is known to be, oldest first."""
    known = select(Member).join(Identity).where(Identity.issuer == issuer, Identity.subject == subject)
    return session.scalars(known.order_by(Member.id)).all()


def find_unknown(session: Session, issuer: str, email: str, connects: int | None = None) -> list[Member]:
    """The members with an e-mail who are nobody at the provider yet, and whom its proof of the address makes known.

    Not those to whom a key gave the address: who found it would have the account.

    Args:
        connects: A member who is logged in, so that it does not matter who set the address.
    """
    return [
        member
        for member in find_members(session, email)
        if is_same_mailbox(member.email, email)
        and (not member.email_by_key or member.id == connects)
        and not _is_linked(session, member, issuer)
    ]


def is_somebody_else(session: Session, issuer: str, email: str) -> bool:
    """Tell whether an e-mail is a member's who is another person at the provider, or cannot be linked now."""
    return bool(find_members(session, email)) and not find_unknown(session, issuer, email)


def is_connected(session: Session, member_id: int) -> bool:
    """Tell whether a member is known by a provider."""
    return bool(session.scalar(select(exists().where(Identity.member_id == member_id))))


def _is_linked(session: Session, member: Member, issuer: str) -> bool:
    linked = select(exists().where(Identity.member_id == member.id, Identity.issuer == issuer))
    return bool(session.scalar(linked))


def link(session: Session, member: Member, issuer: str, subject: str) -> None:
    """Know a member by the provider's person from now on; their e-mail is confirmed. Their account must be locked."""
    session.add(Identity(member=member, issuer=issuer, subject=subject, created_at=now()))
    confirm_email(member)


def take_over(session: Session, member: Member, password_hash: str) -> bool:
    """End what was made in the name of an e-mail that was not confirmed; tells whether the account is the member's.

    It must be locked.

    The member's password and sessions end. If the account is theirs, as its first owner, so do all keys and sessions,
    and the members and invitations whom somebody else may have let in.

    Args:
        password_hash: Of a password that nobody knows.
    """
    member.password_hash = password_hash
    switch_off(member)  # Else whoever typed the address could keep them out with codes of their own.
    end_resets(session, member.id)
    end_other_sessions(session, member.id, None)
    if first_owner(session, member.account_id).id != member.id:
        return False
    session.execute(delete(Login).where(Login.account_id == member.account_id))
    for table in (Member, Invitation):
        for other in session.scalars(select(table).where(table.account_id == member.account_id)).all():
            if other is not member:
                session.delete(other)
    disable_keys(session, member.account_id)
    session.flush()
    return True
