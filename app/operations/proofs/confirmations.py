"""Confirming an e-mail, for whoever has the link that was sent to it."""

from __future__ import annotations

from app.counters.base import WindowRequest
from app.errors import ApiError, ErrorCode, field_error
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, count_attempt, forgiving_outages
from app.runtime import Runtime
from app.services.access.callers import Caller, Client
from app.services.access.credentials import credential_change
from app.services.accounts import confirmations
from app.services.accounts.members import confirm_email, get_member
from app.services.audit_log.actors import acting

MAILS_PER_MEMBER = 5
"""Mails an hour that a member can have sent to their e-mail."""


def check_confirmation(runtime: Runtime, token: str) -> Member:
    """The member whose e-mail a link confirms.

    Raises:
        ApiError: 400 if it no longer works.
    """
    with runtime.database.read() as session:
        member = confirmations.find_confirmed(session, token, runtime.settings.secret_key)
    if member is None:
        raise _ended()
    return member


def confirm(runtime: Runtime, client: Client, token: str) -> None:
    """Confirm the e-mail that a link was sent to. The keys of an owner's account work again, if they had stopped.

    Raises:
        ApiError: 400 if the link no longer works.
    """
    account_id = check_confirmation(runtime, token).account_id
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        member = confirmations.find_confirmed(session, token, runtime.settings.secret_key)
        if member is None:
            raise _ended()
        with acting(client.member(member.email, member.id)):
            confirm_email(member)


def ask_again(runtime: Runtime, caller: Caller) -> None:
    """Have another link sent to the caller's e-mail; none if it is confirmed.

    Raises:
        ApiError: 403 for a key, and where no mail is sent; 429 after too many.
    """
    if caller.member is None or not runtime.settings.sends_mail:
        raise ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "Only a member who is logged in can have a mail sent.")
    window = WindowRequest(f"confirmation:{caller.member.id}", MAILS_PER_MEMBER, HOUR_SECONDS)
    counted = count_attempt(runtime, [window], "mails")
    with forgiving_outages(runtime, counted), runtime.database.write() as session:
        confirmations.ask_member(session, get_member(session, caller.account.id, caller.member.id))


def _ended() -> ApiError:
    return field_error("token", "expired", "no longer works: the address was changed, or it is older than 3 days")
