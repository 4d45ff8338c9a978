"""Classes and IDs that web pages use for the parts around their main text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

CHROME = (
    "nav, dialog, [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=menubar], [role=menu], "
    "[role=dialog], [role=alertdialog], [role=toolbar], [aria-hidden=true]"
)
"""Selects elements that are not main text, by tag or role."""
EDGES = "body > header, body > footer"
"""Selects elements that are not main text if they contain little of the page. Unclosed ones may contain all of it."""

_PAGE = "(?:(?:dm|global|inner|main|mobile|outer|page|primary|secondary|site|sticky|top|web|website|wp|wrapper)-)*"
_NOT_A_PART = "(?!(?:block|box|card|code|has|is|js|modal|no|not|panel|post-?content|quote|table|with|without)-)"
FRAMES = (
    rf"{_PAGE}(?:head|header|masthead)|"
    rf"{_NOT_A_PART}(?:[a-z0-9]+-)?(?:consent|cookies?|cookie-(?:consent|law|notice|policy)|foot|footer|gdpr|[a-z]*nav|"
    "nav[a-z]*|off-?canvas-(?:menu|left|right))"
)
"""Parts of a page's frame, which are never content, however little else the page contains."""
SIDEBARS = rf"{_NOT_A_PART}(?:[a-z0-9]+-)?(?:(?:left|right)-?bar|[a-z]*sidebar|side-?bar)"
"""Parts of the frame unless they are within text."""
NOISE = (
    "ads?|advert|advertisement|ad-?slot|author-?(?:bio|box|card|description|info|profile|section)|about-?author|"
    "breadcrumbs?|byline|buy-?box|comments|comment-?(?:form|list|respond)|commentlist|consent|cookies?|copyright|disqus|"
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
    ("aside", "center", "details", "div", "dl", "fieldset", "footer", "form", "header", "ol", "p", "section", "span")
) | {"table", "ul"}
"""Elements whose names describe their role. In other elements, which contain text, names describe its meaning."""


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
