"""Sections of pages: headings with an address of their own, and where they stand in the text of the page.

Headings are marked in the tree before it becomes text, with characters that no text has (noncharacters of Unicode), and
found by their marks in the text, whatever became of it in between.
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
_SECTIONING = ("section", "div", "article")
_LOOKED_AT = 5 * MAX_SECTIONS
"""Headings of a page that are looked at, and names of links; most pages with so many have an address for few."""
_NEAR = 5
"""Elements around a link among which a heading is looked for."""
_BEGIN, _TITLE, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKED = re.compile(f"{_BEGIN}([1-6])([^{_BEGIN}{_TITLE}{_END}]+){_TITLE}\\s*([^{_BEGIN}{_TITLE}{_END}]*?)\\s*{_END}")
_REST = re.compile(f"{_BEGIN}[1-6]?[^{_BEGIN}{_TITLE}{_END}]*(?:{_TITLE}|$)|[{_BEGIN}{_TITLE}{_END}]")
"""What is left of marks: of headings in headings, and where a text was cut; what a page has of such characters."""
_SIGN = re.compile(r"\s*[¶§🔗]+$|\s+#+$")
"""The sign behind a heading that links to it."""
_NO_SLUG = re.compile(r"[^\w\- ]")


def mark_headings(node: Node, *, slugs: bool = False) -> None:
    """Mark the headings of a part of a page that have an address, for :func:`take_sections`.

    The address is the heading's ``id``; else that of an ``a`` in it or right before it; else that of the ``section``,
    ``div`` or ``article`` whose first heading it is.

    Args:
        slugs: Whether other headings have the address that GitHub gives those of Markdown.
    """
    seen: set[Node] = set()
    named = _named_inside(node)
    taken: set[str] = set()
    slugged: dict[str, int] = {}
    for heading in list(islice(node.iter_elements(_HEADINGS, include_self=True), _LOOKED_AT)):
        anchor = next((each for each in list(_anchors(heading, named, seen)) if ANCHOR.fullmatch(each)), None)
        if slugs:
            slug = _slug(heading.text, slugged)
            anchor = anchor or (slug if ANCHOR.fullmatch(slug) else None)
        if anchor is not None and anchor not in taken and len(taken) < MAX_SECTIONS:
            taken.add(anchor)
            heading.insert(0, Text(f"{_BEGIN}{heading.tag[1]}{anchor}{_TITLE}"))
            heading.append(Text(_END))


def keep_anchors(node: Node) -> None:
    """Give headings without an ``id`` the name of the first ``a`` inside, which may be taken out."""
    for heading, name in _named_inside(node).items():
        if isinstance(heading, Element) and not heading.attr("id"):
            heading.attrs["id"] = name


def take_sections(marked: str) -> tuple[str, tuple[Section, ...]]:
    """A text without marks and without signs behind headings, and the sections that it had marks of, but for those
    without a title.
    """
    sections: list[Section] = []
    parts: list[str] = []
    at = length = 0
    for match in _MARKED.finditer(marked):
        parts.append(_REST.sub("", marked[at : match.start()]))
        length += len(parts[-1])
        level, anchor = match.group(1, 2)
        heading = _SIGN.sub("", match[3])
        title = " ".join(heading.split())[:MAX_SECTION_TITLE]
        # Marks may be the page's own.
        is_valid = title and ANCHOR.fullmatch(anchor) and len(sections) < MAX_SECTIONS
        if is_valid and all(anchor != section.anchor for section in sections):
            sections.append(Section(anchor, title, int(level), length))
        parts.append(heading)
        length += len(heading)
        at = match.end()
    parts.append(_REST.sub("", marked[at:]))
    return "".join(parts), tuple(sections)


def as_field(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Sections as a document has them."""
    return [section._asdict() for section in sections]


def _named_inside(node: Node) -> dict[Node, str]:
    """Headings, and the name of the first ``a`` inside that has one."""
    named: dict[Node, str] = {}
    for link in islice(node.select("a[id], a[name]"), _LOOKED_AT):
        name = link.attr("id") or link.attr("name") or ""
        around = (each for each in islice(link.ancestors, _NEAR) if isinstance(each, Element) and each.tag in _HEADINGS)
        heading = next(around, None) if ANCHOR.fullmatch(name) else None
        if heading is not None:
            named.setdefault(heading, name)
    return named


def _anchors(heading: Element, named: Mapping[Node, str], seen: set[Node]) -> Iterator[str]:
    """Anchors for a heading, the best first.

    Args:
        named: Headings with an ``a`` inside that has a name.
        seen: Elements that have an earlier heading; those around this one are added.
    """
    yield heading.attr("id") or ""
    yield named.get(heading, "")
    before = heading.previous_sibling
    while isinstance(before, Text) and not before.data.strip():
        before = before.previous_sibling
    if isinstance(before, Element) and before.tag == "a" and not before.text.strip():
        yield before.attr("id") or before.attr("name") or ""
    nearest = ""
    for element in heading.ancestors:
        if element in seen:
            break
        seen.add(element)
        if not nearest and isinstance(element, Element) and element.tag in _SECTIONING:
            nearest = element.attr("id") or ""
    yield nearest


def _slug(title: str, slugged: dict[str, int]) -> str:
    """The address that GitHub gives a heading: in small letters, without punctuation, with ``-`` for blanks."""
    slug = _NO_SLUG.sub("", title.strip().lower()).replace(" ", "-")
    count = slugged.get(slug, 0)
    slugged[slug] = count + 1
    return f"{slug}-{count}" if count else slug
