"""No line of the log holds a secret."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.logs import redact

plain = re.compile(r"svc_(?:pub|srch|prv|inv|hook)_[0-9A-Za-z]+|(?<=://)[^/@\s]*:[^/@\s]+(?=@)|(?i:bearer)\s+\S+")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("redis://:hush@cache:6379/0 is away", "redis://[secret]@cache:6379/0 is away"),
        ("postgresql://me:hu:sh@db/search", "postgresql://[secret]@db/search"),
        ("Authorization: Bearer abc.def", "Authorization: [secret]"),
        ("key svc_prv_0123abc", "key [secret]"),
        ("GET /invitations/svc_inv_0123abc 200", "GET /invitations/[secret] 200"),
        ("POST /hooks/svc_hook_0123abc 200", "POST /hooks/[secret] 200"),
        ("http://127.0.0.1:8108/health", "http://127.0.0.1:8108/health"),
    ],
)
def test_secrets_are_left_out(line: str, shown: str) -> None:
    assert redact(line) == shown


@given(st.lists(st.sampled_from(["://", ":", "@", "/", " ", "a", "bearer", "Bearer ", "svc_pub_", "\n"])).map("".join))
@example("://" + ":" * 50)
@example("://::a@")
def test_giving_nothing_back_finds_the_same_secrets(line: str) -> None:
    assert redact(line) == plain.sub("[secret]", line)
