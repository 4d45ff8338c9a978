"""Plain text from HTML and Markdown, in time and memory linear in the length of the input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from html.entities import html5

import pyromark
from turbohtml import Document, Element, Html, HTMLParseError, Minify, Node, parse, parse_xml

from app.texts.line_numbers import remove_line_numbers
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
WORDS = ("button", "img", "input", "label", "meter", "progress", "slot")
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
ROLES = (
    dict.fromkeys(("button", "img", "link", "menuitem", "tab"), WORD)
    | dict.fromkeys(("cell", "columnheader", "gridcell", "rowheader"), CELL)
    | dict.fromkeys(("listitem", "option", "row", "treeitem"), LINE)
    | dict.fromkeys(("article", "grid", "heading", "list", "paragraph", "region", "table"), BLOCK)
)
"""Breaks before elements with a role, whatever their name."""
ROLE = re.compile(r' role="([a-z]+)"')

# Only style sheets set inline elements apart from each other, so class names and the words at the edges decide. Classes
# without four letters in a row, and the classes of some programs, format parts of words.
_CLASS = (
    r'[^>]*? class="(?![^"]*(?:\b(?:cm|hljs|token|parameter|replaceable)\b|Apple-|GramE|SpellE))[^"]*?[A-Za-z]{4}[^>]*>'
)
SET_APART = re.compile(
    r"</(?:a|span|time)>(?:</\w+>)*<(?:a|time)[ >]"  # Links and times in a row.
    rf"|</\w+><(?!su[bp] )\w+{_CLASS}"  # Elements in a row, such as a label and a value.
    rf"|<(?!a )(\w+){_CLASS}</\1>"  # Empty elements, such as icons and dividers.
)
"""Matches tags between inline elements that a page probably displays apart from each other."""
IN_A_ROW = re.compile(r"</\w+><(?!su[bp][ >])\w")
"""Matches tags between inline elements that a page may display apart from each other."""
ICON_CHARACTERS = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
"""Private-use characters, with which fonts draw icons: they are not text, and other fonts show them as boxes."""
APART, MAYBE_APART = "\0", "\1"
"""Marks between two pieces of text, which are replaced by a space between two words, and otherwise removed."""
BETWEEN_WORDS = re.compile(
    # Around initials only between capital letters.
    rf"{APART}(?:(?<=\w\w.)(?=\w\w|\d)|(?<=\d.)(?=\w\w)|(?<=[A-Z].)(?=[A-Z]\w))"
    # After a word that ends in a small letter, before a name or a number.
    rf"|{MAYBE_APART}(?<=[^\W\d_][a-z].)(?=[A-Z]\w|\d)",
    re.DOTALL,
)

CODE_LINE = re.compile(r'</\w+><\w+ (?:[^>]*? )?class="(?:[^"]* )?(?:[a-z]+-)?line[ "]')
"""Matches tags between two lines of code that are elements."""
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
    # The parser hides the trees of closed shadow roots, and its own trees of open ones are not part of the document.
    document = parse(html, positions=False, allow_declarative_shadow_roots=False)
    for template in document.select("template[shadowrootmode]"):
        _display_shadow_tree(template)
    return document


SHADOW_HOSTS = frozenset(
    ("article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main")
) | {"nav", "p", "section", "span"}
"""Elements that can have a shadow tree, besides custom elements."""


def _display_shadow_tree(template: Element) -> None:
    """Put the content of a declarative shadow root in the place of its host's children, and these into its slots."""
    host = template.parent
    if not (isinstance(host, Element) and (host.tag in SHADOW_HOSTS or "-" in host.tag)):
        return
    content = [node for fragment in template.children for node in fragment.children]
    template.decompose()
    slotted: dict[str, list[Node]] = {}
    for node in list(host.children):
        name = node.attr("slot") if isinstance(node, Element) else None
        slotted.setdefault(name or "", []).append(node)
        node.extract()
    for node in content:
        host.append(node)
    for element in list(_shadow_elements(content)):
        # The fragment of a URL cannot lead into a shadow tree.
        element.attrs.pop("id", None)
        if element.tag == "slot" and (nodes := slotted.pop(element.attr("name") or "", None)):
            for node in list(element.children):
                node.extract()
            for node in nodes:
                element.append(node)


