"""Examples of errors."""

from __future__ import annotations

from app.apidoc.examples.errors import ERRORS
from app.errors import ErrorCode


def test_every_error_code_has_an_example() -> None:
    assert sorted(ERRORS) == sorted(ErrorCode), "add what is missing to _ERRORS in app/apidoc/examples/errors.py"
