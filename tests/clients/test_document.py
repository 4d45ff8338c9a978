"""The API document is OpenAPI 3.1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


def test_it_is_valid(document: Path, needs_package: Callable[[str], None]) -> None:
    needs_package("openapi_spec_validator")
    from openapi_spec_validator import OpenAPIV31SpecValidator

    spec = json.loads(document.read_text())

    assert [str(error) for error in OpenAPIV31SpecValidator(spec).iter_errors()] == []
