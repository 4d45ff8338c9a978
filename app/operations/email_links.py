"""Links in mails: confirming an e-mail address, undoing a change of it, and choosing a new password."""

from __future__ import annotations

import secrets
from contextlib import ExitStack

from app.counters.base import WindowRequest
from app.errors import ApiError, ErrorCode, field_error
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, count_attempt, count_hashes, forgiving_outages
from app.operations.logins import forget_failures, refuse_without_passwords
from app.runtime import Runtime
from app.services.access.callers import Caller, Client
from app.services.access.credentials import changed_credentials, credential_change
from app.services.accounts import accounts, emails, one_time_codes, password_resets
from app.services.accounts.members import confirm_email, get_member
from app.services.audit_log.actors import acting
from app.services.sites import get_account
from app.wording import operator_text


def show_change(runtime: Runtime, token: str) -> str:
    """The e-mail that a link gives back.

    Raises:
        ApiError: 400 if it no longer works.
    """
    return _find(runtime, token)[0]


def _find(runtime: Runtime, token: str) -> tuple[str, Member]:
    with runtime.database.read() as session:
        change = emails.find_change(session, token, runtime.settings.secret_key)
        if change is None:
            raise _undo_link_expired()
        return change.email, session.get_one(Member, change.member_id)


def undo_change(runtime: Runtime, client: Client, token: str) -> None:
    """Undo the change that a link is for.

    Raises:
        ApiError: 400 if it no longer works.
    """
    email, member = _find(runtime, token)
    password_hash = accounts.hash_password(secrets.token_urlsafe(32))
    with credential_change(runtime.database, runtime.counters, member.account_id) as session:
        get_account(session, member.account_id, lock=True)
        # Who used the link, or changed the e-mail once more, held that lock: only now it is certain.
        change = emails.find_change(session, token, runtime.settings.secret_key)
        if change is None:
            raise _undo_link_expired()
        with acting(client.member(change.email, change.member_id)):
            emails.undo_change(session, change, password_hash)
    forget_failures(runtime, client, email, [member.id])
    runtime.run_engine_tasks()


def _undo_link_expired() -> ApiError:
    return field_error("token", "expired", "no longer works: it was used or is older than 7 days")


REQUESTS_PER_ADDRESS = 20
"""Requests an hour of one client's address. What one mailbox gets is limited when mails are sent."""


def request_reset(runtime: Runtime, client: Client, email: str) -> None:
    """Have a link sent to an e-mail, if there is such an account; nothing tells whether there is.

    Raises:
        ApiError: 403 where no mail is sent, or nobody has a password; 429 after too many.
    """
    refuse_without_passwords(runtime)
    if not runtime.settings.sends_mail:
        operator = operator_text(runtime.settings.operator_contact)
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION, f"This service does not send mail; ask {operator} for a new password."
        )
    window = WindowRequest(f"reset:{client.key}", REQUESTS_PER_ADDRESS, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "requests for a new password")
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        password_resets.request_reset(session, email)


def check_token(runtime: Runtime, token: str) -> None:
    """Make sure that a link still works.

    Raises:
        ApiError: 400.
    """
    with runtime.database.read() as session:
        if password_resets.find_reset(session, token, runtime.settings.secret_key) is None:
            raise _reset_link_expired()


def reset_password(runtime: Runtime, client: Client, token: str, new_password: str) -> None:
    """Set a new password for all accounts with the e-mail that a link was sent to, and end all their sessions.

    It ends the link, too, and all others that were sent. The link proves the mailbox, so it confirms the e-mail. Until
    then, anybody may have typed it: one-time codes of unconfirmed members end, so that they keep no owner out.

    Raises:
        ApiError: 400 if the link no longer works.
    """
    refuse_without_passwords(runtime)
    check_token(runtime, token)
    count_hashes(runtime, client)
    password_hash = accounts.hash_password(new_password)
    with ExitStack() as after_commit, runtime.database.write() as session:
        reset = password_resets.find_reset(session, token, runtime.settings.secret_key)
        if reset is None:
            raise _reset_link_expired()
        email = session.get_one(Member, reset.member_id).email
        account_ids = sorted(member.account_id for member in password_resets.find_owners_of(session, email))
        for account_id in account_ids:
            get_account(session, account_id, lock=True)
        session.expire_all()
        # Who used the link, or changed the password or the e-mail, held that lock: only now it is certain.
        if password_resets.find_reset(session, token, runtime.settings.secret_key) is None:
            raise _reset_link_expired()
        members = [m for m in password_resets.find_owners_of(session, email) if m.account_id in account_ids]
        for member in members:
            with acting(client.member(member.email, member.id)):
                if not member.email_confirmed:
                    one_time_codes.switch_off(member)
                confirm_email(member)
                accounts.replace_password(session, member, password_hash)
            after_commit.enter_context(changed_credentials(runtime.counters, member.account_id))
    forget_failures(runtime, client, email, [member.id for member in members])


def _reset_link_expired() -> ApiError:
    return field_error("token", "expired", "no longer works: it was used or is older than 30 minutes")


MAILS_PER_MEMBER = 5
"""Mails an hour that a member can have sent to their e-mail."""


def check_confirmation(runtime: Runtime, token: str) -> Member:
    """The member whose e-mail a link confirms.

    Raises:
        ApiError: 400 if it no longer works.
    """
    with runtime.database.read() as session:
        member = emails.find_confirmed(session, token, runtime.settings.secret_key)
    if member is None:
        raise _confirmation_link_expired()
    return member


def confirm(runtime: Runtime, client: Client, token: str) -> None:
    """Confirm the e-mail that a link was sent to. The keys of an owner's account work again, if they had stopped.

    Raises:
        ApiError: 400 if the link no longer works.
    """
    account_id = check_confirmation(runtime, token).account_id
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        member = emails.find_confirmed(session, token, runtime.settings.secret_key)
        if member is None:
            raise _confirmation_link_expired()
        with acting(client.member(member.email, member.id)):
            confirm_email(member)


def ask_again(runtime: Runtime, caller: Caller) -> None:
    """Have another link sent to the caller's e-mail; none if it is confirmed.

    Raises:
        ApiError: 403 for a key, and where no mail is sent; 429 after too many.
    """
    if caller.member is None or not runtime.settings.sends_mail:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only a logged-in member can request a mail.")
    window = WindowRequest(f"confirmation:{caller.member.id}", MAILS_PER_MEMBER, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "mails")
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        emails.ask_member(session, get_member(session, caller.account.id, caller.member.id))


def _confirmation_link_expired() -> ApiError:
    return field_error("token", "expired", "no longer works: the address was changed or the link is older than 3 days")
