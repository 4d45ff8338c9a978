"""Identification of callers by API key or session."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from flask import Request

from app.clock import now
from app.counters.values import CredentialVersion
from app.errors import ApiError, ErrorCode
from app.models import Session
from app.runtime import Runtime
from app.services.access import engine_keys, sessions
from app.services.access.callers import Caller, CallerKind, MemberRecord
from app.services.access.credentials import (
    AccountRecord,
    Credentials,
    KeyRecord,
    account_record,
    load_credentials,
    load_engine_credentials,
)
from app.services.access.rights import Role
from app.tokens import PREFIXES, hash_token, is_well_formed
from app.web.gateway_errors import GatewayError, invalid_engine_key, is_gateway_path

SESSION_COOKIE = "session"
PREFIX_LIST = "{}, {}, or {}".format(*PREFIXES.values())


@dataclass(frozen=True, slots=True)
class Access:
    """Kinds of callers that may use an operation. Otherwise, a session gets a 401 and a key a 403."""

    public: bool = False
    search: bool = False
    private: bool = False
    session: bool = False
    engine: bool = False
    operator: bool = False
    anyone: bool = False

    def allows(self, caller: Caller) -> bool:
        return self.anyone or bool(getattr(self, caller.kind))


ANYONE = Access(anyone=True)
SEARCHING = Access(search=True, private=True)
ANY_KEY = Access(public=True, search=True, private=True)
ANY_KEY_OR_ENGINE_KEY = Access(public=True, search=True, private=True, engine=True)
INDEXING = Access(private=True)
MANAGING = Access(private=True, session=True)
LOGGED_IN = Access(session=True)
GATEWAY = Access(engine=True)
FOR_OPERATOR = Access(operator=True)


def bearer_token(request: Request) -> str | None:
    """Return the token after ``Bearer`` (case-insensitive), or ``None``."""
    scheme, _, token = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class TokenLocation:
    """A place in a request for the caller's key.

    Attributes:
        kind: ``bearer`` for the header ``Authorization``, otherwise the part of the request that contains ``name``.
        name: Name of the parameter or header.
    """

    kind: Literal["bearer", "query", "header", "path"]
    name: str = "Authorization"

    def find(self, request: Request) -> str | None:
        """Return the token at this place, or ``None``."""
        match self.kind:
            case "bearer":
                return bearer_token(request)
            case "query":
                return request.args.get(self.name) or None
            case "header":
                return request.headers.get(self.name) or None
            case "path":
                return (request.view_args or {}).get(self.name)


BEARER = (TokenLocation("bearer"),)


def find_token(request: Request, locations: tuple[TokenLocation, ...]) -> str | None:
    """Return the first token found at these places, or ``None``."""
    if locations is BEARER:
        return bearer_token(request)
    return next((token for location in locations if (token := location.find(request)) is not None), None)


_SEND_KEY = "Authorization: Bearer <API_KEY>"
_OTHER_HEADERS = ("X-API-Key", "Api-Key", "X-Auth-Token", "X-Algolia-API-Key", "X-Meili-API-Key", "X-TYPESENSE-API-KEY")
_OTHER_PARAMETERS = ("key", "api_key", "apikey", "api-key", "apiKey", "access_token", "token", "x-algolia-api-key")
"""Query parameters in which other services expect a key."""


def missing_key(request: Request, locations: tuple[TokenLocation, ...] = BEARER) -> ApiError:
    """Return the 401 for a request without a key at these places. It names a wrong place, but never the key."""
    message = f"Send an API key: {_SEND_KEY}."
    if locations is BEARER:
        header = next((name for name in _OTHER_HEADERS if request.headers.get(name)), None)
        parameter = next((name for name in _OTHER_PARAMETERS if request.args.get(name)), None)
        if request.headers.get("Authorization", "").strip():
            message = f"The header Authorization must begin with Bearer, followed by the API key. Send {_SEND_KEY}."
        elif header is not None:
            message = f"The header {header} is ignored. Send the API key as {_SEND_KEY}."
        elif parameter is not None:
            message = (
                f"The query parameter {parameter} is ignored, because URLs are logged. Send the API key as {_SEND_KEY}."
            )
    return ApiError(ErrorCode.MISSING_API_KEY, message)


def invalid_key(token: str | None = None) -> ApiError:
    """Return the 401 for an unknown key, with the probable reason.

    Args:
        token: The key; ``None`` for keys that have no form, such as the token for metrics.
    """
    if token is None:
        reason = ""
    elif not token.startswith(tuple(PREFIXES.values())):
        reason = f": keys of this service begin with {PREFIX_LIST}"
    elif not is_well_formed(token):
        reason = ": it is incomplete or mistyped"
    else:
        reason = ": it was deleted or rotated, or belongs to another installation"
    return ApiError(ErrorCode.INVALID_API_KEY, f"The API key is invalid{reason}.")


def is_operator_token(token: str | None, valid_tokens: Sequence[str]) -> bool:
    """Whether a token is one of the operator's. Takes equally long for every token."""
    digest = hashlib.sha256((token or "").encode()).digest()
    # Digests have equal lengths, and the list compares all tokens: the time reveals neither a length nor a position.
    matches = [hmac.compare_digest(digest, hashlib.sha256(valid.encode()).digest()) for valid in valid_tokens]
    return True in matches


