"""Hostile or malformed responses of an identity provider never log anyone in."""

from __future__ import annotations

import gzip
import hmac
import json
import threading
import time
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import time_machine
from flask import Flask
from joserfc.jwk import ECKey, Key
from joserfc.jws import JWSRegistry
from sqlalchemy import func, select

from app.clock import now
from app.models import Account, Identity
from app.runtime import Runtime
from tests.callers import register_tenant
from tests.email_installation import confirm_everybody
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.pages.oidc.visitors import begin, come, is_logged_in
from tests.pages.people import Person
from tests.responses import assert_ok


def assert_nobody_came(app: Flask, person: Person, said: str) -> None:
    """Assert that the page shows the reason, and that no session, account, or identity was created."""
    assert person.response.status_code in (401, 403, 503), person.response.status_code
    assert said in " ".join(person.alerts)
    assert "session" not in "".join(person.response.headers.getlist("Set-Cookie"))
    part: Runtime = app.extensions["runtime"]
    with part.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Account)) == 0
        assert session.scalar(select(func.count()).select_from(Identity)) == 0
    assert not is_logged_in(person)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        pytest.param({"iss": "https://other.example.com"}, "invalid_claim", id="wrong issuer"),
        pytest.param({"iss": None}, "missing_claim", id="no issuer"),
        pytest.param({"aud": "another client"}, "invalid_claim", id="wrong audience"),
        pytest.param({"aud": ["another client"]}, "invalid_claim", id="wrong list of audiences"),
        pytest.param({"aud": None}, "missing_claim", id="no audience"),
        pytest.param({"aud": [CLIENT_ID, "another client"]}, "for another application", id="two audiences"),
        pytest.param({"azp": "another client"}, "for another application", id="wrong authorized party"),
        pytest.param({"nonce": "another login's"}, "another login", id="wrong nonce"),
        pytest.param({"nonce": None}, "missing_claim", id="no nonce"),
        pytest.param({"nonce": ["a"]}, "another login", id="nonce is not a string"),
        pytest.param({"exp": None}, "missing_claim", id="missing expiry"),
        pytest.param({"exp": "tomorrow"}, "invalid_claim", id="expiry is out of range"),
        pytest.param({"iat": None}, "missing_claim", id="missing start"),
        pytest.param({"sub": None}, "missing_claim", id="nobody"),
        pytest.param({"sub": ""}, "invalid_claim", id="empty subject"),
        pytest.param({"sub": "s" * 256}, "no valid subject", id="long subject"),
        pytest.param({"sub": 7}, "invalid_claim", id="subject is not a string"),
        pytest.param({"email_verified": False}, "has not verified", id="unverified email"),
        pytest.param({"email_verified": None}, "has not verified", id="email without a verified flag"),
        pytest.param({"email_verified": "true"}, "has not verified", id='string "true"'),
        pytest.param({"email_verified": "false"}, "has not verified", id='string "false"'),
        pytest.param({"exp": float("nan")}, "invalid_claim", id="expiry is not a number"),
        pytest.param({"exp": float("inf")}, "invalid_claim", id="infinite expiry"),
        pytest.param({"iat": 2**62}, "invalid_claim", id="infinite start time"),
        pytest.param({"email_verified": 1}, "has not verified", id="number instead of true"),
        pytest.param({"email": ""}, "no email address", id="empty email"),
        pytest.param({"email": ["ann@example.com"]}, "no email address", id="email is not a string"),
    ],
)
def test_id_token_with_an_invalid_claim_is_rejected(
    app: Flask, provider: IdentityProvider, claims: dict[str, Any], said: str
) -> None:
    provider.claims = claims
    assert_nobody_came(app, come(app, provider), said)


@pytest.mark.parametrize(
    ("seconds", "comes"), [(-361, False), (-359, True), (59, True), (61, False)], ids=["late", "slow", "fast", "early"]
)
def test_provider_clock_skew_of_more_than_a_minute_is_rejected(
    app: Flask, provider: IdentityProvider, seconds: int, comes: bool
) -> None:
    """Tokens are valid for five minutes, with one minute of tolerance for clock skew."""
    with time_machine.travel(now(), tick=False):
        moment = int(now().timestamp()) + seconds
        provider.claims = {"iat": moment, "exp": moment + 300}
        person = come(app, provider)
        if comes:
            assert is_logged_in(person)
        else:
            assert_nobody_came(app, person, "not valid")


