"""HTTP as gunicorn speaks it, through the worker that waits for clients in its event loop."""

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
    """A server of one worker with two threads, one of which may read large bodies."""
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
        """The next answer."""
        status = int(self.stream.readline().split()[1])
        headers = {}
        while (line := self.stream.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, self.stream.read(int(headers.get("content-length", 0)))

    def ends(self) -> bool:
        """Whether the server has nothing more to say."""
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
    """The head of a request that sends documents."""
    described = {"Content_Length": len(body), **headers} if "Transfer_Encoding" not in headers else headers
    token = f"Bearer {customer.tokens['private']}"
    path = "/api/v1/index/bulk"
    return siege.head(path, "POST", Authorization=token, Content_Type="application/json", **described) + b"\r\n"


def documents(characters: int) -> bytes:
    return orjson.dumps({"documents": [page(n, content="word " * (characters // 5)) for n in range(10)]})


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_a_connection_is_kept_and_requests_may_come_before_the_answers(wire: Callable[[], Wire]) -> None:
    kept = wire()
    for _ in range(3):
        kept.send(HEALTH)
        assert kept.answer()[0] == 200
    kept.send(HEALTH * 20 + HEALTH[:30])
    assert [kept.answer()[0] for _ in range(20)] == [200] * 20
    kept.send(HEALTH[30:])
    status, headers, _ = kept.answer()
    assert (status, headers["connection"]) == (200, "keep-alive")


def test_a_connection_ends_where_the_client_or_its_version_says_so(wire: Callable[[], Wire]) -> None:
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
def test_bodies_of_every_size_come_whole_or_in_pieces(
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


def test_a_large_body_may_come_in_pieces_on_a_connection_that_is_used_again(
    served: tuple[Server, Customer], wire: Callable[[], Wire]
) -> None:
    """As it does from proxies, which keep their connections."""
    _, customer = served
    client, other = wire(), wire()
    body = documents(90_000)
    client.send(HEALTH)
    assert client.answer()[0] == 200

    client.send(indexing(customer, body), body[:100_000])
    for at in range(100_000, len(body), 10_000):
        other.send(HEALTH)  # The thread that reads has its turn meanwhile, and waits for more.
        assert other.answer()[0] == 200
        client.send(body[at : at + 10_000])

    assert client.answer()[0] == 200


def test_a_client_that_waits_for_a_go_gets_one(served: tuple[Server, Customer], wire: Callable[[], Wire]) -> None:
    _, customer = served
    for body in (documents(100), documents(200_000)):
        asking = wire()
        asking.send(indexing(customer, body, Expect="100-continue"))
        assert asking.answer()[0] == 100
        asking.send(body)
        assert asking.answer()[0] == 200


def test_what_follows_a_body_on_the_connection_is_answered(
    served: tuple[Server, Customer], wire: Callable[[], Wire]
) -> None:
    _, customer = served
    body = documents(100)
    both = wire()
    both.send(indexing(customer, body) + body + HEALTH)
    assert [both.answer()[0] for _ in range(2)] == [200, 200]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-Long: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X-Many: " + b"X-Many: a\r\n" * 7000, 431),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused_at_once(wire: Callable[[], Wire], sent: bytes, status: int) -> None:
    refused = wire()
    refused.send(sent)
    assert refused.answer()[0] == status
    assert refused.ends()


def test_no_header_makes_a_path_mean_another(wire: Callable[[], Wire]) -> None:
    """A proxy's rules are about the path that it was asked for; some proxies let such headers through."""
    for header in ("SCRIPT_NAME: /public", "PATH_INFO: /healthz"):
        asking = wire()
        asking.send(siege.head("/public/healthz") + header.encode() + b"\r\n\r\n")
        assert asking.answer()[0] == 404


def test_who_leaves_in_the_middle_disturbs_nobody(served: tuple[Server, Customer], wire: Callable[[], Wire]) -> None:
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


def test_large_bodies_wait_for_their_turn(served: tuple[Server, Customer], wire: Callable[[], Wire]) -> None:
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


def test_a_file_and_a_large_answer_come_whole(wire: Callable[[], Wire]) -> None:
    reading = wire()
    for path in ("/widget.js", "/openapi.json", "/static/widget.js"):
        reading.send(siege.head(path) + b"\r\n")
        status, headers, body = reading.answer()
        assert (status, len(body)) == (200, int(headers["content-length"]))


def test_more_connections_than_there_may_be_make_room_for_new_ones(wire: Callable[[], Wire]) -> None:
    idle = [wire() for _ in range(1100)]
    fresh = wire()
    fresh.send(HEALTH)
    assert fresh.answer()[0] == 200
    assert any(one.ends() for one in idle[:50])
