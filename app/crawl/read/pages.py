"""Reading a page of any type from a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from app.crawl.fetch.responses import is_archive, media_type, sniff
from app.crawl.fetch.values import Fetched, FieldRules, NotIndexed, Page, Reason, Selectors
from app.crawl.read.bounds import CONTROL, cut_line, cut_text
from app.crawl.read.charsets import decode
from app.crawl.read.field_rules import ruled_fields
from app.crawl.read.files import PAGED_KINDS, ReadFile, join_pages, read_pdf
from app.crawl.read.html.html_pages import read_html
from app.crawl.read.links import header_directives
from app.crawl.read.office.office_files import read_office_file
from app.texts.formats import markdown_to_marked_text
from app.texts.sections import take_sections

HTML_TYPES = {"text/html", "application/xhtml+xml"}
XML_TYPES = {"application/xml", "text/xml"}
MARKDOWN_TYPES = {"text/markdown", "text/x-markdown"}
HTML_BEGINNINGS = ("<!doctype html", "<html", "<head", "<body")
HEAD_CHARACTERS = 2_048


def read_page(fetched: Fetched, selectors: Selectors | None = None, rules: FieldRules | None = None) -> Page:
    """Read a fetched body: HTML, a PDF, an office file, an e-book, Markdown, or plain text.

    A page that must not be indexed is still read for its links, with the reason in its ``skip_reason``.

    Args:
        fetched: A response with status 200.
        selectors: The source's selectors for HTML pages; parts without a selector are detected.
        rules: The source's rules for further fields.

    Raises:
        NotIndexed: The body is not text (``not_text``), or unpacks to more than the limit (``too_large``).
        ValueError: A selector is not valid CSS.
    """
    content_type = sniff(fetched.headers.get("content-type", ""), fetched.body[:HEAD_CHARACTERS])
    if content_type is None:
        raise NotIndexed(Reason.NOT_TEXT, "The file is neither text, a PDF, nor an office file.")
    kind = media_type(content_type)
    rules = rules or FieldRules()
    url_fields = ruled_fields(rules, fetched.url)
    noindex = header_directives(fetched.headers).noindex
    if kind.endswith("pdf"):
        return _file_page(read_pdf(fetched.body), fetched.url, noindex, url_fields)
    if is_archive(fetched.body):
        return _file_page(read_office_file(fetched.body), fetched.url, noindex, url_fields)
    text = CONTROL.sub("", decode(fetched.body, content_type))
    beginning = text[:HEAD_CHARACTERS].lstrip().lower()
    if kind in HTML_TYPES or beginning.startswith(HTML_BEGINNINGS) or (kind in XML_TYPES and "<html" in beginning):
        return read_html(text, fetched, selectors or Selectors(), rules)
    if kind in XML_TYPES:
        raise NotIndexed(Reason.NOT_TEXT, "The file is XML, but not a web page.")
    if kind in MARKDOWN_TYPES:
        text = markdown_to_marked_text(text)
    return _text_page(_file_name(fetched.url), text, noindex, url_fields)


def _file_page(file: ReadFile, url: str, noindex: bool, fields: Mapping[str, Any]) -> Page:
    text, sections = join_pages(file.pages)
    page = _text_page(file.title or _file_name(url), text, noindex, {"type": file.kind, **fields})
    return replace(
        page,
        author=file.author,
        date=file.date,
        lang=file.lang,
        kind=file.kind,
        sections=tuple(each for each in sections if each.start < len(page.content)) if file.kind in PAGED_KINDS else (),
    )


def _text_page(title: str, text: str, noindex: bool, fields: Mapping[str, Any]) -> Page:
    content, sections = take_sections(cut_text(text.replace("\r\n", "\n").strip()))
    left_out = Reason.NOINDEX if noindex else None if content else Reason.EMPTY
    return Page(
        title=cut_line(title), content=content, noindex=noindex, skip_reason=left_out, fields=fields, sections=sections
    )


def _file_name(url: str) -> str:
    parts = urlsplit(url)
    return unquote(PurePosixPath(parts.path).name) or parts.netloc