def test_unsigned_id_token_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    provider.algorithm = "none"
    assert_nobody_came(app, come(app, provider), "unsupported_algorithm")


@pytest.mark.parametrize("secret", [CLIENT_SECRET, "public key"])
def test_hs256_signature_with_a_known_key_is_rejected(app: Flask, provider: IdentityProvider, secret: str) -> None:
    """``HS256`` with the client secret or the provider's public key as the signing key."""
    known = provider.key.as_pem(private=False) if secret == "public key" else secret.encode()
    person = Person(app)
    path = provider.log_in(begin(person))
    nonce = next(iter(provider._codes.values()))["nonce"]
    moment = int(now().timestamp())
    claims = {"iss": provider.issuer, "aud": CLIENT_ID, "iat": moment, "exp": moment + 300, "nonce": nonce}
    parts = ({"alg": "HS256", "kid": "first"}, claims | provider.person)
    signed = b".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = urlsafe_b64encode(hmac.digest(known, signed, "sha256")).rstrip(b"=")  # joserfc does not sign it.
    provider.token = (signed + b"." + signature).decode()
    person.call("GET", path)
    assert_nobody_came(app, person, "unsupported_algorithm")


def test_signature_of_another_key_with_the_same_id_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    provider.key = ECKey.generate_key("P-256", parameters={"kid": "first"})
    assert_nobody_came(app, come(app, provider), "bad_signature")


@pytest.mark.parametrize("token", ["", "a.b.c", "e30.e30.", "x" * 200_000, "é.é.é"])
def test_malformed_id_token_is_rejected(app: Flask, provider: IdentityProvider, token: str) -> None:
    provider.token = token
    assert_nobody_came(app, come(app, provider), "not valid")


def test_rotated_provider_keys_are_fetched_again(app: Flask, provider: IdentityProvider) -> None:
    assert is_logged_in(come(app, provider))
    provider.rotate("second")
    assert is_logged_in(come(app, provider))
    provider.rotate("second")  # A careless provider reuses the key ID for its next key.
    assert is_logged_in(come(app, provider))
    assert provider.asked.count("/keys") == 3
    assert is_logged_in(come(app, provider))
    assert provider.asked.count("/keys") == 3
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_token_signed_with_a_rotated_out_key_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    old = provider.key
    provider.rotate()
    provider.key = old
    assert_nobody_came(app, come(app, provider), "invalid_key_id")


