"""Directives of a page or its server to robots: ``noindex`` and ``nofollow``, for all or for ours by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from turbohtml import Document

from app.crawl.fetch.values import PRODUCT_TOKEN

OURS = PRODUCT_TOKEN.lower()
VALUED = {"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"}
"""Directives with a value behind a colon, where otherwise the name of a robot is before one."""


@dataclass(frozen=True, slots=True)
class Directives:
    """Requests to robots.

    Attributes:
        noindex: The page is not to be indexed.
        nofollow: None of its links is to be followed.
    """

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: Directives) -> Directives:
        return Directives(self.noindex or other.noindex, self.nofollow or other.nofollow)


def header_directives(headers: Mapping[str, str]) -> Directives:
    """The directives of the headers ``X-Robots-Tag``.

    ``robot: directive, directive`` is for the robot of that name; directives before any name are for all.
    """
    robot = "robots"
    ours: list[str] = []
    for part in headers.get("x-robots-tag", "").lower().replace("\n", ",").split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in VALUED:
            robot, part = name.strip(), rest
        if robot in ("robots", "*", OURS):
            ours.append(part)
    return _directives(ours)


def meta_directives(document: Document) -> Directives:
    """The directives of ``<meta name="robots">`` and of the one with our name."""
    found = Directives()
    for meta in document.iter_elements("meta"):
        if (meta.attr("name") or "").strip().lower() in ("robots", OURS):
            found |= _directives((meta.attr("content") or "").lower().split(","))
    return found


def _directives(names: Iterable[str]) -> Directives:
    asked = {name.strip() for name in names}
    return Directives(bool(asked & {"noindex", "none"}), bool(asked & {"nofollow", "none"}))
