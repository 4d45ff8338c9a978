"""The home page and the OpenAPI document."""

from __future__ import annotations

from flask import Response

from app.apidoc.openapi import document, document_at
from app.pages.layout import render
from app.pages.negotiation import wants_page
from app.runtime import runtime
from app.web.hosts import base_url
from app.web.responses import json_answer


def show_home() -> str | Response:
    """Describe this service, with links."""
    base = base_url()
    if not wants_page():
        info = document()["info"]
        return json_answer(
            {
                "name": info["title"],
                "version": info["version"],
                "documentation": f"{base}/docs",
                "openapi": f"{base}/openapi.json",
                "dashboard": f"{base}/dashboard",
            }
        )
    return render("home.html", base_url=base, is_open=runtime().settings.registration)


def show_document() -> Response:
    """Serve the OpenAPI document."""
    return json_answer(document_at(base_url()))
