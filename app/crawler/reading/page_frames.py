"""Names by which web pages mark what is around their main text: their vocabulary of classes and ids."""

from __future__ import annotations

import re
from functools import lru_cache

CHROME = (
    "nav, dialog, [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=menubar], [role=menu], "
    "[role=dialog], [role=alertdialog], [role=toolbar], [aria-hidden=true], body > header, body > footer"
)
"""Selects elements that say by their tag or role that they are no main text."""

NOISE = (
    "ads?|advert|advertisement|ad-?slot|author-?bio|breadcrumbs?|byline|comments|consent|cookies?|copyright|disqus|"
    "gdpr|gutter|legal|legal-?copy|line-?(?:numbers?|nos?)|modal|more-?(?:from|on|stories)|"
    "most-?(?:popular|read|viewed)|[a-z]*nav|nav[a-z]*|newsletter|off-?canvas-(?:menu|left|right)|outbrain|pagination|"
    "popup|print-only|promo|promoted|read-?(?:more|next)|recirc|recommended|recommendations|related|respond|"
    "screen-reader-text|share|sharing|sign-?up|skip|skip-link|skip-to-content|social|sponsor|sponsored|sr-only|"
    "subscribe|subscription|taboola|teaser|tooltip|trending|trending-now|visually-hidden"
)
LINK_LISTS = (
    "aside|bottom|categories|foot|footer|head|header|index|[a-z]*lang|languages?|latest|links?|menu|meta|pager|path|"
    "popular|prev|next|side|[a-z]*sidebar|summary|tags|toc|toolbar|top|topics|utility|widget"
)
BEFORE = "[a-z0-9]+-"
AFTER = (
    "-(?:area|banner|bar|block|box|buttons?|container|content|footer|form|group|icons?|inner|items?|links?|list|menu|notice|outer|"
    "panel|row|section|widget|wrap|wrapper)"
)
NOISE_NAME = re.compile(rf"(?:{BEFORE})?(?:{NOISE})(?:{AFTER})*")
LINK_LIST_NAME = re.compile(rf"(?:{BEFORE})?(?:{LINK_LISTS})(?:{AFTER})*")
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
JOINTS = re.compile(r"[_-]+")
MAX_NAMES = 20
MAX_NAME_CHARACTERS = 60

NAMED = frozenset(
    ("aside", "center", "details", "div", "dl", "fieldset", "footer", "form", "header", "ol", "p", "section", "span")
) | {"table", "ul"}
"""Elements whose names tell what they are for. Others hold a piece of a text, and are named for what it means."""


@lru_cache(maxsize=4_096)
def roles_of_names(names: str) -> tuple[bool, bool]:
    """Whether one of an element's names is that of what is no text at all, and that of links beside a text.

    Args:
        names: The element's classes and id, by blanks.
    """
    words = [
        JOINTS.sub("-", CAPITAL.sub("-", name)).lower().strip("-")
        for name in names.split()[:MAX_NAMES]
        if len(name) <= MAX_NAME_CHARACTERS
    ]
    return any(map(NOISE_NAME.fullmatch, words)), any(map(LINK_LIST_NAME.fullmatch, words))
