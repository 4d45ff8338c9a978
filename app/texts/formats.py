"""Plain text from HTML and Markdown, in time and memory linear in the length of the input."""

from __future__ import annotations

import re
from html import escape
from html.entities import html5

import pyromark
from turbohtml import Document, Html, HTMLParseError, Minify, Node, parse, parse_xml

from app.texts.sections import mark_headings

INVISIBLE = frozenset(
    {"annotation", "annotation-xml", "audio", "canvas", "datalist", "head", "iframe", "noembed", "noframes", "noscript"}
    | {"object", "rp", "rt", "script", "style", "svg", "template", "title", "video"}
)
"""Elements whose text a page does not display: code, fallbacks, and alternative renderings of neighboring text."""

PREFORMATTED = frozenset(("listing", "plaintext", "pre", "textarea", "xmp"))
RAW = ("plaintext", "xmp")
"""Preformatted elements in which character references are not decoded."""

NONE, WORD, CELL, LINE, BLOCK = range(5)
"""Breaks between two pieces of text, weakest first; the strongest applies."""

SEPARATORS = ("", " ", "\t", "\n", "\n\n")
WORDS = ("button", "img", "input", "label", "meter", "progress")
CELLS = ("td", "th")
LINES = ("br", "dd", "li", "optgroup", "option", "summary", "tr")
BLOCKS = (
    *("address", "article", "aside", "blockquote", "caption", "center", "details", "dialog", "dir", "div", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup"),
    *("hr", "legend", "listing", "main", "menu", "nav", "ol", "p", "plaintext", "pre", "search", "section", "select"),
    *("table", "textarea", "ul", "xmp"),
)
BREAKS = (
    dict.fromkeys(WORDS, WORD) | dict.fromkeys(CELLS, CELL) | dict.fromkeys(LINES, LINE) | dict.fromkeys(BLOCKS, BLOCK)
)
"""Breaks before and after elements. Custom elements are separate words; other elements do not break text."""

SURROGATE = re.compile("[\ud800-\udfff]")
MARKDOWN = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
)


MAX_ROOT_TAGS = 20_000
"""Maximum total length of all ``html`` and ``body`` tags. The parser compares each attribute with all previous ones, so
many attributes would take quadratic time."""
ROOT_TAG = re.compile(r"<(html|body)\b[^>]*", re.IGNORECASE)

MAX_CONTAINERS = 100
"""Maximum number of nested quotes and lists on a line of Markdown. Each marker becomes thirty characters of HTML."""
_CONTAINER = r"[ \t]*+(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))"
DEEP_LINE = re.compile(rf"^((?:{_CONTAINER}){{{MAX_CONTAINERS}}})(?:{_CONTAINER})++", re.MULTILINE)

WITHOUT_COMMENTS = Html(layout=Minify(collapse_whitespace=False, omit_optional_tags=False, unquote_attributes=False))
TAGS = re.compile("((?:<[^>]*>)++)")
TAGS_AND_BLANKS = re.compile("( ?(?:<[^>]*> ?)++)")
TAG_NAME = re.compile(r"</?([^\s>]++)[^>]*>")
_PREFORMATTED_NAME = rf"(?:{'|'.join(sorted(PREFORMATTED))})[\t\n\f\r >]"
TO_PREFORMATTED_TAG = re.compile(rf"((?:[^<]++|<(?!/?{_PREFORMATTED_NAME})[^>]*>)*+)<(/?){_PREFORMATTED_NAME}")
"""Matches up to the next tag of a preformatted element, tag by tag, since attributes may contain such tags."""


def parse_html(html: str) -> Document:
    """Parse a page or a fragment of HTML, in time and memory linear in its length."""
    if sum(len(tag[0]) for tag in ROOT_TAG.finditer(html)) > MAX_ROOT_TAGS:
        html = ROOT_TAG.sub(r"<\1", html)
    return parse(html, positions=False)


XML_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<text>.*?)(?:\]\]>|\Z)|(?P<instruction><\?.*?(?:\?>|\Z))|"
    r"&(?!(?:amp|apos|gt|lt|quot);)(?P<entity>[A-Za-z][A-Za-z0-9]*;)",
    re.DOTALL,
)
XHTML_PREFIX = re.compile(
    r"xmlns:([\w.-]+)\s*=\s*[\"']http://www\.w3\.org/(?:1999/xhtml|2000/svg|1998/Math/MathML)[\"']"
)


MANY_ATTRIBUTES = re.compile(r"<[^<=]*+(?:=[^<=]*+){5000}")
"""Matches a tag with so many attributes that copying an XML tree, which takes quadratic time, would be slow."""


