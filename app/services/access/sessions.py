"""Logins of people: rows on the server, a random token in a cookie."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session as DatabaseSession

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import Member, Session
from app.services.access.browsers import browser_name
from app.services.access.callers import Client
from app.tokens import hash_token

IDLE = timedelta(days=14)
LONGEST = timedelta(days=90)
MAX_SESSIONS = 100
"""Sessions of one member: a login beyond that ends the one that was not used for the longest time."""
SEEN_STEP = timedelta(minutes=5)
"""Longest time that ``seen_at`` may lag behind before a request writes it again."""
_ID_PREFIX = "ses_"
_ID_LENGTH = 20


def start_session(session: DatabaseSession, member: Member, secret: str, client: Client) -> tuple[Session, str]:
    """Log a member in; gives the session and the cookie's value."""
    token = secrets.token_urlsafe(32)
    moment = now()
    login = Session(
        token_hash=hash_token(token, secret),
        account_id=member.account_id,
        member_id=member.id,
        csrf_token=secrets.token_urlsafe(32),
        created_at=moment,
        seen_at=moment,
        expires_at=moment + LONGEST,
        browser=browser_name(client.user_agent),
        address=_shortened(client.address),
    )
    login.member = member
    session.add(login)
    session.flush()
    latest = select(Session.token_hash).where(Session.member_id == member.id)
    surplus = session.scalars(latest.order_by(Session.seen_at.desc(), Session.created_at.desc()).offset(MAX_SESSIONS))
    session.execute(delete(Session).where(Session.token_hash.in_(surplus.all())))
    return login, token


def _shortened(address: str) -> str:
    """The /24 network of an IPv4 address; of IPv6, clients are known by their networks alone."""
    try:
        return str(ipaddress.IPv4Network(f"{address}/24", strict=False))
    except ValueError:
        return address


def find_session(session: DatabaseSession, token: str, secret: str) -> Session | None:
    """The live session of a cookie's value."""
    if not 20 <= len(token) <= 100 or not token.isascii():
        return None
    login = session.get(Session, hash_token(token, secret))
    if login is None or login.expires_at <= now() or login.seen_at + IDLE <= now():
        return None
    return login


def needs_touch(login: Session) -> bool:
    """Tell whether ``seen_at`` is stale enough to be written."""
    return login.seen_at + SEEN_STEP <= now()


def touch_session(session: DatabaseSession, token_hash: str) -> None:
    """Note that a session was used."""
    login = session.get(Session, token_hash)
    if login is not None:
        login.seen_at = now()


def end_session(session: DatabaseSession, token_hash: str) -> None:
    """Log out."""
    session.execute(delete(Session).where(Session.token_hash == token_hash))


def end_other_sessions(session: DatabaseSession, member_id: int, kept_token_hash: str | None) -> None:
    """Log a member out everywhere else."""
    query = delete(Session).where(Session.member_id == member_id)
    if kept_token_hash is not None:
        query = query.where(Session.token_hash != kept_token_hash)
    session.execute(query)


def session_id(token_hash: str) -> str:
    """The name of a session in the API. It opens nothing: cookies hold no hashes."""
    return _ID_PREFIX + token_hash[:_ID_LENGTH]


def list_sessions(
    session: DatabaseSession, member_id: int, *, limit: int, offset: int
) -> tuple[Sequence[Session], int]:
    """One page of a member's live sessions, newest first, and how many there are."""
    live = _live_of(member_id)
    newest = select(Session).where(*live).order_by(Session.created_at.desc(), Session.token_hash)
    total = session.scalar(select(func.count()).select_from(Session).where(*live)) or 0
    return session.scalars(newest.limit(limit).offset(offset)).all(), total


def end_session_of(session: DatabaseSession, member_id: int, name: str) -> None:
    """End one of a member's sessions, named as :func:`session_id` does.

    Raises:
        ApiError: 404 if there is none, or it is another member's.
    """
    hashes = session.scalars(select(Session.token_hash).where(*_live_of(member_id)))
    found = next((token_hash for token_hash in hashes if session_id(token_hash) == name), None)
    if found is None:
        raise session_not_found()
    end_session(session, found)


def _live_of(member_id: int) -> tuple[ColumnElement[bool], ...]:
    return Session.member_id == member_id, Session.expires_at > now(), Session.seen_at > now() - IDLE


def session_not_found() -> ApiError:
    """The 404 for a session that is unknown, or has ended."""
    return ApiError(ErrorCode.SESSION_NOT_FOUND, "Session not found.")


def delete_expired_sessions(session: DatabaseSession) -> None:
    """Remove sessions that can no longer be used, but those that somebody else is removing."""
    ended = (Session.expires_at <= now()) | (Session.seen_at <= now() - IDLE)
    free = select(Session.token_hash).where(ended).with_for_update(skip_locked=True)
    session.execute(delete(Session).where(Session.token_hash.in_(free)))