def _shadow_elements(content: Iterable[Node]) -> Iterator[Element]:
    """Iterate over the elements of a shadow tree, except the content of templates in it."""
    open_nodes = [iter(content)]
    while open_nodes:
        for node in open_nodes[-1]:
            if isinstance(node, Element):
                yield node
                if node.tag != "template":
                    open_nodes.append(iter(node.children))
                    break
        else:
            open_nodes.pop()


XML_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<text>.*?)(?:\]\]>|\Z)|(?P<instruction><\?.*?(?:\?>|\Z))|"
    r"&(?!(?:amp|apos|gt|lt|quot);)(?P<entity>[A-Za-z][A-Za-z0-9]*;)",
    re.DOTALL,
)
XHTML_PREFIX = re.compile(
    r"xmlns:([\w.-]+)\s*=\s*[\"']http://www\.w3\.org/(?:1999/xhtml|2000/svg|1998/Math/MathML)[\"']"
)


DISPLAYED_CDATA = re.compile(r"<!\[CDATA\[(?<!//.{9})(?<!// .{9})(?<!/\*.{9})(?<!/\* .{9})")
"""Matches a CDATA section that is not hidden from HTML by a script's or a style sheet's comment."""
VOID_TAG = re.compile(
    "<(?:area|base|br|col|embed|frame|hr|img|input|isindex|link|meta|param|source|track|wbr)(?![^\\s/>])"
)
MANY_ATTRIBUTES = re.compile(r"<[^<=]*+(?:=[^<=]*+){5000}")
"""Matches a tag with so many attributes that copying an XML tree, which takes quadratic time, would be slow."""


def parse_xhtml(markup: str) -> Document:
    """Parse XHTML by the rules of XML, in which any element may close itself, and other pages by the rules of HTML.

    As in browsers, the named entities of HTML need no declaration.
    """
    if not _needs_xml(markup) or MANY_ATTRIBUTES.search(markup):
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


def _needs_xml(markup: str) -> bool:
    """Whether well-formed markup contains anything that the rules of HTML, which take less time, read differently."""
    if markup.find("<?", 1) > 0 or "ld+json" in markup or DISPLAYED_CDATA.search(markup) or XHTML_PREFIX.search(markup):
        return True
    return any(VOID_TAG.match(piece, max(0, piece.rfind("<"))) is None for piece in markup.split("/>")[:-1])


def _plain_markup(match: re.Match[str]) -> str:
    """Return the HTML for a character reference or a CDATA section of XML."""
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
    """Convert a part of a page to text. Modifies the tree by removing invisible elements and line numbers of code.

    Blocks are separated by a blank line, rows and list items by a line break, cells by a tab, and words by a space.
    Preformatted text keeps its lines and indentation. Characters of icon fonts are removed.
    """
    # The parser serializes the tree in its own code: a Python object for each element would take ten times as long.
    node.remove(", ".join(INVISIBLE))
    remove_line_numbers(node)
    for element in node.iter_elements(RAW, include_self=True):
        element.tag = "pre"
    html = node.serialize(WITHOUT_COMMENTS, inner=True).replace("&nbsp;", "\N{NO-BREAK SPACE}")
    if not html.isascii():
        html = ICON_CHARACTERS.sub(" ", html)
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
    text = "".join(pieces).strip()
    if APART in text or MAYBE_APART in text:
        text = BETWEEN_WORDS.sub(" ", text).replace(APART, "").replace(MAYBE_APART, "")
    return text


def _preformatted_text(html: str, breaks: _Breaks) -> str:
    pieces = TAGS.split(html)
    all_tags = pieces[1::2]
    pieces[1::2] = map(breaks.__getitem__, all_tags)
    if CODE_LINE.search(html):
        # Style sheets put such elements on lines of their own.
        for position, tags in enumerate(all_tags):
            before, separator = pieces[2 * position : 2 * position + 2]
            if not separator and before and not before.endswith("\n") and CODE_LINE.search(tags):
                pieces[2 * position + 1] = "\n"
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
        if " role=" in between:
            strength = max([strength, *(ROLES.get(role, NONE) for role in ROLE.findall(between))])
        if strength == NONE and " " in TAGS.sub("", between):
            strength = WORD
        separator = SEPARATORS[min(strength, self._strongest)]
        if not separator and "><" in between and self._strongest == BLOCK:
            separator = APART if SET_APART.search(between) else MAYBE_APART if IN_A_ROW.search(between) else ""
        self[between] = separator
        return separator


def trimmed_lines(text: str) -> str:
    """Remove blank lines around a text and blanks at the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