def invalid_operator_token(token: str | None) -> ApiError:
    """Return the 401 for a missing or wrong operator token."""
    if token is None:
        return ApiError(ErrorCode.MISSING_API_KEY, "Send the operator token: Authorization: Bearer <OPERATOR_TOKEN>.")
    return ApiError(ErrorCode.INVALID_API_KEY, "The operator token is invalid.")


def identify_token(
    runtime: Runtime, path: str, access: Access, token: str, credential_version: CredentialVersion | None = None
) -> Caller:
    """Identify the caller by a token: an engine key or a public key below ``/engine``, an API key elsewhere.

    Args:
        access: The operation's access. If it includes engine keys, the token may be an engine key or an API key.
        credential_version: The account's current version, to reload its credentials; ``None`` to use the cache.

    Raises:
        ApiError: 401 for an API key, or 403 for an engine key, that is malformed, unknown, disabled, or expired.
    """
    if is_gateway_path(path):
        identify = _identify_gateway_key if is_well_formed(token) else _identify_engine_key
        return identify(runtime, token, credential_version)
    if access.engine and not is_well_formed(token):
        try:
            return _identify_engine_key(runtime, token, credential_version)
        except GatewayError as error:
            raise invalid_key(token) from error
    credentials, key = _find_key(runtime, token, credential_version, _find_key_error)
    return Caller(_KINDS[key.type], credentials.account, key, credential_version=credentials.credential_version)


def _find_key(
    runtime: Runtime,
    token: str,
    credential_version: CredentialVersion | None,
    find_permission_error: Callable[[Runtime, Credentials, KeyRecord], ApiError | None],
) -> tuple[Credentials, KeyRecord]:
    token_hash = hash_token(token, runtime.settings.secret_key)
    # A given version means that the cached entry has already turned out to be outdated.
    cached = runtime.credentials.find(token_hash) if credential_version is None else None
    if cached is not None and cached.key is not None and find_permission_error(runtime, cached, cached.key) is None:
        return cached, cached.key
    if not is_well_formed(token):
        raise invalid_key(token)
    # A key is rejected only based on the database: the cache may predate the key's reactivation.
    with runtime.database.read() as session:
        credentials = load_credentials(session, runtime.plans, token_hash, credential_version)
    runtime.credentials.keep(token_hash, credentials)
    if credentials is None or credentials.key is None:
        raise invalid_key(token)
    rejection = find_permission_error(runtime, credentials, credentials.key)
    if rejection is not None:
        raise rejection
    return credentials, credentials.key


_KINDS: dict[str, CallerKind] = {"public": "public", "search": "search", "private": "private"}
"""Maps types of keys to kinds of callers."""


def _find_state_error(key: KeyRecord) -> ApiError | None:
    """Return the 401 for a disabled or expired key; ``None`` for an active key."""
    expired = key.usable_until is not None and key.usable_until <= now()
    if expired and key.was_rotated:
        return ApiError(ErrorCode.INVALID_API_KEY, "The API key is invalid: it was rotated.")
    if expired:
        return ApiError(ErrorCode.KEY_EXPIRED, "The API key has expired.")
    if not key.active:
        return ApiError(ErrorCode.KEY_DISABLED, "The API key is disabled.")
    return None


def _find_key_error(runtime: Runtime, credentials: Credentials, key: KeyRecord) -> ApiError | None:
    """Return the error for a disabled or expired key (401) or an unconfirmed owner (403); ``None`` for a valid key."""
    rejection = _find_state_error(key)
    if rejection is None and _waits_for_confirmation(runtime, credentials.account):
        return _unconfirmed()
    return rejection


