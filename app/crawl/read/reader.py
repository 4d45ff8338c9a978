"""Reading pages and listings in a separate process, because a hostile file may hang, crash, or exhaust it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from app.bounded_process import MAX_CPU_SECONDS, MAX_SECONDS, Bound, BoundedProcess, BoundExceeded
from app.crawl.fetch.account_turns import AccountTurns
from app.crawl.fetch.listings import Sitemap, read_feed, read_sitemap
from app.crawl.fetch.responses import is_archive, media_type, sniff
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import Fetched, FieldRules, NotIndexed, Page, Reason, Selectors
from app.crawl.fetch.wordpress import Post, UnreadablePost, read_posts
from app.crawl.read.field_rules import ruled_fields
from app.crawl.read.file_titles import file_name, name_of
from app.crawl.read.files import PAGED_KINDS, ReadFile, join_pages, read_pdf
from app.crawl.read.html_pages import read_html
from app.crawl.read.links import Directives, header_directives
from app.crawl.read.office.office_files import read_office_file
from app.crawl.read.text import CONTROL, cut_line, cut_text, decode
from app.texts.formats import markdown_to_marked_text
from app.texts.sections import take_sections

T = TypeVar("T")

logger = logging.getLogger(__name__)


class PageReader:
    """Reads one file at a time in a separate process. Close it after use.

    Each method also raises :class:`NotIndexed` for a file that takes too much time (``timeout``) or memory
    (``too_large``), or for which there is a bug (``internal_error``).

    Args:
        cpu_seconds: Limit of CPU seconds for one file.
        seconds: Limit of elapsed seconds for one file.
    """

    def __init__(self, cpu_seconds: int = MAX_CPU_SECONDS, seconds: float = MAX_SECONDS):
        self._process = BoundedProcess(cpu_seconds, seconds)
        self._turns = AccountTurns()
        self._turn: Callable[[], AbstractContextManager[None]] = nullcontext

    def of_account(self, account: int, wait: Callable[[float], object]) -> PageReader:
        """Return a reader that uses the same process, in which accounts take turns by the time of their files.

        Args:
            account: ID of the account.
            wait: Called about once a second while files of other accounts are read; may raise.
        """
        reader = copy(self)
        reader._turn = partial(self._turns.take, account, wait)
        return reader

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def read(self, fetched: Fetched, selectors: Selectors | None = None, rules: FieldRules | None = None) -> Page:
        """Read a page as :func:`read_page` does.

        Raises:
            NotIndexed: The body is not text (``not_text``).
        """
        return self._read(Reason.NOT_TEXT, read_page, fetched, selectors, rules)

    def read_feed(self, fetched: Fetched) -> tuple[str, ...]:
        """Read a feed as :func:`app.crawl.fetch.listings.read_feed` does."""
        return self._read(Reason.BAD_SOURCE, read_feed, fetched)

    def read_sitemap(self, fetched: Fetched) -> Sitemap:
        """Read a sitemap as :func:`app.crawl.fetch.listings.read_sitemap` does."""
        return self._read(Reason.BAD_SOURCE, read_sitemap, fetched)

    def read_posts(self, fetched: Fetched) -> tuple[Post | UnreadablePost, ...]:
        """Read a response of WordPress as :func:`app.crawl.fetch.wordpress.read_posts` does."""
        return self._read(Reason.BAD_SOURCE, read_posts, fetched)

    def _read(self, broken: Reason, read: Callable[..., T], fetched: Fetched, *arguments: Any) -> T:
        fetched = replace(fetched, headers=dict(fetched.headers))
        with guarded("reading", fetched.url), self._turn():
            return self._read_in_process(broken, read, fetched, *arguments)

    def _read_in_process(self, broken: Reason, read: Callable[..., T], fetched: Fetched, *arguments: Any) -> T:
        try:
            result: T | _Rejection = self._process.call(_attempt, read, fetched, *arguments)
        except BoundExceeded as error:
            if error.bound is Bound.BROKEN:
                raise  # The process has logged the exception, which is a bug.
            logger.warning("%s %s.", fetched.url, error)
            reason = {Bound.TIME: Reason.TIMEOUT, Bound.MEMORY: Reason.TOO_LARGE}.get(error.bound, broken)
            raise NotIndexed(reason, f"The file {error}.") from error
        if isinstance(result, _Rejection):
            raise NotIndexed(*result)
        return result


class _Rejection(tuple[str, str]):
    """``("not_text", "The file is damaged.")``: the reason and the message of a file that cannot be read."""


def _attempt(read: Callable[..., T], *arguments: Any) -> T | _Rejection:
    try:
        return read(*arguments)
    # Returned, because an exception of a task is a bug, which its process logs with the traceback.
    except NotIndexed as error:
        return _Rejection((error.reason, error.message))


XHTML_TYPE = "application/xhtml+xml"
XML_TYPES = {XHTML_TYPE, "application/xml", "text/xml"}
XML_DECLARATION = "<?xml"
XHTML_ROOT = re.compile(
    r"(?:\s+|<!--.*?-->|<(?:\?|!(?!--))[^>]*>|\]\s*>)*+<(?:[\w.-]+:)?html[\s/>]", re.DOTALL | re.IGNORECASE
)
"""Matches up to the root element of a page in XML."""
MARKDOWN_TYPES = {"text/markdown", "text/x-markdown"}
MARKDOWN_EXTENSIONS = (".md", ".markdown")
HTML_BEGINNINGS = ("<!doctype html", "<html", "<head", "<body")
HEAD_CHARACTERS = 2_048


def read_page(fetched: Fetched, selectors: Selectors | None = None, rules: FieldRules | None = None) -> Page:
    """Read a fetched body: HTML, a PDF, an office file, an e-book, Markdown, or plain text.

    A page that must not be indexed is still read for its links, with the reason in its ``skip_reason``.

    Args:
        fetched: A response with status 200.
        selectors: The source's selectors for HTML pages; parts without a selector are detected.
        rules: The source's rules for custom fields.

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
    directives = header_directives(fetched.headers)
    name = name_of(fetched.url, fetched.headers)
    if kind.endswith("pdf"):
        return _file_page(read_pdf(fetched.body), name, directives, url_fields)
    if is_archive(fetched.body):
        return _file_page(read_office_file(fetched.body), name, directives, url_fields)
    text = CONTROL.sub("", decode(fetched.body, content_type))
    beginning = text[:HEAD_CHARACTERS].lstrip().lower()
    is_xml = kind in XML_TYPES or beginning.startswith(XML_DECLARATION)
    is_xhtml = is_xml and XHTML_ROOT.match(text) is not None
    if is_xhtml or kind in ("text/html", XHTML_TYPE) or beginning.startswith(HTML_BEGINNINGS):
        return read_html(text, fetched, selectors or Selectors(), rules, is_xml=is_xhtml)
    if kind in XML_TYPES:
        raise NotIndexed(Reason.NOT_TEXT, "The file is XML, but not a web page.")
    # Many web servers and browsers declare Markdown files as plain text.
    has_extension = file_name(fetched.url).lower().endswith(MARKDOWN_EXTENSIONS)
    if kind not in MARKDOWN_TYPES and not (kind == "text/plain" and has_extension):
        return _text_page(name, text, directives, url_fields)
    page = _text_page(name, markdown_to_marked_text(text), directives, url_fields)
    first_heading = next((section.title for section in page.sections[:1] if section.start == 0), "")
    title = _front_matter_title(text) or first_heading
    return replace(page, title=cut_line(title)) if title else page