def parse_xhtml(markup: str) -> Document:
    """Parse a page by the rules of XML, in which any element may close itself; by those of HTML if it is not XHTML.

    As in browsers, the named entities of HTML need no declaration.
    """
    if MANY_ATTRIBUTES.search(markup):
        return parse_html(markup)
    try:
        root = parse_xml(XML_MARKUP.sub(_plain_markup, markup)).root
    except HTMLParseError:
        return parse_html(markup)
    assert root is not None, "well-formed XML has a root element"
    prefixes = set(XHTML_PREFIX.findall(markup))
    for element in list(root.iter_elements(include_self=True)) if prefixes else ():
        prefix, _, name = element.tag.rpartition(":")
        if prefix in prefixes:
            element.tag = name
    if root.tag != "html":
        return parse_html(markup)
    # Only a document of the HTML parser knows meta elements, scripts, and void elements.
    document = parse("", positions=False)
    assert document.root is not None, "the HTML parser adds a root element"
    document.root.replace_with(root)
    return document


def _plain_markup(match: re.Match[str]) -> str:
    """Return markup of XML that a page displays as text: character references and CDATA sections."""
    if match["text"] is not None:
        return escape(match["text"])
    if match["entity"] is not None:
        return escape(html5[match["entity"]]) if match["entity"] in html5 else match[0]
    return "" if match["instruction"] else match[0]


def html_to_text(html: str) -> str:
    """Convert a page or a fragment of HTML to text. See :func:`node_to_text`."""
    return node_to_text(parse_html(SURROGATE.sub("\N{REPLACEMENT CHARACTER}", html)))


def html_to_marked_text(html: str) -> str:
    """Convert HTML to text, with headings marked for :func:`app.texts.sections.take_sections`."""
    document = parse_html(SURROGATE.sub("\N{REPLACEMENT CHARACTER}", html))
    mark_headings(document)
    return node_to_text(document)


def markdown_to_marked_text(markdown: str) -> str:
    """Convert Markdown (CommonMark with GitHub's tables and embedded HTML) to text, without its front matter.

    Headings are marked as in :func:`html_to_marked_text`.
    """
    shallow = DEEP_LINE.sub(r"\1 ", SURROGATE.sub("\N{REPLACEMENT CHARACTER}", markdown))
    document = parse_html(pyromark.html(shallow, options=MARKDOWN))
    mark_headings(document, slugs=True)
    return node_to_text(document)


def node_to_text(node: Node) -> str:
    """Convert a part of a page to text. Modifies the tree by removing invisible elements.

    Blocks are separated by a blank line, rows and list items by a line break, cells by a tab, and words by a space.
    Preformatted text keeps its lines and indentation.
    """
    # The parser serializes the tree in its own code: a Python object for each element would take ten times as long.
    node.remove(", ".join(INVISIBLE))
    for element in node.iter_elements(RAW, include_self=True):
        element.tag = "pre"
    html = node.serialize(WITHOUT_COMMENTS, inner=True).replace("&nbsp;", "\N{NO-BREAK SPACE}")
    running, preformatted = _Breaks(BLOCK), _Breaks(LINE)
    parts: list[str] = []
    depth = start = end = 0
    while (match := TO_PREFORMATTED_TAG.match(html, end)) is not None:
        is_end = bool(match[2])
        if depth == is_end and (part := html[start : match.end(1)]):
            parts.append(_preformatted_text(part, preformatted) if is_end else _running_text(part, running))
        depth += -1 if is_end else 1
        end = html.index(">", match.end() - 1) + 1
        if depth == (not is_end):
            start = end
    parts.append(_running_text(html[start:], running))
    text = SEPARATORS[BLOCK].join(filter(None, parts))
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("\0", "").strip()


def _running_text(html: str, breaks: _Breaks) -> str:
    pieces = TAGS_AND_BLANKS.split(" ".join(html.split()))
    pieces[1::2] = map(breaks.__getitem__, pieces[1::2])
    return "".join(pieces).strip()


def _preformatted_text(html: str, breaks: _Breaks) -> str:
    pieces = TAGS.split(html)
    pieces[1::2] = map(breaks.__getitem__, pieces[1::2])
    if not pieces[0]:
        del pieces[:2]
    return trimmed_lines("".join(pieces))


class _Breaks(dict[str, str]):
    """Caches the separator for the tags and blanks between two pieces of text."""

    def __init__(self, strongest: int):
        super().__init__()
        self._strongest = strongest

    def __missing__(self, between: str) -> str:
        names = set(TAG_NAME.findall(between))
        strength = max(BREAKS.get(name) or (WORD if "-" in name else NONE) for name in names)
        if strength == NONE and " " in TAGS.sub("", between):
            strength = WORD
        self[between] = separator = SEPARATORS[min(strength, self._strongest)]
        return separator


def trimmed_lines(text: str) -> str:
    """Remove blank lines around a text and blanks at the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
