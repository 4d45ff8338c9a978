"""Sections of pages: headings with a URL of their own, and their positions in the page's text.

Headings are marked in the tree with Unicode noncharacters, which do not occur in text. The marks identify the headings
after the conversion to text, however the conversion changes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from turbohtml import Element, Node, Text

from backends.sections import Section
from schemas.validation.documents import ANCHOR, MAX_SECTION_TITLE, MAX_SECTIONS

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_ARIA_HEADINGS = "[role=heading]:not(h1, h2, h3, h4, h5, h6)"
_ARIA_LEVEL = 2
"""The level of headings that declare none."""
_SECTIONING = ("section", "div", "article")
_MAX_CANDIDATES = 5 * MAX_SECTIONS
"""Maximum number of headings and named links to examine per page. On most pages with so many, few have anchors."""
_MAX_ANCESTORS = 5
"""Maximum number of a link's ancestors to search for a heading."""
_BEGIN, _TITLE, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKED = re.compile(f"{_BEGIN}([1-6])([^{_BEGIN}{_TITLE}{_END}]+){_TITLE}([^{_BEGIN}{_TITLE}{_END}]*){_END}")
_REST = re.compile(f"{_BEGIN}[1-6]?[^{_BEGIN}{_TITLE}{_END}]*(?:{_TITLE}|$)|[{_BEGIN}{_TITLE}{_END}]")
"""Matches incomplete marks, from nested or truncated headings, and mark characters in the page itself."""
_PERMALINK_SIGNS = "¶§🔗"
_NO_SLUG = re.compile(r"[^\w\- ]")


def mark_headings(node: Node, *, slugs: bool = False) -> None:
    """Mark the headings that have an anchor, for :func:`take_sections`. ARIA headings become ``h1`` to ``h6`` elements.

    The anchor is the ``id`` of the heading; otherwise, the anchor of an ``a`` in it or directly before it; otherwise,
    the ``id`` of the ``section``, ``div``, or ``article`` whose first heading it is.

    Args:
        slugs: Whether other headings get the anchors that GitHub generates for Markdown.
    """
    for element in node.select(_ARIA_HEADINGS)[:_MAX_CANDIDATES]:
        level = element.attr("aria-level") or ""
        element.tag = f"h{level if level in map(str, range(1, 7)) else _ARIA_LEVEL}"
    containers: set[Node] = set()
    inner_names = _inner_names(node)
    anchors: set[str] = set()
    slug_counts: dict[str, int] = {}
    for heading in list(islice(node.iter_elements(_HEADINGS, include_self=True), _MAX_CANDIDATES)):
        anchor = next(
            (anchor for anchor in list(_anchors(heading, inner_names, containers)) if ANCHOR.fullmatch(anchor)), None
        )
        if slugs:
            slug = _slug(heading.text, slug_counts)
            anchor = anchor or (slug if ANCHOR.fullmatch(slug) else None)
        if anchor is not None and anchor not in anchors and len(anchors) < MAX_SECTIONS:
            anchors.add(anchor)
            heading.insert(0, Text(f"{_BEGIN}{heading.tag[1]}{anchor}{_TITLE}"))
            heading.append(Text(_END))


def keep_anchors(node: Node) -> None:
    """Set the ``id`` of headings without one to the name of the first ``a`` in them, which may be removed later."""
    for heading, name in _inner_names(node).items():
        if isinstance(heading, Element) and not heading.attr("id"):
            heading.attrs["id"] = name


def take_sections(marked: str) -> tuple[str, tuple[Section, ...]]:
    """Remove marks and permalink signs from a text, and return it with the marked sections that have a title."""
    sections: list[Section] = []
    parts: list[str] = []
    offset = length = 0
    for match in _MARKED.finditer(marked):
        parts.append(_REST.sub("", marked[offset : match.start()]))
        length += len(parts[-1])
        level, anchor = match.group(1, 2)
        heading = without_permalink_sign(match[3].strip())
        title = " ".join(heading.split())[:MAX_SECTION_TITLE]
        # The page itself may contain such characters.
        is_valid = title and ANCHOR.fullmatch(anchor) and len(sections) < MAX_SECTIONS
        if is_valid and all(anchor != section.anchor for section in sections):
            sections.append(Section(anchor, title, int(level), length))
        parts.append(heading)
        length += len(heading)
        offset = match.end()
    parts.append(_REST.sub("", marked[offset:]))
    return "".join(parts), tuple(sections)


def without_permalink_sign(heading: str) -> str:
    """Remove the permalink signs (``¶``, ``§``, ``🔗``, `` #``) at the end of a stripped heading."""
    # Not a regular expression, which would take quadratic time for a long run of signs or spaces within the heading.
    text = heading.rstrip(_PERMALINK_SIGNS)
    if text == heading:
        text = heading.rstrip("#")
        if text == text.rstrip():  # A number sign directly after a word belongs to it: C#.
            return heading
    return text.rstrip()


def as_field(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Convert sections to the value of a document's ``sections`` field."""
    return [section._asdict() for section in sections]


def _inner_names(node: Node) -> dict[Node, str]:
    """Map each heading to the name of its first named ``a``."""
    names: dict[Node, str] = {}
    for link in islice(node.select("a[id], a[name]"), _MAX_CANDIDATES):
        name = link.attr("id") or link.attr("name") or ""
        around = (
            ancestor
            for ancestor in islice(link.ancestors, _MAX_ANCESTORS)
            if isinstance(ancestor, Element) and ancestor.tag in _HEADINGS
        )
        heading = next(around, None) if ANCHOR.fullmatch(name) else None
        if heading is not None:
            names.setdefault(heading, name)
    return names


def _anchors(heading: Element, inner_names: Mapping[Node, str], containers: set[Node]) -> Iterator[str]:
    """Iterate over possible anchors of a heading, the preferred one first.

    Args:
        inner_names: Names of links in headings.
        containers: Elements with an earlier heading; the ancestors of this one are added.
    """
    yield heading.attr("id") or ""
    yield inner_names.get(heading, "")
    before = heading.previous_sibling
    while isinstance(before, Text) and not before.data.strip():
        before = before.previous_sibling
    if isinstance(before, Element) and before.tag == "a" and not before.text.strip():
        yield before.attr("id") or before.attr("name") or ""
    nearest = ""
    for element in heading.ancestors:
        if element in containers:
            break
        containers.add(element)
        if not nearest and isinstance(element, Element) and element.tag in _SECTIONING:
            nearest = element.attr("id") or ""
    yield nearest


def _slug(title: str, counts: dict[str, int]) -> str:
    """``"What's new?" -> "whats-new"``, and ``"whats-new-1"`` the second time, as on GitHub."""
    slug = _NO_SLUG.sub("", title.strip().lower()).replace(" ", "-")
    count = counts.get(slug, 0)
    counts[slug] = count + 1
    return f"{slug}-{count}" if count else slug
