"""Pages for people."""

from __future__ import annotations

from flask import Flask
from flask_smorest import Api

from app.answers import json_answer
from app.openapi import document


def register(app: Flask, api: Api) -> None:
    """Register the pages."""
    app.add_url_rule("/openapi.json", "openapi", _show_document)


def _show_document():  # type: ignore[no-untyped-def]
    return json_answer(document())
