"""The OpenID Connect provider: what it publishes, kept for a while, and what it answers, within bounds.

A worker never waits long: requests have short time limits, few are under way at once, and a provider that has just
failed is not asked again for some seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
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
            if self._endpoints is not None and _seconds() < self._endpoints_until:
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
            scheme = urlsplit(address).scheme
        except ValueError:
            scheme = ""
        if scheme != "https" and not (scheme == "http" and self.issuer.startswith("http:")):
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
            if self._keys is not None and not anew and _seconds() < self._keys_until:
                return self._keys
        # The cryptography takes some 10 MB of a process: only one in which people log in so loads it.
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        said = self._call("GET", self.endpoints().keys)
        try:
            found = KeySet.import_key_set({"keys": said["keys"]})
        except (JoseError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ProviderUnavailable(f"its keys cannot be read: {error}") from error
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
        if _seconds() < self._paused_until:
            raise ProviderUnavailable("it failed some seconds ago")
        if not self._places.acquire(blocking=False):
            raise ProviderUnavailable(f"{MOST_AT_ONCE} requests are waiting for it")
        try:
            status, body = _send(method, url, headers or {}, options)
        except (OSError, _TooMuch) as error:
            self._paused_until = _seconds() + PAUSE_SECONDS
            raise ProviderUnavailable(f"{urlsplit(url).netloc}: {error}") from error
        finally:
            self._places.release()
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


class _TooMuch(Exception):
    """An answer is too long, or takes too long."""


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
