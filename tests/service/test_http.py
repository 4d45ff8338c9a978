"""HTTP as gunicorn handles it, with the worker that waits for clients in its event loop."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import orjson
import pytest

from tests.server import Server
from tests.service import siege
from tests.service.clients import Customer, page, register
from tests.service.conftest import one_machine

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Customer]]:
    """A server with one worker of two threads, one of which may read large bodies."""
    with one_machine(tmp_path_factory.mktemp("http"), workers=1, web_threads=2) as servers:
        yield servers[0], register(servers, "ann@example.com")


class Wire:
    """A connection, byte by byte."""

    def __init__(self, server: Server):
        host, port = server.base_url.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.stream = self.socket.makefile("rb")

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read the next response."""
        status = int(self.stream.readline().split()[1])
        headers = {}
        while (line := self.stream.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, self.stream.read(int(headers.get("content-length", 0)))

    def ends(self) -> bool:
        """Whether the server has closed the connection."""
        try:
            return self.stream.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.stream.close()
        self.socket.close()


@pytest.fixture
def wire(served: tuple[Server, Customer]) -> Iterator[Callable[[], Wire]]:
    made: list[Wire] = []

    def connect() -> Wire:
        made.append(Wire(served[0]))
        return made[-1]

    yield connect
    for one in made:
        one.close()


HEALTH = siege.head("/healthz") + b"\r\n"


def indexing(customer: Customer, body: bytes, **headers: str | int) -> bytes:
    """Return the head of a request that sends documents."""
    described = {"Content_Length": len(body), **headers} if "Transfer_Encoding" not in headers else headers
    token = f"Bearer {customer.tokens['private']}"
    path = "/api/v1/index/bulk"
    return siege.head(path, "POST", Authorization=token, Content_Type="application/json", **described) + b"\r\n"


def documents(characters: int) -> bytes:
    return orjson.dumps({"documents": [page(n, content="word " * (characters // 5)) for n in range(10)]})


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_connections_are_persistent_and_requests_may_be_pipelined(wire: Callable[[], Wire]) -> None:
    kept = wire()
    for _ in range(3):
        kept.send(HEALTH)
        assert kept.answer()[0] == 200
    kept.send(HEALTH * 20 + HEALTH[:30])
    assert [kept.answer()[0] for _ in range(20)] == [200] * 20
    kept.send(HEALTH[30:])
    status, headers, _ = kept.answer()
    assert (status, headers["connection"]) == (200, "keep-alive")


def test_connection_header_and_http_version_decide_whether_the_connection_closes(wire: Callable[[], Wire]) -> None:
    for head in (siege.head("/healthz", Connection="close"), b"GET /healthz HTTP/1.0\r\n"):
        ended = wire()
        ended.send(head + b"\r\n")
        status, headers, body = ended.answer()
        assert (status, headers["connection"], body) == (200, "close", b'{"status":"ok"}')
        assert ended.ends()
    kept = wire()
    for _ in range(2):
        kept.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert kept.answer()[0] == 200


@pytest.mark.parametrize("characters", [100, 20_000, 1_000_000])
def test_bodies_of_every_size_are_accepted_whole_or_in_pieces(
    served: tuple[Server, Customer], wire: Callable[[], Wire], characters: int
) -> None:
    _, customer = served
    body = documents(characters)
    half = len(body) // 2
    head = indexing(customer, body)
    in_chunks = indexing(customer, body, Transfer_Encoding="chunked")
    for pieces in (
        (head + body,),
        (head[:50], head[50:], body[:half], body[half:]),
        (in_chunks + chunked(body, 50_000),),
        (in_chunks, chunked(body, 1000)),
    ):
        connection = wire()
        connection.send(*pieces)
        status, _, answer = connection.answer()
        assert status == 200, answer


def test_large_body_in_pieces_is_accepted_on_a_reused_connection(
    served: tuple[Server, Customer], wire: Callable[[], Wire]
) -> None:
    """Proxies send such bodies, since they reuse connections."""
    _, customer = served
    client, other = wire(), wire()
    body = documents(90_000)
    client.send(HEALTH)
    assert client.answer()[0] == 200

    client.send(indexing(customer, body), body[:100_000])
    for at in range(100_000, len(body), 10_000):
        other.send(HEALTH)  # The reading thread gets its turn and waits for more.
        assert other.answer()[0] == 200
        client.send(body[at : at + 10_000])

    assert client.answer()[0] == 200


def test_expect_100_continue_gets_a_100_response(served: tuple[Server, Customer], wire: Callable[[], Wire]) -> None:
    _, customer = served
    for body in (documents(100), documents(200_000)):
        asking = wire()
        asking.send(indexing(customer, body, Expect="100-continue"))
        assert asking.answer()[0] == 100
        asking.send(body)
        assert asking.answer()[0] == 200


def test_request_pipelined_after_a_body_gets_a_response(
    served: tuple[Server, Customer], wire: Callable[[], Wire]
) -> None:
    _, customer = served
    body = documents(100)
    both = wire()
    both.send(indexing(customer, body) + body + HEALTH)
    assert [both.answer()[0] for _ in range(2)] == [200, 200]


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "uri_too_long"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-Long: " + b"a" * 9000 + b"\r\n\r\n", 431, "headers_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"X-Many: " + b"X-Many: a\r\n" * 7000, 431, "headers_too_large"),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400, "validation_failed"),
        (b"nonsense\r\n\r\n", 400, "validation_failed"),
        (b"\r\n\r\n", 400, "validation_failed"),
        (b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400, "validation_failed"),
        (
            b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "validation_failed",
        ),
    ],
)
def test_malformed_request_is_rejected_and_the_connection_is_closed(
    wire: Callable[[], Wire], sent: bytes, status: int, code: str
) -> None:
    rejected = wire()
    rejected.send(sent)
    answered, headers, body = rejected.answer()
    assert (answered, orjson.loads(body)["error"]) == (status, code)
    assert headers["content-type"] == "application/json"
    assert headers["access-control-allow-origin"] == "*"
    assert headers["x-request-id"]
    assert rejected.ends()


def test_headers_cannot_change_the_request_path(wire: Callable[[], Wire]) -> None:
    """A proxy's rules apply to the requested path, and some proxies pass such headers through."""
    for header in ("SCRIPT_NAME: /public", "PATH_INFO: /healthz"):
        asking = wire()
        asking.send(siege.head("/public/healthz") + header.encode() + b"\r\n\r\n")
        assert asking.answer()[0] == 404


def test_clients_that_disconnect_early_do_not_affect_other_clients(
    served: tuple[Server, Customer], wire: Callable[[], Wire]
) -> None:
    _, customer = served
    body = documents(100_000)
    for sent in (b"", HEALTH[:20], HEALTH, indexing(customer, body) + body[:50], indexing(customer, body) + body[:-1]):
        leaving = wire()
        leaving.send(sent)
        leaving.close()
    cut = wire()
    cut.send(indexing(customer, body) + body[:-1])
    cut.socket.shutdown(socket.SHUT_WR)
    assert cut.answer()[0] == 400
    staying = wire()
    staying.send(HEALTH)
    assert staying.answer()[0] == 200


def test_slow_large_bodies_do_not_block_other_requests(
    served: tuple[Server, Customer], wire: Callable[[], Wire]
) -> None:
    _, customer = served
    body = documents(20_000)
    senders = [wire() for _ in range(6)]
    for sender in senders:
        sender.send(indexing(customer, body) + body[:100_000])
    searching = wire()
    searching.send(HEALTH)
    assert searching.answer()[0] == 200
    for sender in senders:
        sender.send(body[100_000:])
    assert [sender.answer()[0] for sender in senders] == [200] * 6


def test_files_and_large_responses_are_sent_completely(wire: Callable[[], Wire]) -> None:
    reading = wire()
    for path in ("/widget.js", "/openapi.json", "/static/widget.js"):
        reading.send(siege.head(path) + b"\r\n")
        status, headers, body = reading.answer()
        assert (status, len(body)) == (200, int(headers["content-length"]))


def test_connections_above_the_limit_replace_idle_ones(wire: Callable[[], Wire]) -> None:
    idle = [wire() for _ in range(1100)]
    fresh = wire()
    fresh.send(HEALTH)
    assert fresh.answer()[0] == 200
    assert any(one.ends() for one in idle[:50])
