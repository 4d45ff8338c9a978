"""Fetching one URL returns a page or a reason, regardless of what the server sends."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Address

import pytest
import time_machine
import trustme
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.fetch.addresses import Scope
from app.crawl.fetch.fetching import Fetcher, check_headers, post
from app.crawl.fetch.network import Network
from app.crawl.fetch.values import Fetched, NotIndexed, Reason, TryLater, Validators, user_agent
from tests.crawl.fetch.hostile_site import PUBLIC, Asked, HostileSite, Names, Wires, page, redirect, serving
from tests.patience import PATIENCE_SECONDS

URL = "http://www.example.com/"
PRIVATE = [IPv4Address(text) for text in ("127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0", "100.64.0.1")]


@pytest.fixture
def site() -> Iterator[HostileSite]:
    with serving() as site:
        yield site


@pytest.fixture
def names() -> Names:
    return Names(inside_example_com=["10.0.0.1"], nowhere_example_com=[""], turns_example_com=[PUBLIC, "127.0.0.1"])


@pytest.fixture
def wires(site: HostileSite) -> Wires:
    return Wires(site.port)


@pytest.fixture
def network(names: Names, wires: Wires) -> Iterator[Network]:
    network = Network(private_addresses=False, resolver=names, sockets=wires)
    yield network
    network.close()


@pytest.fixture
def fetcher(network: Network) -> Fetcher:
    return Fetcher(network, Scope.of(URL), "SiteSearchBot/1.0", max_seconds=20)


def reason(fetch: Callable[[], Fetched]) -> str:
    """Return the reason why a fetch fails; its message must be a sentence for the site's owner."""
    with pytest.raises(NotIndexed) as caught:
        fetch()
    assert caught.value.message.endswith(".")
    return caught.value.reason


