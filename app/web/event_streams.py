"""Responses that are streams of server-sent events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from flask import Request, Response

from app.errors import ApiError, ErrorCode, error_body

EVENT_STREAM = "text/event-stream"

log = logging.getLogger(__name__)


def stream_events(req: Request, events: Iterator[tuple[str, Mapping[str, Any]]], close: Callable[[], None]) -> Response:
    """Return a response that sends each event as soon as it exists, and an event ``error`` if the iteration fails.

    Args:
        close: Releases what the events occupy. Called at the end, even if the stream never begins.
    """
    # The server collects small pieces of a response, which an event must not wait for.
    socket = req.environ.get("gunicorn.socket")
    flush = (lambda: None) if socket is None else socket.flush
    response = Response(_encode(events, flush), content_type=f"{EVENT_STREAM}; charset=utf-8")
    # nginx passes each event on only if it does not collect the response.
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(close)
    return response


def _encode(events: Iterator[tuple[str, Mapping[str, Any]]], flush: Callable[[], None]) -> Iterator[bytes]:
    try:
        for name, data in events:
            yield _event(name, data)
            flush()
    except ApiError as error:
        yield _event("error", error_body(error))
    except GeneratorExit:
        raise
    except Exception:
        # The status was sent long ago, so the client learns of the failure from the stream.
        log.exception("a stream of events failed")
        yield _event("error", error_body(ApiError(ErrorCode.INTERNAL_ERROR, "Internal error.")))


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    # JSON has no line breaks, so it is one line of data.
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
