"""ID tokens: what a provider says of a person, believed only if all of it is as it must be."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from app.clock import now
from app.services.oidc.provider import AnswerRefused, Provider

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
