"""Ids, URLs and connections of server engines."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import ReplyTooLarge
from backends.servers import http
from backends.servers.document_ids import encode_id
from backends.servers.http import Budget, HttpPool, TransportFailure
from backends.servers.server_url import ServerUrl
from backends.sort_text import facet_text, facet_token, ordered_number, sort_text
from tests.backends.fakes.broken import broken_server


@given(st.text(min_size=1, max_size=512).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
def test_an_encoded_id_is_safe_in_a_path_and_no_longer_than_128(id: str) -> None:
    encoded = encode_id(id)
    assert 1 <= len(encoded) <= 128
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in encoded)


def test_ids_share_no_encoding() -> None:
    hostile = [
        "..",
        "../..",
        "a",
        "A",
        "a/b",
        "x-",
        "x-" + "0" * 64,
        encode_id("a/b"),
        "é",
        "e\u0301",
        " a",
        "a ",
        "a" * 129,
    ]
    assert len({encode_id(id) for id in hostile}) == len(hostile)
    assert encode_id("page-1_b") == "page-1_b"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_ordered_numbers_compare_as_the_numbers_do(left: float, right: float) -> None:
    assert (ordered_number(left) < ordered_number(right)) == (left < right)
    assert (ordered_number(left) == ordered_number(right)) == (left == right)


@given(st.text(max_size=60).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
def test_facet_tokens_give_their_text_back(text: str) -> None:
    token = facet_token(text)
    assert facet_text(token) == text
    assert all(len(word) <= 96 and word.isalnum() for word in token.split(" "))


def test_sort_texts_ignore_case_and_are_never_empty() -> None:
    texts = ["", "a", "B", "c", "é"]
    assert sorted(texts, key=sort_text) == texts
    assert sort_text("") != ""


def test_a_url_names_nodes_key_and_budgets() -> None:
    url = ServerUrl.parse(
        "typesense://:k%40y%2F1@B:1,a?timeout_seconds=2.5&connect_timeout_seconds=0.5", default_port=8108
    )
    assert (url.nodes, url.key) == (("http://b:1", "http://a:8108"), "k@y/1")
    assert (url.timeout_seconds, url.connect_timeout_seconds) == (2.5, 0.5)
    assert ServerUrl.parse("typesense+https://:k@a", default_port=8108).nodes == ("https://a:8108",)
    assert ServerUrl.parse("typesense://:k@[::1]:9", default_port=1).nodes == ("http://[::1]:9",)


def test_the_identity_is_kind_and_name_whatever_the_hosts() -> None:
    one = ServerUrl.parse("typesense://:secret@a:1,b:2", default_port=8108)
    two = ServerUrl.parse("typesense://:other@c:2?timeout_seconds=9", default_port=8108)
    named = ServerUrl.parse("typesense://:secret@a:1?name=new-2", default_port=8108)
    assert (one.identity, two.identity, named.identity) == ("typesense", "typesense", "typesense:new-2")
    assert "secret" not in one.identity + repr(one) + str(one)


@pytest.mark.parametrize("url", [
    "typesense://", "typesense://a:8108", "typesense://user:sekret@a", "typesense://:sekret@", "typesense://:sekret@a:0",
    "typesense://:sekret@a:99999", "typesense://:sekret@a,a", "typesense://:sekret@a/path", "typesense://:sekret@a?x=1",
    "typesense://:sekret@a?timeout_seconds=0", "typesense://:sekret@a?timeout_seconds=nan", "typesense://:sekret@a b",
    "typesense://:sekret@a?ca_file=/x", "typesense://:sekret@a?name=A", "typesense://:sekret@a?name=a:b", "typesense://:@a",
])  # fmt: skip
def test_a_bad_url_is_refused_without_repeating_its_key(url: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        ServerUrl.parse(url, default_port=8108)
    assert "sekret" not in str(caught.value)


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections: set[tuple[str, int]]

    def do_GET(self) -> None:
        self.server.connections.add(self.client_address)  # type: ignore[attr-defined]
        body = (self.headers.get("Cookie") or self.path).encode()
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Set-Cookie", "session=1; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    server.connections = set()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pool(server: ThreadingHTTPServer) -> Iterator[HttpPool]:
    pool = HttpPool(ServerUrl.parse(f"typesense://:k@127.0.0.1:{server.server_port}", default_port=1), {"X-Key": "k"})
    yield pool
    pool.close()


def get(pool: HttpPool, path: str = "/x") -> bytes:
    return pool.send("GET", pool._url.nodes[0], path, Budget(5)).body


def test_connections_are_kept_and_closed(server: ThreadingHTTPServer, pool: HttpPool) -> None:
    for _ in range(10):
        assert get(pool) == b"/x"
    assert len(server.connections) == 1  # type: ignore[attr-defined]
    pool.close()
    assert get(pool) == b"/x"
    assert len(server.connections) == 2  # type: ignore[attr-defined]


def test_cookies_are_not_kept_and_redirects_not_followed(pool: HttpPool) -> None:
    assert get(pool) == b"/x"
    assert get(pool, "/y") == b"/y"
    assert pool.send("GET", pool._url.nodes[0], "/away", Budget(5)).status == 302


def test_proxies_of_the_environment_are_not_used(pool: HttpPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert get(pool) == b"/x"


def _child(pool: HttpPool, results: object) -> None:
    results.put([get(pool, f"/child{n}") for n in range(20)])  # type: ignore[attr-defined]


def test_a_pool_used_before_a_fork_works_in_every_child(pool: HttpPool) -> None:
    get(pool)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    children = [context.Process(target=_child, args=(pool, results)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in range(50):
        assert get(pool, "/parent") == b"/parent"
    for child in children:
        assert results.get() == [f"/child{n}".encode() for n in range(20)]
        child.join()


def test_a_reply_is_read_up_to_a_size(pool: HttpPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_REPLY_BYTES", 100)
    assert get(pool, "/" + "x" * 99) == b"/" + b"x" * 99

    with pytest.raises(ReplyTooLarge):
        get(pool, "/" + "x" * 100)

    assert get(pool) == b"/x"


@pytest.mark.parametrize("way", ["hangs", "drips", "cut"])
def test_an_answer_that_does_not_come_in_time_is_given_up(way: str) -> None:
    with broken_server(way) as port:
        pool = HttpPool(ServerUrl.parse(f"typesense://:k@127.0.0.1:{port}", default_port=1), {})
        began = time.monotonic()
        with pytest.raises(TransportFailure):
            pool.send("GET", f"http://127.0.0.1:{port}", "/x", Budget(0.2))
        with pytest.raises(TransportFailure):
            list(pool.lines(f"http://127.0.0.1:{port}", "/x", 0.2))
        assert time.monotonic() - began < 10, "the server itself says nothing for 30 seconds"
        pool.close()
