"""The route that a request for an unknown API path probably meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from flask import Request, current_app

from app.web.policy import OPERATOR_AREA

_PREFIX = re.compile(r"/(?:api/)?(?:v1/)?")
_API_PATH = re.compile(r"/(?:api|v1)/")
_PARAMETER = re.compile(r"<(?:[^:>]*:)?([^>]+)>")
_MAX_LENGTH = 200
"""Maximum length of a compared path. The time of comparing two paths grows with the product of their lengths."""


def find_nearest_route(req: Request) -> str | None:
    """Return the route closest to an unknown path below ``/v1`` or ``/api``, with its parameters in braces.

    The prefixes ``/v1``, ``/api``, and ``/api/v1`` are easily confused, so the rest of the path decides.
    """
    if not _API_PATH.match(req.path) or len(req.path) > _MAX_LENGTH:
        return None
    segments = _segments(req.path)
    routes: dict[str, str] = {}
    for rule in current_app.url_map.iter_rules():
        if rule.rule.startswith(("/api/operator/", OPERATOR_AREA)):
            continue  # Customers don't mean these routes.
        route = _PARAMETER.sub(r"{\1}", rule.rule)
        routes.setdefault(_filled_in(_segments(route), segments), route)
    close = get_close_matches("/".join(segments), routes, n=1, cutoff=0.75)
    return routes[close[0]] if close else None


def _segments(path: str) -> list[str]:
    return _PREFIX.sub("", path, count=1).strip("/").split("/")


def _filled_in(route: Sequence[str], segments: Sequence[str]) -> str:
    """``["sites", "{site_id}"], ["site", "5"] -> "sites/5"``"""
    if len(route) == len(segments):
        route = [value if name.startswith("{") else name for name, value in zip(route, segments, strict=True)]
    return "/".join(route)