def _front_matter_title(markdown: str) -> str:
    """``"---\\ntitle: Fees\\n---\\n…" -> "Fees"``; empty without such front matter of a static site generator."""
    lines = markdown[:HEAD_CHARACTERS].splitlines()
    if lines[:1] != ["---"] or "---" not in lines[1:]:
        return ""
    entries = (line.partition(":") for line in lines[1 : lines.index("---", 1)])
    return next((value.strip().strip("\"'") for name, _, value in entries if name == "title"), "")


def _file_page(file: ReadFile, name: str, directives: Directives, fields: Mapping[str, Any]) -> Page:
    text, sections = join_pages(file.pages)
    page = _text_page(file.title or name, text, directives, {"type": file.kind, **fields})
    return replace(
        page,
        author=file.author,
        date=file.date,
        lang=file.lang,
        kind=file.kind,
        headings=(*(section.title for section in sections[:1]), name) if file.title else (),
        sections=tuple(section for section in sections if section.start < len(page.content))
        if file.kind in PAGED_KINDS
        else (),
    )


def _text_page(title: str, text: str, directives: Directives, fields: Mapping[str, Any]) -> Page:
    content, sections = take_sections(cut_text(text.replace("\r\n", "\n").strip()))
    left_out = Reason.NOINDEX if directives.noindex else None if content else Reason.EMPTY
    return Page(
        title=cut_line(title),
        content=content,
        noindex=directives.noindex,
        expires=directives.expires,
        skip_reason=left_out,
        fields=fields,
        sections=sections,
    )
