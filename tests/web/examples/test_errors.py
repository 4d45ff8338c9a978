"""Examples of errors."""

from __future__ import annotations

from app.errors import ErrorCode
from app.web.examples.errors import ERRORS


def test_every_error_code_has_an_example() -> None:
    assert sorted(ERRORS) == sorted(ErrorCode), "add what is missing to _ERRORS in app/web/examples/errors.py"
