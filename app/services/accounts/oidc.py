"""Logins with an OpenID Connect provider: requests to it, and the links between members and their identities there."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import orjson
from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.feature_settings import LOOPBACK_HOSTS
from app.models import Identity, Invitation, Member
from app.models import Session as Login
from app.services.access.keys import disable_keys
from app.services.access.sessions import end_other_sessions
from app.services.accounts.emails import end_resets
from app.services.accounts.members import confirm_email, find_members, first_owner, is_same_mailbox
from app.services.accounts.one_time_codes import switch_off
from backends.servers.waiting import waiting

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

CONNECT_SECONDS, READ_SECONDS = 3.0, 5.0
"""Socket timeouts for connecting and for reading."""
LONGEST_SECONDS = 10.0
"""Seconds that a complete response may take, however slowly it arrives."""
MAX_RESPONSE_BYTES = 1_000_000
MAX_CONCURRENT_REQUESTS = 2
"""Maximum number of concurrent requests of this process. A slow provider must not occupy all threads."""
KEPT_SECONDS = 3600.0
"""Seconds for which the provider's configuration and keys are cached."""
PAUSE_SECONDS = 10.0
"""Seconds without requests after a failure."""
_URL_CHARACTERS = re.compile("[!-~]+")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """URLs from the provider's configuration."""

    authorization: str
    token: str
    keys: str
    userinfo: str
    takes_basic: bool
    """Whether the client secret is sent in the header, not in the form."""
    names_issuer: bool
    """Whether every response through the browser names the issuer (RFC 9207)."""


class ProviderUnavailable(ApiError):
    """The provider does not respond, or its response is invalid."""

    def __init__(self, why: str):
        super().__init__(
            ErrorCode.IDENTITY_PROVIDER_UNAVAILABLE,
            "The identity provider is not responding correctly; try again in a minute.",
            retry_after=int(PAUSE_SECONDS),
        )
        self.why = why
        """For the operator's log; may reveal details of the network."""


class ResponseRejected(Exception):
    """The provider rejected a request, such as a code that was already used, or its response must be rejected."""


