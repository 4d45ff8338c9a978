"""Precision of related pages, judged by hand on 30 pages of three sites.

    .venv/bin/python -m benchmarks.related DATA [--show]

The sites are this project's documentation; LibreOffice's help in German, from DATA/libreoffice-help-de; and a shop,
``benchmarks/sets/shop.jsonl.gz``: 56 products that exist, described for this benchmark in one to three sentences of
general knowledge, among them some that have nothing to do with the others. The 10 pages of each site are those with the
lowest hashes of their ids.

``benchmarks/sets/related.tsv`` contains the judgments: site, page, suggestion, and 1 if a reader of the page would
find the suggestion useful, otherwise 0. A page with the suggestion ``-`` has no useful page on its site, so nothing
should be suggested. ``--show`` prints the suggestions with their titles, to judge new ones.

The run fails if less than 3 of 4 suggestions are useful on a site, if anything is suggested for a page without a useful
one, or if a suggestion has not been judged. It also prints the CPU time of related pages, and of searches for the first
three words of the same pages' titles: 20 hits with only their titles and URLs, and 8 hits as the search box requests
them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from app.application import create_app
from app.documentation import RANKS
from app.pages import docs, docs_search
from backends.base import Document, SearchBackend
from backends.filters import OneOf
from backends.query import MATCH_ALL, Boost, Highlight, SearchQuery, SearchSettings
from backends.registry import create_backend
from tests.conftest import make_settings

SETS = Path(__file__).parent / "sets"
JUDGMENTS = SETS / "related.tsv"
NOTHING = "-"
PAGES = 10
LIMIT = 4
MIN_PRECISION = 0.75
FIELDS = frozenset({"id", "title", "url"})
TIMED_CALLS = 300
JUDGMENT_MARKS = {True: "1", False: "0", None: "?"}


def documentation() -> list[Document]:
    """Return the pages of the documentation, as the demo crawls them."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(make_settings(Path(folder)), background=False)
        with app.app_context():
            return [docs_search._read(name) for name in docs.page_names()]


def read_documents(path: Path) -> list[Document]:
    """Read the documents of a set."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [Document(fields["id"], fields, 0) for fields in map(orjson.loads, lines)]


def read_judgments() -> dict[tuple[str, str], dict[str, bool]]:
    """Return whether each suggestion is useful, by site and page."""
    judgments: dict[tuple[str, str], dict[str, bool]] = {}
    for line in JUDGMENTS.read_text().splitlines():
        site, page, suggestion, useful = line.split("\t")
        judgments.setdefault((site, page), {})[suggestion] = useful == "1"
    return judgments


def by_hash(document: Document) -> bytes:
    return hashlib.sha256(document.id.encode()).digest()


def suggest(engine: SearchBackend, page: Document, settings: SearchSettings) -> list[Any]:
    query = SearchQuery(MATCH_ALL, limit=LIMIT, settings=settings, returned_fields=FIELDS)
    return [hit.document for hit in engine.find_related("site", OneOf("id", (page.id,)), query) or ()]


def cpu_milliseconds(run: Callable[[Document], object], documents: Sequence[Document]) -> float:
    """Return the mean CPU time of a call."""
    timed = sorted(documents, key=by_hash)[:TIMED_CALLS]
    started = time.process_time()
    for document in timed:
        run(document)
    return (time.process_time() - started) * 1000 / len(timed)


def measure(site: str, documents: Sequence[Document], settings: SearchSettings, *, shows: bool) -> Iterator[str]:
    """Print the figures of a site, and yield its problems."""
    engine = create_backend("memory://")
    engine.create_index("site")
    for start in range(0, len(documents), 500):
        engine.upsert("site", documents[start : start + 500], {})
    judgments = read_judgments()
    suggested = useful = lists = 0
    for page in sorted(documents, key=by_hash)[:PAGES]:
        judged = judgments.get((site, page.id), {})
        found = suggest(engine, page, settings)
        lists += bool(found)
        if shows:
            print(f"{site}\t{page.id}\t{page.fields['title']}")
        for hit in found:
            if shows:
                print(f"    {JUDGMENT_MARKS[judged.get(hit['id'])]}  {hit['id']}\t{hit['title']}")
            if hit["id"] not in judged and NOTHING not in judged:
                yield f"{site}: nobody judged {hit['id']} for {page.id}."
            suggested += 1
            useful += judged.get(hit["id"], False)
        if NOTHING in judged and found:
            yield f"{site}: {page.id} has no useful page, but {len(found)} suggestions."
    precision = useful / max(1, suggested)
    related = cpu_milliseconds(lambda page: suggest(engine, page, settings), documents)
    search = cpu_milliseconds(lambda page: engine.search("site", title_search(page, settings)), documents)
    box = cpu_milliseconds(lambda page: engine.search("site", box_search(page, settings)), documents)
    print(
        f"{site:20} {len(documents):5} pages  {useful} of {suggested} useful ({precision:.2f})  {lists} of {PAGES} "
        f"lists  related {related:.2f} ms  search {search:.2f} ms  "
        f"search box {box:.2f} ms"
    )
    if precision < MIN_PRECISION:
        yield f"{site}: the precision {precision:.2f} is below {MIN_PRECISION}."


def title_search(page: Document, settings: SearchSettings) -> SearchQuery:
    return SearchQuery(" ".join(str(page.fields["title"]).split()[:3]), settings=settings, returned_fields=FIELDS)


def box_search(page: Document, settings: SearchSettings) -> SearchQuery:
    return replace(title_search(page, settings), limit=8, highlight=Highlight(sentences=True), sections=3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", action="store_true")
    wishes = parser.parse_args()
    boosts = tuple(Boost(rank, path=path) for path, rank in RANKS.items())
    sites = {
        "documentation": (documentation(), SearchSettings(boosts=boosts)),
        "libreoffice-help-de": (
            read_documents(wishes.data / "libreoffice-help-de" / "documents.jsonl.gz"),
            SearchSettings(),
        ),
        "shop": (read_documents(SETS / "shop.jsonl.gz"), SearchSettings()),
    }
    problems = [
        problem
        for site, (documents, settings) in sites.items()
        for problem in measure(site, documents, settings, shows=wishes.show)
    ]
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
