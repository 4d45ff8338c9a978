"""HTML to a page: its main text, what it says of itself, and where its links lead."""

from __future__ import annotations

from turbohtml import Document, Element, parse

from app.crawler.reading.bounds import cut_line, cut_text
from app.crawler.reading.directives import header_directives, meta_directives
from app.crawler.reading.links import canonical_address, page_base, page_links
from app.crawler.reading.main_text import main_text
from app.crawler.reading.metadata import Metadata
from app.crawler.reading.soft_404 import is_soft_404
from app.crawler.values import Fetched, Page, Reason, Selectors
from app.text_formats import node_to_text

IGNORED = "[data-site-search-ignore]"


def read_html(html: str, fetched: Fetched, selectors: Selectors) -> Page:
    """Read an HTML page.

    Args:
        html: The decoded body.
        fetched: The answer that it came in.
        selectors: Of the source; what they do not name is found.

    Raises:
        ValueError: A selector is no CSS.
    """
    document = parse(html, positions=False)
    base = page_base(document, fetched.url)
    directives = header_directives(fetched.headers) | meta_directives(document)
    links = () if directives.nofollow else page_links(document, base)
    canonical = canonical_address(document, fetched.headers, base, fetched.url)
    document.remove(f"{IGNORED}, {selectors.remove}" if selectors.remove else IGNORED)
    metadata = Metadata(document, fetched.headers)
    title = _selected_title(document, selectors.title) or metadata.title()
    # What the main text is taken from is changed on the way, so all else is read before it.
    excerpt, author, date = metadata.excerpt(), metadata.author(), metadata.date()
    content = cut_text(_selected_text(document, selectors.content) if selectors.content else main_text(document))
    return Page(
        id=metadata.id(),
        title=title,
        content=content,
        canonical=canonical,
        links=links,
        noindex=directives.noindex,
        left_out=_left_out(directives.noindex, title, content),
        excerpt=excerpt,
        author=author,
        date=date,
        lang=metadata.language(),
        fields=metadata.fields(),
    )


def _left_out(noindex: bool, title: str, content: str) -> Reason | None:
    if noindex:
        return Reason.NOINDEX
    if not content:
        return Reason.EMPTY
    return Reason.SOFT_404 if is_soft_404(title, content) else None


def _selected_title(document: Document, selector: str | None) -> str:
    element = document.select_one(selector) if selector else None
    return cut_line(node_to_text(element)) if element is not None else ""


def _selected_text(document: Document, selector: str) -> str:
    """The text of all elements that a selector names, each once."""
    chosen = document.select(selector)
    known = set(chosen)
    outermost: list[Element] = [element for element in chosen if known.isdisjoint(element.ancestors)]
    return "\n\n".join(text for element in outermost if (text := node_to_text(element)))
