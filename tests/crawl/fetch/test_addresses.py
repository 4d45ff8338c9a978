"""An address is written as browsers write it, and lies on the site's hosts or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.fetch.addresses import Scope, host_of, normalize_url


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("HTTP://WWW.Example.com:80/a/../b/./c", "http://www.example.com/b/c"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com:443/docs/", "https://example.com/docs/"),
        ("https://example.com/docs", "https://example.com/docs"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/ä b?q=ü", "https://example.com/%C3%A4%20b?q=%C3%BC"),
        ("https://例え.jp/", "https://xn--r8jz45g.jp/"),
        ("https://example.com/%7Euser", "https://example.com/%7Euser"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
        (" https://example.com/\n", "https://example.com/"),
        ("https://user:secret@example.com/", "https://example.com/"),
        ("https://example.com/?b=2&a=1", "https://example.com/?b=2&a=1"),
        ("https://example.com/?a=%20+&&b", "https://example.com/?a=%20+&&b"),
    ],
)
def test_an_address_is_written_as_browsers_write_it_without_fragment_and_user(written: str, normalized: str) -> None:
    assert normalize_url(written) == normalized


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?utm_source=a&utm_medium=b&UTM_Campaign=c", ""),
        ("?gclid=1&page=2&fbclid=3", "?page=2"),
        ("?a=%20&utm_source=x&b=+", "?a=%20&b=+"),
        ("?utm%5Fsource=x&a", "?a"),
        ("?autm_source=x&gclid2=1", "?autm_source=x&gclid2=1"),
        ("?q=utm_source", "?q=utm_source"),
    ],
)
def test_tracking_parameters_are_left_out_and_others_stay_as_they_are(query: str, kept: str) -> None:
    assert normalize_url(f"https://example.com/a{query}") == f"https://example.com/a{kept}"


def test_a_relative_address_is_completed() -> None:
    assert normalize_url("../x?y", "https://example.com/a/b/c") == "https://example.com/a/x?y"
    assert normalize_url("//other.example.com/", "https://example.com/") == "https://other.example.com/"


@pytest.mark.parametrize(
    "text",
    [
        *("", "mailto:a@example.com", "javascript:alert(1)", "ftp://example.com/", "file:///etc/passwd", "http://"),
        *("https://exa mple.com/", "https://example.com:99999/", "/relative", "https://\ud800/", "http://1.2.3.4.5/"),
    ],
)
def test_what_is_no_http_or_https_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        normalize_url(text)


@given(st.text(max_size=80))
def test_a_normalized_address_is_normalized_already(text: str) -> None:
    try:
        normalized = normalize_url(text, "https://example.com/a/b?c")
    except ValueError:
        return
    assert normalize_url(normalized) == normalized
    assert normalized.isascii()
    assert "#" not in normalized


@pytest.mark.parametrize(
    ("site", "address"),
    [
        ("https://www.example.com/start", "http://www.example.com:8080/"),
        ("https://www.example.com/", "https://example.com/"),
        ("https://www.example.com/", "https://docs.blog.example.com/"),
        ("https://www.example.co.uk/", "https://shop.example.co.uk/"),
        ("https://me.github.io/", "https://deep.me.github.io/"),
        ("https://EXAMPLE.com/", "https://example.com./"),
        ("http://intranet/", "https://intranet:8443/x"),
        ("http://wiki.corp.internal/", "http://docs.corp.internal/"),
        ("http://192.0.2.1/", "http://192.0.2.1:81/"),
        ("http://[2001:db8::1]/", "http://[2001:db8:0::1]/"),
        ("https://例え.jp/", "https://www.xn--r8jz45g.jp/"),
    ],
)
def test_a_site_is_its_host_and_all_below_its_registrable_domain(site: str, address: str) -> None:
    assert Scope.of(site).contains(address)


@pytest.mark.parametrize(
    ("site", "address"),
    [
        ("https://www.example.com/", "https://example.org/"),
        ("https://www.example.com/", "https://notexample.com/"),
        ("https://www.example.com/", "https://example.com.evil.org/"),
        ("https://www.example.com/", "https://www.example.com@evil.org/"),
        ("https://www.example.co.uk/", "https://other.co.uk/"),
        ("https://me.github.io/", "https://you.github.io/"),
        ("https://github.io/", "https://you.github.io/"),
        ("http://192.0.2.1/", "http://2.0.192.0.2.1.nip.io/"),
        ("http://192.0.2.1/", "http://192.0.2.2/"),
        ("http://intranet/", "http://other.intranet/"),
        ("https://www.example.com/", "ftp://www.example.com/"),
        ("https://www.example.com/", "/docs"),
    ],
)
def test_other_hosts_are_not_the_site(site: str, address: str) -> None:
    assert not Scope.of(site).contains(address)


def test_a_host_is_without_port_and_final_dot() -> None:
    assert host_of("https://User@EXAMPLE.com.:8443/x") == "example.com"
    assert host_of("http://[::1]:80/") == "[::1]"
