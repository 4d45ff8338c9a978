"""CSS selectors of a source."""

from __future__ import annotations

from collections.abc import Mapping

from turbohtml import parse

from app.errors import field_error


def check_selectors(selectors: Mapping[str, str]) -> None:
    """Refuse selectors that the reader of pages cannot use.

    Raises:
        ApiError: 400.
    """
    nothing = parse("", positions=False)
    for name, selector in selectors.items():
        try:
            nothing.select(selector)
        except ValueError as error:
            raise field_error(f"selectors.{name}", "invalid", "is not a CSS selector") from error
