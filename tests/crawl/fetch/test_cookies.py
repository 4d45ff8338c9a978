"""Cookies are sent only to the site that set them."""

from __future__ import annotations

import pytest

from app.crawl.fetch.responses import Cookies

SITE = "https://www.example.com/docs/"


def test_cookies_are_sent_back_to_the_site_that_set_them() -> None:
    cookies = Cookies()

    cookies.store(SITE, ["session=1; Path=/; HttpOnly; Secure", "lang=en"])

    assert sorted(cookies.header("https://www.example.com/docs/a").split("; ")) == ["lang=en", "session=1"]
    assert cookies.header("https://www.example.com/") == "session=1"


@pytest.mark.parametrize("url", ["https://evil.org/docs/", "https://other.example.com/docs/"])
def test_cookies_are_not_sent_to_other_hosts(url: str) -> None:
    cookies = Cookies()

    cookies.store(SITE, ["session=1", "wide=1; Domain=com", "foreign=1; Domain=evil.org"])

    assert cookies.header(url) == ""
    assert cookies.header(SITE) == "session=1"


def test_domain_cookies_are_sent_to_subdomains_and_secure_cookies_only_over_https() -> None:
    cookies = Cookies()

    cookies.store(SITE, ["wide=1; Domain=example.com; Path=/", "safe=1; Domain=example.com; Path=/; Secure"])

    assert cookies.header("http://other.example.com/") == "wide=1"


def test_cookie_count_is_limited_and_oversized_cookies_are_not_sent() -> None:
    cookies = Cookies()

    for number in range(500):
        cookies.store(SITE, [f"c{number}=1"])
    few = cookies.header(SITE)
    cookies.store(SITE, ["long=" + "x" * 9_000])

    assert few.count("=") <= 100
    assert cookies.header(SITE) == ""


@pytest.mark.parametrize("value", ["", ";;;", "=", "a=b; Expires=nonsense; Max-Age=x", "\x00=\x01", "a" * 70_000])
def test_malformed_cookies_raise_no_error(value: str) -> None:
    cookies = Cookies()

    cookies.store(SITE, [value])

    assert len(cookies.header(SITE)) <= 8_192
