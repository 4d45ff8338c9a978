"""Links between members and their identities at an OpenID Connect provider."""

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


def find_linked_members(session: Session, issuer: str, subject: str) -> Sequence[Member]:
    """Return the members linked to a person at the provider, oldest first."""
    linked = select(Member).join(Identity).where(Identity.issuer == issuer, Identity.subject == subject)
    return session.scalars(linked.order_by(Member.id)).all()


def find_linkable_members(session: Session, issuer: str, email: str, connects: int | None = None) -> list[Member]:
    """Return the members whom a verified e-mail address identifies and who are not linked to this provider yet.

    Excludes members whose address was set by a key: otherwise, a stolen key would be enough to take over the account.

    Args:
        connects: ID of a logged-in member, who is included even if a key set the address.
    """
    return [
        member
        for member in find_members(session, email)
        if is_same_mailbox(member.email, email)
        and (not member.email_by_key or member.id == connects)
        and not _is_linked(session, member, issuer)
    ]


def is_linked_elsewhere(session: Session, issuer: str, email: str) -> bool:
    """Whether members have this address but none of them can be linked, for example because they already are."""
    return bool(find_members(session, email)) and not find_linkable_members(session, issuer, email)


def is_connected(session: Session, member_id: int) -> bool:
    """Whether a member is linked to a provider."""
    return bool(session.scalar(select(exists().where(Identity.member_id == member_id))))


def _is_linked(session: Session, member: Member, issuer: str) -> bool:
    linked = select(exists().where(Identity.member_id == member.id, Identity.issuer == issuer))
    return bool(session.scalar(linked))


def link(session: Session, member: Member, issuer: str, subject: str) -> None:
    """Link a member to a person at the provider, and confirm the member's address. The account must be locked."""
    session.add(Identity(member=member, issuer=issuer, subject=subject, created_at=now()))
    confirm_email(member)


def take_over(session: Session, member: Member, password_hash: str) -> bool:
    """Revoke access created under an unconfirmed address. Returns whether the member is the account's first owner.

    Replaces the member's password and ends their sessions. If the member is the first owner, this also disables all
    keys, ends all sessions, and removes the other members and the invitations, which another person may have added. The
    account must be locked.

    Args:
        password_hash: Hash of a random password that is not stored.
    """
    member.password_hash = password_hash
    switch_off(member)  # Otherwise, two-factor codes of the person who typed the address would lock the member out.
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
