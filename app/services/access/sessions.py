"""Login sessions: creating, listing, and ending them, and logins that still need a code or a choice of account."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.models import Session as Login
from app.services.access.callers import Client
from app.storage.database import read_page
from app.tokens import hash_token, read_signed, sign

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
"""Pairs of a ``User-Agent`` token and a browser's name. A browser precedes the browsers that it imitates."""
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_PRODUCT = re.compile(r"[\w.-]{1,40}", re.ASCII)


def browser_name(user_agent: str) -> str:
    """Return the browser and system of a ``User-Agent``, such as ``Firefox on Windows``.

    Returns the program's name for other clients, or an empty string if the header contains no name.
    """
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    if not browser:
        product = _PRODUCT.match(user_agent)
        return "" if product is None else product[0]
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser


IDLE = timedelta(days=14)
"""Time without a request after which a session expires."""
LONGEST = timedelta(days=90)
"""Maximum lifetime of a session, however often it is used."""
MAX_SESSIONS = 100
"""Maximum number of sessions per member. A login beyond the limit ends the least recently used session."""
SEEN_STEP = timedelta(minutes=5)
"""Age of ``seen_at`` at which a request updates it. Updating it on every request would cost a transaction each time."""
_ID_PREFIX = "ses_"
_ID_LENGTH = 20


class LoginProof(StrEnum):
    """A proof of identity that opens a session."""

    PASSWORD = "password"
    """A password alone: of a member without two-factor authentication, or just chosen."""
    CODE = "code"
    RECOVERY_CODE = "recovery_code"
    PROVIDER = "provider"
    """A login with the identity provider."""


def start_session(
    session: Session, member: Member, secret: str, client: Client, proof: LoginProof = LoginProof.PASSWORD
) -> tuple[Login, str]:
    """Log a member in. Returns the session and the value of its cookie."""
    token = secrets.token_urlsafe(32)
    moment = now()
    login = Login(
        token_hash=hash_token(token, secret),
        account_id=member.account_id,
        member_id=member.id,
        csrf_token=secrets.token_urlsafe(32),
        created_at=moment,
        seen_at=moment,
        expires_at=moment + LONGEST,
        browser=browser_name(client.user_agent),
        address=_shortened(client.address),
        opened_with=proof,
        code_at=moment if proof in (LoginProof.CODE, LoginProof.RECOVERY_CODE) else None,
    )
    # Set explicitly, since loading the relationship would need another query.
    login.member = member
    session.add(login)
    session.flush()
    latest = select(Login.token_hash).where(Login.member_id == member.id)
    # Bounds the rows of one member. The least recently used sessions end.
    surplus = session.scalars(latest.order_by(Login.seen_at.desc(), Login.created_at.desc()).offset(MAX_SESSIONS))
    session.execute(delete(Login).where(Login.token_hash.in_(surplus.all())))
    return login, token


def _shortened(address: str) -> str:
    """``"192.0.2.7" -> "192.0.2.0/24"``; IPv6 clients are already identified by network."""
    try:
        # Enough for members to recognize their sessions, without storing personal data that is not needed.
        return str(ipaddress.IPv4Network(f"{address}/24", strict=False))
    except ValueError:
        return address


def find_session(session: Session, token: str, secret: str) -> Login | None:
    """Return the live session for a cookie value."""
    # Tokens have 43 characters. Skip the query for values that are clearly not tokens.
    if not 20 <= len(token) <= 100 or not token.isascii():
        return None
    login = session.get(Login, hash_token(token, secret))
    if login is None or login.expires_at <= now() or login.seen_at + IDLE <= now():
        return None
    return login


def needs_touch(login: Login) -> bool:
    """Whether ``seen_at`` is old enough to be updated."""
    return login.seen_at + SEEN_STEP <= now()


def touch_session(session: Session, token_hash: str) -> None:
    """Record that a session was used."""
    login = session.get(Login, token_hash)
    if login is not None:
        login.seen_at = now()


def record_code(session: Session, token_hash: str) -> None:
    """Record that the member gave a one-time or recovery code in a session."""
    login = session.get(Login, token_hash)
    if login is not None:
        login.code_at = now()


def end_session(session: Session, token_hash: str) -> None:
    """End a session."""
    session.execute(delete(Login).where(Login.token_hash == token_hash))


