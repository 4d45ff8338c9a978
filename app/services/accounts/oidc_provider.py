"""x"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import orjson

from app.clock import now
from app.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from joserfc.jwk import KeySet


CONNECT_SECONDS, READ_SECONDS = 3.0, 5.0
LONGEST_SECONDS = 10.0
"""How long one answer may take, however slowly it comes."""
MAX_ANSWER_BYTES = 1_000_000
MOST_AT_ONCE = 2
"""Requests to the provider under way in this process: the other threads are for everybody else."""
KEPT_SECONDS = 3600.0
"""How long what the provider publishes is kept."""
PAUSE_SECONDS = 10.0
"""How long a provider that failed is left alone."""
_URL_CHARACTERS = re.compile("[!-~]+")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses of a provider, as its configuration names them."""

    authorization: str
    token: str
    keys: str
    userinfo: str
    takes_basic: bool
    """Whether the client's secret is sent in the header; else in the form."""


class ProviderUnavailable(ApiError):
    """The provider does not answer, or not as one does."""

    def __init__(self, why: str):
        super().__init__(
            ErrorCode.IDENTITY_PROVIDER_UNAVAILABLE,
            "The identity provider does not answer as it should; try again in a minute.",
            retry_after=int(PAUSE_SECONDS),
        )
        self.why = why
        """For the operator; it may tell of the network."""


class AnswerRefused(Exception):
    """The provider refused a request, such as one with a code that was used already."""