class Provider:
    """A client of an OpenID Connect provider. Thread-safe.

    Args:
        issuer: Base URL of ``/.well-known/openid-configuration``.
    """

    def __init__(self, issuer: str, client_id: str, client_secret: str):
        self.issuer = issuer
        self.client_id = client_id
        self._client_secret = client_secret
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)
        self._endpoints: Endpoints | None = None
        self._endpoints_until = 0.0
        self._keys: KeySet | None = None
        self._keys_until = 0.0
        self._paused_until = 0.0

    def endpoints(self) -> Endpoints:
        """Return the provider's endpoints.

        Raises:
            ProviderUnavailable: The configuration cannot be read, or belongs to another issuer.
        """
        with self._lock:
            if self._endpoints is not None and _is_ahead(self._endpoints_until, KEPT_SECONDS):
                return self._endpoints
        # Outside the lock, so that a slow provider does not block threads that only need the cached keys.
        endpoints = self._read_configuration()
        with self._lock:
            self._endpoints, self._endpoints_until = endpoints, _seconds() + KEPT_SECONDS
        return endpoints

    def _read_configuration(self) -> Endpoints:
        document = self._call("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        # OpenID Connect Discovery, section 4.3, requires an exact match.
        if document.get("issuer") != self.issuer:
            raise ProviderUnavailable(f"its configuration belongs to another issuer: {document.get('issuer')!r}")
        # OpenID Connect Discovery, section 3, sets this default.
        methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not isinstance(methods, list):
            raise ProviderUnavailable("its token_endpoint_auth_methods_supported is not a list")
        return Endpoints(
            self._address(document, "authorization_endpoint"),
            self._address(document, "token_endpoint"),
            self._address(document, "jwks_uri"),
            self._address(document, "userinfo_endpoint") if "userinfo_endpoint" in document else "",
            "client_secret_basic" in methods,
            document.get("authorization_response_iss_parameter_supported") is True,
        )

    def _address(self, document: Mapping[str, Any], name: str) -> str:
        """Return a URL from the configuration.

        It must use https, unless both the issuer and the URL are on this machine. Otherwise, the client secret would be
        sent in the clear.
        """
        address = str(document.get(name, ""))
        try:
            parts = urlsplit(address)
            is_url = bool(parts.hostname) and _URL_CHARACTERS.fullmatch(address) is not None
        except ValueError:
            is_url = False
        is_local = self.issuer.startswith("http:") and is_url and parts.hostname in LOOPBACK_HOSTS
        if not is_url or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
            raise ProviderUnavailable(f"its {name} is not an https URL: {address!r}")
        return address

    def keys(self, *, refresh: bool = False) -> KeySet:
        """Return the provider's public signing keys.

        Args:
            refresh: Whether to bypass the cache, because a token from the provider has an unknown key.

        Raises:
            ProviderUnavailable: The keys cannot be read.
        """
        with self._lock:
            if self._keys is not None and not refresh and _is_ahead(self._keys_until, KEPT_SECONDS):
                return self._keys
        keys = _read_keys(self._call("GET", self.endpoints().keys).get("keys"))
        with self._lock:
            self._keys, self._keys_until = keys, _seconds() + KEPT_SECONDS
        return keys

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, Any]:
        """Exchange a code for a response with ``id_token`` and ``access_token``.

        Raises:
            ResponseRejected: The code is invalid or expired.
            ProviderUnavailable: The provider does not respond.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        endpoints = self.endpoints()
        if endpoints.takes_basic:
            return self._call(
                "POST",
                endpoints.token,
                data=form,
                # RFC 6749, section 2.3.1: both are form-encoded before they are used for basic authentication.
                auth=(quote_plus(self.client_id), quote_plus(self._client_secret)),
            )
        form |= {"client_id": self.client_id, "client_secret": self._client_secret}
        return self._call("POST", endpoints.token, data=form)

    def userinfo(self, access_token: str) -> Mapping[str, Any]:
        """Return claims about the person that the ID token does not contain.

        Raises:
            ResponseRejected: The provider rejects the request.
            ProviderUnavailable: The provider does not respond.
        """
        address = self.endpoints().userinfo
        if not address:
            raise ResponseRejected("The provider returned no email address.")
        return self._call("GET", address, headers={"Authorization": f"Bearer {access_token}"})

    def _call(self, method: str, url: str, headers: Mapping[str, str] | None = None, **options: Any) -> dict[str, Any]:
        if _is_ahead(self._paused_until, PAUSE_SECONDS):
            raise ProviderUnavailable("a request to it failed a few seconds ago")
        # Do not wait for a slow provider, because waiting threads could not serve other requests.
        if not self._places.acquire(blocking=False):
            raise ProviderUnavailable(f"{MAX_CONCURRENT_REQUESTS} requests to it are in progress")
        response: Future[tuple[int, bytes]] = Future()
        # The request may outlive the timeout below, so its end releases the place.
        response.add_done_callback(lambda _: self._places.release())
        # Socket timeouts apply to each read, so a response that trickles in must not block the calling thread.
        work = partial(_send_into, response, method, url, headers or {}, options)
        threading.Thread(target=work, name="identity-provider", daemon=True).start()
        try:
            with waiting():
                status, body = response.result(LONGEST_SECONDS)
        except (OSError, ValueError, _TooMuch) as error:
            # Without the lock: of two failures at the same time, either pause is right.
            self._paused_until = _seconds() + PAUSE_SECONDS
            raise ProviderUnavailable(f"{urlsplit(url).netloc}: {error or type(error).__name__}") from error
        # The code or the token is invalid, which is not an outage.
        if (400 <= status < 500 and method == "POST") or status in (401, 403):
            raise ResponseRejected(f"The provider returned {status}.")
        if status != 200:
            raise ProviderUnavailable(f"{url} returned {status}")
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ProviderUnavailable(f"{url} did not return JSON") from error
        if not isinstance(document, dict):
            raise ProviderUnavailable(f"{url} did not return a JSON object")
        return document


def _seconds() -> float:
    return now().timestamp()


def _is_ahead(moment: float, seconds: float) -> bool:
    """Whether a deadline is at most ``seconds`` in the future. If it is further ahead, the clock was set back."""
    return 0 < moment - _seconds() <= seconds


class _TooMuch(Exception):
    """Raised if a response is too long or takes too long."""


def _read_keys(published: object) -> KeySet:
    """Return the keys of a key set, skipping unsupported kinds (RFC 7517, section 5).

    Raises:
        ProviderUnavailable: No key can be read.
    """
    # The cryptography library takes about 10 MB of memory, so only processes that handle such logins load it.
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    keys, why = [], "the set is empty"
    for key in published if isinstance(published, list) else ():
        if isinstance(key, dict) and key.get("kty") == "oct":
            continue  # A published shared secret proves nothing.
        try:
            keys += KeySet.import_key_set({"keys": [key]}).keys
        except (JoseError, LookupError, TypeError, ValueError, AttributeError) as error:
            why = str(error)
    if not keys:
        raise ProviderUnavailable(f"its keys cannot be read: {why}")
    return KeySet(keys)


def _send_into(response: Future[tuple[int, bytes]], *request: Any) -> None:
    from urllib3.exceptions import HTTPError

    try:
        response.set_result(_send(*request))
    except HTTPError as error:  # Raw reads raise it where requests would raise an OSError.
        response.set_exception(OSError(str(error)))
    except Exception as error:  # noqa: BLE001 - the calling thread raises it again
        response.set_exception(error)


def _send(method: str, url: str, headers: Mapping[str, str], options: Mapping[str, Any]) -> tuple[int, bytes]:
    """Return the status and body of a response. Redirects are not followed, because they could leak the secret."""
    import requests  # Loaded late, because few processes need it.

    deadline = time.monotonic() + LONGEST_SECONDS
    with requests.request(
        method,
        url,
        # Uncompressed, so that the limit of bytes also holds for what is parsed: a small gzip body may expand to
        # gigabytes.
        headers={"Accept": "application/json", "Accept-Encoding": "identity", **headers},
        timeout=(CONNECT_SECONDS, READ_SECONDS),
        allow_redirects=False,
        stream=True,
        **options,
    ) as response:
        body = bytearray()
        while piece := response.raw.read1(65_536):
            body += piece
            if len(body) > MAX_RESPONSE_BYTES or time.monotonic() > deadline:
                raise _TooMuch("its response is too long or too slow")
        return response.status_code, bytes(body)


def find_linked_members(session: Session, issuer: str, subject: str) -> Sequence[Member]:
    """Return the members linked to a person at the provider, oldest first."""
    linked = select(Member).join(Identity).where(Identity.issuer == issuer, Identity.subject == subject)
    return session.scalars(linked.order_by(Member.id)).all()


def find_linkable_members(session: Session, issuer: str, email: str, connects: int | None = None) -> list[Member]:
    """Return the members whom a verified email address identifies and who are not linked to this provider yet.

    Excludes members whose address was set by a key: otherwise, a stolen key would be enough to take over the account.

    Args:
        connects: ID of a logged-in member, who is included even if a key set the address.
    """
    return [
        member
        for member in find_members(session, email)
        if is_same_mailbox(member.email, email)
        and (not member.email_set_by_key or member.id == connects)
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
    # Another member created the account legitimately, so only this member's own access is revoked.
    if first_owner(session, member.account_id).id != member.id:
        return False
    session.execute(delete(Login).where(Login.account_id == member.account_id))
    # The person who registered with someone else's address may have added accomplices.
    for table in (Member, Invitation):
        for other in session.scalars(select(table).where(table.account_id == member.account_id)).all():
            if other is not member:
                session.delete(other)
    disable_keys(session, member.account_id)
    session.flush()
    return True
