"""Responses that are streams of server-sent events."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import orjson
from flask import Request, Response

from app.errors import ApiError, ErrorCode, error_body

EVENT_STREAM = "text/event-stream"
COMMENT_SECONDS = 10.0
"""Seconds without an event after which a comment is sent, because proxies disconnect a silent server."""

Event = tuple[str, Mapping[str, Any]]

log = logging.getLogger(__name__)


def stream_events(req: Request, events: Generator[Event | None], close: Callable[[], None]) -> Response:
    """Return a response that sends each event as soon as it exists, and an event ``error`` if the iteration fails.

    Args:
        events: Events, and ``None`` now and then while there is no event. Not continued if the client disconnects.
        close: Releases what the events occupy. Called at the end, even if the stream never begins.
    """
    # The server collects small pieces of a response, which an event must not wait for.
    socket = socket_of(req)
    flush = (lambda: None) if socket is None else socket.flush
    response = Response(
        _encode(until_disconnected(socket, events), flush), content_type=f"{EVENT_STREAM}; charset=utf-8"
    )
    # nginx passes each event on only if it does not collect the response.
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(close)
    return response


def socket_of(req: Request) -> Any:
    """Return the socket that the server received a request on; ``None`` if the server does not pass one on."""
    return req.environ.get("gunicorn.socket")


def until_disconnected(socket: Any, events: Generator[Event | None]) -> Generator[Event | None]:
    """Yield the events until the client disconnects.

    Args:
        socket: As :func:`socket_of` returns it.
    """
    with closing(events):
        for event in events:
            if socket is not None and socket.is_disconnected():
                return
            yield event


def _encode(events: Generator[Event | None], flush: Callable[[], None]) -> Iterator[bytes]:
    sent = time.monotonic()
    try:
        for event in events:
            if event is not None:
                yield _event(*event)
            elif time.monotonic() - sent >= COMMENT_SECONDS:
                yield b": waiting\n\n"
            else:
                continue
            sent = time.monotonic()
            with suppress(OSError):  # The next event finds the client disconnected.
                flush()
    except ApiError as error:
        yield _event("error", error_body(error))
    except Exception:
        # The status was sent long ago, so the client learns of the failure from the stream.
        log.exception("a stream of events failed")
        yield _event("error", error_body(ApiError(ErrorCode.INTERNAL_ERROR, "Internal error.")))


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    # JSON has no line breaks, so it is one line of data.
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