def test_authorization_response_cannot_be_replayed(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    path = provider.log_in(begin(person))
    cookie = person.client.get_cookie("login_attempt", path="/login/oidc")
    assert cookie is not None
    provider.takes_codes_again = True
    assert person.call("GET", path).status_code == 303
    assert person.call("GET", path).status_code == 401, "the browser must not have the cookie anymore"

    thief = Person(app)
    thief.client.set_cookie("login_attempt", cookie.value, path="/login/oidc")
    thief.call("GET", path)
    assert thief.response.status_code == 401
    assert "was already used" in " ".join(thief.alerts)
    assert not is_logged_in(thief)
    assert provider.asked.count("/token") == 1


def test_code_rejected_by_the_provider_does_not_log_in(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    path = provider.log_in(begin(person))
    provider._codes.clear()
    person.call("GET", path)
    assert_nobody_came(app, person, "The provider returned 400.")


def test_stolen_code_fails_in_another_login(app: Flask, provider: IdentityProvider) -> None:
    """An attacker who intercepted a code cannot use it in their own login."""
    caught = parse_qs(urlsplit(provider.log_in(begin(Person(app)))).query)["code"][0]
    thief = Person(app)
    query = parse_qs(urlsplit(provider.log_in(begin(thief))).query)
    thief.call("GET", f"/login/oidc/callback?{urlencode({'code': caught, 'state': query['state'][0]})}")
    assert_nobody_came(app, thief, "The provider returned 400.")


def test_state_of_another_browser_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    """An attacker's link cannot log a victim in as the attacker."""
    attacker, victim = Person(app), Person(app)
    path = provider.log_in(begin(attacker))
    victim.call("GET", path)
    assert_nobody_came(app, victim, "another browser")
    begin(victim)
    victim.call("GET", path)
    assert_nobody_came(app, victim, "another browser")
    assert "/token" not in provider.asked


@pytest.mark.parametrize("cookie", ["", "x", "e30.a.b", "é"])
def test_forged_login_attempt_cookie_is_rejected(app: Flask, provider: IdentityProvider, cookie: str) -> None:
    person = Person(app)
    path = provider.log_in(begin(person))
    person.client.set_cookie("login_attempt", cookie, path="/login/oidc")
    person.call("GET", path)
    assert_nobody_came(app, person, "another browser")


def test_login_attempt_expires_after_ten_minutes(app: Flask, provider: IdentityProvider) -> None:
    with time_machine.travel(now(), tick=False) as clock:
        person = Person(app)
        path = provider.log_in(begin(person))
        cookie = person.client.get_cookie("login_attempt", path="/login/oidc")
        assert cookie is not None
        clock.shift(timedelta(seconds=601))
        person.client.set_cookie("login_attempt", cookie.value, path="/login/oidc")
        person.call("GET", path)
        assert_nobody_came(app, person, "10 minutes")


def test_response_of_another_issuer_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    """RFC 9207: the response identifies its issuer."""
    person = Person(app)
    path = provider.log_in(begin(person)).replace(urlencode({"iss": provider.issuer}), "iss=https%3A%2F%2Fevil.example")
    person.call("GET", path)
    assert_nobody_came(app, person, "another provider")
    assert "/token" not in provider.asked


@pytest.mark.parametrize(("is_promised", "status"), [(True, 401), (False, 303)])
def test_response_without_an_issuer_is_rejected_if_the_provider_names_itself(
    app: Flask, provider: IdentityProvider, is_promised: bool, status: int
) -> None:
    """RFC 9207, section 2.4: otherwise, a response of another provider could be mixed in."""
    provider.configuration = {"authorization_response_iss_parameter_supported": is_promised}
    person = Person(app)
    path = provider.log_in(begin(person)).replace("&" + urlencode({"iss": provider.issuer}), "")
    assert person.call("GET", path).status_code == status
    assert ("/token" in provider.asked) is not is_promised


def test_denied_login_at_the_provider_shows_the_reason(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    state = parse_qs(urlsplit(begin(person)).query)["state"][0]
    person.call("GET", f"/login/oidc/callback?error=access_denied&state={state}")
    assert_nobody_came(app, person, "did not log you in")


def test_userinfo_of_another_subject_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    provider.userinfo = {**provider.person, "sub": "another"}
    provider.person = {"sub": provider.person["sub"]}
    assert_nobody_came(app, come(app, provider), "a different person")


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "ftp://evil.example/token"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "http://192.0.2.1/keys"},
        {"userinfo_endpoint": "http://169.254.169.254/latest/meta-data"},
        {"jwks_uri": ""},
        {"authorization_endpoint": 7},
        {"authorization_endpoint": "https://["},
        {"authorization_endpoint": "https://"},
        {"authorization_endpoint": "https://id.example.com/\r\nSet-Cookie: session=stolen"},
        {"authorization_endpoint": "https://id.example.com/log in"},
        {"authorization_endpoint": "https://id.example.com/\u00e9\u4e00"},
        {"token_endpoint": "https://[::1"},
        {"token_endpoint_auth_methods_supported": 7},
        {"token_endpoint_auth_methods_supported": {"client_secret_basic": True}},
    ],
)
def test_invalid_provider_configuration_is_rejected(
    app: Flask, provider: IdentityProvider, configuration: dict[str, Any]
) -> None:
    provider.configuration = configuration
    person = Person(app)
    person.call("GET", "/login/oidc")
    assert_nobody_came(app, person, "is not responding correctly")
    assert person.call("GET", "/login").status_code == 200


