"""The main text of a page, without the navigation, banners, footers, and other parts of the frame around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from turbohtml import Document, Element, Node, Text

from app.crawl.read.tool_parts import remove_tool_parts
from app.texts.formats import INVISIBLE, node_to_text
from app.texts.sections import keep_anchors, mark_headings

OPAQUE = frozenset(("code", "pre", "math", "textarea"))
HEADER_TITLE = "h2.title, .headertitle"
"""Selects the page title in the header of manuals without ``h1`` (javadoc, Doxygen)."""
QUOTES = frozenset(("blockquote", "figure"))
"""Elements whose footer is a citation."""
PROSE = frozenset(("blockquote", "p"))
"""Elements that make a neighboring sidebar a note rather than a part of the page's frame."""
MARKED = "main, [role=main]"
SECTIONS = frozenset(("article", "aside", "main", "section"))
"""Elements with headers of their own."""
TITLE = "h1, .title, .headertitle"
HEADINGS = frozenset(("h2", "h3", "h4", "h5", "h6"))
NO_WORD = re.compile(r"\W+")
CODE = "code, kbd, samp, tt"
DATA = "caption, colgroup, thead"
"""Selects elements that occur in data tables but not in layout tables."""

MAX_FRAME_SHARE = 0.5
"""Maximum share of a page's text in one part of the frame, if the page does not mark its main part."""
MAX_LIST_SHARE = 0.4
"""Maximum share of a page's text in a list of links that counts as navigation rather than as part of the text."""
MIN_REST = 300
"""Minimum number of characters outside links that must remain after noise is removed."""
MIN_CODE_SHARE = 0.5
"""Minimum share of code in the text of links that form an overview of the names that the page explains."""
MIN_LINKED_SHARE = 0.5
"""Minimum share of link text in a list of links whose name suggests one."""
MIN_LINKED_SHARE_UNNAMED = 0.8
"""Minimum share of link text in a list of links whose name does not suggest one."""
MIN_LIST_CHARACTERS = 100
"""Minimum characters of link text in a list whose name does not suggest one; shorter lists are part of a text."""
MIN_LISTED, MIN_LISTED_SHARE = 20, 0.8
"""Minimum number of links, and minimum share of link text, on a page that only lists other pages."""
MAX_BESIDE_SEARCH = 400
"""Maximum number of characters outside links on a search page."""
LINK = "a[href]"
SEARCH_FIELD = "input[type=search], input[name=q], input[name=query], input[name=s]"
MAX_MARK_CHARACTERS = 20
MAX_NAMES_CHARACTERS = 1_000
MIN_SHARE_ALONE = 0.1
MIN_SHARE_OF_SEVERAL = 0.5
"""Minimum share of a page's unlinked text in the only element marked as the main one, or the largest of several."""


@dataclass(slots=True)
class Size:
    """Measurements of an element.

    Attributes:
        text, linked: Number of characters in the element's text, and in its links.
        in_section: Whether the element is within a section, which may have a header of its own.
        headings: Number of ``h1`` elements in the element.
        has_prose: Whether a child is a paragraph, which makes a sidebar in the element a note; false for ``body``.
        is_body: Whether the element is ``body``.
    """

    text: int = 0
    linked: int = 0
    in_section: bool = False
    headings: int = 0
    has_prose: bool = False
    is_body: bool = False

    @property
    def unlinked(self) -> int:
        """Characters outside links."""
        return self.text - self.linked


def main_text(document: Document) -> str:
    """Return the text of :func:`main_part`."""
    return node_to_text(main_part(document))


def only_lists(main: Node) -> bool:
    """Whether a page only links to others, judging by its :func:`main_part`: an index, a tag cloud, a search page."""
    size = _sizes(main)[main]
    if len(main.select(LINK)) >= MIN_LISTED and size.linked >= MIN_LISTED_SHARE * size.text:
        return True
    return size.unlinked <= MAX_BESIDE_SEARCH and main.select_one(SEARCH_FIELD) is not None


def main_part(document: Document) -> Node:
    """Return the part of a page that contains its main text, with headings marked. This modifies the document.

    The part is empty if no text remains.
    """
    keep_anchors(document)
    document.remove(CHROME)
    remove_tool_parts(document)
    sizes = _sizes(document)
    is_marked = document.select_one(MARKED) is not None
    for selector, is_sure in ((EDGES, is_marked), (HIDDEN, False)):
        for part in document.select(selector):
            if part in sizes and (is_sure or sizes[part].text <= MAX_FRAME_SHARE * sizes[document].text):
                part.decompose()
                sizes[document].text -= sizes[part].text
                sizes[document].linked -= sizes[part].linked
    main = _main_element(document, sizes)
    for element in list(_noise(main, sizes, is_marked=is_marked and main is document)):
        element.decompose()
    mark_headings(main)
    return main