class TestAnswers:
    def test_fetching_a_page_returns_its_url_headers_and_body(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/a?b=c&utm_source=x"] = page(
            b"<p>Hello", "X-Robots-Tag: noarchive", "x-robots-tag: nofollow", "Set-Cookie: a=b"
        )

        fetched = fetcher.fetch("HTTP://www.Example.com:80/a?b=c&utm_source=x#part")

        assert (fetched.url, fetched.status, fetched.body) == (f"{URL}a?b=c", 200, b"<p>Hello")
        assert fetched.headers["x-robots-tag"] == "noarchive, nofollow"
        assert "set-cookie" not in fetched.headers
        assert fetched.redirects == ()

    def test_requests_identify_the_crawler_in_the_user_agent(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page()

        fetcher.fetch(URL)

        assert site.asked[0].headers["user-agent"] == "SiteSearchBot/1.0"
        assert site.asked[0].headers["host"] == "www.example.com"
        assert user_agent("https://search.example.com").startswith("SiteSearchBot/")
        assert user_agent("https://search.example.com").endswith(" (+https://search.example.com)")

    @pytest.mark.parametrize("status", ["404 Not Found", "410 Gone", "500 Oops", "401 No", "204 Empty", "206 Part"])
    def test_unsuccessful_status_becomes_the_reason(self, site: HostileSite, fetcher: Fetcher, status: str) -> None:
        site.answers["/"] = page(status=status)

        assert reason(lambda: fetcher.fetch(URL)) == f"http_{status[:3]}"

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    def test_compressed_body_is_decompressed(self, site: HostileSite, fetcher: Fetcher, encoding: str) -> None:
        pack = {"gzip": gzip.compress, "deflate": zlib.compress}[encoding]
        site.answers["/"] = page(pack(b"<p>Hello"), f"Content-Encoding: {encoding}")

        assert fetcher.fetch(URL).body == b"<p>Hello"
        assert encoding in site.asked[0].headers["accept-encoding"]

    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<p>short",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<p>sh",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n<p>x",
        ],
    )
    def test_malformed_response_is_unreachable(self, site: HostileSite, fetcher: Fetcher, answer: bytes) -> None:
        site.answers["/"] = lambda asked: iter([answer])

        assert reason(lambda: fetcher.fetch(URL)) == Reason.UNREACHABLE

    @pytest.mark.parametrize(
        "answer",
        [
            page(b"no gzip", "Content-Encoding: gzip"),
            page(gzip.compress(b"<p>text" * 100, mtime=0)[:-9], "Content-Encoding: gzip"),
            page(b"<p>", "Content-Encoding: br"),
        ],
    )
    def test_wrongly_compressed_body_has_a_reason_of_its_own(
        self, site: HostileSite, fetcher: Fetcher, answer: bytes
    ) -> None:
        site.answers["/"] = answer

        assert reason(lambda: fetcher.fetch(URL)) == Reason.BAD_ENCODING

    @pytest.mark.parametrize("encoding", ["UTF-8", "none", "binary", "8bit", "ISO-8859-1", "text/html", "identity, x"])
    def test_content_encoding_without_compression_is_ignored_as_in_browsers(
        self, site: HostileSite, fetcher: Fetcher, encoding: str
    ) -> None:
        site.answers["/"] = page(b"<p>Hello", f"Content-Encoding: {encoding}")
        site.answers["/packed"] = page(gzip.compress(b"<p>Hello"), f"Content-Encoding: {encoding}, gzip")

        assert fetcher.fetch(URL).body == b"<p>Hello"
        assert fetcher.fetch(f"{URL}packed").body == b"<p>Hello"

    @pytest.mark.parametrize(
        ("headers", "effective"),
        [
            (["text/plain", "text/html"], "text/html"),
            (["image/png", "text/html; charset=x"], "text/html; charset=x"),
            (['text/html; charset="a,b"', "text/html"], 'text/html; charset="a,b"'),
            (["text/html, text/html; charset=x"], "text/html; charset=x"),
            (["text/html", "html"], "text/html"),
            (["html"], "text/html"),
            (["charset=utf-8"], "text/html"),
        ],
    )
    def test_last_valid_content_type_applies_as_in_browsers(
        self, site: HostileSite, fetcher: Fetcher, headers: list[str], effective: str
    ) -> None:
        site.answers["/"] = page(b"<p>Hello", *(f"Content-Type: {value}" for value in headers), content_type="")

        assert fetcher.fetch(URL).headers["content-type"] == effective

    @pytest.mark.parametrize(
        ("content_type", "body", "complete"),
        [
            ("text/html", b"<p>Hello</p></body></html>\n<!-- cached -->", True),
            ("application/xml", b"<urlset></urlset>", True),
            ("text/plain", b"User-agent: *\n", True),
            ("text/html", b"<p>Hello</p>", False),
            ("text/html", b"<p>Hello</p></html><!-- cached", False),
            ("text/plain", b"User-agent: *\nDis", False),
        ],
    )
    def test_complete_body_is_read_even_if_its_declared_end_is_missing(
        self, site: HostileSite, fetcher: Fetcher, content_type: str, body: bytes, *, complete: bool
    ) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n".encode()
        packed = gzip.compress(body)[:-8]
        site.answers = {
            "/long": lambda asked: iter([head + b"Content-Length: 1000\r\n\r\n" + body]),
            "/chunk": lambda asked: iter([head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s" % (len(body), body)]),
            "/gzip": page(packed, "Content-Encoding: gzip", content_type=content_type),
        }

        unread = {"long": Reason.UNREACHABLE, "chunk": Reason.UNREACHABLE, "gzip": Reason.BAD_ENCODING}
        for path, why in unread.items():
            if complete:
                assert fetcher.fetch(URL + path).body == body
            else:
                assert reason(partial(fetcher.fetch, URL + path)) == why

    @pytest.mark.parametrize(
        "line",
        [
            *(b"Content-Length: -1", b"Content-Length: many", b"Content-Length:", b"Transfer-Encoding: identity"),
            *(b"X-A : b", b"PHP Notice in line 5", "X-ä: b".encode(), b": b", b"X-A: b\r\n continued"),
        ],
    )
    def test_lines_of_a_head_that_browsers_ignore_are_ignored(
        self, site: HostileSite, fetcher: Fetcher, line: bytes
    ) -> None:
        head = [b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", line, b"\r\nETag: x\r\n", b"\r\n<p>He", b"llo"]
        site.answers["/"] = lambda asked: iter(head)

        fetched = fetcher.fetch(URL)

        assert (fetched.body, fetched.headers["etag"]) == (b"<p>Hello", "x")

    def test_body_without_content_length_ends_when_the_connection_closes(
        self, site: HostileSite, fetcher: Fetcher
    ) -> None:
        site.answers["/"] = lambda asked: iter([b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", b"<p>old"])

        assert fetcher.fetch(URL).body == b"<p>old"

    def test_fetcher_returns_body_and_charset_without_decoding(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page("<p>wörter".encode(), content_type="text/html; charset=klingon")

        fetched = fetcher.fetch(URL)

        assert fetched.body == "<p>wörter".encode()
        assert fetched.headers["content-type"] == "text/html; charset=klingon"

    def test_unknown_hosts_and_refused_connections_are_unreachable(self, fetcher: Fetcher, wires: Wires) -> None:
        wires.broken.add(PUBLIC)

        assert reason(lambda: fetcher.fetch("http://nowhere.example.com/")) == Reason.UNREACHABLE
        assert reason(lambda: fetcher.fetch(URL)) == Reason.UNREACHABLE


_LINES = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK", b"HTTP/1.0 302 Found", b"HTTP/1.1 100 Continue", b"HTTP/9 999 x", b"", b"x" * 200),
        *(b"Location: http://[", b"Location: \xff\xfe", b"Location: /", b"Set-Cookie: \xff=\xff; Expires=x; Domain=.."),
        *(b"Content-Type: text/html", b"Content-Type: ;;;\xff", b"Content-Length: 5", b"Content-Length: 1e3"),
        *(b"Transfer-Encoding: chunked", b"Content-Encoding: gzip", b"Retry-After: \xb2", b"5\r\nabcde\r\n0\r\n"),
    ]
)


@pytest.fixture(scope="module")
def asking() -> Iterator[tuple[HostileSite, Wires, Fetcher]]:
    """One server and one fetcher, shared by many Hypothesis examples."""
    with serving() as site:
        wires = Wires(site.port)
        network = Network(private_addresses=False, resolver=Names(), sockets=wires)
        yield site, wires, Fetcher(network, Scope.of(URL), "Bot", max_seconds=20)
        network.close()


@given(lines=st.lists(_LINES | st.binary(max_size=40), max_size=8), begun=st.booleans())
def test_arbitrary_server_bytes_result_in_a_page_or_a_reason(
    asking: tuple[HostileSite, Wires, Fetcher], lines: list[bytes], begun: bool
) -> None:
    site, _, fetcher = asking
    site.answers["/"] = lambda asked: iter([b"HTTP/1.1 200 OK\r\n" * begun + b"\r\n".join(lines)])

    try:
        outcome = str(fetcher.fetch(URL).status)
    except NotIndexed as error:
        outcome = error.message

    assert outcome == "200" or outcome.endswith(".")


class TestTypes:
    @pytest.mark.parametrize("content_type", ["image/png", "application/zip", "text/css"])
    def test_body_of_a_binary_media_type_is_not_read_unless_any_type_is_allowed(
        self, site: HostileSite, fetcher: Fetcher, content_type: str
    ) -> None:
        read = threading.Event()

        def endless(asked: Asked) -> Iterator[bytes]:
            yield f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode()
            while True:
                yield bytes(65_536)
                read.set()

        site.answers["/"] = endless

        assert reason(lambda: fetcher.fetch(URL)) == Reason.NOT_TEXT
        assert fetcher.fetch(URL, any_type=True, truncate=True, max_bytes=100).body == bytes(100)

    def test_missing_media_type_is_detected_from_the_first_bytes(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/pdf"] = page(b"%PDF-1.7\n\x00", content_type="")
        site.answers["/html"] = page(b"<!doctype html>" + b"x" * 5_000, content_type="")
        site.answers["/zip"] = page(b"PK\3\4" + bytes(5_000), content_type="application/octet-stream")

        assert fetcher.fetch(f"{URL}pdf").headers["content-type"] == "application/pdf"
        assert fetcher.fetch(f"{URL}html").headers["content-type"] == "text/html"
        assert reason(lambda: fetcher.fetch(f"{URL}zip")) == Reason.NOT_TEXT


class TestLimits:
    def test_body_larger_than_ten_mebibytes_is_too_large(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page(b" " * 10_485_760)
        site.answers["/more"] = page(b" " * 10_485_761)

        assert len(fetcher.fetch(URL).body) == 10_485_760
        assert reason(lambda: fetcher.fetch(f"{URL}more")) == Reason.TOO_LARGE

    @pytest.mark.slow
    def test_compression_bomb_is_too_large_and_not_fully_decompressed(
        self, site: HostileSite, fetcher: Fetcher
    ) -> None:
        packer = zlib.compressobj(wbits=31)
        bomb = b"".join(packer.compress(bytes(1_048_576).replace(b"\0", b" ")) for _ in range(80)) + packer.flush()
        site.answers["/"] = page(bomb, "Content-Encoding: gzip")
        site.answers["/twice"] = page(gzip.compress(bomb), "Content-Encoding: gzip, gzip")
        assert len(bomb) < 100_000

        tracemalloc.start()
        for target in ("", "twice"):
            assert reason(lambda target=target: fetcher.fetch(URL + target)) == Reason.TOO_LARGE
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 30_000_000

    @pytest.mark.slow
    @pytest.mark.parametrize("head", ["Content-Type: text/html", "Content-Type: text/html\r\nContent-Encoding: gzip"])
    def test_endless_body_is_too_large(self, site: HostileSite, fetcher: Fetcher, head: str) -> None:
        empty_member = gzip.compress(b"")

        def endless(asked: Asked) -> Iterator[bytes]:
            yield f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode()
            while True:
                yield empty_member * 3_000 if "gzip" in head else b" " * 65_536

        site.answers["/"] = endless

        assert reason(lambda: fetcher.fetch(URL)) == Reason.TOO_LARGE

    def test_compression_bomb_that_decompresses_to_nothing_times_out(self, site: HostileSite, network: Network) -> None:
        bomb = gzip.compress(gzip.compress(b"") * 2_000_000)
        assert len(bomb) < 100_000
        site.answers["/"] = page(bomb, "Content-Encoding: gzip, gzip")
        hasty = Fetcher(network, Scope.of(URL), "SiteSearchBot", max_seconds=0.2)

        begun = time.monotonic()
        assert reason(lambda: hasty.fetch(URL)) == Reason.TIMEOUT
        assert time.monotonic() - begun < 1

    def test_oversized_body_is_truncated_only_on_request(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page(b"x" * 1_000)

        assert fetcher.fetch(URL, max_bytes=600, truncate=True).body == b"x" * 600
        assert reason(lambda: fetcher.fetch(URL, max_bytes=600)) == Reason.TOO_LARGE

    @pytest.mark.parametrize(
        "begin", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>slow"]
    )
    def test_server_that_stalls_mid_response_times_out(self, site: HostileSite, network: Network, begin: bytes) -> None:
        ended = threading.Event()

        def stopping(asked: Asked) -> Iterator[bytes]:
            yield begin
            ended.wait(PATIENCE_SECONDS)

        site.answers["/"] = stopping
        hasty = Fetcher(network, Scope.of(URL), "SiteSearchBot", max_seconds=0.1)

        assert reason(lambda: hasty.fetch(URL)) == Reason.TIMEOUT
        ended.set()

    def test_time_limit_covers_all_redirects_together(
        self, site: HostileSite, network: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [0.0]
        monkeypatch.setattr("app.crawl.fetch.fetching.time.monotonic", lambda: now[0])
        for number in range(9):

            def slow(asked: Asked, number: int = number) -> bytes:
                now[0] += 4
                return redirect(f"/{number + 1}")

            site.answers[f"/{number}"] = slow

        assert reason(lambda: Fetcher(network, Scope.of(URL), "Bot").fetch(f"{URL}0")) == Reason.TIMEOUT
        assert len(site.asked) < 9

    def test_oversized_response_head_is_unreachable(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page(b"<p>", "X: " + "x" * 300_000)

        assert reason(lambda: fetcher.fetch(URL)) == Reason.UNREACHABLE


class TestRedirects:
    @pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"])
    def test_redirects_are_followed_and_recorded(self, site: HostileSite, fetcher: Fetcher, status: str) -> None:
        site.answers["/a"] = redirect("b?utm_source=kept#part", status=status)
        site.answers["/b?utm_source=kept"] = redirect("HTTP://docs.EXAMPLE.com/c", status=status)
        site.answers["/c"] = page()

        fetched = fetcher.fetch(f"{URL}a")

        assert fetched.url == "http://docs.example.com/c"
        assert fetched.redirects == (f"{URL}a", f"{URL}b")
        assert [asked.headers["host"] for asked in site.asked] == [*["www.example.com"] * 2, "docs.example.com"]

    def test_more_than_ten_redirects_are_a_redirect_loop(self, site: HostileSite, fetcher: Fetcher) -> None:
        for number in range(11):
            site.answers[f"/{number}"] = redirect(f"/{number + 1}")
        site.answers["/11"] = page()

        assert len(fetcher.fetch(f"{URL}1").redirects) == 10
        assert reason(lambda: fetcher.fetch(f"{URL}0")) == Reason.REDIRECT_LOOP

    def test_redirect_loop_is_detected_at_the_first_repeated_url(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/a"] = redirect("/b")
        site.answers["/b"] = redirect("/a")

        assert reason(lambda: fetcher.fetch(f"{URL}a")) == Reason.REDIRECT_LOOP
        assert site.targets == ["/a", "/b"]

    def test_cookies_set_by_a_redirect_are_sent_afterwards(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = lambda asked: (
            page()
            if "seen=1" in asked.headers.get("cookie", "")
            else redirect("/", "Set-Cookie: seen=1; Path=/; HttpOnly")
        )

        assert fetcher.fetch(URL).redirects == (URL,)
        assert fetcher.fetch(URL).redirects == ()

    def test_endless_redirects_with_new_cookies_are_a_redirect_loop(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = lambda asked: redirect("/", f"Set-Cookie: visit={len(site.asked)}")

        assert reason(lambda: fetcher.fetch(URL)) == Reason.REDIRECT_LOOP
        assert len(site.asked) == 11

    @pytest.mark.parametrize(
        "location",
        [
            *("https://evil.org/", "//evil.org/", "http://www.example.com@evil.org/", "http://localhost/"),
            *("ftp://www.example.com/", "file:///etc/passwd", "gopher://127.0.0.1:25/", "javascript:1", "http://"),
        ],
    )
    def test_redirects_to_hosts_outside_the_site_are_not_followed(
        self, site: HostileSite, fetcher: Fetcher, names: Names, location: str
    ) -> None:
        site.answers["/"] = redirect(location)

        assert reason(lambda: fetcher.fetch(URL)) == Reason.OTHER_HOST
        assert names.looked_up == ["www.example.com"]

    def test_fetching_a_host_outside_the_site_makes_no_lookup(self, fetcher: Fetcher, names: Names) -> None:
        assert reason(lambda: fetcher.fetch("https://evil.org/")) == Reason.OTHER_HOST
        assert names.looked_up == []

    def test_redirect_without_location_has_its_status_as_the_reason(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page(status="302 Found")

        assert reason(lambda: fetcher.fetch(URL)) == "http_302"

    def test_visit_context_wraps_each_request_of_a_redirect_chain(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/a"] = redirect("/b")
        site.answers["/b"] = redirect("/forbidden")
        steps: list[str] = []

        @contextmanager
        def visit(url: str) -> Iterator[None]:
            if url.endswith("forbidden"):
                raise NotIndexed(Reason.ROBOTS, "No.")
            steps.append(f"{url} {len(site.asked)}")
            yield
            steps.append(f"{url} {len(site.asked)}")

        assert reason(lambda: fetcher.fetch(f"{URL}a", visit=visit)) == Reason.ROBOTS
        assert steps == [f"{URL}a 0", f"{URL}a 1", f"{URL}b 1", f"{URL}b 2"]


def spellings(address: IPv4Address) -> st.SearchStrategy[str]:
    """Generate the spellings of an IPv4 address that browsers accept."""
    octets = address.packed

    def number(value: int) -> st.SearchStrategy[str]:
        zeros = st.integers(0, 4).map("0".__mul__)
        return st.one_of(
            st.just(str(value)),
            zeros.map(lambda more: f"0x{more}{value:x}"),
            zeros.map(lambda more: f"0X{more}{value:X}"),
            zeros.map(lambda more: f"0{more}{value:o}"),
        )

    parts = st.sampled_from(
        [
            [int(address)],
            [octets[0], int.from_bytes(octets[1:])],
            [octets[0], octets[1], int.from_bytes(octets[2:])],
            list(octets),
        ]
    )
    dotted = parts.flatmap(lambda values: st.tuples(*map(number, values))).map(".".join)
    wide = str.maketrans("0123456789.", "０１２３４５６７８９。")
    quoted = str.maketrans({digit: f"%3{digit}" for digit in "0123456789"})
    plain = st.one_of(
        dotted,
        dotted.map(lambda text: f"{text}."),
        dotted.map(lambda text: text.translate(wide)),
        dotted.map(lambda text: text.translate(quoted)),
        st.sampled_from([f"[::ffff:{address}]", f"[::{address}]", f"[64:ff9b::{address}]", f"[0:0::ffff:{address}]"]),
    )
    user = st.sampled_from(["", "user@", "www.example.com@", "a:b@"])
    return st.tuples(user, plain, st.sampled_from(["", ":80"])).map("".join)


class TestPrivateAddresses:
    @given(
        authority=st.sampled_from(PRIVATE).flatmap(spellings),
        slashes=st.sampled_from(["//", "/\\", "\\\\", "///"]),
    )
    def test_no_spelling_of_a_private_ipv4_address_is_connected_to(
        self, asking: tuple[HostileSite, Wires, Fetcher], authority: str, slashes: str
    ) -> None:
        site, wires, fetcher = asking
        site.answers["/"] = redirect(f"http:{slashes}{authority}/latest/meta-data")
        wires.connected.clear()

        for url in (URL, f"http:{slashes}{authority}/"):
            assert reason(lambda url=url: fetcher.fetch(url)) == Reason.PRIVATE_ADDRESS

        assert {address for address, _ in wires.connected} <= {PUBLIC}

    @pytest.mark.parametrize("address", ["[::1]", "[fe80::1]", "[fd00:ec2::254]", "[ff02::1]", "[2002:7f00:1::]"])
    def test_redirects_to_private_ipv6_addresses_are_rejected(
        self, site: HostileSite, fetcher: Fetcher, address: str
    ) -> None:
        site.answers["/"] = redirect(f"http://{address}/")

        assert reason(lambda: fetcher.fetch(URL)) == Reason.PRIVATE_ADDRESS

    def test_hostnames_of_the_site_that_resolve_to_private_addresses_are_rejected(
        self, site: HostileSite, fetcher: Fetcher, wires: Wires
    ) -> None:
        site.answers["/"] = redirect("http://inside.example.com/")

        assert reason(lambda: fetcher.fetch(URL)) == Reason.PRIVATE_ADDRESS
        assert wires.connected == [(PUBLIC, 80)]

    def test_host_that_later_resolves_to_a_private_address_is_rejected(
        self, site: HostileSite, fetcher: Fetcher, wires: Wires
    ) -> None:
        site.answers["/"] = redirect("/again", "Connection: close")

        assert reason(lambda: fetcher.fetch("http://turns.example.com/")) == Reason.PRIVATE_ADDRESS
        assert wires.connected == [(PUBLIC, 80)]

    @pytest.mark.parametrize("host", ["inside.example.com", "127.0.0.1", "[::1]"])
    def test_post_to_a_private_address_is_rejected_without_connecting(
        self, site: HostileSite, network: Network, wires: Wires, host: str
    ) -> None:
        with pytest.raises(NotIndexed) as caught:
            post(network, f"http://{host}/", {}, b"{}", max_seconds=20)

        assert caught.value.reason == Reason.PRIVATE_ADDRESS
        assert wires.connected == []

    def test_post_connects_only_to_the_ip_address_that_was_checked(
        self, site: HostileSite, network: Network, wires: Wires
    ) -> None:
        """The first lookup is the one used: the site does not support POST, but the connection goes to the site."""
        for reason_then in (Reason.UNREACHABLE, Reason.PRIVATE_ADDRESS):
            with pytest.raises(NotIndexed) as caught:
                post(network, "http://turns.example.com/", {}, b"{}", max_seconds=20)
            assert caught.value.reason == reason_then
        assert wires.connected == [(PUBLIC, 80)]

    def test_private_addresses_can_be_allowed_for_fetching_an_intranet(self, site: HostileSite) -> None:
        url = f"http://127.0.0.1:{site.port}/"
        site.answers["/"] = redirect(f"http://2130706433:{site.port}/page")
        site.answers["/page"] = page()
        network = Network(private_addresses=True)

        assert Fetcher(network, Scope.of(url), "Bot").fetch(url).url == f"{url}page"
        network.close()


class TestConditions:
    def test_conditional_request_for_an_unchanged_page_returns_304_without_body(
        self, site: HostileSite, fetcher: Fetcher
    ) -> None:
        site.answers["/"] = page(b"", 'ETag: "1"', status="304 Not Modified")

        fetched = fetcher.fetch(URL, validators=lambda url: Validators('"1"', "Sun, 06 Nov 1994 08:49:37 GMT"))

        assert (fetched.status, fetched.body, fetched.headers["etag"]) == (304, b"", '"1"')
        assert site.asked[0].headers["if-none-match"] == '"1"'
        assert site.asked[0].headers["if-modified-since"] == "Sun, 06 Nov 1994 08:49:37 GMT"

    def test_each_url_of_a_redirect_chain_sends_its_own_validators(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/a"] = redirect("/b")
        site.answers["/b"] = page(b"", status="304 Not Modified")

        fetched = fetcher.fetch(f"{URL}a", validators={f"{URL}b": Validators('"b"')}.get)

        assert (fetched.url, fetched.status) == (f"{URL}b", 304)
        assert ["if-none-match" in asked.headers for asked in site.asked] == [False, True]

    def test_unrequested_304_response_is_rejected(self, site: HostileSite, fetcher: Fetcher) -> None:
        site.answers["/"] = page(b"", status="304 Not Modified")

        assert reason(lambda: fetcher.fetch(URL)) == "http_304"

    def test_validator_with_a_line_break_sends_no_request(self, site: HostileSite, fetcher: Fetcher) -> None:
        assert reason(lambda: fetcher.fetch(URL, validators=lambda url: Validators("a\r\nX: y"))) == Reason.UNREACHABLE
        assert site.asked == []


class TestWaiting:
    @pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Unavailable"])
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("7", 7),
            ("600", 600),
            ("0", 1),
            ("Fri, 01 May 2026 12:02:00 GMT", 120),
            ("Thu, 01 Jan 2026 00:00:00 GMT", 1),
        ],
    )
    def test_retry_after_up_to_ten_minutes_is_honored(
        self, site: HostileSite, fetcher: Fetcher, status: str, value: str, seconds: float
    ) -> None:
        site.answers["/"] = page(b"", f"Retry-After: {value}", status=status)

        with time_machine.travel("2026-05-01T12:00:00Z", tick=False), pytest.raises(TryLater) as caught:
            fetcher.fetch(URL)

        assert (caught.value.reason, caught.value.seconds) == (f"http_{status[:3]}", seconds)

    @pytest.mark.parametrize("value", ["601", "99999999999", "Sat, 02 May 2026 12:00:00 GMT"])
    def test_retry_after_longer_than_ten_minutes_fails_without_retry(
        self, site: HostileSite, fetcher: Fetcher, value: str
    ) -> None:
        site.answers["/"] = page(b"", f"Retry-After: {value}", status="429 Too Many Requests")

        with time_machine.travel("2026-05-01T12:00:00Z", tick=False), pytest.raises(NotIndexed) as caught:
            fetcher.fetch(URL)

        assert not isinstance(caught.value, TryLater)
        assert caught.value.reason == "http_429"

    @pytest.mark.parametrize(
        "headers",
        [
            (),
            ("Retry-After: soon",),
            ("Retry-After: -5",),
            ("Retry-After: Mon, 20 Nov 1995 19:12:08 +99999999999999999999",),
        ],
    )
    def test_status_429_without_retry_after_waits_30_seconds(
        self, site: HostileSite, fetcher: Fetcher, headers: tuple[str, ...]
    ) -> None:
        site.answers["/many"] = page(b"", *headers, status="429 Too Many Requests")
        site.answers["/down"] = page(b"", *headers, status="503 Unavailable")

        with pytest.raises(TryLater) as caught:
            fetcher.fetch(f"{URL}many")

        assert caught.value.seconds == 30
        assert reason(lambda: fetcher.fetch(f"{URL}down")) == "http_503"


class TestSourceHeaders:
    @pytest.fixture
    def staging(self, network: Network) -> Fetcher:
        return Fetcher(
            network, Scope.of(URL), "Bot", headers={"Authorization": "Basic x", "Cookie": "a=1"}, headers_url=URL
        )

    def test_source_headers_are_sent_only_to_the_sources_host(self, site: HostileSite, staging: Fetcher) -> None:
        site.answers["/"] = redirect("/next", "Set-Cookie: b=2")
        site.answers["/next"] = redirect("http://docs.example.com/other")
        site.answers["/other"] = redirect("http://www.example.com:8080/port")
        site.answers["/port"] = page()

        staging.fetch(URL)

        assert [asked.headers.get("authorization") for asked in site.asked] == ["Basic x", "Basic x", None, None]
        assert [asked.headers.get("cookie") for asked in site.asked] == ["a=1", "a=1; b=2", None, "b=2"]

    def test_source_headers_follow_an_upgrade_to_https_but_not_a_downgrade(self, network: Network) -> None:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("www.example.com").configure_cert(context)
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        with serving(context) as safe:
            safe.answers["/"] = page()
            secured = Network(private_addresses=False, resolver=Names(), sockets=Wires(safe.port), ssl_context=trusting)
            options = {"headers": {"X-Staging": "secret"}, "headers_url": URL}
            Fetcher(secured, Scope.of(URL), "Bot", **options).fetch("https://www.example.com/")
            secured.close()
        with serving() as plain:
            plain.answers["/"] = page()
            open_network = Network(private_addresses=False, resolver=Names(), sockets=Wires(plain.port))
            options["headers_url"] = "https://www.example.com/"
            Fetcher(open_network, Scope.of(URL), "Bot", **options).fetch(URL)
            open_network.close()

        assert safe.asked[0].headers["x-staging"] == "secret"
        assert "x-staging" not in plain.asked[0].headers

    @pytest.mark.parametrize(
        "headers",
        [
            {"X": "a\r\nHost: evil.org"},
            {"X": "a\0b"},
            {"X": ""},
            {"X": " a"},
            {"X": "漢"},
            {"X": "a" * 5_000},
            {"X\r\nY": "a"},
            {"": "a"},
            {"X:": "a"},
            {"Host": "evil.org"},
            {"content-length": "5"},
            {"Transfer-Encoding": "chunked"},
            {"x": "1", "X": "2"},
            {f"X{number}": "1" for number in range(6)},
        ],
    )
    def test_invalid_source_headers_raise_value_error(self, network: Network, headers: dict[str, str]) -> None:
        with pytest.raises(ValueError, match=r".+"):
            check_headers(headers)
        with pytest.raises(ValueError, match=r".+"):
            Fetcher(network, Scope.of(URL), "Bot", headers=headers, headers_url=URL)

    def test_five_source_headers_are_accepted(self) -> None:
        check_headers({f"X-{number}": "a b\tc" for number in range(5)})


def test_untrusted_certificate_has_the_certificate_reason() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("www.example.com").configure_cert(context)
    with serving(context) as site:
        network = Network(private_addresses=False, resolver=Names(), sockets=Wires(site.port))
        fetcher = Fetcher(network, Scope.of(URL), "Bot", max_seconds=20)

        assert reason(lambda: fetcher.fetch("https://www.example.com/")) == Reason.CERTIFICATE
        network.close()