@pytest.mark.parametrize(
    ("person", "said"),
    [
        pytest.param({"email": "ann"}, "no email address", id="no domain"),
        pytest.param({"email": "ann@example.com, eve@example.com"}, "no email address", id="two URLs"),
        pytest.param(
            {"email": "ann@example.com\nBcc: eve@example.com"}, "no email address", id="oversized header line"
        ),
        pytest.param({"email": "a" * 300 + "@example.com"}, "no email address", id="URL too long"),
        pytest.param({"email": "ann\x00@example.com"}, "no email address", id="NUL in the email"),
        pytest.param({"email": "ann\ud800@example.com"}, "no email address", id="lone surrogate in the email"),
        pytest.param({"sub": "a\x00b"}, "no valid subject", id="NUL in the subject"),
        pytest.param({"sub": "a\ud800b"}, "no valid subject", id="lone surrogate in the subject"),
        pytest.param({"nonce": "a\ud800b"}, "another login", id="lone surrogate in the nonce"),
    ],
)
def test_unstorable_email_addresses_and_subjects_are_rejected(
    app: Flask, provider: IdentityProvider, person: dict[str, str], said: str
) -> None:
    provider.person |= person
    assert_nobody_came(app, come_with(app, provider, {"alg": "ES256", "kid": "first"}), said)


@pytest.mark.parametrize("name", ["\x00", "\ud800", "A\x00n\ud800n", "x" * 10_000, ""])
def test_unstorable_name_is_cleaned_and_cut(app: Flask, provider: IdentityProvider, name: str) -> None:
    provider.person["name"] = name
    person = come_with(app, provider, {"alg": "ES256", "kid": "first"})
    assert is_logged_in(person)
    shown = person.client.get("/profile/edit").get_json()["user"]["name"]
    assert 0 < len(shown) <= 100
    assert shown.isprintable()


def test_verified_claim_in_the_token_does_not_apply_to_the_userinfo_email(
    app: Flask, provider: IdentityProvider
) -> None:
    provider.userinfo = {**provider.person, "email_verified": False}
    provider.person = {"sub": provider.person["sub"], "email_verified": True}
    assert_nobody_came(app, come(app, provider), "has not verified")


@pytest.mark.parametrize(
    ("member", "person"),
    [
        ("ann@strasse.example", "ann@stra\u00dfe.example"),
        ("ss@example.com", "\u00df@example.com"),
        ("kim@example.com", "\u212aim@example.com"),
        ("\u00e4nn@example.com", "\u00c4nn@example.com"),
        ("sam@example.com", "\u017fam@example.com"),
    ],
)
def test_similar_email_address_of_another_mailbox_cannot_log_in(
    app: Flask, provider: IdentityProvider, member: str, person: str
) -> None:
    """Case folding makes them equal, but they can belong to different people: `straße.example` is another domain."""
    victim = register_tenant(app, member)
    confirm_everybody(app.extensions["runtime"])
    provider.person |= {"email": person}
    attacker = come(app, provider)
    assert attacker.response.status_code == 403
    assert "belongs to another person's account here" in " ".join(attacker.alerts)
    assert not is_logged_in(attacker)
    assert_ok(victim.browser.get("/dashboard"))
    assert_ok(victim.search.get("/v1/search?q=x"))
    provider.person |= {"email": member.replace("example", "EXAMPLE"), "sub": "the right one"}
    assert is_logged_in(come(app, provider))


def test_invitation_accepts_only_the_exact_email_address(app: Flask, provider: IdentityProvider) -> None:
    owner = register_tenant(app, "owner@example.com")
    body = {"email": "ann@strasse.example", "role": "owner"}
    path = urlsplit(assert_ok(owner.browser.post("/api/invitations", json=body), 201)["url"]).path
    token = path.rpartition("/")[2]
    provider.person |= {"email": "ann@stra\u00dfe.example"}
    person = come(app, provider, f"/login/oidc?invitation={token}")
    assert person.response.status_code == 403
    assert "for a different email address" in " ".join(person.alerts)


