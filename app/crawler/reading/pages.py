"""A page out of a fetched body, whatever its type."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from app.crawler.media_types import media_type, sniff
from app.crawler.reading.bounds import cut_line, cut_text
from app.crawler.reading.charsets import decode
from app.crawler.reading.directives import header_directives
from app.crawler.reading.html_pages import read_html
from app.crawler.reading.pdf import read_pdf
from app.crawler.values import Fetched, NotIndexed, Page, Reason, Selectors
from app.text_formats import markdown_to_text

HTML_TYPES = {"text/html", "application/xhtml+xml"}
XML_TYPES = {"application/xml", "text/xml"}
MARKDOWN_TYPES = {"text/markdown", "text/x-markdown"}
HTML_BEGINNINGS = ("<!doctype html", "<html", "<head", "<body")
HEAD_CHARACTERS = 2_048


def read_page(fetched: Fetched, selectors: Selectors | None = None) -> Page:
    """Read a fetched body: HTML, a PDF, Markdown, or plain text.

    A page that is not to be indexed is read for its links; ``left_out`` says why.

    Args:
        fetched: An answer with status 200.
        selectors: Where the content and title of an HTML page are, and what to leave out. Without, they are found.

    Raises:
        NotIndexed: The body is no text (``not_text``).
        ValueError: A selector is no CSS.
    """
    content_type = sniff(fetched.headers.get("content-type", ""), fetched.body[:HEAD_CHARACTERS])
    if content_type is None:
        raise NotIndexed(Reason.NOT_TEXT, "The file is neither text nor a PDF.")
    kind = media_type(content_type)
    noindex = header_directives(fetched.headers).noindex
    if kind.endswith("pdf"):
        title, text = read_pdf(fetched.body)
        return _text_page(title or _file_name(fetched.url), text, noindex)
    text = decode(fetched.body, content_type)
    beginning = text[:HEAD_CHARACTERS].lstrip().lower()
    if kind in HTML_TYPES or beginning.startswith(HTML_BEGINNINGS) or (kind in XML_TYPES and "<html" in beginning):
        return read_html(text, fetched, selectors or Selectors())
    if kind in XML_TYPES:
        raise NotIndexed(Reason.NOT_TEXT, "The file is XML that is no page.")
    if kind in MARKDOWN_TYPES:
        text = markdown_to_text(text)
    return _text_page(_file_name(fetched.url), text, noindex)


def _text_page(title: str, text: str, noindex: bool) -> Page:
    content = cut_text(text.replace("\r\n", "\n").replace("\0", "").strip())
    left_out = Reason.NOINDEX if noindex else None if content else Reason.EMPTY
    return Page(title=cut_line(title), content=content, noindex=noindex, left_out=left_out)


def _file_name(url: str) -> str:
    parts = urlsplit(url)
    return unquote(PurePosixPath(parts.path).name) or parts.netloc
