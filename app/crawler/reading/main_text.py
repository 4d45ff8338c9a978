"""The main text of a page: without navigation, banners, footers, and other frames around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from turbohtml import Document, Element, Node, Text

from app.crawler.reading.page_frames import CHROME, NAMED, roles_of_names
from app.text_formats import UNREAD, node_to_text

KEPT_WHOLE = frozenset(("code", "pre", "math", "textarea"))
TITLE = "h1, .title, .headertitle"

MAX_LIST_SHARE = 0.4
"""Share of a page's text that a list of links may have and still be taken for one that is beside the text."""
MIN_REST = 300
"""Characters that are no links and must remain of a page when what is named as noise is taken off."""
MIN_LINKED_SHARE = 0.5
"""Share of an element's text that is links, from which on it is a list of links if its name says so."""
NEARLY_ALL = 0.8
"""The same without a name."""
MIN_LIST_CHARACTERS = 100
"""Characters of links that a list without a name has at least; shorter ones are part of a text."""
MAX_MARK_CHARACTERS = 20
MAX_NAMES_CHARACTERS = 1_000
MIN_SHARE_ALONE = 0.1
MIN_SHARE_OF_SEVERAL = 0.5
"""Share of a page's text without links that the element must have that the page marks as its main one: the only such
element, or the largest of several."""


@dataclass(slots=True)
class Size:
    """Characters of an element's text, and how many of them are links."""

    text: int = 0
    linked: int = 0

    @property
    def unlinked(self) -> int:
        """Characters that are no links."""
        return self.text - self.linked


def main_text(document: Document) -> str:
    """The main text of a page, which is changed by it. Empty if nothing remains."""
    document.remove(CHROME)
    sizes = _sizes(document)
    main = _main_element(document, sizes)
    for element in list(_noise(main, sizes)):
        element.decompose()
    return node_to_text(main)


def _sizes(document: Document) -> dict[Node, Size]:
    """The sizes of all elements, in one walk."""
    sizes: dict[Node, Size] = {}
    whole = Size()
    open_elements: list[tuple[Iterator[Node], Size, bool]] = [(iter(document.children), whole, False)]
    while open_elements:
        children, size, in_link = open_elements[-1]
        for child in children:
            if isinstance(child, Text):
                length = len(child.data.strip())
                size.text += length
                if in_link:
                    size.linked += length
            elif isinstance(child, Element) and (tag := child.tag) not in UNREAD:
                sizes[child] = own = Size()
                open_elements.append(
                    (iter(child.children), own, in_link or (tag == "a" and child.attr("href") is not None))
                )
                break
        else:
            open_elements.pop()
            if open_elements:
                parent = open_elements[-1][1]
                parent.text += size.text
                parent.linked += size.linked
    sizes[document] = whole
    return sizes


def _main_element(document: Document, sizes: dict[Node, Size]) -> Node:
    """The element that the page marks as its main one, or all of the page."""
    main: Node = document
    for selector in ("main, [role=main]", "article", "[itemprop~=articleBody]"):
        marked = [element for element in main.select(selector) if element in sizes]
        largest = max(marked, key=lambda element: sizes[element].unlinked, default=None)
        share = MIN_SHARE_ALONE if len(marked) == 1 else MIN_SHARE_OF_SEVERAL
        if largest is not None and sizes[largest].unlinked >= max(1, share * sizes[main].unlinked):
            main = largest
    return main


def _noise(main: Node, sizes: dict[Node, Size]) -> Iterator[Element]:
    """Outermost elements below the main one that are no main text, by their names and by how much of them is links."""
    whole = sizes[main]
    rest = whole.unlinked
    elements: list[Iterator[Node]] = [iter(main.children)]
    while elements:
        for child in elements[-1]:
            if not isinstance(child, Element) or child not in sizes or child.tag in KEPT_WHOLE:
                continue
            size = sizes[child]
            if _is_mark(child) or (
                child.tag in NAMED
                and (_is_named_noise(child, rest - size.unlinked) or _is_link_list(child, size, whole))
            ):
                rest -= size.unlinked
                yield child
            else:
                elements.append(iter(child.children))
                break
        else:
            elements.pop()


def _is_mark(element: Element) -> bool:
    """Whether an element is the sign behind a heading that links to it."""
    return (
        element.tag == "a"
        and (element.attr("href") or "").startswith("#")
        and not any(map(str.isalnum, element.text[:MAX_MARK_CHARACTERS]))
    )


def _is_named_noise(element: Element, rest: int) -> bool:
    return rest >= MIN_REST and _named(element)[0] and element.select_one("h1") is None


def _is_link_list(element: Element, size: Size, whole: Size) -> bool:
    """Whether an element is links beside the text: by its name if half of it is links, in a text if nearly all is."""
    if size.text > MAX_LIST_SHARE * whole.text or size.linked < MIN_LINKED_SHARE * size.text:
        return False
    named = element.tag in ("aside", "footer", "header") or _named(element)[1]
    beside_text = (
        whole.unlinked >= whole.linked
        and size.linked >= max(MIN_LIST_CHARACTERS, NEARLY_ALL * size.text)
        and element.tag in ("div", "section", "table", "ul")
    )
    return (named or beside_text) and element.select_one(TITLE) is None


def _named(element: Element) -> tuple[bool, bool]:
    names = (
        f"{(element.attr('class') or '')[:MAX_NAMES_CHARACTERS]} {(element.attr('id') or '')[:MAX_NAMES_CHARACTERS]}"
    )
    return roles_of_names(names) if names != " " else (False, False)
