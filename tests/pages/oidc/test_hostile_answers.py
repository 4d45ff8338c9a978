"""Answers of a provider, or in its name, that nobody may be logged in with."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import time_machine
from flask import Flask
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey
from sqlalchemy import func, select

from app.clock import now
from app.models import Account, Identity
from app.runtime import Runtime
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.pages.oidc.visitors import begin, come, is_logged_in
from tests.pages.people import Person


def assert_nobody_came(app: Flask, person: Person, said: str) -> None:
    """The page says why, and neither session nor account nor identity was made."""
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
        pytest.param({"iss": "https://other.example.com"}, "invalid_claim", id="another issuer"),
        pytest.param({"iss": None}, "missing_claim", id="no issuer"),
        pytest.param({"aud": "another client"}, "invalid_claim", id="another audience"),
        pytest.param({"aud": ["another client"]}, "invalid_claim", id="another list of audiences"),
        pytest.param({"aud": None}, "missing_claim", id="no audience"),
        pytest.param({"aud": [CLIENT_ID, "another client"]}, "for somebody else", id="two audiences"),
        pytest.param({"azp": "another client"}, "for somebody else", id="another authorized party"),
        pytest.param({"nonce": "another login's"}, "another login", id="another nonce"),
        pytest.param({"nonce": None}, "missing_claim", id="no nonce"),
        pytest.param({"nonce": ["a"]}, "another login", id="a nonce that is no text"),
        pytest.param({"exp": None}, "missing_claim", id="without an end"),
        pytest.param({"exp": "tomorrow"}, "invalid_claim", id="an end that is no time"),
        pytest.param({"iat": None}, "missing_claim", id="without a beginning"),
        pytest.param({"sub": None}, "missing_claim", id="nobody"),
        pytest.param({"sub": ""}, "invalid_claim", id="an empty subject"),
        pytest.param({"sub": "s" * 256}, "who you are", id="a long subject"),
        pytest.param({"sub": 7}, "invalid_claim", id="a subject that is no text"),
        pytest.param({"email_verified": False}, "has not verified", id="an unverified e-mail"),
        pytest.param({"email_verified": None}, "has not verified", id="an e-mail of which it does not say"),
        pytest.param({"email_verified": "true"}, "has not verified", id="a text that says true"),
        pytest.param({"email_verified": 1}, "has not verified", id="a number that says true"),
        pytest.param({"email": ""}, "no e-mail address", id="an empty e-mail"),
        pytest.param({"email": ["ann@example.com"]}, "no e-mail address", id="an e-mail that is no text"),
    ],
)
def test_an_id_token_with_a_wrong_claim(
    app: Flask, provider: IdentityProvider, claims: dict[str, Any], said: str
) -> None:
    provider.claims = claims
    assert_nobody_came(app, come(app, provider), said)


@pytest.mark.parametrize(
    ("seconds", "comes"), [(-361, False), (-359, True), (59, True), (61, False)], ids=["late", "slow", "fast", "early"]
)
def test_a_clock_that_is_off_by_more_than_a_minute(
    app: Flask, provider: IdentityProvider, seconds: int, comes: bool
) -> None:
    """Its tokens are good for five minutes; a minute more is for clocks that differ."""
    with time_machine.travel(now(), tick=False):
        moment = int(now().timestamp()) + seconds
        provider.claims = {"iat": moment, "exp": moment + 300}
        person = come(app, provider)
        if comes:
            assert is_logged_in(person)
        else:
            assert_nobody_came(app, person, "not valid")


def test_no_signature(app: Flask, provider: IdentityProvider) -> None:
    provider.algorithm = "none"
    assert_nobody_came(app, come(app, provider), "unsupported_algorithm")


@pytest.mark.parametrize("secret", [CLIENT_SECRET, "public key"])
def test_a_signature_with_what_others_know(app: Flask, provider: IdentityProvider, secret: str) -> None:
    """``HS256``, with the client's secret or the text of the provider's public key as the key."""
    known = provider.key.as_pem(private=False).hex() if secret == "public key" else secret
    key = OctKey.import_key(known, {"kid": "first"})
    person = Person(app)
    path = provider.log_in(begin(person))
    nonce = next(iter(provider._codes.values()))["nonce"]
    moment = int(now().timestamp())
    claims = {"iss": provider.issuer, "aud": CLIENT_ID, "iat": moment, "exp": moment + 300, "nonce": nonce}
    provider.token = jwt.encode({"alg": "HS256", "kid": "first"}, claims | provider.person, key, ["HS256"])
    person.call("GET", path)
    assert_nobody_came(app, person, "unsupported_algorithm")


def test_another_key_of_the_same_name(app: Flask, provider: IdentityProvider) -> None:
    provider.key = ECKey.generate_key("P-256", parameters={"kid": "first"})
    assert_nobody_came(app, come(app, provider), "bad_signature")


@pytest.mark.parametrize("token", ["", "a.b.c", "e30.e30.", "x" * 200_000, "é.é.é"])
def test_no_token_at_all(app: Flask, provider: IdentityProvider, token: str) -> None:
    provider.token = token
    assert_nobody_came(app, come(app, provider), "not valid")


def test_keys_that_were_rotated_in_between_are_read_anew(app: Flask, provider: IdentityProvider) -> None:
    assert is_logged_in(come(app, provider))
    provider.rotate("second")
    assert is_logged_in(come(app, provider))
    provider.rotate("second")  # A careless provider gives its next key the same name.
    assert is_logged_in(come(app, provider))
    assert provider.asked.count("/keys") == 3
    assert is_logged_in(come(app, provider))
    assert provider.asked.count("/keys") == 3
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_an_old_key_ends_with_the_rotation(app: Flask, provider: IdentityProvider) -> None:
    old = provider.key
    provider.rotate()
    provider.key = old
    assert_nobody_came(app, come(app, provider), "invalid_key_id")


def test_a_code_that_was_used_already(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    path = provider.log_in(begin(person))
    cookie = person.client.get_cookie("login_attempt", path="/login/oidc")
    assert cookie is not None
    provider.takes_codes_again = True
    assert person.call("GET", path).status_code == 303
    assert person.call("GET", path).status_code == 401, "the browser has no cookie any more"

    thief = Person(app)
    thief.client.set_cookie("login_attempt", cookie.value, path="/login/oidc")
    thief.call("GET", path)
    assert thief.response.status_code == 401
    assert "was used already" in " ".join(thief.alerts)
    assert not is_logged_in(thief)
    assert provider.asked.count("/token") == 1


def test_a_code_that_the_provider_refuses(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    path = provider.log_in(begin(person))
    provider._codes.clear()
    person.call("GET", path)
    assert_nobody_came(app, person, "The provider answered 400.")


def test_the_code_of_another_login_has_another_verifier(app: Flask, provider: IdentityProvider) -> None:
    """Somebody who caught a code cannot use it in a login of their own."""
    caught = parse_qs(urlsplit(provider.log_in(begin(Person(app)))).query)["code"][0]
    thief = Person(app)
    query = parse_qs(urlsplit(provider.log_in(begin(thief))).query)
    thief.call("GET", f"/login/oidc/callback?{urlencode({'code': caught, 'state': query['state'][0]})}")
    assert_nobody_came(app, thief, "The provider answered 400.")


def test_the_state_of_another_browser(app: Flask, provider: IdentityProvider) -> None:
    """Nobody is logged in as somebody else by a link that these sent."""
    attacker, victim = Person(app), Person(app)
    path = provider.log_in(begin(attacker))
    victim.call("GET", path)
    assert_nobody_came(app, victim, "another browser")
    begin(victim)
    victim.call("GET", path)
    assert_nobody_came(app, victim, "another browser")
    assert "/token" not in provider.asked


@pytest.mark.parametrize("cookie", ["", "x", "e30.a.b", "é"])
def test_a_cookie_that_is_none_of_ours(app: Flask, provider: IdentityProvider, cookie: str) -> None:
    person = Person(app)
    path = provider.log_in(begin(person))
    person.client.set_cookie("login_attempt", cookie, path="/login/oidc")
    person.call("GET", path)
    assert_nobody_came(app, person, "another browser")


def test_a_login_that_took_longer_than_ten_minutes(app: Flask, provider: IdentityProvider) -> None:
    with time_machine.travel(now(), tick=False) as clock:
        person = Person(app)
        path = provider.log_in(begin(person))
        cookie = person.client.get_cookie("login_attempt", path="/login/oidc")
        assert cookie is not None
        clock.shift(timedelta(seconds=601))
        person.client.set_cookie("login_attempt", cookie.value, path="/login/oidc")
        person.call("GET", path)
        assert_nobody_came(app, person, "10 minutes")


def test_the_answer_of_another_provider(app: Flask, provider: IdentityProvider) -> None:
    """RFC 9207: a provider that says who it is."""
    person = Person(app)
    path = provider.log_in(begin(person)).replace(urlencode({"iss": provider.issuer}), "iss=https%3A%2F%2Fevil.example")
    person.call("GET", path)
    assert_nobody_came(app, person, "another provider")
    assert "/token" not in provider.asked


def test_who_says_no_at_the_provider(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    state = parse_qs(urlsplit(begin(person)).query)["state"][0]
    person.call("GET", f"/login/oidc/callback?error=access_denied&state={state}")
    assert_nobody_came(app, person, "did not log you in")


def test_the_userinfo_of_another_person(app: Flask, provider: IdentityProvider) -> None:
    provider.userinfo = {**provider.person, "sub": "another"}
    provider.person = {"sub": provider.person["sub"]}
    assert_nobody_came(app, come(app, provider), "another person")


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "ftp://evil.example/token"},
        {"jwks_uri": ""},
        {"authorization_endpoint": 7},
    ],
)
def test_a_configuration_that_is_not_believed(
    app: Flask, provider: IdentityProvider, configuration: dict[str, Any]
) -> None:
    provider.configuration = configuration
    person = Person(app)
    person.call("GET", "/login/oidc")
    assert_nobody_came(app, person, "does not answer as it should")
    assert person.call("GET", "/login").status_code == 200


def test_a_provider_that_fails_says_so_and_is_left_alone_for_a_while(app: Flask, provider: IdentityProvider) -> None:
    provider.status = 500
    person = Person(app)
    person.call("GET", "/login/oidc")
    assert_nobody_came(app, person, "try again in a minute")
    provider.status = 200
    assert is_logged_in(come(app, provider))


def test_a_provider_that_is_down_is_not_asked_again_for_ten_seconds(app: Flask, provider: IdentityProvider) -> None:
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


def test_a_slow_provider_holds_two_threads_and_no_more(app: Flask, provider: IdentityProvider) -> None:
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
