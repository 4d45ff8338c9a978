"""Structured logs: one JSON object per line, with the request ID and without secrets."""

from __future__ import annotations

import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any

import orjson
from flask import Flask, Response, g, has_request_context, request

access = logging.getLogger("app.access")

_SECRETS = re.compile(
    r"svc_(?:pub|srch|prv|inv|hook)_[0-9A-Za-z]+|whsec_[0-9A-Za-z+/=]+|"
    r"(?<=://)[^/@\s:]*+:[^/@\s]++(?=@)|(?i:bearer)\s++\S++"
)


class JsonFormatter(logging.Formatter):
    """Formats each log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if has_request_context():
            entry["request_id"] = g.get("request_id")
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["exception"] = redact(self.formatException(record.exc_info))
        return orjson.dumps(entry, default=str).decode()


class LineFormatter(logging.Formatter):
    """Formats each log record as a line for people: time, level, and message."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone()
        level = "" if record.levelno == logging.INFO else f"{record.levelname} "
        milliseconds = getattr(record, "fields", {}).get("ms")
        took = "" if milliseconds is None else f"  {milliseconds:.0f} ms"
        line = f"{moment:%H:%M:%S}  {level}{redact(record.getMessage())}{took}"
        return f"{line}\n{redact(self.formatException(record.exc_info))}" if record.exc_info else line


def redact(text: str) -> str:
    """Return ``text`` with API keys, link tokens, bearer tokens, and passwords in URLs redacted."""
    return _SECRETS.sub("[secret]", text)


def configure(level: str) -> None:
    """Send all logs of this process to stderr: to a terminal as lines, and elsewhere as JSON. Can be repeated."""
    root = logging.getLogger()
    root.setLevel(level)
    if not any(isinstance(handler.formatter, JsonFormatter | LineFormatter) for handler in root.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LineFormatter() if sys.stderr.isatty() else JsonFormatter())
        root.addHandler(handler)
    for noisy in ("urllib3", "alembic"):
        logging.getLogger(noisy).setLevel("WARNING")


def register(app: Flask) -> None:
    """Log every request to ``app`` at INFO: method, path without query string, status, and duration."""
    app.before_request(_start)
    app.after_request(_log)


def _start() -> None:
    g.started = time.perf_counter()


def _log(response: Response) -> Response:
    if access.isEnabledFor(logging.INFO):
        caller = g.get("caller")
        access.info(
            "%s %s %s",
            request.method,
            request.path,
            response.status_code,
            extra={
                "fields": {
                    "status": response.status_code,
                    "ms": round((time.perf_counter() - g.get("started", time.perf_counter())) * 1000, 1),
                    "account": None if caller is None else caller.account.id,
                    "key": None if caller is None or caller.key is None else caller.key.id,
                }
            },
        )
    return response
