"""The main text of a page: without navigation, banners, footers, and other frames around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from turbohtml import Document, Element, Node, Text

from app.crawl.read.html.page_frames import CHROME, EDGES, NAMED, Roles, roles_of_names
from app.texts.formats import UNREAD, node_to_text
from app.texts.sections import mark_headings

KEPT_WHOLE = frozenset(("code", "pre", "math", "textarea"))
HEADER_TITLE = "h2.title, .headertitle"
"""Selects a page's title in the header of a manual that has no ``h1`` (javadoc, Doxygen)."""
QUOTES = frozenset(("blockquote", "figure"))
"""Elements whose footer tells where they are from."""
PROSE = frozenset(("blockquote", "p"))
"""Elements beside which a note stands, rather than a part of the page's frame."""
MARKED = "main, [role=main]"
SECTIONS = frozenset(("article", "aside", "main", "section"))
"""Elements whose headers are theirs, rather than the page's."""
TITLE = "h1, .title, .headertitle"

MAX_FRAME_SHARE = 0.5
"""Share of what there is that a part of the frame may have, on a page that does not mark its main part."""
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
MIN_LISTED, MIN_LISTED_SHARE = 20, 0.8
"""Links, and their share of the text, from which on a page does nothing but list."""
MAX_BESIDE_SEARCH = 400
"""Characters beside its field that a page for searching has at most."""
LINK = "a[href]"
SEARCH_FIELD = "input[type=search], input[name=q], input[name=query], input[name=s]"
MAX_MARK_CHARACTERS = 20
MAX_NAMES_CHARACTERS = 1_000
MIN_SHARE_ALONE = 0.1
MIN_SHARE_OF_SEVERAL = 0.5
"""Share of a page's text without links that the element must have that the page marks as its main one: the only such
element, or the largest of several."""


@dataclass(slots=True)
class Size:
    """The content of an element: characters of text, and elements that tell what the text is.

    Attributes:
        text, linked: Characters of all of it, and of its links.
        in_section: Whether it stands in a part of the page that may have a header of its own.
        headings: How many ``h1`` are in it.
        has_prose: Whether a paragraph is right below it, so that a note may stand in its text; not of all of the page.
        is_body: Whether it is all of the page.
    """

    text: int = 0
    linked: int = 0
    in_section: bool = False
    headings: int = 0
    has_prose: bool = False
    is_body: bool = False

    @property
    def unlinked(self) -> int:
        """Characters that are no links."""
        return self.text - self.linked


def main_text(document: Document) -> str:
    """The text of :func:`main_part`."""
    return node_to_text(main_part(document))


def only_lists(main: Node) -> bool:
    """Tell whether a page only leads to others, by what :func:`main_part` gives: an index, a tag cloud, a search."""
    size = _sizes(main)[main]
    if len(main.select(LINK)) >= MIN_LISTED and size.linked >= MIN_LISTED_SHARE * size.text:
        return True
    return size.unlinked <= MAX_BESIDE_SEARCH and main.select_one(SEARCH_FIELD) is not None


def main_part(document: Document) -> Node:
    """The part of a page with its main text, without what is no text, its headings marked; the page is changed by it.

    Empty if nothing remains.
    """
    document.remove(CHROME)
    sizes = _sizes(document)
    is_marked = document.select_one(MARKED) is not None
    for edge in document.select(EDGES):
        if edge in sizes and (is_marked or sizes[edge].text <= MAX_FRAME_SHARE * sizes[document].text):
            edge.decompose()
            sizes[document].text -= sizes[edge].text
            sizes[document].linked -= sizes[edge].linked
    main = _main_element(document, sizes)
    for element in list(_noise(main, sizes, is_marked=is_marked and main is document)):
        element.decompose()
    mark_headings(main)
    return main


def _sizes(document: Node) -> dict[Node, Size]:
    """The sizes of a page, or a part of it, and of all elements in it, in one walk."""
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
                sizes[child] = own = Size(in_section=size.in_section or tag in SECTIONS)
                size.headings += tag == "h1"
                size.has_prose = size.has_prose or (tag in PROSE and not size.is_body)
                own.is_body = tag == "body"
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
                parent.headings += size.headings
    sizes[document] = whole
    return sizes


