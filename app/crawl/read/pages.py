"""A page out of a fetched body, whatever its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from app.crawl.fetch.media_types import is_archive, media_type, sniff
from app.crawl.fetch.values import Fetched, FieldRules, NotIndexed, Page, Reason, Selectors
from app.crawl.read.bounds import CONTROL, cut_line, cut_text
from app.crawl.read.charsets import decode
from app.crawl.read.directives import header_directives
from app.crawl.read.field_rules import ruled_fields
from app.crawl.read.files import PAGED_KINDS, ReadFile, join_pages
from app.crawl.read.html.html_pages import read_html
from app.crawl.read.office.office_files import read_office_file
from app.crawl.read.pdf import read_pdf
from app.texts.formats import markdown_to_marked_text
from app.texts.sections import take_sections

HTML_TYPES = {"text/html", "application/xhtml+xml"}
XML_TYPES = {"application/xml", "text/xml"}
MARKDOWN_TYPES = {"text/markdown", "text/x-markdown"}
HTML_BEGINNINGS = ("<!doctype html", "<html", "<head", "<body")
HEAD_CHARACTERS = 2_048


def read_page(fetched: Fetched, selectors: Selectors | None = None, rules: FieldRules | None = None) -> Page:
    """Read a fetched body: HTML, a PDF, an office file, an e-book, Markdown, or plain text.

    A page that is not to be indexed is read for its links; ``left_out`` says why.

    Args:
        fetched: An answer with status 200.
        selectors: Where the content and title of an HTML page are, and what to leave out. Without, they are found.
        rules: Of the source, for further fields.

    Raises:
        NotIndexed: The body is no text (``not_text``), or unpacks to more than is read (``too_large``).
        ValueError: A selector is no CSS.
    """
    content_type = sniff(fetched.headers.get("content-type", ""), fetched.body[:HEAD_CHARACTERS])
    if content_type is None:
        raise NotIndexed(Reason.NOT_TEXT, "The file is neither text, a PDF, nor an office file.")
    kind = media_type(content_type)
    rules = rules or FieldRules()
    by_address = ruled_fields(rules, fetched.url)
    noindex = header_directives(fetched.headers).noindex
    if kind.endswith("pdf"):
        return _file_page(read_pdf(fetched.body), fetched.url, noindex, by_address)
    if is_archive(fetched.body):
        return _file_page(read_office_file(fetched.body), fetched.url, noindex, by_address)
    text = CONTROL.sub("", decode(fetched.body, content_type))
    beginning = text[:HEAD_CHARACTERS].lstrip().lower()
    if kind in HTML_TYPES or beginning.startswith(HTML_BEGINNINGS) or (kind in XML_TYPES and "<html" in beginning):
        return read_html(text, fetched, selectors or Selectors(), rules)
    if kind in XML_TYPES:
        raise NotIndexed(Reason.NOT_TEXT, "The file is XML that is no page.")
    if kind in MARKDOWN_TYPES:
        text = markdown_to_marked_text(text)
    return _text_page(_file_name(fetched.url), text, noindex, by_address)


def _file_page(read: ReadFile, url: str, noindex: bool, fields: Mapping[str, Any]) -> Page:
    text, sections = join_pages(read.pages)
    page = _text_page(read.title or _file_name(url), text, noindex, {"type": read.kind, **fields})
    return replace(
        page,
        author=read.author,
        date=read.date,
        lang=read.lang,
        kind=read.kind,
        sections=tuple(each for each in sections if each.start < len(page.content)) if read.kind in PAGED_KINDS else (),
    )


def _text_page(title: str, text: str, noindex: bool, fields: Mapping[str, Any]) -> Page:
    content, sections = take_sections(cut_text(text.replace("\r\n", "\n").strip()))
    left_out = Reason.NOINDEX if noindex else None if content else Reason.EMPTY
    return Page(
        title=cut_line(title), content=content, noindex=noindex, left_out=left_out, fields=fields, sections=sections
    )


def _file_name(url: str) -> str:
    parts = urlsplit(url)
    return unquote(PurePosixPath(parts.path).name) or parts.netloc
