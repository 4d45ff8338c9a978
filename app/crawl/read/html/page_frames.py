"""Names by which web pages mark what is around their main text: their vocabulary of classes and ids."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

CHROME = (
    "nav, dialog, [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=menubar], [role=menu], "
    "[role=dialog], [role=alertdialog], [role=toolbar], [aria-hidden=true]"
)
"""Selects elements that say by their tag or role that they are no main text."""
EDGES = "body > header, body > footer"
"""Selects those that are none if little of the page is in them: some never end."""

_PAGE = "(?:(?:dm|global|inner|main|mobile|outer|page|primary|secondary|site|sticky|top|web|website|wp|wrapper)-)*"
_NO_PIECE = "(?!(?:block|box|card|code|has|is|js|modal|no|not|panel|post-?content|quote|table|with|without)-)"
FRAMES = (
    rf"{_PAGE}(?:head|header|masthead)|"
    rf"{_NO_PIECE}(?:[a-z0-9]+-)?(?:consent|cookies?|cookie-(?:consent|law|notice|policy)|foot|footer|gdpr|[a-z]*nav|"
    "nav[a-z]*|off-?canvas-(?:menu|left|right))"
)
"""Parts of a page's frame: they are no content however little else there is."""
SIDEBARS = rf"{_NO_PIECE}(?:[a-z0-9]+-)?(?:(?:left|right)-?bar|[a-z]*sidebar|side-?bar)"
"""The same, unless they stand in a text."""
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
"""Notes in a text, also those that only name what to see, too."""
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

NAMED = frozenset(
    ("aside", "center", "details", "div", "dl", "fieldset", "footer", "form", "header", "ol", "p", "section", "span")
) | {"table", "ul"}
"""Elements whose names tell what they are for. Others hold a piece of a text, and are named for what it means."""


class Roles(NamedTuple):
    """The meaning of an element's names.

    Attributes:
        frame: A part of the page's frame.
        sidebar: The same, unless it stands in a text.
        noise: No text, but only if enough remains without it.
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
    """Tell what one of an element's names says that it is.

    Args:
        names: The element's classes and id, by blanks.
    """
    words = [
        JOINTS.sub("-", CAPITAL.sub("-", name)).lower().strip("-")
        for name in names.split()[:MAX_NAMES]
        if len(name) <= MAX_NAME_CHARACTERS
    ]
    patterns = FRAME_NAME, SIDEBAR_NAME, NOISE_NAME, LINK_LIST_NAME, ASIDE_NAME
    return Roles(*(any(map(pattern.fullmatch, words)) for pattern in patterns))