def _sizes(document: Node) -> dict[Node, Size]:
    """Measure all elements of a page, or of a part of it, in one pass."""
    sizes: dict[Node, Size] = {}
    total = Size()
    open_elements: list[tuple[Iterator[Node], Size, bool]] = [(iter(document.children), total, False)]
    while open_elements:
        children, size, in_link = open_elements[-1]
        for child in children:
            if isinstance(child, Text):
                length = len(child.data.strip())
                size.text += length
                if in_link:
                    size.linked += length
            elif isinstance(child, Element) and (tag := child.tag) not in INVISIBLE:
                sizes[child] = child_size = Size(in_section=size.in_section or tag in SECTIONS)
                size.headings += tag == "h1"
                size.has_prose = size.has_prose or (tag in PROSE and not size.is_body)
                child_size.is_body = tag == "body"
                open_elements.append(
                    (iter(child.children), child_size, in_link or (tag == "a" and child.attr("href") is not None))
                )
                break
        else:
            open_elements.pop()
            if open_elements:
                parent = open_elements[-1][1]
                parent.text += size.text
                parent.linked += size.linked
                parent.headings += size.headings
    sizes[document] = total
    return sizes


def _main_element(document: Document, sizes: dict[Node, Size]) -> Node:
    """Return the element that the page marks as its main content, or the whole page."""
    main: Node = document
    for selector in (MARKED, "article", "[itemprop~=articleBody]"):
        marked = [element for element in main.select(selector) if element in sizes]
        largest = max(marked, key=lambda element: sizes[element].unlinked, default=None)
        share = MIN_SHARE_ALONE if len(marked) == 1 else MIN_SHARE_OF_SEVERAL
        if largest is not None and sizes[largest].unlinked >= max(1, share * sizes[main].unlinked):
            main = largest
    return main


def _noise(main: Node, sizes: dict[Node, Size], *, is_marked: bool) -> Iterator[Element]:
    """Return the outermost elements within the main part that are not main text, judging by names and share of links.

    Args:
        is_marked: Whether an element is marked as the main one, so that the size of the others does not matter.
    """
    main_size = sizes[main]
    remaining = main_size.unlinked
    elements: list[tuple[Node, Iterator[Node]]] = [(main, iter(main.children))]
    while elements:
        parent, children = elements[-1]
        for child in children:
            if not isinstance(child, Element) or child not in sizes or child.tag in OPAQUE:
                continue
            size = sizes[child]
            if _is_mark(child) or (
                child.tag in ELEMENTS_WITH_ROLES
                and _is_around_text(child, sizes, parent, main_size, remaining - size.unlinked, is_marked=is_marked)
            ):
                remaining -= size.unlinked
                yield child
            else:
                elements.append((child, iter(child.children)))
                break
        else:
            elements.pop()


def _is_around_text(
    element: Element, sizes: Mapping[Node, Size], parent: Node, main_size: Size, remaining: int, *, is_marked: bool
) -> bool:
    """Whether an element is next to the main text rather than part of it.

    Args:
        parent: The element's parent.
        main_size: The size of the main part.
        remaining: Characters outside links that remain without the element.
        is_marked: Whether another element is marked as the main one.
    """
    size = sizes[element]
    roles = _roles_of(element)
    is_minor_part = is_marked or size.unlinked <= MAX_FRAME_SHARE * (remaining + size.unlinked)
    has_title = size.headings > 0 and size.headings == main_size.headings
    return (
        (is_minor_part and not has_title and _is_frame(element, size, sizes[parent], roles))
        or (roles.noise and remaining >= MIN_REST and not size.headings)
        or _is_link_list(element, sizes, main_size, roles)
    )


def _is_frame(element: Element, size: Size, parent_size: Size, roles: Roles) -> bool:
    """Whether an element is a part of the page's frame, judging by tag, role, and names."""
    if element.tag == "footer":
        parent = element.parent
        return not (isinstance(parent, Element) and parent.tag in QUOTES)
    is_framing = roles.frame or (element.tag == "header" and not size.in_section)
    beside = roles.sidebar or element.attr("role") == "complementary"
    return (is_framing and element.select_one(HEADER_TITLE) is None) or (beside and not parent_size.has_prose)


