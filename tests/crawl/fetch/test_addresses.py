"""URLs are normalized as in browsers, and checked against the hosts in a site's scope."""

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
def test_urls_are_normalized_as_in_browsers_without_fragment_and_credentials(written: str, normalized: str) -> None:
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
def test_normalizing_removes_tracking_parameters_and_leaves_others_unchanged(query: str, kept: str) -> None:
    assert normalize_url(f"https://example.com/a{query}") == f"https://example.com/a{kept}"


SESSION = "0123456789ABCDEF0123456789abcdef"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (f"/one;jsessionid={SESSION}", "/one"),
        (f"/one;jsessionid={SESSION}.node1?page=2", "/one?page=2"),
        (f"/shop;JSESSIONID=x/one;sid={SESSION};v=2", "/shop/one;v=2"),
        (f"/topic.php?t=1&sid={SESSION}", "/topic.php?t=1"),
        ("/?PHPSESSID=q5d8h2k1l0m3n4p6r7s8t9u0v1&page=2", "/?page=2"),
        (f"/?page=2&osCsid={SESSION}", "/?page=2"),
        (f"/?s={SESSION}", "/"),
        (f"/?XTCsid={SESSION}&a=1&MODsid={SESSION}", "/?a=1"),
        ("/?CFID=123&CFTOKEN=456", "/"),
        ("/?ASPSESSIONIDQQRSTUVW=ABCDEFGH", "/"),
        (f"/?session%5Fid={SESSION}", "/"),
        (f"/?sap-sessionid={SESSION}&user_session={SESSION}", "/"),
        ("/(S(lit3py55t21z5v55vlm25s55))/one.aspx", "/one.aspx"),
        (f"/app/(A({SESSION})S(lit3py55t21z5v55vlm25s55))/one.aspx", "/app/one.aspx"),
        ("/(lit3py55t21z5v55vlm25s55)/one.aspx", "/one.aspx"),
        ("/S(lit3py55t21z5v55vlm25s55)/one.aspx", "/one.aspx"),
    ],
)
def test_normalizing_removes_session_ids(written: str, kept: str) -> None:
    assert normalize_url(f"https://example.com{written}") == f"https://example.com{kept}"


@pytest.mark.parametrize(
    "path",
    [
        *("/search?q=session&sid=12", "/course?sid=12", "/page?s=words", "/talks?session=opening-keynote-by-jane-2026"),
        *("/talks?session_id=145", "/talks?sessionid=x", "/news?newsid=2024010112345678", "/wiki/Phase_(matter)"),
        *("/a;v=2", "/(group)/page", f"/?token={SESSION}", f"/?basid={SESSION}", "/S(1)/"),
    ],
)
def test_other_parameters_are_not_session_ids(path: str) -> None:
    assert normalize_url(f"https://example.com{path}") == f"https://example.com{path}"


def test_relative_urls_are_resolved_against_the_base_url() -> None:
    assert normalize_url("../x?y", "https://example.com/a/b/c") == "https://example.com/a/x?y"
    assert normalize_url("//other.example.com/", "https://example.com/") == "https://other.example.com/"


@pytest.mark.parametrize(
    "text",
    [
        *("", "mailto:a@example.com", "javascript:alert(1)", "ftp://example.com/", "file:///etc/passwd", "http://"),
        *("https://exa mple.com/", "https://example.com:99999/", "/relative", "https://\ud800/", "http://1.2.3.4.5/"),
    ],
)
def test_normalizing_a_url_that_is_not_http_or_https_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        normalize_url(text)


@given(st.text(max_size=80))
def test_normalizing_a_url_twice_changes_nothing(text: str) -> None:
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
def test_scope_contains_the_sites_host_and_all_hosts_of_its_registrable_domain(site: str, address: str) -> None:
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
def test_scope_excludes_hosts_of_other_registrable_domains(site: str, address: str) -> None:
    assert not Scope.of(site).contains(address)


def test_host_of_removes_port_and_trailing_dot() -> None:
    assert host_of("https://User@EXAMPLE.com.:8443/x") == "example.com"
    assert host_of("http://[::1]:80/") == "[::1]"
