"""What stands for a number in a path."""

from __future__ import annotations

from flask import Flask
from werkzeug.routing import IntegerConverter


class PathInteger(IntegerConverter):
    """An integer of ASCII digits that has a chance to fit in 64 bits; anything else is an unknown address."""

    regex = "[0-9]{1,19}"


def register(app: Flask) -> None:
    """Use it for ``<int:…>``; must come before any route."""
    app.url_map.converters["int"] = PathInteger