class Provider:
    """One provider, as one client of it sees it. Threads may share it.

    Args:
        issuer: Whose configuration is at ``/.well-known/openid-configuration`` below it.
    """

    def __init__(self, issuer: str, client_id: str, client_secret: str):
        self.issuer = issuer
        self.client_id = client_id
        self._client_secret = client_secret
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._endpoints: Endpoints | None = None
        self._endpoints_until = 0.0
        self._keys: KeySet | None = None
        self._keys_until = 0.0
        self._paused_until = 0.0

    def endpoints(self) -> Endpoints:
        """Addresses at which it is asked.

        Raises:
            ProviderUnavailable: It does not say, or is another issuer.
        """
        with self._lock:
            if self._endpoints is not None and _is_ahead(self._endpoints_until, KEPT_SECONDS):
                return self._endpoints
        found = self._read_configuration()
        with self._lock:
            self._endpoints, self._endpoints_until = found, _seconds() + KEPT_SECONDS
        return found

    def _read_configuration(self) -> Endpoints:
        said = self._call("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if said.get("issuer") != self.issuer:
            raise ProviderUnavailable(f"its configuration is that of another issuer: {said.get('issuer')!r}")
        methods = said.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not isinstance(methods, list):
            raise ProviderUnavailable("its token_endpoint_auth_methods_supported is no list")
        return Endpoints(
            self._address(said, "authorization_endpoint"),
            self._address(said, "token_endpoint"),
            self._address(said, "jwks_uri"),
            self._address(said, "userinfo_endpoint") if "userinfo_endpoint" in said else "",
            "client_secret_basic" in methods,
        )

    def _address(self, said: Mapping[str, Any], name: str) -> str:
        """An address of the configuration, at least as safe from others as the issuer, of which http is local only."""
        address = str(said.get(name, ""))
        try:
            parts = urlsplit(address)
            is_url = bool(parts.hostname) and _URL_CHARACTERS.fullmatch(address) is not None
        except ValueError:
            is_url = False
        if not is_url or not (parts.scheme == "https" or (parts.scheme == "http" and self.issuer.startswith("http:"))):
            raise ProviderUnavailable(f"its {name} is no https URL: {address!r}")
        return address

    def keys(self, *, anew: bool = False) -> KeySet:
        """The keys with which it signs.

        Args:
            anew: Whether to read them again: a token, which only the provider can have sent, is signed with another.

        Raises:
            ProviderUnavailable: It does not say.
        """
        with self._lock:
            if self._keys is not None and not anew and _is_ahead(self._keys_until, KEPT_SECONDS):
                return self._keys
        found = _read_keys(self._call("GET", self.endpoints().keys).get("keys"))
        with self._lock:
            self._keys, self._keys_until = found, _seconds() + KEPT_SECONDS
        return found

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, Any]:
        """The answer to a code, with ``id_token`` and ``access_token``.

        Raises:
            AnswerRefused: The code is not good, or no longer.
            ProviderUnavailable: It does not answer.
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
                auth=(quote_plus(self.client_id), quote_plus(self._client_secret)),
            )
        form |= {"client_id": self.client_id, "client_secret": self._client_secret}
        return self._call("POST", endpoints.token, data=form)

    def userinfo(self, access_token: str) -> Mapping[str, Any]:
        """Claims of the person beyond the ID token.

        Raises:
            AnswerRefused: It does not tell.
            ProviderUnavailable: It does not answer.
        """
        address = self.endpoints().userinfo
        if not address:
            raise AnswerRefused("The provider tells no e-mail address.")
        return self._call("GET", address, headers={"Authorization": f"Bearer {access_token}"})

    def _call(self, method: str, url: str, headers: Mapping[str, str] | None = None, **options: Any) -> dict[str, Any]:
        if _is_ahead(self._paused_until, PAUSE_SECONDS):
            raise ProviderUnavailable("it failed some seconds ago")
        if not self._places.acquire(blocking=False):
            raise ProviderUnavailable(f"{MOST_AT_ONCE} requests are waiting for it")
        answer: Future[tuple[int, bytes]] = Future()
        answer.add_done_callback(lambda _: self._places.release())
        # Time limits of sockets are for each piece: an answer that trickles in must not hold the thread that asks.
        work = partial(_send_into, answer, method, url, headers or {}, options)
        threading.Thread(target=work, name="identity-provider", daemon=True).start()
        try:
            status, body = answer.result(LONGEST_SECONDS)
        except (OSError, ValueError, _TooMuch) as error:
            self._paused_until = _seconds() + PAUSE_SECONDS
            raise ProviderUnavailable(f"{urlsplit(url).netloc}: {error or type(error).__name__}") from error
        if (400 <= status < 500 and method == "POST") or status in (401, 403):
            raise AnswerRefused(f"The provider answered {status}.")
        if status != 200:
            raise ProviderUnavailable(f"{url} answered {status}")
        try:
            said = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ProviderUnavailable(f"{url} answered no JSON") from error
        if not isinstance(said, dict):
            raise ProviderUnavailable(f"{url} answered no JSON object")
        return said


def _seconds() -> float:
    return now().timestamp()


def _is_ahead(moment: float, seconds: float) -> bool:
    """Whether a moment that was set so many seconds ahead is still to come; not after a clock was set back."""
    return 0 < moment - _seconds() <= seconds


class _TooMuch(Exception):
    """An answer is too long, or takes too long."""


def _read_keys(published: object) -> KeySet:
    """The keys of a set, without those of kinds that are not known here (RFC 7517, section 5).

    Raises:
        ProviderUnavailable: None of them can be read.
    """
    # The cryptography takes some 10 MB of a process: only one in which people log in so loads it.
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    keys, why = [], "there are none"
    for key in published if isinstance(published, list) else ():
        if isinstance(key, dict) and key.get("kty") == "oct":
            continue  # A secret that is published proves nothing.
        try:
            keys += KeySet.import_key_set({"keys": [key]}).keys
        except (JoseError, LookupError, TypeError, ValueError, AttributeError) as error:
            why = str(error)
    if not keys:
        raise ProviderUnavailable(f"its keys cannot be read: {why}")
    return KeySet(keys)


def _send_into(answer: Future[tuple[int, bytes]], *request: Any) -> None:
    from urllib3.exceptions import HTTPError

    try:
        answer.set_result(_send(*request))
    except HTTPError as error:  # Raw reads raise it, where requests would raise an OSError.
        answer.set_exception(OSError(str(error)))
    except Exception as error:  # noqa: BLE001 - whatever it is, the thread that asks raises it
        answer.set_exception(error)


def _send(method: str, url: str, headers: Mapping[str, str], options: Mapping[str, Any]) -> tuple[int, bytes]:
    """Status and body of an answer; redirects are not followed, they would carry the secret elsewhere."""
    import requests  # Only processes that ask a provider pay for loading it.

    deadline = time.monotonic() + LONGEST_SECONDS
    with requests.request(
        method,
        url,
        headers={"Accept": "application/json", "Accept-Encoding": "identity", **headers},
        timeout=(CONNECT_SECONDS, READ_SECONDS),
        allow_redirects=False,
        stream=True,
        **options,
    ) as answer:
        body = bytearray()
        while piece := answer.raw.read1(65_536):
            body += piece
            if len(body) > MAX_ANSWER_BYTES or time.monotonic() > deadline:
                raise _TooMuch("its answer is too long, or comes too slowly")
        return answer.status_code, bytes(body)
