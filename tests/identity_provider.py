"""A local OpenID Connect provider that can be unavailable, slow, or return wrong data."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import ECKey, Key
from joserfc.util import urlsafe_b64encode

from app.clock import now

CLIENT_ID, CLIENT_SECRET = "site search", "s3cret: of/the client"


def _new_key(kid: str) -> Key:
    return ECKey.generate_key("P-256", parameters={"kid": kid, "use": "sig", "alg": "ES256"})


@dataclass
class IdentityProvider:
    """The provider's responses and behavior.

    Attributes:
        person: Claims of the logged-in person.
        claims: Claims that replace the correct claims of ID tokens; ``None`` omits a claim.
        keys: The published keys; the provider signs with ``key``.
        algorithm: The algorithm in the header of ID tokens.
        userinfo: The claims of the userinfo endpoint.
        configuration: Entries that replace the correct entries of its configuration.
        status: The status of every response, if not 200.
        takes_codes_again: Whether a code is accepted more than once.
        asked: The requested paths.
        held: While this event is cleared, no request gets a response.
        raw: Paths at which a function writes raw bytes in place of a response.
    """

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    key: Key = field(default_factory=lambda: _new_key("first"))
    keys: list[Key] = field(default_factory=list)
    algorithm: str = "ES256"
    token: str | None = None
    userinfo: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    takes_codes_again: bool = False
    asked: list[str] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    raw: dict[str, Callable[[BinaryIO], None]] = field(default_factory=dict)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def rotate(self, kid: str = "second") -> None:
        """Sign with a new key from now on, and publish only that key."""
        self.key = _new_key(kid)
        self.keys = [self.key]

    def log_in(self, address: str) -> str:
        """Log the person in at the URL that a browser was redirected to; return the callback path."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?"), address
        assert (query["client_id"], query["response_type"]) == (CLIENT_ID, "code")
        assert set(query["scope"].split()) == {"openid", "email", "profile"}
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        path = urlsplit(query["redirect_uri"]).path
        return f"{path}?{urlencode({'code': code, 'state': query['state'], 'iss': self.issuer})}"

    def settings(self, **others: Any) -> dict[str, Any]:
        """Return the service's settings for this provider."""
        return {
            "oidc_issuer": self.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": CLIENT_SECRET,
            "oidc_name": "Example",
            "public_url": "http://localhost",
            **others,
        }

    def answer(self, method: str, path: str, headers: Any, form: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(path)
        if self.status != 200:
            return self.status, {"error": "server_error"}
        match method, path:
            case "GET", "/.well-known/openid-configuration":
                addresses = {
                    "authorization_endpoint": "/authorize",
                    "token_endpoint": "/token",
                    "jwks_uri": "/keys",
                    "userinfo_endpoint": "/userinfo",
                }
                said = {name: self.issuer + path for name, path in addresses.items()}
                return 200, {"issuer": self.issuer, **said, **self.configuration}
            case "GET", "/keys":
                return 200, {"keys": [key.as_dict(private=False) for key in self.keys]}
            case "POST", "/token":
                return self._exchange(headers, form)
            case "GET", "/userinfo" if headers["Authorization"] == "Bearer access":
                return 200, self.userinfo
        return 404, {}

    def _exchange(self, headers: Any, form: dict[str, str]) -> tuple[int, Any]:
        given = urlencode({"": CLIENT_ID})[1:], urlencode({"": CLIENT_SECRET})[1:]
        assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == ":".join(given)
        asked = self._codes.get(form["code"]) if self.takes_codes_again else self._codes.pop(form["code"], None)
        if asked is None:
            return 400, {"error": "invalid_grant"}
        challenge = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode()
        assert 43 <= len(form["code_verifier"]) <= 128
        if (challenge, form["redirect_uri"]) != (asked["code_challenge"], asked["redirect_uri"]):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": self._id_token(asked["nonce"])}

    def _id_token(self, nonce: str) -> str:
        if self.token is not None:
            return self.token
        moment = int(now().timestamp())
        right = {"iss": self.issuer, "aud": CLIENT_ID, "iat": moment, "exp": moment + 300, "nonce": nonce}
        claims = {name: value for name, value in {**right, **self.person, **self.claims}.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.key.kid}
        if self.algorithm == "none":
            parts = (json.dumps(header), json.dumps(claims))
            return ".".join([*(urlsafe_b64encode(part.encode()).decode() for part in parts), ""])
        return jwt.encode(header, claims, self.key, registry=jws.JWSRegistry(algorithms=[self.algorithm]))


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """Run a provider where Ann is logged in."""
    provider = IdentityProvider()
    provider.keys = [provider.key]
    provider.held.set()
    provider.person = {"sub": "248289761001", "email": "ann@example.com", "email_verified": True, "name": "Ann Example"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer("POST", {name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, method: str, form: dict[str, str]) -> None:
            if not provider.held.is_set():
                provider.waiting.release()
                provider.held.wait()
            path = urlsplit(self.path).path
            if path in provider.raw:
                provider.asked.append(path)
                self.close_connection = True
                with suppress(OSError):  # The client has disconnected.
                    provider.raw[path](cast(BinaryIO, self.wfile))
                return
            status, said = provider.answer(method, path, self.headers, form)
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
