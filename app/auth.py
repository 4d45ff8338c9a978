"""Who is calling: an API key, a session, or nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flask import Request, current_app

from app.clock import now
from app.counters.base import CredentialEpoch
from app.errors import ApiError, ErrorCode
from app.models import Session
from app.runtime import Runtime
from app.services import sessions
from app.services.credentials import AccountRecord, Credentials, KeyRecord, load_credentials
from app.tokens import hash_token, is_well_formed

SESSION_COOKIE = "session"

CallerKind = Literal["public", "search", "private", "session"]


@dataclass(slots=True)
class Caller:
    """Who is calling.

    Attributes:
        kind: The key's type, or ``session``.
        account: Whom they act for.
        key: The key, unless it is a session.
        csrf_token, session_hash: The session's, unless it is a key.
        epoch: The account's credential epoch all this was loaded under; ``None`` if it was read just now.
    """

    kind: CallerKind
    account: AccountRecord
    key: KeyRecord | None = None
    csrf_token: str = ""
    session_hash: str = ""
    epoch: CredentialEpoch | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Which callers an operation is for. A session where it may not be counts as nobody (401), a key as forbidden (403)."""

    public: bool = False
    search: bool = False
    private: bool = False
    session: bool = False
    anyone: bool = False

    def allows(self, caller: Caller) -> bool:
        return self.anyone or bool(getattr(self, caller.kind))


ANYONE = Access(anyone=True)
SEARCHING = Access(search=True, private=True)
ANY_KEY = Access(public=True, search=True, private=True)
INDEXING = Access(private=True)
MANAGING = Access(private=True, session=True)


def bearer_token(request: Request) -> str | None:
    """The token after ``Bearer`` (in any case), if the request carries one."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def missing_key() -> ApiError:
    """The 401 without a key."""
    return ApiError(ErrorCode.MISSING_API_KEY, "Send an API key: Authorization: Bearer <API_KEY>.")


def invalid_key() -> ApiError:
    """The 401 for a key that is none of ours."""
    return ApiError(ErrorCode.INVALID_API_KEY, "The API key is not valid.")


def identify_key(runtime: Runtime, token: str, epoch: CredentialEpoch | None = None) -> Caller:
    """The caller a token stands for.

    Args:
        epoch: The account's epoch, to load what it stands for anew; ``None`` to take what is cached.

    Raises:
        ApiError: 401 for a token that is malformed, unknown, disabled or expired.
    """
    if not is_well_formed(token):
        raise invalid_key()
    token_hash = hash_token(token, runtime.settings.secret_key)
    credentials = runtime.credentials.find(token_hash) if epoch is None else None
    if credentials is None:
        with runtime.database.read() as session:
            credentials = load_credentials(session, runtime.plans, token_hash, epoch)
        runtime.credentials.keep(token_hash, credentials)
    if credentials is None:
        raise invalid_key()
    _refuse_stopped(credentials)
    return Caller(kind_of(credentials.key), credentials.account, credentials.key, epoch=credentials.epoch)


def kind_of(key: KeyRecord) -> CallerKind:
    """A key's type as a kind of caller."""
    kinds: dict[str, CallerKind] = {"public": "public", "search": "search", "private": "private"}
    return kinds[key.type]


def _refuse_stopped(credentials: Credentials) -> None:
    key = credentials.key
    expired = key.usable_until is not None and key.usable_until <= now()
    if expired and key.was_rotated:
        raise invalid_key()
    if expired:
        raise ApiError(ErrorCode.KEY_EXPIRED, "The API key has expired.")
    if not key.active:
        raise ApiError(ErrorCode.KEY_DISABLED, "The API key is disabled.")


def identify_session(runtime: Runtime, cookie: str) -> Caller | None:
    """The caller a session cookie stands for, if it is alive."""
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
    """A live session as a caller."""
    account = login.account
    limits = runtime.plans.limits_of(account.plan, account.limit_overrides)
    return Caller(
        "session",
        AccountRecord(account.id, account.plan, limits),
        csrf_token=login.csrf_token,
        session_hash=login.token_hash,
    )


def access_of(endpoint: str | None) -> Access:
    """Whom the view of ``endpoint`` is for; views that do not say are for anyone."""
    view = current_app.view_functions.get(endpoint or "")
    return getattr(view, "access", ANYONE)