def _is_mark(element: Element) -> bool:
    """Whether an element is a heading's permalink sign, or a link that skips the page's frame."""
    return element.tag == "a" and (_is_sign(element) or (_leads_inside(element) and _roles_of(element).noise))


def _is_sign(link: Element) -> bool:
    return _leads_inside(link) and not any(map(str.isalnum, link.text[:MAX_MARK_CHARACTERS]))


def _leads_inside(link: Element) -> bool:
    return (link.attr("href") or "").startswith("#")


def _is_link_list(element: Element, sizes: Mapping[Node, Size], main_size: Size, roles: Roles) -> bool:
    """Whether an element is a list of links next to the main text.

    Nearly all of its text must be links, unless its name already says so.
    """
    size = sizes[element]
    if size.text > MAX_LIST_SHARE * main_size.text or size.linked < MIN_LINKED_SHARE * size.text:
        return False
    overview = element.tag == "section" and _is_code(element, sizes)
    has_link_list_name = element.tag in ("aside", "footer", "header") or (roles.links and not overview)
    beside_text = (
        main_size.unlinked >= main_size.linked
        and size.linked >= max(MIN_LIST_CHARACTERS, MIN_LINKED_SHARE_UNNAMED * size.text)
        and element.tag in ("div", "section", "table", "ul")
        and not (roles.aside or _is_in_note(element) or element.select_one(DATA) is not None)
        and not _is_code(element, sizes)
    )
    return (has_link_list_name or beside_text) and element.select_one(TITLE) is None


def _is_in_note(element: Element) -> bool:
    """Whether the element's parent is a note or a definition."""
    parent = element.parent
    return isinstance(parent, Element) and (parent.tag == "dd" or _roles_of(parent).aside)


def _is_code(element: Element, sizes: Mapping[Node, Size]) -> bool:
    """Whether most of an element's text is code."""
    code = sum(sizes[code].text for code in element.select(CODE) if code in sizes)
    return code >= MIN_CODE_SHARE * sizes[element].text


def _roles_of(element: Element) -> Roles:
    """Return the roles that an element's classes and ID suggest. An ID that names a topic is ignored."""
    classes = (element.attr("class") or "")[:MAX_NAMES_CHARACTERS]
    element_id = (element.attr("id") or "")[:MAX_NAMES_CHARACTERS]
    roles = roles_of_names(f"{classes} {element_id}") if classes or element_id else Roles()
    return roles_of_names(classes) if element_id and any(roles) and _is_section(element, element_id) else roles


def _is_section(element: Element, element_id: str) -> bool:
    """Whether an element is a section of a text: its heading has a permalink sign, or equals its ID."""
    heading = next((child for child in element.children if isinstance(child, Element) and child.tag in HEADINGS), None)
    if heading is None:
        return False
    has_sign = any(link.tag == "a" and _is_sign(link) for link in heading.children if isinstance(link, Element))
    return has_sign or NO_WORD.sub("-", heading.text.strip()) == element_id


CHROME = (
    "nav, dialog:not([open]), [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=menubar], "
    "[role=menu], [role=dialog], [role=alertdialog], [role=toolbar], [aria-hidden=true]"
)
"""Selects elements that are not main text, by tag or role."""
EDGES = "body > header, body > footer"
"""Selects elements that are not main text if they contain little of the page. Unclosed ones may contain all of it."""

HIDDEN = "[hidden]:not([hidden=until-found i], [role=tabpanel], [id^='S:'], [hidden] *)"
"""Selects hidden elements, except elements that a visitor opens or that React's streams move to their places. If they
contain most of a page, a script displays them."""

