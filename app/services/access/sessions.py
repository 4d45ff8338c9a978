"""Logins of people: rows on the server, a random token in a cookie."""

from __future__ import annotations

import secrets
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session as DatabaseSession

from app.clock import now
from app.models import Member, Session
from app.tokens import hash_token

IDLE = timedelta(days=14)
LONGEST = timedelta(days=90)
SEEN_STEP = timedelta(minutes=5)
"""Longest time that ``seen_at`` may lag behind before a request writes it again."""


def start_session(session: DatabaseSession, member: Member, secret: str) -> tuple[Session, str]:
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
    )
    login.member = member
    session.add(login)
    session.flush()
    return login, token


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


def delete_expired_sessions(session: DatabaseSession) -> None:
    """Remove sessions that can no longer be used, but those that somebody else is removing."""
    ended = (Session.expires_at <= now()) | (Session.seen_at <= now() - IDLE)
    free = select(Session.token_hash).where(ended).with_for_update(skip_locked=True)
    session.execute(delete(Session).where(Session.token_hash.in_(free)))
