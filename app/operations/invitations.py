"""Inviting people to an account, and joining it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from app.counters.values import WindowRequest
from app.models import Invitation, Member
from app.operations.attempts import HOUR_SECONDS, count_attempt, count_hashes
from app.operations.logins import reject_without_passwords
from app.runtime import Runtime
from app.services.access import sessions
from app.services.access.callers import Caller, Client
from app.services.access.rights import Role
from app.services.accounts import accounts, invitations
from app.services.audit_log.actors import acting
from app.services.emails.letters import queue_email
from app.services.emails.notices import INVITATION_KIND, write_invitation
from app.services.sites import get_account

EMAILED_INVITATIONS = 30
"""Maximum number of invitations per hour that an account can send by email."""


def invite(runtime: Runtime, caller: Caller, base_url: str, email: str, role: Role) -> tuple[Invitation, str | None]:
    """Invite a person. Returns the invitation, and the token of its link unless the link was sent by email.

    Raises:
        ApiError: 400 if the person is a member or invited already; 403 if the account has reached its member limit; 429
            after too many invitations by email.
    """
    return _issue(runtime, caller, base_url, partial(invitations.create_invitation, email=email, role=role))


def renew_invitation(
    runtime: Runtime, caller: Caller, base_url: str, invitation_id: str
) -> tuple[Invitation, str | None]:
    """Replace the link of an invitation. Returns the same values as :func:`invite`.

    Raises:
        ApiError: 404; 429 after too many invitations by email.
    """
    return _issue(runtime, caller, base_url, partial(invitations.renew_invitation, invitation_id=invitation_id))


def _issue(
    runtime: Runtime, caller: Caller, base_url: str, step: Callable[..., tuple[Invitation, str]]
) -> tuple[Invitation, str | None]:
    """Email the link of a new token to the invited address. Without a mail server, return it for the inviter to pass
    on.

    If email is set up, the inviter does not see the link and so cannot join in the name of the invited person.
    """
    settings, account_id = runtime.settings, caller.account.id
    if settings.sends_email:
        window = WindowRequest(f"invitations:{account_id}", EMAILED_INVITATIONS, HOUR_SECONDS)
        count_attempt(runtime, [window], "invitations")
    with runtime.database.write() as session:
        invitation, token = step(
            session, account_id, settings.secret_key, by=caller.member_id, is_mailed=settings.sends_email
        )
        if not settings.sends_email:
            return invitation, token
        account = get_account(session, account_id)
        letter = write_invitation(invitation, account.name, link_of(base_url, token), settings.public_url)
        queue_email(session, invitation.email, letter, kind=INVITATION_KIND, account_id=account_id)
        return invitation, None


def link_of(base_url: str, token: str) -> str:
    """Return the URL of the page where an invitation can be accepted."""
    return f"{base_url}/invitations/{token}"


def open_invitation(runtime: Runtime, token: str) -> dict[str, Any]:
    """Return the invitation of a link.

    Raises:
        ApiError: 404 if the invitation is no longer open.
    """
    with runtime.database.read() as session:
        invitation = invitations.get_open_invitation(session, token, runtime.settings.secret_key)
        account = get_account(session, invitation.account_id)
    return {
        "account": account.name,
        "email": invitation.email,
        "role": invitation.role,
        "expires_at": invitation.expires_at,
    }


def accept_invitation(
    runtime: Runtime, client: Client, token: str, name: str, password: str
) -> tuple[Member, str, str]:
    """Become a member. Returns the member, the CSRF token, and the cookie's value.

    Raises:
        ApiError: 404 if the invitation is no longer open; 400 for a weak password, or if a member has the invited
            address or may get it back by undoing a change; 403 if password logins are turned off.
    """
    reject_without_passwords(runtime)
    secret = runtime.settings.secret_key
    with runtime.database.read() as session:
        email = invitations.get_open_invitation(session, token, secret).email
    count_hashes(runtime, client)
    password_hash = accounts.hash_new_password(password, name, email)
    with acting(client.member(email)), runtime.database.write() as session:
        member = invitations.accept_invitation(session, token, secret, name=name, password_hash=password_hash)
        login, cookie = sessions.start_session(session, member, secret, client)
    return member, login.csrf_token, cookie