def _main_element(document: Document, sizes: dict[Node, Size]) -> Node:
    """The element that the page marks as its main one, or all of the page."""
    main: Node = document
    for selector in (MARKED, "article", "[itemprop~=articleBody]"):
        marked = [element for element in main.select(selector) if element in sizes]
        largest = max(marked, key=lambda element: sizes[element].unlinked, default=None)
        share = MIN_SHARE_ALONE if len(marked) == 1 else MIN_SHARE_OF_SEVERAL
        if largest is not None and sizes[largest].unlinked >= max(1, share * sizes[main].unlinked):
            main = largest
    return main


def _noise(main: Node, sizes: dict[Node, Size], *, is_marked: bool) -> Iterator[Element]:
    """Outermost elements below the main one that are no main text, by their names and by how much of them is links.

    Args:
        is_marked: Whether another element is marked as the main one, so that these are none whatever they hold.
    """
    whole = sizes[main]
    rest = whole.unlinked
    elements: list[tuple[Node, Iterator[Node]]] = [(main, iter(main.children))]
    while elements:
        above, children = elements[-1]
        for child in children:
            if not isinstance(child, Element) or child not in sizes or child.tag in KEPT_WHOLE:
                continue
            size = sizes[child]
            if _is_mark(child) or (
                child.tag in NAMED
                and _is_around_text(child, size, sizes[above], whole, rest - size.unlinked, is_marked=is_marked)
            ):
                rest -= size.unlinked
                yield child
            else:
                elements.append((child, iter(child.children)))
                break
        else:
            elements.pop()


def _is_around_text(element: Element, size: Size, above: Size, whole: Size, rest: int, *, is_marked: bool) -> bool:
    """Tell whether an element is no main text, but beside it.

    Args:
        size, above, whole: Of the element, of what it is in, and of the main element.
        rest: Characters that are no links and remain without it.
        is_marked: Whether another element is marked as the main one.
    """
    roles = _named(element)
    most_is_left = is_marked or size.unlinked <= MAX_FRAME_SHARE * (rest + size.unlinked)
    has_title = size.headings > 0 and size.headings == whole.headings
    return (
        (most_is_left and not has_title and _is_frame(element, size, above, roles))
        or (roles.noise and rest >= MIN_REST and not size.headings)
        or _is_link_list(element, size, whole, roles)
    )


def _is_frame(element: Element, size: Size, above: Size, roles: Roles) -> bool:
    """Tell whether an element says by its tag, its role, or its names that it is a part of the page's frame."""
    if element.tag == "footer":
        parent = element.parent
        return not (isinstance(parent, Element) and parent.tag in QUOTES)
    said = roles.frame or (element.tag == "header" and not size.in_section)
    beside = roles.sidebar or element.attr("role") == "complementary"
    return (said and element.select_one(HEADER_TITLE) is None) or (beside and not above.has_prose)


def _is_mark(element: Element) -> bool:
    """Tell whether an element is the sign behind a heading that links to it, or a way around the page's frame."""
    return (
        element.tag == "a"
        and (element.attr("href") or "").startswith("#")
        and (not any(map(str.isalnum, element.text[:MAX_MARK_CHARACTERS])) or _named(element).noise)
    )


def _is_link_list(element: Element, size: Size, whole: Size, roles: Roles) -> bool:
    """Tell whether an element is links beside the text: by name if half of it is links, in a text if nearly all is."""
    if size.text > MAX_LIST_SHARE * whole.text or size.linked < MIN_LINKED_SHARE * size.text:
        return False
    named = element.tag in ("aside", "footer", "header") or roles.links
    beside_text = (
        whole.unlinked >= whole.linked
        and size.linked >= max(MIN_LIST_CHARACTERS, NEARLY_ALL * size.text)
        and element.tag in ("div", "section", "table", "ul")
    )
    return (named or beside_text) and element.select_one(TITLE) is None


def _named(element: Element) -> Roles:
    names = (
        f"{(element.attr('class') or '')[:MAX_NAMES_CHARACTERS]} {(element.attr('id') or '')[:MAX_NAMES_CHARACTERS]}"
    )
    return roles_of_names(names) if names != " " else Roles()
