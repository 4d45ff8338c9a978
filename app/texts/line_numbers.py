"""Line numbers that highlighters write beside code, as if they were part of it."""

from __future__ import annotations

import re
from itertools import islice

from turbohtml import Element, Node

_CANDIDATES = (
    "[class*=linen i], [class*=line-n i], [class*=line_n i], [class*=gutter i], [class*=ln-n], [class~=ln], "
    "[class~=lnt], [class~=blob-num], [class~=crayon-num], pre a[href^='#'], td > a[href^='#'], th > a[href^='#']"
)
_NUMBERS = re.compile(r"[\s0-9]*[0-9][\s0-9]*[|:]?\s*")
"""One or several numbers, perhaps with a sign that sets them apart from the code."""
_NAME = re.compile(
    r"(?:^|[-_ ])(?:line-?nums?|line-?numbers|linenumber|linenr|linenos?|linenodiv|gutter|blob-num|crayon-num|ln-n\w*)"
    r"(?:[-_ ]|$)"
)
"""Class names of highlighters: Pygments, Rouge, CodeRay, highlight.js, SyntaxHighlighter, Crayon, Doxygen, GitHub."""
_NAME_IN_CODE = re.compile(r"(?:^|[-_ ])(?:lnt?|line-(?:no|number))(?:[-_ ]|$)")
"""Class names that are line numbers only in code, not in a timetable: Hugo's, Prism's, and Javadoc's."""
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ANCHOR = re.compile(r"#(?:l|n|line-?)?0*([1-9][0-9]*)", re.IGNORECASE)
_CODE = frozenset(("code", "pre"))
_CELLS = frozenset(("td", "th"))
_MAX_ANCESTORS = 6
"""Maximum number of ancestors to examine."""


def remove_line_numbers(node: Node) -> None:
    """Remove the line numbers of code in a part of a page, and the table cells that contain nothing else."""
    cells: dict[Element, None] = {}
    for element in node.select(_CANDIDATES):
        if _NUMBERS.fullmatch(element.text) and _is_line_number(element):
            cells |= dict.fromkeys(_elements_around(element, _CELLS))
            element.decompose()
    for cell in cells:
        if not cell.text.strip():
            cell.decompose()


def _is_line_number(element: Element) -> bool:
    if element.tag == "a":
        match = _ANCHOR.fullmatch(element.attr("href") or "")
        if match and match[1] == element.text.strip().lstrip("0"):
            return True
    names = _CAPITAL.sub("-", element.attr("class") or "").lower()
    if _NAME.search(names):
        return True
    return _NAME_IN_CODE.search(names) is not None and bool(_elements_around(element, _CODE))


def _elements_around(element: Element, tags: frozenset[str]) -> list[Element]:
    """Return the nearest elements around an element, innermost first, that have one of the names."""
    around = islice(element.ancestors, _MAX_ANCESTORS)
    return [
        element_around
        for element_around in around
        if isinstance(element_around, Element) and element_around.tag in tags
    ]