def end_other_sessions(session: Session, member_id: int, kept_token_hash: str | None) -> None:
    """End a member's sessions except the current one."""
    query = delete(Login).where(Login.member_id == member_id)
    if kept_token_hash is not None:
        query = query.where(Login.token_hash != kept_token_hash)
    session.execute(query)


def end_sessions_without_code(session: Session, member_id: int) -> None:
    """End a member's sessions in which no one-time or recovery code was given."""
    session.execute(delete(Login).where(Login.member_id == member_id, Login.code_at.is_(None)))


def session_id(token_hash: str) -> str:
    """Return the public ID of a session. It grants no access, because cookies contain tokens, not hashes."""
    return _ID_PREFIX + token_hash[:_ID_LENGTH]


def list_sessions(session: Session, member_id: int, *, limit: int, offset: int) -> tuple[Sequence[Login], int]:
    """Return one page of a member's live sessions, newest first, and their total number."""
    newest = select(Login).where(*_live_of(member_id)).order_by(Login.created_at.desc(), Login.token_hash)
    return read_page(session, newest, limit=limit, offset=offset)


def end_session_of(session: Session, member_id: int, name: str) -> None:
    """End one of a member's sessions by its :func:`session_id`.

    Raises:
        ApiError: 404 if the member has no such session.
    """
    # The public ID derives from the hash, so no column contains it.
    hashes = session.scalars(select(Login.token_hash).where(*_live_of(member_id)))
    matching_hash = next((token_hash for token_hash in hashes if session_id(token_hash) == name), None)
    if matching_hash is None:
        raise session_not_found()
    end_session(session, matching_hash)


def _live_of(member_id: int) -> tuple[ColumnElement[bool], ...]:
    return Login.member_id == member_id, Login.expires_at > now(), Login.seen_at > now() - IDLE


def session_not_found() -> ApiError:
    """Return the 404 for an unknown or ended session."""
    return ApiError(ErrorCode.SESSION_NOT_FOUND, "Session not found.")


def delete_expired_sessions(session: Session) -> None:
    """Delete expired sessions, skipping rows that another process is deleting."""
    ended = (Login.expires_at <= now()) | (Login.seen_at <= now() - IDLE)
    # Without SKIP LOCKED, the jobs of several machines would wait for each other, or deadlock.
    free = select(Login.token_hash).where(ended).with_for_update(skip_locked=True)
    session.execute(delete(Login).where(Login.token_hash.in_(free)))


OFFER_VALID_SECONDS = 600
"""Seconds to finish a login after the password was accepted."""
_OFFER_PURPOSE = "choice of an account"


@dataclass(frozen=True, slots=True)
class Offer:
    """An unfinished login: the members whose password was verified, one of whom may complete it.

    Attributes:
        needs_code: Whether members with two-factor authentication still have to enter a code.
        proofs: A hash of each member's password hash, by member ID. A changed password voids the offer for the member.
    """

    secret: str = field(repr=False)
    needs_code: bool = True
    proofs: Mapping[int, str] = field(default_factory=dict)

    def find_members(self, session: Session) -> list[Member]:
        """Return the members whose password has not changed since the offer was made, oldest first."""
        members = session.scalars(select(Member).where(Member.id.in_(self.proofs)).order_by(Member.id))
        return [member for member in members if self.proofs[member.id] == _proof(member, self.secret)]


def offer_members(members: Sequence[Member], secret: str, *, needs_code: bool) -> str:
    """Return a token, valid for 10 minutes, that lets one of these members log in.

    A changed password voids the token for its member.
    """
    proofs = {str(member.id): _proof(member, secret) for member in members}
    return sign([needs_code, proofs], secret, _OFFER_PURPOSE)


def read_offer(token: str, secret: str) -> Offer:
    """Return the offer in a token, or an offer without members if the token is invalid or expired."""
    signed = read_signed(token, secret, _OFFER_PURPOSE, OFFER_VALID_SECONDS)
    if signed is None:
        return Offer(secret)
    needs_code, proofs = signed
    return Offer(secret, needs_code, {int(id): proof for id, proof in proofs.items()})


def _proof(member: Member, secret: str) -> str:
    # Covers the password hash, so that a changed password voids the proof.
    return hash_token(f"{member.id}:{member.password_hash}", secret)