def _waits_for_confirmation(runtime: Runtime, account: AccountRecord) -> bool:
    """Whether keys are blocked until the account's owner confirms the email address; never if email is not set up."""
    return account.confirm_by is not None and runtime.settings.sends_email and account.confirm_by <= now()


def _unconfirmed() -> ApiError:
    return ApiError(
        ErrorCode.EMAIL_NOT_CONFIRMED,
        "The email address of the account's owner is not confirmed: open the link in the email, or request "
        "another one on the dashboard.",
    )


def _identify_gateway_key(runtime: Runtime, token: str, credential_version: CredentialVersion | None) -> Caller:
    """Identify the caller by a public key, which has the permissions and limits of its engine key."""
    try:
        credentials, key = _find_key(runtime, token, credential_version, _find_gateway_error)
    except ApiError as error:
        raise invalid_engine_key(error.message) from error
    site = credentials.account.sites[key.site_id]
    return Caller("engine", credentials.account, key, site, credential_version=credentials.credential_version)


def _find_gateway_error(runtime: Runtime, credentials: Credentials, key: KeyRecord) -> ApiError | None:
    rejection = _find_key_error(runtime, credentials, key)
    if rejection is None and key.type != "public":
        return invalid_engine_key(
            f"A {key.type} key is a secret and must not be in a web page; use a public key, or an engine key from "
            "GET /v1/client-info."
        )
    if rejection is None and not _is_open(credentials, key.site_id):
        return invalid_engine_key("The key's site is paused or deleted, or its account is suspended.")
    return rejection


def _is_open(credentials: Credentials, site_id: int) -> bool:
    """Whether visitors may search a site."""
    return credentials.account.sites[site_id].active and credentials.account.suspension is None


def _identify_engine_key(runtime: Runtime, token: str, credential_version: CredentialVersion | None) -> Caller:
    """Identify the caller by an engine key. Credentials are cached by the key's subject, which many keys share."""
    claims = engine_keys.read(token, runtime.settings.secret_key)
    if claims is None:
        raise invalid_engine_key()
    # The name contains a colon, which no token hash does, so the two kinds of entries cannot collide.
    name = f"engine:{claims.account_id}:{claims.site_id}:{claims.key_id or ''}"
    credentials = runtime.credentials.find(name) if credential_version is None else None
    if credentials is None or not _is_still_valid(runtime, claims, credentials):
        with runtime.database.read() as session:
            credentials = load_engine_credentials(
                session, runtime.plans, claims.account_id, claims.site_id, claims.key_id, credential_version
            )
        runtime.credentials.keep(name, credentials)
    if credentials is None or not _is_still_valid(runtime, claims, credentials):
        raise invalid_engine_key()
    site = credentials.account.sites[claims.site_id]
    return Caller(
        "engine",
        credentials.account,
        credentials.key,
        site,
        is_preview=claims.is_preview,
        credential_version=credentials.credential_version,
    )


def _is_still_valid(runtime: Runtime, claims: engine_keys.EngineClaims, credentials: Credentials) -> bool:
    """Whether an engine key is still valid: its site, account, and key are unchanged since it was issued."""
    if not _is_open(credentials, claims.site_id) or _waits_for_confirmation(runtime, credentials.account):
        return False
    if claims.key_id is None:
        return credentials.account.sites[claims.site_id].public_epoch == claims.version
    key = credentials.key
    return key is not None and key.token_version == claims.version and _find_state_error(key) is None


def identify_session(runtime: Runtime, cookie: str) -> Caller | None:
    """Return the caller identified by a session cookie, or ``None`` if the session has ended."""
    with runtime.database.read() as session:
        login = sessions.find_session(session, cookie, runtime.settings.secret_key)
        if login is None:
            return None
        caller = session_caller(runtime, login)
        stale = sessions.needs_touch(login)
    if stale:
        with runtime.database.write() as session:
            sessions.touch_session(session, login.token_hash)
    return caller


def session_caller(runtime: Runtime, login: Session) -> Caller:
    """Return the caller of an active session."""
    member = login.member
    return Caller(
        "session",
        account_record(runtime.plans, member.account),
        member=MemberRecord(
            member.id,
            member.email,
            Role(member.role),
            name=member.name,
            has_codes=member.codes_since is not None,
            is_operator=member.operator_since is not None,
        ),
        csrf_token=login.csrf_token,
        session_hash=login.token_hash,
        has_given_code=login.code_at is not None,
    )
