"""Links in emails: confirming an email address, undoing a change of it, and choosing a new password."""

from __future__ import annotations

import secrets
from contextlib import ExitStack

from app.counters.values import WindowRequest
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, count_attempt, count_hashes, forgiving_outages
from app.operations.logins import forget_failures, reject_without_passwords
from app.runtime import Runtime
from app.services.access.callers import Caller, Client
from app.services.access.credentials import changed_credentials, credential_change
from app.services.accounts import accounts, emails, one_time_codes
from app.services.accounts.members import confirm_email, get_member
from app.services.audit_log.actors import acting
from app.services.sites import get_account
from app.wording import operator_text


def show_change(runtime: Runtime, token: str) -> str:
    """Return the email address that an undo link restores.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    return _find(runtime, token)[0]


def _find(runtime: Runtime, token: str) -> tuple[str, Member]:
    with runtime.database.read() as session:
        change = emails.get_change(session, token, runtime.settings.secret_key)
        return change.email, session.get_one(Member, change.member_id)


def undo_change(runtime: Runtime, client: Client, token: str) -> None:
    """Undo the change of address that a link refers to.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    email, member = _find(runtime, token)
    password_hash = accounts.hash_password(secrets.token_urlsafe(32))
    with credential_change(runtime.database, runtime.counters, member.account_id) as session:
        get_account(session, member.account_id, lock=True)
        # Check again under the lock, which another use of the link or another change of the address also needs.
        change = emails.get_change(session, token, runtime.settings.secret_key)
        with acting(client.member(change.email, change.member_id)):
            emails.undo_change(session, change, password_hash)
    forget_failures(runtime, client, email, [member.id])
    runtime.run_engine_tasks()


REQUESTS_PER_ADDRESS = 20
"""Maximum number of requests per hour from one IP address. Emails to one mailbox are limited when they are sent."""


def request_reset(runtime: Runtime, client: Client, email: str) -> None:
    """Request a reset link for an email address. The response does not reveal whether an account exists.

    Raises:
        ApiError: 403 if email or passwords are not in use; 429 after too many requests.
    """
    reject_without_passwords(runtime)
    if not runtime.settings.sends_email:
        operator = operator_text(runtime.settings.operator_contact)
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION, f"This service does not send email; ask {operator} for a new password."
        )
    window = WindowRequest(f"reset:{client.key}", REQUESTS_PER_ADDRESS, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "requests for a new password")
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        emails.request_reset(session, email)


def check_reset(runtime: Runtime, token: str) -> Member:
    """Return the member whose password a link resets.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    with runtime.database.read() as session:
        reset = emails.get_reset(session, token, runtime.settings.secret_key)
        return session.get_one(Member, reset.member_id)


def reset_password(runtime: Runtime, client: Client, token: str, new_password: str) -> None:
    """Set a new password for all accounts with the address that a link was sent to, and end their sessions.

    This also voids the link and all other reset links. The link proves ownership of the mailbox, so it confirms the
    address. An unconfirmed address may have been entered by another person. The two-factor authentication of
    unconfirmed members is therefore turned off; otherwise, that person's codes could lock out the mailbox's owner.

    Raises:
        ApiError: 400 if the link is no longer valid, or for a weak password, which leaves the link valid.
    """
    reject_without_passwords(runtime)
    member = check_reset(runtime, token)
    count_hashes(runtime, client)
    password_hash = accounts.hash_new_password(new_password, member.name, member.email, field="new_password")
    with ExitStack() as after_commit, runtime.database.write() as session:
        reset = emails.get_reset(session, token, runtime.settings.secret_key)
        email = session.get_one(Member, reset.member_id).email
        account_ids = sorted(member.account_id for member in emails.find_owners_of(session, email))
        for account_id in account_ids:
            get_account(session, account_id, lock=True)
        session.expire_all()
        # Check again under the lock, which another use of the link or a change of password or address also needs.
        emails.get_reset(session, token, runtime.settings.secret_key)
        members = [m for m in emails.find_owners_of(session, email) if m.account_id in account_ids]
        for member in members:
            with acting(client.member(member.email, member.id)):
                if not member.email_confirmed:
                    one_time_codes.switch_off(member)
                confirm_email(member)
                accounts.replace_password(session, member, password_hash)
            after_commit.enter_context(changed_credentials(runtime.counters, member.account_id))
    forget_failures(runtime, client, email, [member.id for member in members])


EMAILS_PER_MEMBER = 5
"""Maximum number of emails per hour that a member can request."""


def check_confirmation(runtime: Runtime, token: str) -> Member:
    """Return the member whose address a link confirms.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    with runtime.database.read() as session:
        return emails.get_confirmed(session, token, runtime.settings.secret_key)


def confirm(runtime: Runtime, client: Client, token: str) -> None:
    """Confirm the address that a link was sent to. If the keys of an owner's account had stopped, they work again.

    Raises:
        ApiError: 400 if the link is no longer valid.
    """
    account_id = check_confirmation(runtime, token).account_id
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        # Changing the address needs this lock, too. Otherwise, the link could confirm an address it was not sent to.
        get_account(session, account_id, lock=True)
        member = emails.get_confirmed(session, token, runtime.settings.secret_key)
        with acting(client.member(member.email, member.id)):
            confirm_email(member)


def resend_confirmation(runtime: Runtime, caller: Caller) -> None:
    """Send another confirmation link to the caller's address, unless it is already confirmed.

    Raises:
        ApiError: 403 for a key, or if email is not set up; 429 after too many requests.
    """
    if caller.member is None or not runtime.settings.sends_email:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only a logged-in member can request an email.")
    window = WindowRequest(f"confirmation:{caller.member.id}", EMAILS_PER_MEMBER, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "emails")
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        emails.ask_member(session, get_member(session, caller.account.id, caller.member.id))
