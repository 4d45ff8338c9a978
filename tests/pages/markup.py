"""Parses pages strictly, as a browser without JavaScript; HTML that is not well-formed fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
SHAPES = frozenset({"path", "rect", "circle", "polyline"})
"""SVG elements that may be self-closing."""


@dataclass
class Element:
    """An element with its text and descendants."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The element's text with normalized whitespace."""
        return " ".join("".join(self._strings()).split())

    @property
    def raw_text(self) -> str:
        """The element's text, unchanged."""
        return "".join(self._strings())

    def _strings(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child._strings()

    def walk(self) -> Iterator[Element]:
        """Yield the element and all its descendants, in document order."""
        elements = [self]
        while elements:
            element = elements.pop()
            yield element
            elements.extend(child for child in reversed(element.children) if isinstance(child, Element))

    def all(self, tag: str, **attributes: str | None) -> list[Element]:
        """Return descendants with this tag and attributes. ``class_`` is ``class``; ``None`` requires absence."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        wanted = {("csrf_token" if name == "csrf-token" else name): value for name, value in wanted.items()}
        return [
            found
            for found in self.walk()
            if found.tag == tag and all(found.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str, **attributes: str | None) -> Element:
        """Return the only matching descendant."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of <{tag} {attributes}> in {self.text[:300]}"
        return found[0]

    def first(self, tag: str, says: str) -> Element:
        """Return the first descendant with this tag and text."""
        for found in self.all(tag):
            if found.text == says:
                return found
        raise AssertionError(f"no <{tag}> says {says!r}: {[found.text for found in self.all(tag)]}")

    def has(self, condition: Callable[[Element], bool]) -> bool:
        return any(condition(found) for found in self.walk())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHAPES, f"<{tag}/> is not self-closing in HTML"
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}> at line {self.getpos()[0]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_html(text: str) -> Element:
    """Parse a document, which must be well-formed: properly nested elements, no duplicate attributes."""
    reader = _Reader()
    assert text.lstrip().lower().startswith("<!doctype html>")
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root], f"never closed: {[element.tag for element in reader.open[1:]]}"
    return reader.root
