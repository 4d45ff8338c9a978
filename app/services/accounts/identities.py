"""People known by an OpenID Connect provider: which members they are.

At first they are found by their e-mail, afterwards by what the provider calls them. Of a member who has not confirmed
their e-mail, nobody knows whose the password is: whoever typed the address first. The provider's proof wins, and what
was made without one ends, so that nobody can take an address in advance.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Identity, Invitation, Member
from app.models import Session as Login
from app.services.access.keys import disable_keys
from app.services.access.sessions import end_other_sessions
from app.services.accounts.members import confirm_email, find_members, first_owner, is_same_mailbox
from app.services.accounts.one_time_codes import switch_off
from app.services.accounts.password_resets import end_resets


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
