"""A site as files of text: its contents in ``llms.txt``, its pages in ``llms-full.txt``, and how to search it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

from app.compat.agents.pages import Page, walk_pages
from app.services.access.credentials import SiteRecord
from app.storage.database import Database
from app.wording import counted

MOST_LISTED = 1_000
"""Pages in ``llms.txt``."""
MOST_WRITTEN = 20_000
"""Pages that are looked at for ``llms-full.txt``."""
MAX_FULL_BYTES = 5 * 1024 * 1024
_NOTE_BYTES = 500
"""What is kept free for saying that pages are missing."""
_LEAST_IN_SECTION = 2
_MOST_IN_SECTION = 50
"""Pages that are listed together if their paths allow to divide them."""
_MOST_FOLDERS = 8
_MAX_LEAD = 120
_OTHERS = "Other pages"
_SENTENCE = re.compile(r".*?[.!?。！？](?=\s|$)", re.DOTALL)
_MAX_SHORT_NAME = 16
"""Characters, as OpenSearch has it."""


@dataclass(frozen=True, slots=True)
class Doors:
    """The addresses of a site for agents.

    Attributes:
        base: This service's.
        key: A public key of the site.
    """

    base: str
    key: str

    @property
    def mcp(self) -> str:
        return f"{self.base}/mcp/{self.key}"

    def file(self, name: str) -> str:
        return f"{self.base}/agents/{self.key}/{name}"

    @property
    def search(self) -> str:
        """Of Custom Search, without a query."""
        return f"{self.base}/customsearch/v1?key={self.key}"


# --- llms.txt


@dataclass(frozen=True, slots=True)
class _Entry:
    section: str
    url: str
    title: str
    lead: str

    @property
    def folders(self) -> list[str]:
        return urlsplit(self.url).path.strip("/").split("/")[:-1]

    def line(self) -> str:
        title = re.sub(r"([\[\]\\])", r"\\\1", " ".join(self.title.split()))
        address = quote(self.url, safe="%/:?#[]@!$&'*+,;=~-._")
        return f"- [{title}]({address})" + (f": {self.lead}" if self.lead else "")


def list_pages(database: Database, site: SiteRecord, doors: Doors, total: int) -> str:
    """A site's contents: its pages by section, each with a line.

    Args:
        total: How many pages it has.
    """
    entries = [
        _Entry(_section(page), page.url, page.title, _lead(page)) for page in walk_pages(database, site, MOST_LISTED)
    ]
    sections: dict[str, list[_Entry]] = {}
    for entry in entries:
        if entry.section:
            sections.setdefault(entry.section, []).append(entry)
    for name, members in _by_path([entry for entry in entries if not entry.section], 1).items():
        sections.setdefault(name, []).extend(members)
    others = [
        entry for name, members in sections.items() if not name or len(members) < _LEAST_IN_SECTION for entry in members
    ]
    groups = {name: members for name, members in sections.items() if name and len(members) >= _LEAST_IN_SECTION}
    if others:
        groups = {(_OTHERS if groups else "Pages"): others, **groups}
    lines = [
        f"# {_one_line(site.name)}",
        *([f"\n> {_one_line(site.description)}"] if site.description else []),
        f"\n{counted(total, 'page')} of <{site.url}>.",
        f"To search them, use the MCP server at <{doors.mcp}>, or `GET {doors.search}&q=WORDS`.",
        f"One page as Markdown: `{doors.file('page.md')}?url=ADDRESS`. All together: <{doors.file('llms-full.txt')}>.",
    ]
    for name, members in groups.items():
        lines += [f"\n## {_one_line(name)}\n", *(entry.line() for entry in sorted(members, key=lambda each: each.url))]
    if total > len(entries):
        lines.append(f"\n{counted(total - len(entries), 'more page')}: search for them.")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _section(page: Page) -> str:
    """The section that the page names; empty if it says nothing."""
    said = page.fields.get("section")
    if isinstance(said, list):
        said = next(iter(said), None)
    return said.strip() if isinstance(said, str) else ""


def _by_path(entries: list[_Entry], depth: int) -> dict[str, list[_Entry]]:
    """Entries by the first directories of their paths: ``depth``, or more where too many have these in common."""
    groups: dict[str, list[_Entry]] = {}
    for entry in entries:
        groups.setdefault("/".join(entry.folders[:depth]), []).append(entry)
    split: dict[str, list[_Entry]] = {}
    for name, members in groups.items():
        is_deeper = depth < _MOST_FOLDERS and any(len(entry.folders) > depth for entry in members)
        is_large = len(members) > _MOST_IN_SECTION
        split |= _by_path(members, depth + 1) if is_large and is_deeper else {name: members}
    return split


def _lead(page: Page) -> str:
    """The subject of the page: its excerpt, or the first sentence of its text."""
    text = str(page.fields.get("excerpt") or page.fields["content"])[: 10 * _MAX_LEAD]
    text = _one_line(text).removeprefix(_one_line(page.title)).lstrip(" .:|-–—")
    sentence = _SENTENCE.match(text)
    text = sentence[0] if sentence is not None else text
    if len(text) <= _MAX_LEAD:
        return text
    return (text[: _MAX_LEAD + 1].rpartition(" ")[0].rstrip(" ,;:") or text[:_MAX_LEAD]) + "…"


# --- llms-full.txt


def write_pages(database: Database, site: SiteRecord, total: int) -> Iterator[bytes]:
    """Whole pages, one after another, as many as there is room for, and how many are missing.

    Args:
        total: How many pages the site has.
    """
    room, written = MAX_FULL_BYTES - _NOTE_BYTES, 0
    for page in walk_pages(database, site, MOST_WRITTEN):
        text = page.markdown.encode() + b"\n"
        if len(text) > room:
            break
        room -= len(text)
        written += 1
        yield text
    if written < total:
        yield f"{counted(total - written, 'more page')}: search for them, as llms.txt says.\n".encode()


# --- opensearch.xml


def describe_search(site: SiteRecord, doors: Doors) -> str:
    """The site's search as OpenSearch describes searches: its results are JSON."""
    about = site.description or f"Search {site.name}"
    template = escape(f"{doors.search}&q=") + "{searchTerms}"
    own = escape(doors.file("opensearch.xml"))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>{escape(site.name[:_MAX_SHORT_NAME])}</ShortName>
<LongName>{escape(site.name[:48])}</LongName>
<Description>{escape(about)}</Description>
<Url type="application/json" rel="results" template="{template}"/>
<Url type="application/opensearchdescription+xml" rel="self" template="{own}"/>
<InputEncoding>UTF-8</InputEncoding>
<OutputEncoding>UTF-8</OutputEncoding>
</OpenSearchDescription>
"""
