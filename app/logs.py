"""Structured logs: one JSON object per line, with the request ID and without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson
from flask import g, has_request_context

_SECRETS = re.compile(
    r"svc_(?:pub|srch|prv|inv|hook)_[0-9A-Za-z]+|whsec_[0-9A-Za-z+/=]+|"
    r"(?<=://)[^/@\s:]*+:[^/@\s]++(?=@)|(?i:bearer)\s++\S++"
)
MIN_SECRET_LENGTH = 12
"""Length below which a configured secret is not redacted: it may be a word, such as ``none`` or ``postgres``.

A log without a word says what the word is.
"""
_configured_secrets: list[str] = []


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
            entry["request_id"] = getattr(g.get("admission"), "request_id", None)
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
    """Return ``text`` with API keys, link tokens, bearer tokens, passwords in URLs, and configured secrets redacted."""
    return _SECRETS.sub("[secret]", redact_configured(text))


def redact_configured(text: str) -> str:
    """Return ``text`` with only the configured secrets redacted: keys and passwords for other servers, and tokens."""
    for secret in _configured_secrets:
        text = text.replace(secret, "[secret]")
    return text


def configure(level: str, secrets: Iterable[str] = ()) -> None:
    """Send all logs of this process to stderr: to a terminal as lines, and elsewhere as JSON. Can be repeated.

    Args:
        secrets: Configured secrets. Other servers may send back what they get, in an error for example.
    """
    _configured_secrets[:] = sorted((each for each in secrets if len(each) >= MIN_SECRET_LENGTH), key=len, reverse=True)
    root = logging.getLogger()
    root.setLevel(level)
    if not any(isinstance(handler.formatter, JsonFormatter | LineFormatter) for handler in root.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LineFormatter() if sys.stderr.isatty() else JsonFormatter())
        root.addHandler(handler)
    for noisy in ("urllib3", "alembic"):
        logging.getLogger(noisy).setLevel("WARNING")
    # Its warnings contain whole URLs, of which the query may be secret.
    logging.getLogger("urllib3.connection").setLevel("ERROR")