def test_same_email_address_with_another_subject_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    """A former employee's email address was reassigned, or the provider confuses people."""
    first = come(app, provider)
    assert is_logged_in(first)
    provider.person["sub"] = "successor"
    successor = come(app, provider)
    assert successor.response.status_code == 403
    assert "belongs to another person's account here" in " ".join(successor.alerts)
    assert is_logged_in(first)
    provider.person["sub"] = "248289761001"
    assert is_logged_in(come(app, provider))


@pytest.mark.parametrize("more", ["jwk", "jku", "x5c", "crit", "b64"])
def test_token_with_an_embedded_key_or_critical_header_is_rejected(
    app: Flask, provider: IdentityProvider, more: str
) -> None:
    """A token's header selects a key only by the ID of one of the provider's published keys."""
    own = ECKey.generate_key("P-256", parameters={"kid": "first"})
    values: dict[str, Any] = {
        "jwk": own.as_dict(private=False),
        "jku": "https://evil.example/keys",
        "x5c": ["MIIB"],
        "crit": ["urn:unheard-of"],
        "b64": False,
    }
    header = {"alg": "ES256", "kid": "first", more: values[more], **({"crit": ["b64"]} if more == "b64" else {})}
    person = come_with(app, provider, header, provider.key if more in ("crit", "b64") else own)
    assert_nobody_came(app, person, "not valid")


def come_with(app: Flask, provider: IdentityProvider, header: dict[str, Any], key: Key | None = None) -> Person:
    """Log in with a token whose header and text libraries cannot produce."""
    person = Person(app)
    path = provider.log_in(begin(person))
    nonce = next(iter(provider._codes.values()))["nonce"]
    moment = int(now().timestamp())
    claims = {"iss": provider.issuer, "aud": CLIENT_ID, "iat": moment, "exp": moment + 300, "nonce": nonce}
    encoded = [urlsafe_b64encode(json.dumps(part).encode()) for part in (header, claims | provider.person)]
    signed = b".".join(part.rstrip(b"=") for part in encoded)
    signature = JWSRegistry.algorithms["ES256"].sign(signed, key or provider.key)
    provider.token = f"{signed.decode()}.{urlsafe_b64encode(signature).decode().rstrip('=')}"
    person.call("GET", path)
    return person


def test_deeply_nested_token_is_rejected(app: Flask, provider: IdentityProvider) -> None:
    deep = urlsafe_b64encode(("[" * 50_000 + "]" * 50_000).encode()).decode()
    provider.token = f"{deep}.{deep}.{deep}"
    assert_nobody_came(app, come(app, provider), "not valid")


@pytest.mark.parametrize(
    "others",
    [
        [{"kty": "AKP", "kid": "next", "alg": "ML-DSA-65", "pub": "AAAA"}],
        [{"kty": "RSA", "kid": "broken", "n": "AQ", "e": "AQAB"}, {"kty": "oct", "k": "c2VjcmV0", "kid": "first "}],
        [{}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "bad"}],
    ],
)
def test_unknown_key_types_in_the_key_set_are_ignored(
    app: Flask, provider: IdentityProvider, others: list[dict[str, str]]
) -> None:
    """RFC 7517: a reader of a key set ignores keys that it does not understand."""
    keys = [*others, provider.key.as_dict(private=False)]
    body = json.dumps({"keys": keys}).encode()
    provider.raw["/keys"] = lambda out: out.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)  # type: ignore[func-returns-value]
    assert is_logged_in(come(app, provider))


