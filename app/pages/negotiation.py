"""The choice of a page instead of JSON: the same address, the same checks, another view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from flask import Flask, Response, request

from app.web.auth import bearer_token
from app.web.policy import SAFE_METHODS, policies, policy_of, set_policy
from app.web.request_checks import FORM_TYPES

View = Callable[..., Any]

_NEVER_PAGES = ("/v1/", "/api/v1/", "/engine/", "/static/")


def prefers_html() -> bool:
    """Tell whether the client names HTML and ranks it at least as high as JSON; ``*/*`` alone is no browser's."""
    accepted = request.accept_mimetypes
    named = any(kind.partition(";")[0].strip() in ("text/html", "text/*") for kind, _ in accepted)
    html = float(accepted.quality("text/html"))
    return named and html > 0 and html >= float(accepted.quality("application/json"))


def sends_form() -> bool:
    """Tell whether a person's form was sent. A program with a bearer token sends JSON."""
    return request.mimetype in FORM_TYPES and bearer_token(request) is None


def wants_page() -> bool:
    """Tell whether this request is a person's: it asks for HTML, or it writes with a form."""
    return prefers_html() if request.method in SAFE_METHODS else sends_form()


def add_page(app: Flask, endpoint: str, page: View) -> None:
    """Let ``page`` answer people at an address whose JSON view exists. It gets the path's parameters."""
    answer = app.view_functions[endpoint]

    @wraps(answer)
    def either(**path: Any) -> Any:
        return page(**path) if wants_page() else answer(**path)

    app.view_functions[endpoint] = either
    set_policy(app, endpoint, replace(policies(app)[endpoint], has_page=True))


def is_page_request() -> bool:
    """Tell whether an error of this request is to be shown as a page."""
    if request.endpoint is not None:
        return policy_of(request.endpoint).has_page and wants_page()
    return not request.path.startswith(_NEVER_PAGES) and wants_page()


def note_choice(response: Response) -> Response:
    """Tell caches that the answer depends on who asks and for what."""
    if policy_of(request.endpoint).has_page:
        response.vary.update(("Accept", "Cookie"))
    return response