_PAGE = "(?:(?:dm|global|inner|main|mobile|outer|page|primary|secondary|site|sticky|top|web|website|wp|wrapper)-)*"
_NOT_A_PART = "(?!(?:block|box|card|code|has|is|js|modal|no|not|panel|post-?content|quote|table|with|without)-)"
FRAMES = (
    rf"{_PAGE}(?:head|header|masthead)|"
    rf"{_NOT_A_PART}(?:[a-z0-9]+-)?(?:consent|cookies?|cookie-(?:consent|law|notice|policy)|foot|footer|gdpr|[a-z]*nav|"
    "nav[a-z]*|off-?canvas-(?:menu|left|right)|(?:ccpa|dsgvo|lgpd|privacy|rgpd)-?(?:bandeau|banner|bar|consent|notice)|"
    "(?:outdated|version)-?(?:badge|banner|notice|warning))"
)
"""Parts of a page's frame, which are never content, however little else the page contains."""
SIDEBARS = rf"{_NOT_A_PART}(?:[a-z0-9]+-)?(?:(?:left|right)-?bar|[a-z]*sidebar|side-?bar)"
"""Parts of the frame unless they are within text."""
NOISE = (
    "ads?|advert|advertisement|ad-?slot|author-?(?:bio|box|card|description|info|profile|section)|about-?author|"
    "back-to-top|breadcrumbs?|byline|buy-?box|comments|comment-?(?:form|list|respond)|commentlist|consent|cookies?|copyright|disqus|"
    "edit-?(?:link|page|this-page)|(?:article|page)-?feedback|last-?(?:edited|modified|updated?)|"
    "gdpr|gutter|legal|legal-?copy|line-?(?:numbers?|nos?)|modal|more-?(?:from|on|stories)|"
    "most-?(?:popular|read|viewed)|[a-z]*nav|nav[a-z]*|newsletter|no-?comments|off-?canvas-(?:menu|left|right)|outbrain|pagination|popup|post-?ratings?|print-only|promo|promoted|"
    "jp-post-flair|read-?(?:more|next)|recirc|recommended|recommendations|"
    "related(?:-?(?:articles?|content|links|news|posts?|stories|to|topics))?|jp-?relatedposts|respond|"
    "screen-reader-text|share|share-?daddy|shariff|sharing|sign-?up|skip|skip-link|skip-to-content|social|social-?media|"
    "sponsor|sponsored|sr-only|subscribe|subscription|taboola|trending|trending-now|visually-hidden|"
    "wp-rp|yarpp"
)
LINK_LISTS = (
    "aside|bottom|categories|foot|footer|head|header|index|[a-z]*lang|languages?|latest|links?|menu|meta|pager|path|"
    "popular|prev|next|side|[a-z]*sidebar|tags|teaser|toc|toolbar|top|topics|utility|widget"
)
ASIDES = "admonition(?:-?block)?"
"""Notes in a text, including those that only contain references."""
BEFORE = "(?!(?:has|is|js|no|not|with|without)-)[a-z0-9]+-"
NUMBER = "-?[0-9]{0,2}"
AFTER = (
    "-(?:area|banner|bar|block|box|buttons?|container|content|footer|form|group|icons?|inner|items?|links?|list|menu|notice|outer|"
    "panel|row|section|widget|wrap|wrapper)"
)
FRAME_NAME = re.compile(rf"(?:{FRAMES})(?:{AFTER})*{NUMBER}")
SIDEBAR_NAME = re.compile(rf"(?:{SIDEBARS})(?:{AFTER})*{NUMBER}")
NOISE_NAME = re.compile(rf"(?:{BEFORE}(?:[a-z0-9]+-)?)?(?:{NOISE})(?:{AFTER})*")
LINK_LIST_NAME = re.compile(rf"(?:{BEFORE})?(?:{LINK_LISTS})(?:{AFTER})*|summary")
ASIDE_NAME = re.compile(ASIDES)
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
JOINTS = re.compile(r"[_-]+")
MAX_NAMES = 20
MAX_NAME_CHARACTERS = 60

ELEMENTS_WITH_ROLES = frozenset(
    ("aside", "center", "details", "dialog", "div", "dl", "fieldset", "footer", "form", "header", "ol", "p", "section")
) | {"span", "table", "ul"}
"""Elements whose class and ID describe their role on the page. Those of other elements, such as ``p``, describe the
meaning of the text.
"""


class Roles(NamedTuple):
    """The roles that an element's names suggest.

    Attributes:
        frame: A part of the page's frame.
        sidebar: A part of the frame unless it is within text.
        noise: Not text, provided that enough text remains without it.
        links: Links beside a text.
        aside: A note in a text.
    """

    frame: bool = False
    sidebar: bool = False
    noise: bool = False
    links: bool = False
    aside: bool = False


@lru_cache(maxsize=4_096)
def roles_of_names(names: str) -> Roles:
    """Return all roles that any of an element's names suggests.

    Args:
        names: The element's classes and ID, separated by spaces.
    """
    words = [
        JOINTS.sub("-", CAPITAL.sub("-", name)).lower().strip("-")
        for name in names.split()[:MAX_NAMES]
        if len(name) <= MAX_NAME_CHARACTERS
    ]
    patterns = FRAME_NAME, SIDEBAR_NAME, NOISE_NAME, LINK_LIST_NAME, ASIDE_NAME
    return Roles(*(any(map(pattern.fullmatch, words)) for pattern in patterns))