@pytest.mark.parametrize("keys", [[], ["x"], [None], {}, 7, [{"kty": "AKP", "pub": "AAAA"}]])
def test_key_set_without_a_usable_key_is_rejected(app: Flask, provider: IdentityProvider, keys: Any) -> None:
    body = json.dumps({"keys": keys}).encode()
    provider.raw["/keys"] = lambda out: out.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)  # type: ignore[func-returns-value]
    person = come(app, provider)
    assert_nobody_came(app, person, "is not responding correctly")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HEAD + b"Content-Length: 5000\r\n\r\n{", id="cut off"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", id="invalid chunks"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", id="truncated chunk"),
        pytest.param(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"[" * 10_000_000), id="gzip bomb"),
        pytest.param(HEAD + b"\r\n" + b"[" * 1_500_000, id="response too large"),
        pytest.param(HEAD + b"\r\n" + b"[" * 500_000, id="deeply nested"),
        pytest.param(HEAD + b"X: " + b"x" * 70_000 + b"\r\n\r\n{}", id="long header"),
        pytest.param(HEAD + b"X: y\r\n" * 500 + b"\r\n{}", id="many headers"),
        pytest.param(HEAD + b"\r\n\xff\xfe", id="not text"),
        pytest.param(HEAD + b"\r\n[]", id="not an object"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\n\r\n", id="a redirect"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="wrong protocol"),
        pytest.param(b"", id="nothing"),
    ],
)
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_malformed_provider_response_is_rejected(
    app: Flask, provider: IdentityProvider, path: str, answer: bytes
) -> None:
    provider.raw[path] = lambda out: out.write(answer)  # type: ignore[func-returns-value]
    person = Person(app)
    began = person.call("GET", "/login/oidc")
    if began.status_code == 303:
        person.call("GET", provider.log_in(began.headers["Location"]))
    assert_nobody_came(app, person, "is not responding correctly")


@pytest.mark.parametrize("begin_with", [b"", b"HTTP/1.1 200 OK\r\nX: ", HEAD + b"Content-Length: 900\r\n\r\n"])
def test_provider_response_sent_byte_by_byte_times_out(
    app: Flask, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch, begin_with: bytes
) -> None:
    """Each byte arrives in time, so only the total time limit can apply."""
    monkeypatch.setattr("app.services.accounts.oidc.LONGEST_SECONDS", 0.5)
    ended = threading.Event()

    def trickle(out: BinaryIO) -> None:
        out.write(begin_with)
        while not ended.wait(0.05):
            out.write(b"x")
            out.flush()

    provider.raw["/.well-known/openid-configuration"] = trickle
    person = Person(app)
    started = time.monotonic()
    person.call("GET", "/login/oidc")
    took = time.monotonic() - started
    ended.set()
    assert_nobody_came(app, person, "is not responding correctly")
    assert took < 5


def test_login_works_after_the_clock_jumps_back(app: Flask, provider: IdentityProvider) -> None:
    """A failure recorded in the repeated hour must not block logins."""
    moment = now()
    with time_machine.travel(moment + timedelta(hours=1), tick=False):
        part: Runtime = app.extensions["runtime"]
        assert part.provider is not None
        there, part.provider.issuer = part.provider.issuer, "http://127.0.0.1:1"
        assert Person(app).call("GET", "/login/oidc").status_code == 503
        part.provider.issuer = there
    with time_machine.travel(moment, tick=False):
        assert is_logged_in(come(app, provider))


def test_provider_error_is_reported_and_login_works_once_it_recovers(app: Flask, provider: IdentityProvider) -> None:
    provider.status = 500
    person = Person(app)
    person.call("GET", "/login/oidc")
    assert_nobody_came(app, person, "try again in a minute")
    provider.status = 200
    assert is_logged_in(come(app, provider))


def test_unreachable_provider_is_not_contacted_again_for_ten_seconds(app: Flask, provider: IdentityProvider) -> None:
    part: Runtime = app.extensions["runtime"]
    assert part.provider is not None
    there, part.provider.issuer = part.provider.issuer, "http://127.0.0.1:1"
    with time_machine.travel(now(), tick=False) as clock:
        person = Person(app)
        assert person.call("GET", "/login/oidc").status_code == 503
        part.provider.issuer = there
        assert person.call("GET", "/login/oidc").status_code == 503
        assert provider.asked == []
        clock.shift(11)
        assert person.call("GET", "/login/oidc").status_code == 303


def test_slow_provider_blocks_at_most_two_threads(app: Flask, provider: IdentityProvider) -> None:
    provider.held.clear()
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(Person(app).call("GET", "/login/oidc").status_code))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        assert provider.waiting.acquire(timeout=30)
    assert Person(app).call("GET", "/login/oidc").status_code == 503
    provider.held.set()
    for thread in threads:
        thread.join()
    assert answers == [303, 303]
