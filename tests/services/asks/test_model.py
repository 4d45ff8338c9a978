"""The client of a language model: it reads a stream as it arrives, and every way to fail is one error."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
from collections.abc import Iterator

import pytest

from app.services.asks import model as model_module
from app.services.asks.model import LanguageModel, ModelUnavailable
from tests.patience import PATIENCE_SECONDS, eventually
from tests.services.asks.model_server import END, STREAM, ModelServer, event, run_model_server, sending, writing

KEY = "sk-a-key-of-the-operator"
MESSAGES = [{"role": "user", "content": "When does it open?"}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with run_model_server() as running:
        yield running


@pytest.fixture
def model(server: ModelServer) -> LanguageModel:
    return LanguageModel(server.url, "small", KEY, PATIENCE_SECONDS)


def written(model: LanguageModel) -> list[str]:
    """Return the pieces of text, without the empty ones that only mean that the model is still writing."""
    return [piece for piece in model.write(MESSAGES) if piece]


def failure(model: LanguageModel) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as raised:
        list(model.write(MESSAGES))
    assert KEY not in str(raised.value)
    return raised.value


def test_chat_is_sent_in_the_format_of_openai(model: LanguageModel, server: ModelServer) -> None:
    assert written(model) == ["It opens at nine [1]."]

    ((headers, body),) = server.requests
    assert body == {"model": "small", "messages": MESSAGES, "stream": True}
    assert headers["Authorization"] == f"Bearer {KEY}"


def test_pieces_arrive_before_the_answer_is_complete(model: LanguageModel, server: ModelServer) -> None:
    server.hang(event("First"))
    pieces = model.write(MESSAGES)

    assert next(filter(None, pieces)) == "First"


def test_character_that_is_split_between_two_chunks_is_read_whole(model: LanguageModel, server: ModelServer) -> None:
    whole = event("Geöffnet ab neun 🕘 [1].")
    server.respond = sending(*(whole[at : at + 1] for at in range(len(whole))), END)

    assert written(model) == ["Geöffnet ab neun 🕘 [1]."]


@pytest.mark.parametrize(
    "stream",
    [
        event("a").replace(b"\n\n", b"\r\n\r\n") + END.replace(b"\n", b"\r\n"),
        b": a comment\n\nevent: message\nid: 1\n" + event("a") + END,
        event("a").replace(b"data: ", b"data:") + END,
        event("a") + event(None, "stop"),
        event("a") + b"data: [DONE]\n\n",
        b'data: {"choices": [{"delta": {"role": "assistant", "content": null}}]}\n\n' + event("a") + END,
        event("a", "stop") + b'data: {"choices": [], "usage": {"total_tokens": 7}}\n\n' + END,
    ],
)
def test_variants_of_the_protocol_are_read(model: LanguageModel, server: ModelServer, stream: bytes) -> None:
    server.respond = sending(stream)

    assert written(model) == ["a"]


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        event("cut"),
        event("cut")[:-9],
        b'data: {"error": {"message": "overloaded"}}\n\n',
        event("a") + b'data: {"error": {"message": "overloaded"}}\n\n' + END,
        b"data: not json\n\n" + END,
        b'data: {"choices": [{"delta": {"content": "\xc3"}}]}\n\n' + END,
        b'data: {"choices": [{"delta": {"content": "\\ud800"}}]}\n\n' + END,
        b'data: {"choices": [{"delta": {"content": 7}}]}\n\n' + END,
        b"data: []\n\n" + END,
        b"data: {}\n\n" + END,
        b'data: {"choices": {}}\n\n' + b'data: {"choices": 7}\n\n' + END,
    ],
)
def test_stream_that_is_cut_or_malformed_or_an_error_fails(
    model: LanguageModel, server: ModelServer, stream: bytes
) -> None:
    server.respond = sending(stream)

    failure(model)


def test_server_that_ends_in_the_middle_of_an_answer_is_said_to_have_cut_it(
    model: LanguageModel, server: ModelServer
) -> None:
    def chunks() -> Iterator[bytes]:
        yield event("It opens ")
        raise ConnectionError

    server.respond = lambda _: (200, STREAM, chunks())

    assert str(failure(model)).endswith("cut the connection")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Type": "text/html"}, b"<h1>Welcome to the proxy</h1>"),
        ({"Content-Type": "application/json"}, b'{"error": {"message": "wrong"}}'),
        ({}, b"data: [DONE]\n\n"),
    ],
)
def test_response_that_is_not_a_stream_fails(
    model: LanguageModel, server: ModelServer, headers: dict[str, str], body: bytes
) -> None:
    server.respond = sending(body, headers=headers)

    assert "instead of a stream" in str(failure(model))


def test_compressed_stream_fails_with_the_reason(model: LanguageModel, server: ModelServer) -> None:
    server.respond = sending(gzip.compress(event("a") + END), headers={**STREAM, "Content-Encoding": "gzip"})

    assert "compresses its stream" in str(failure(model))


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 429, 500, 503])
def test_error_status_is_reported_and_not_retried_or_redirected(
    model: LanguageModel, server: ModelServer, status: int
) -> None:
    server.respond = sending(b"{}", status=status, headers={"Location": server.url + "/elsewhere"})

    reasons = {401: "rejects LLM_KEY", 403: "LLM_KEY may not", 404: "no model LLM_MODEL", 429: "no credit"}
    message = str(failure(model))
    assert f"responds with status {status}" in message
    assert reasons.get(status, "") in message
    assert len(server.requests) == 1


@pytest.mark.parametrize(("text", "seconds"), [("7", 7), ("100000", 60), ("0", 1), ("Fri, 01 Jan 2027", 5)])
def test_pause_that_the_server_asks_for_is_passed_on_within_a_minute(
    model: LanguageModel, server: ModelServer, text: str, seconds: int
) -> None:
    server.respond = sending(b"{}", status=429, headers={"Retry-After": text})

    assert failure(model).retry_after == seconds


def test_endless_text_fails(model: LanguageModel, server: ModelServer) -> None:
    server.respond = lambda _: (200, STREAM, itertools.repeat(event("and so on ")))

    assert "too long" in str(failure(model))


def test_endless_stream_without_text_fails(
    model: LanguageModel, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "MAX_STREAM_BYTES", 10_000)
    server.respond = lambda _: (200, STREAM, itertools.repeat(b": nothing\n\n"))

    assert "too long" in str(failure(model))


def test_first_words_must_arrive_in_half_of_the_time(server: ModelServer) -> None:
    server.hang()
    slow = LanguageModel(server.url, "small", KEY, 0.2)

    assert "wrote nothing within 0.1 seconds" in str(failure(slow))


def test_check_waits_for_the_first_words_all_of_its_time(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "CHECK_SECONDS", 0.2)
    server.hang()

    with pytest.raises(ModelUnavailable, match=r"wrote nothing within 0\.2 seconds"):
        LanguageModel(server.url, "small", KEY, 30).check()


def test_answer_must_be_complete_in_time(server: ModelServer) -> None:
    server.hang(event("It opens "))
    slow = LanguageModel(server.url, "small", KEY, 0.4)

    assert "did not complete its answer within 0.4 seconds" in str(failure(slow))


def test_server_that_cannot_be_reached_fails_without_its_url() -> None:
    away = LanguageModel("http://127.0.0.1:9/a-secret-path", "small", KEY, PATIENCE_SECONDS)

    assert "a-secret-path" not in str(failure(away))


def test_unexpected_error_is_raised_immediately(server: ModelServer) -> None:
    """Instead of ending the thread silently, while the visitor waits for the rest of the time."""
    with pytest.raises(ValueError, match="Invalid header value"):
        list(LanguageModel(server.url, "small", "not a\nheader", PATIENCE_SECONDS).write(MESSAGES))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSING_HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", HEAD[:20], HEAD, HEAD + b"5\r\ndata:\r\n", CLOSING_HEAD, CLOSING_HEAD + b"data: "],
    ids=["nothing", "half a head", "head", "half an event", "head without a length", "half an event without a length"],
)
def test_connection_ends_when_the_visitor_disconnects(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regardless of what the server is about to send."""
    monkeypatch.setattr(model_module, "WAITING_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model = LanguageModel(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "small", KEY, PATIENCE_SECONDS)
        pieces = model.write(MESSAGES)
        assert next(pieces) == ""
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_SECONDS / 4)
            while not connection.recv(65_536).endswith(b"}"):
                pass
            connection.sendall(sent)
            assert next(pieces) == ""

            pieces.close()  # type: ignore[attr-defined]

            assert connection.recv(1) == b""
    eventually(lambda: not reading_threads())


def test_threads_that_wait_for_the_server_do_not_keep_the_process_alive(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "WAITING_SECONDS", 0.01)
    server.hang()
    model = LanguageModel(server.url, "small", KEY, PATIENCE_SECONDS)
    pieces = model.write(MESSAGES)
    next(pieces)

    assert [thread.daemon for thread in reading_threads()] == [True]

    pieces.close()  # type: ignore[attr-defined]


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "language-model"]


def test_no_authorization_header_is_sent_without_a_key(server: ModelServer) -> None:
    server.respond = writing("a")
    keyless = LanguageModel(server.url, "small", "", PATIENCE_SECONDS)

    written(keyless)

    assert "Authorization" not in server.requests[0][0]
