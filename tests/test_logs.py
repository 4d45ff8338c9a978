"""Log lines contain no secrets, and logged text cannot forge additional lines."""

from __future__ import annotations

import logging
import re

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app import logs
from app.logs import JsonFormatter, LineFormatter, configure, redact

plain = re.compile(r"svc_(?:pub|srch|prv|inv|hook)_[0-9A-Za-z]+|(?<=://)[^/@\s]*:[^/@\s]+(?=@)|(?i:bearer)\s+\S+")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("secret whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD/A== of", "secret [secret] of"),
        ("redis://:hush@cache:6379/0 is away", "redis://[secret]@cache:6379/0 is away"),
        ("postgresql://me:hu:sh@db/search", "postgresql://[secret]@db/search"),
        ("Authorization: Bearer abc.def", "Authorization: [secret]"),
        ("key svc_prv_0123abc", "key [secret]"),
        ("GET /invitations/svc_inv_0123abc 200", "GET /invitations/[secret] 200"),
        ("POST /hooks/svc_hook_0123abc 200", "POST /hooks/[secret] 200"),
        ("http://127.0.0.1:8108/health", "http://127.0.0.1:8108/health"),
    ],
)
def test_secrets_are_redacted(line: str, shown: str) -> None:
    assert redact(line) == shown


@given(st.lists(st.sampled_from(["://", ":", "@", "/", " ", "a", "bearer", "Bearer ", "svc_pub_", "\n"])).map("".join))
@example("://" + ":" * 50)
@example("://::a@")
def test_redaction_without_backtracking_finds_the_same_secrets(line: str) -> None:
    assert redact(line) == plain.sub("[secret]", line)


@given(st.text())
@example('/nowhere\n{"level": "INFO", "message": "all is well"}\r\n\x1b[2J\u2028')
def test_untrusted_text_cannot_start_a_new_log_line(path: str) -> None:
    record = logging.LogRecord("app.access", logging.INFO, __file__, 1, "%s %s", ("GET", path), None)

    line = JsonFormatter().format(record)

    assert not re.search(r"[\x00-\x1f]", line)
    assert orjson.loads(line)["message"] == redact(f"GET {path}")


def test_terminal_gets_readable_lines_and_everything_else_json(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("app.access", logging.INFO, "", 0, "GET %s 200", ("/docs",), None)
    record.fields = {"status": 200, "ms": 12.3, "account": None, "key": None}
    warning = logging.LogRecord("app", logging.WARNING, "", 0, "key svc_prv_0123abc is in a page", (), None)

    assert re.fullmatch(r"\d\d:\d\d:\d\d  GET /docs 200  12 ms", LineFormatter().format(record))
    assert re.fullmatch(r"\d\d:\d\d:\d\d  WARNING key \[secret\] is in a page", LineFormatter().format(warning))

    for is_terminal, kind in ((True, LineFormatter), (False, JsonFormatter)):
        root = logging.Logger("root")
        monkeypatch.setattr(logging, "getLogger", lambda name=None, root=root: root)
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal)
        configure("INFO")
        configure("INFO")
        (handler,) = root.handlers
        assert type(handler.formatter) is kind


def test_configured_secrets_are_redacted_but_not_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_configured_secrets", [])
    monkeypatch.setattr(logging, "getLogger", lambda name=None: logging.Logger("root"))
    configure("INFO", ["sk-operators", "sk-operators-second", "none", "postgres"])

    line = redact("sk-operators-second, sk-operators, none, postgresql://search")
    assert line == "[secret], [secret], none, postgresql://search"
    configure("INFO")
    assert redact("sk-operators") == "sk-operators"
