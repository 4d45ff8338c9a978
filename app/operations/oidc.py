"""Logins with an OpenID Connect provider.

The person proves an identity at the provider. A linked member logs in; otherwise, members with the verified address are
linked, or the person accepts an invitation or registers.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from sqlalchemy.orm import Session

from app.clock import now
from app.counters.values import WindowRequest
from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations.attempts import HOUR_SECONDS, count_attempt
from app.runtime import Runtime
from app.services.access.callers import Client
from app.services.access.credentials import changed_credentials
from app.services.accounts import accounts, invitations, oidc
from app.services.accounts.members import is_same_mailbox
from app.services.accounts.oidc import Provider, ProviderUnavailable, ResponseRejected
from app.services.audit_log.actors import acting
from app.services.sites import get_account
from app.services.webhooks import notify_operator
from app.tokens import hash_token, read_signed, sign
from app.wording import operator_text
from schemas.accounts import is_email
from schemas.validation.webhooks import ACCOUNT_CREATED

if TYPE_CHECKING:
    from app.services.accounts.id_tokens import Person


log = logging.getLogger(__name__)
CALLBACK = "/login/oidc/callback"
ATTEMPT_SECONDS = 600
"""Maximum duration of a login at the provider in seconds."""
_PURPOSE = "login with a provider"
ATTEMPTS = 60
"""Maximum number of logins per hour that one client may begin. Completing one requires requests to the provider."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login in progress.

    Attributes:
        secret: Known only to the person's browser.
        next: Path to open after the login.
        invitation: Token of the invitation to accept; empty without one.
        connects: ID of the logged-in member who wants to link the identity; ``None`` without one.
    """

    secret: str
    next: str
    invitation: str = ""
    connects: int | None = None

    def derive(self, purpose: str) -> str:
        """Return a value for the provider that does not reveal the secret."""
        return hash_token(purpose, self.secret)


def begin(
    runtime: Runtime, client: Client, next: str, invitation: str = "", connects: int | None = None
) -> tuple[str, str]:
    """Begin a login. Returns the provider's login URL and the value of the cookie.

    Args:
        next, invitation, connects: As in :class:`Attempt`.

    Raises:
        ApiError: 404 without a provider; 429 after too many logins; 503 if the provider does not respond.
    """
    from joserfc.util import urlsafe_b64encode  # Imported late for memory, as in Provider.keys.

    provider = _provider(runtime)
    count_attempt(runtime, [WindowRequest(f"oidc:{client.key}", ATTEMPTS, HOUR_SECONDS)], "logins")
    try:
        address = provider.endpoints().authorization
    except ProviderUnavailable as error:
        _log(error)
        raise
    attempt = Attempt(secrets.token_urlsafe(32), next, invitation, connects)
    challenge = hashlib.sha256(attempt.derive("verifier").encode()).digest()
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": runtime.settings.public_url + CALLBACK,
        "scope": "openid email profile",
        "state": attempt.derive("state"),
        "nonce": attempt.derive("nonce"),
        "code_challenge": urlsafe_b64encode(challenge).decode(),
        "code_challenge_method": "S256",
    }
    cookie = sign(astuple(attempt), runtime.settings.secret_key, _PURPOSE)
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}", cookie


def finish(
    runtime: Runtime, client: Client, cookie: str, response: Mapping[str, str], member_id: int | None = None
) -> tuple[list[Member], bool, str]:
    """Complete a login with the response that the provider sent through the browser.

    Returns the members that the person may log in as, oldest first, whether to ask the person to choose, and the path
    to open.

    Args:
        cookie: Value from :func:`begin`; empty if the browser has none.
        response: Query parameters of the URL.
        member_id: ID of the member logged in in the browser; ``None`` without one.

    Raises:
        ApiError: 401 for an invalid response; 403 for people without an account here; 503 if the provider does not
            respond.
    """
    from app.services.accounts.id_tokens import read_person  # Imported late for memory, as in Provider.keys.

    provider = _provider(runtime)
    attempt = _read_attempt(runtime, cookie)
    if attempt is None or not hmac.compare_digest(response.get("state", "").encode(), attempt.derive("state").encode()):
        raise _rejected("This login was started in another browser or more than 10 minutes ago; start again.")
    # RFC 9207: a response of another provider must not be used at this one (mix-up attack).
    if response.get("iss", provider.issuer) != provider.issuer:
        raise _rejected("The response came from another provider.")
    if "error" in response:
        raise _rejected("The identity provider did not log you in.")
    once = WindowRequest(f"oidc-answer:{attempt.derive('answer')}", 1, ATTEMPT_SECONDS)
    if runtime.counters.consume([once], now=now().timestamp()).rejected is not None:
        raise _rejected("This login was already used; start again.")
    try:
        # Without the name, a response of another provider could not be told apart.
        if provider.endpoints().names_issuer and "iss" not in response:
            raise ResponseRejected("The provider's response does not name its issuer.")
        redirect_uri = runtime.settings.public_url + CALLBACK
        tokens = provider.exchange(response.get("code", ""), attempt.derive("verifier"), redirect_uri)
        person = read_person(provider, tokens, attempt.derive("nonce"))
        if not (is_email(person.email) and person.email.isprintable()):
            raise ResponseRejected("The provider returned no email address.")
    except ResponseRejected as error:
        log.warning("a login with the identity provider was rejected: %s", error)
        raise _rejected(str(error)) from error
    except ProviderUnavailable as error:
        _log(error)
        raise
    domains = runtime.settings.allowed_domains
    if domains and person.email.rpartition("@")[2].lower() not in domains:
        raise _forbidden(f"People with addresses such as {person.email} cannot log in here.")
    connects = attempt.connects if attempt.connects == member_id else None
    return *_find_members(runtime, client, person, attempt.invitation, connects), attempt.next


def _find_members(
    runtime: Runtime, client: Client, person: Person, invitation: str, connects: int | None
) -> tuple[list[Member], bool]:
    with runtime.database.read() as session:
        linked_members = oidc.find_linked_members(session, person.issuer, person.subject)
        unknown = oidc.find_linkable_members(session, person.issuer, person.email, connects)
    if linked_members and not unknown and not invitation:
        return list(linked_members), len(linked_members) > 1
    # Hashed before the transaction, because hashing is slow by design. Nobody knows this password.
    password_hash = accounts.hash_password(secrets.token_urlsafe(32))
    with ExitStack() as after_commit, acting(client.member(person.email)), runtime.database.write() as session:
        linked, is_asked = _link_members(session, person, password_hash, connects)
        if invitation:
            members = [_accept(runtime, session, person, invitation, password_hash)]
        else:
            members = list(oidc.find_linked_members(session, person.issuer, person.subject))
        if not members:
            members = [_register(runtime, session, person, password_hash)]
        session.flush()
        for account_id in linked:
            after_commit.enter_context(changed_credentials(runtime.counters, account_id))
    runtime.run_engine_tasks()
    return members, len(members) > 1 or (is_asked and not invitation)


def _link_members(session: Session, person: Person, password_hash: str, connects: int | None) -> tuple[list[int], bool]:
    """Link the members with the person's address to the provider.

    Returns the IDs of their accounts, and whether any of these is another person's account, in which someone may have
    entered the address without the person's consent.
    """
    unknown = oidc.find_linkable_members(session, person.issuer, person.email, connects)
    account_ids = sorted(member.account_id for member in unknown)
    for account_id in account_ids:
        get_account(session, account_id, lock=True)
    # Read the members again under the locks, which concurrent logins and changes of addresses also need.
    session.expire_all()
    linked, is_asked = [], False
    for member in oidc.find_linkable_members(session, person.issuer, person.email, connects):
        if member.account_id not in account_ids:
            continue
        if not member.email_confirmed and member.id != connects:
            is_asked |= not oidc.take_over(session, member, password_hash)
        oidc.link(session, member, person.issuer, person.subject)
        linked.append(member.account_id)
    return linked, is_asked


def _accept(runtime: Runtime, session: Session, person: Person, invitation: str, password_hash: str) -> Member:
    secret = runtime.settings.secret_key
    if not is_same_mailbox(invitations.get_open_invitation(session, invitation, secret).email, person.email):
        raise _forbidden("The invitation is for a different email address than the one you have at the provider.")
    member = invitations.accept_invitation(
        session, invitation, secret, name=person.name, password_hash=password_hash, confirmed=True
    )
    oidc.link(session, member, person.issuer, person.subject)
    return member


def _register(runtime: Runtime, session: Session, person: Person, password_hash: str) -> Member:
    if oidc.is_linked_elsewhere(session, person.issuer, person.email):
        raise _forbidden(f"{person.email} already belongs to another person's account here; ask {_operator(runtime)}.")
    if not runtime.settings.registration:
        raise _forbidden(f"There is no account with the email address {person.email}; ask for an invitation.")
    owner = accounts.create_owner(
        session,
        name=person.name,
        email=person.email,
        password_hash=password_hash,
        plan=runtime.settings.default_plan,
        confirmed=True,
    )
    oidc.link(session, owner, person.issuer, person.subject)
    notify_operator(session, runtime.settings, ACCOUNT_CREATED, owner.account)
    return owner


def _provider(runtime: Runtime) -> Provider:
    if runtime.provider is None:
        raise ApiError(ErrorCode.NOT_FOUND, "Login with an identity provider is not set up.")
    return runtime.provider


def _read_attempt(runtime: Runtime, cookie: str) -> Attempt | None:
    attempt = read_signed(cookie, runtime.settings.secret_key, _PURPOSE, ATTEMPT_SECONDS)
    return None if attempt is None else Attempt(*attempt)


def _rejected(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CREDENTIALS, why)


def _forbidden(why: str) -> ApiError:
    return ApiError(ErrorCode.INSUFFICIENT_PERMISSION, why)


def _operator(runtime: Runtime) -> str:
    return operator_text(runtime.settings.operator_contact)


def _log(error: ProviderUnavailable) -> None:
    log.error("the identity provider is unavailable: %s", error.why)
