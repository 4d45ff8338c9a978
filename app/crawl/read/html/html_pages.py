"""Reading an HTML page: main text, metadata, further fields, links, and directives."""

from __future__ import annotations

from turbohtml import Document, Element

from app.crawl.fetch.values import RANK, Fetched, FieldRules, Page, Reason, Selectors
from app.crawl.read.bounds import cut_line, cut_text
from app.crawl.read.field_rules import Subject, ruled_fields
from app.crawl.read.html.main_text import main_part, only_lists
from app.crawl.read.html.page_fields import CONTENT_SELECTOR, EXCLUDED_SELECTOR, annotated_fields, detected_fields
from app.crawl.read.html.titles import is_soft_404
from app.crawl.read.links import canonical_address, header_directives, meta_directives, page_base, page_links
from app.crawl.read.metadata import Metadata, iso_date
from app.texts.formats import node_to_text, parse_html
from app.texts.sections import mark_headings, take_sections
from backends.standard_fields import STANDARD_FIELDS
from backends.values import parse_number

IGNORED = f"[data-site-search-ignore], {EXCLUDED_SELECTOR}"
RANK_OF_LISTS = -3
"""The rank of pages that only link to others."""


def read_html(html: str, fetched: Fetched, selectors: Selectors, rules: FieldRules) -> Page:
    """Read an HTML page.

    Args:
        html: The decoded body.
        fetched: The response.
        selectors: The source's selectors; parts without a selector are detected.
        rules: The source's rules for further fields. Fields that the page declares for this service take precedence
            over the rules, and the rules take precedence over detected fields.

    Raises:
        ValueError: A selector is not valid CSS.
    """
    document = parse_html(html)
    base = page_base(document, fetched.url)
    directives = header_directives(fetched.headers) | meta_directives(document)
    links = () if directives.nofollow else page_links(document, base)
    canonical = canonical_address(document, fetched.headers, base, fetched.url)
    document.remove(f"{IGNORED}, {selectors.remove}" if selectors.remove else IGNORED)
    metadata = Metadata(document, fetched.headers)
    # Extracting the main text modifies the document, so everything else is read first.
    own_title, excerpt, author, date = metadata.title(), metadata.excerpt(), metadata.author(), metadata.date()
    fields = metadata.fields()
    annotated = annotated_fields(document)
    declared = {name: str(annotated.pop(name)) for name in STANDARD_FIELDS if name in annotated}
    for others in (
        annotated,
        ruled_fields(rules, canonical or fetched.url, Subject(document, metadata, base)),
        detected_fields(document, metadata, base, rules.start),
    ):
        fields |= {name: value for name, value in others.items() if name not in fields}
    if isinstance(rank := fields.get(RANK), str) and (number := parse_number(rank)) is not None:
        fields[RANK] = number
    title = _selected_title(document, selectors.title) or declared.get("title") or own_title
    if selectors.content:
        marked = _selected_text(document, selectors.content)
    elif document.select_one(CONTENT_SELECTOR) is not None:
        marked = _selected_text(document, CONTENT_SELECTOR)
    else:
        main = main_part(document)
        marked = node_to_text(main)
        if RANK not in fields and only_lists(main):
            fields[RANK] = RANK_OF_LISTS
    content, sections = take_sections(cut_text(marked))
    return Page(
        id=metadata.id(),
        title=title,
        content=content,
        canonical=canonical,
        links=links,
        noindex=directives.noindex,
        skip_reason=_skip_reason(directives.noindex, title, content),
        excerpt=declared.get("excerpt") or excerpt,
        author=declared.get("author") or author,
        date=iso_date(declared.get("date", "")) or date,
        lang=metadata.language(),
        fields=fields,
        sections=sections,
    )


def _skip_reason(noindex: bool, title: str, content: str) -> Reason | None:
    if noindex:
        return Reason.NOINDEX
    if not content:
        return Reason.EMPTY
    return Reason.SOFT_404 if is_soft_404(title, content) else None


def _selected_title(document: Document, selector: str | None) -> str:
    element = document.select_one(selector) if selector else None
    return cut_line(node_to_text(element)) if element is not None else ""


def _selected_text(document: Document, selector: str) -> str:
    """The text of all elements that a selector matches, with headings marked. Nested matches count once."""
    elements = document.select(selector)
    matches = set(elements)
    outermost: list[Element] = [element for element in elements if matches.isdisjoint(element.ancestors)]
    for element in outermost:
        mark_headings(element)
    return "\n\n".join(text for element in outermost if (text := node_to_text(element)))
