"""Searches of a manual for its own headings: how often the page comes first, and how often its section does.

    python -m benchmarks.headings FOLDER…

Each folder contains a manual in HTML. The headings are drawn from the headings that occur only once in their manual.
Pages are indexed with the titles of their sections and, for comparison, without sections.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from app.crawl.fetch.values import Fetched, NotIndexed
from app.crawl.read.reader import read_page
from app.crawl.run.page_documents import strip_title
from app.crawl.run.titles import shared_suffix
from backends.base import Document, SearchBackend
from backends.query import Highlight, SearchQuery
from backends.registry import create_backend
from backends.sections import Section

HEADINGS = 80
SEED = 29


def read_manual(folder: Path) -> list[Document]:
    """Return the pages of a manual as a crawl reads them."""
    pages = []
    for path in sorted(folder.rglob("*.html")):
        address = f"https://example.com/{path.relative_to(folder)}"
        try:
            page = read_page(Fetched(address, 200, {"content-type": "text/html"}, path.read_bytes()))
        except NotIndexed:
            continue
        if page.skip_reason is None:
            pages.append((address, page))
    suffix = shared_suffix([page.title for _, page in pages])
    return [
        Document(
            address,
            {"id": address, "title": strip_title(page.title, "", suffix), "content": page.content, "url": address},
            number,
            page.sections,
        )
        for number, (address, page) in enumerate(pages)
    ]


def headings_of(documents: Sequence[Document], count: int) -> list[tuple[Document, Section]]:
    """Return some headings that occur only once in the manual, excluding page titles."""
    counts = Counter(section.title.lower() for document in documents for section in document.sections)
    counts.update(str(document.fields["title"]).lower() for document in documents)
    unique = [
        (document, section)
        for document in documents
        for section in document.sections
        if section.level > 1 and counts[section.title.lower()] == 1 and len(section.title.encode()) <= 200
    ]
    return random.Random(SEED).sample(unique, min(count, len(unique)))


def measure(backend: SearchBackend, index: str, headings: Sequence[tuple[Document, Section]]) -> str:
    first = in_ten = section_first = 0
    for document, section in headings:
        hits = backend.search(index, SearchQuery(section.title, limit=10, sections=3)).hits
        ids = [hit.id for hit in hits]
        first += ids[:1] == [document.id]
        in_ten += document.id in ids
        if document.id in ids:
            found = hits[ids.index(document.id)].sections or ()
            section_first += bool(found) and found[0].section == section
    return f"page first {first:3}, in ten {in_ten:3}, section first {section_first:3} of {len(headings)}"


def milliseconds(backend: SearchBackend, index: str, headings: Sequence[tuple[Document, Section]], most: int) -> float:
    """Return the median CPU milliseconds of a search for a heading, with highlights and this number of sections."""
    times = []
    for _, section in headings * 3:
        began = time.process_time()
        backend.search(index, SearchQuery(section.title, sections=most, highlight=Highlight(sentences=True)))
        times.append(time.process_time() - began)
    return median(times) * 1000


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        documents = read_manual(folder)
        headings = headings_of(documents, HEADINGS)
        plain = [replace(document, sections=()) for document in documents]
        backend = create_backend("memory://")
        print(f"{folder}: {len(documents)} pages, {sum(len(each.sections) for each in documents)} sections")
        for index, made in (("with", documents), ("without", plain)):
            backend.create_index(index)
            backend.upsert(index, made, {})
            print(f"  {index:8} {measure(backend, index, headings)}")
        costs = [milliseconds(backend, "with", headings, most) for most in (0, 3)]
        print(f"  CPU of a search {costs[0]:.2f} ms, with three sections {costs[1]:.2f} ms ({costs[1] / costs[0]:.2f})")
        backend.close()


if __name__ == "__main__":
    main()
