"""ID tokens of an OpenID Connect provider: verifying them, and reading the person from them.

Import this module only when needed: the cryptography library takes about 10 MB of memory.
"""

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
from app.services.accounts.oidc import Provider, ResponseRejected

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
"""Accepted signature algorithms. All are asymmetric, so only the provider can sign. Excludes ``none`` and HMAC."""
LEEWAY_SECONDS = 60
"""Tolerated difference between the provider's clock and this machine's."""
MAX_SUBJECT = 255
"""Maximum length of a subject, in characters, as OpenID Connect specifies it."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person as the provider identifies them.

    Attributes:
        subject: The provider's permanent identifier of the person.
        email: An address that the provider has verified.
    """

    issuer: str
    subject: str
    email: str
    name: str


def read_person(provider: Provider, response: Mapping[str, Any], nonce: str) -> Person:
    """Return the person identified by the provider's response to a code.

    If the token contains no email address, it is requested from the provider, as OpenID Connect Core 5.4 allows.

    Raises:
        ResponseRejected: A claim is missing or invalid; the message explains it to the person.
        ProviderUnavailable: The provider does not respond.
    """
    claims = _verified_claims(provider, response.get("id_token"), nonce)
    profile: Mapping[str, Any] = claims
    if "email" not in claims:
        profile = provider.userinfo(str(response.get("access_token", "")))
        # OpenID Connect Core, section 5.3.2: otherwise, a swapped access token could supply another person's address.
        if profile.get("sub") != claims["sub"]:
            raise ResponseRejected("The provider returned a different person.")
    email, name = profile.get("email"), profile.get("name", claims.get("name"))
    if not isinstance(email, str) or not email:
        raise ResponseRejected("The provider returned no email address.")
    # An unverified address is only a claim. Linking by it would let anyone take over the member with this address.
    if profile.get("email_verified") is not True:
        raise ResponseRejected("The provider has not verified your email address; verify it there first.")
    display_name = "".join(filter(str.isprintable, name)).strip()[:100] if isinstance(name, str) else ""
    return Person(provider.issuer, claims["sub"], email.strip(), display_name or email.partition("@")[0][:100])


def _verified_claims(provider: Provider, token: Any, nonce: str) -> dict[str, Any]:
    if not isinstance(token, str):
        raise ResponseRejected("The provider sent no ID token.")
    try:
        try:
            claims = _decode(token, provider.keys())
        except (InvalidKeyIdError, BadSignatureError):
            # The provider may have rotated its keys.
            claims = _decode(token, provider.keys(refresh=True))
        _registry(provider).validate(claims)
    except (JoseError, ValueError, TypeError) as error:
        raise ResponseRejected(f"The provider's ID token is not valid ({_kind(error)}).") from error
    audience = claims["aud"]
    # OpenID Connect Core, section 3.1.3.7, rules 4 and 5.
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != provider.client_id:
        raise ResponseRejected("The provider's ID token is for another application.")
    if "azp" in claims and claims["azp"] != provider.client_id:
        raise ResponseRejected("The provider's ID token is for another application.")
    # The nonce ties the token to this browser's login, so that a stolen token cannot be replayed elsewhere.
    echoed = claims["nonce"]
    # A claim may contain half of a surrogate pair, which cannot be encoded.
    if not (isinstance(echoed, str) and echoed.isascii() and hmac.compare_digest(echoed, nonce)):
        raise ResponseRejected("The provider's ID token belongs to another login.")
    if not (0 < len(claims["sub"]) <= MAX_SUBJECT and claims["sub"].isprintable()):
        raise ResponseRejected("The provider's ID token has no valid subject.")
    return claims


def _decode(token: str, keys: KeySet) -> dict[str, Any]:
    # Providers add their own headers. Headers listed in `crit` must still be supported.
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
