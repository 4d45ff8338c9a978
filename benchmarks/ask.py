"""What a language model is given: how often the right page, and the right section, is among the sources of a question.

    python -m benchmarks.ask DATA [PYTHON.jsonl [POSTGRES.jsonl]] [--meaning] [--misses]

DATA contains the folder ``own-docs`` with questions on this documentation, and ``python-questions`` with questions on
the manual of Python. ``build_documents.py`` there creates the documents (with HTML) of that manual, and of PostgreSQL's
for the questions in ``benchmarks/sets``. The engine is the embedded one, in memory, with MiniLM if ``--meaning`` is
given; computing the vectors of a manual then takes five minutes. Sections are judged in ``own-docs`` only. *First hits*
is what a plain search gives: the pages of its first eight hits.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from app.application import create_app
from app.config import load_settings
from app.documentation import MOVED_PAGES, MOVED_SECTIONS, anchor_of
from app.pages import docs, docs_search
from app.runtime import Runtime
from app.services.access.credentials import SiteRecord
from app.services.asks.meaning import Meaning
from app.services.asks.retrieval import MAX_SOURCES, Source, find_sources
from app.services.engines import Engines
from app.services.search.search import Searcher
from app.texts.formats import node_to_text, parse_html
from app.texts.sections import mark_headings, take_sections
from backends.base import Document
from backends.query import SearchQuery
from backends.sections import SECTIONS
from benchmarks.relevance import EngineAlone, EngineWithMeaning

POSTGRES_QUESTIONS = Path(__file__).parent / "sets" / "postgres-questions.tsv"
MIN_PAGES, MIN_SECTIONS = 0.85, 0.70
"""Shares of the questions of all sets whose page, and whose section, must be among the sources."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the pages, and optionally the sections, that answer it: one of them is enough.

    Attributes:
        places: Pairs of a document ID and an anchor; ``""`` for the whole page.
    """

    text: str
    places: Sequence[tuple[str, str]]

    @property
    def has_section(self) -> bool:
        """Whether each place is a section."""
        return all(anchor for _, anchor in self.places)

    def finds_page(self, sources: Sequence[Source]) -> bool:
        """Whether a source is on one of the pages."""
        return self.is_answered_by([source.document_id for source in sources])

    def is_answered_by(self, ids: Sequence[str]) -> bool:
        """Whether one of the pages with these IDs answers the question."""
        return any(id in ids for id, _ in self.places)

    def finds_section(self, sources: Sequence[Source]) -> bool:
        """Whether a source is in one of the sections, or in a section below it."""
        return any(
            source.document_id == id and (not anchor or anchor in _anchors(source))
            for source in sources
            for id, anchor in self.places
        )


def _anchors(source: Source) -> set[str]:
    return {source.anchor, *map(anchor_of, source.title.split(" › "))}


def read_own_questions(path: Path) -> list[Question]:
    """Read ``query<TAB>page.md#Heading|…``, and follow pages and sections that have moved since."""
    questions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        text, _, targets = line.partition("\t")
        places = []
        for target in targets.split("|"):
            file, _, heading = target.partition("#")
            page = "readme" if file == "README.md" else file.removesuffix(".md")
            anchor = anchor_of(heading)
            moved = MOVED_SECTIONS.get(page, {}).get(anchor)
            if moved is not None:
                page, _, anchor = moved.partition("#")
            places.append((f"/docs/{MOVED_PAGES.get(page, page)}", anchor))
        questions.append(Question(text, places))
    return questions


def read_python_questions(folder: Path) -> list[Question]:
    """Read the questions on Python's manual with the pages that answer them."""
    pages: dict[str, list[tuple[str, str]]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) >= 2:
                pages.setdefault(row["query-id"], []).append((row["corpus-id"], ""))
    with (folder / "queries.tsv").open(encoding="utf-8") as file:
        return [Question(row["text"], pages[row["query-id"]]) for row in csv.DictReader(file, delimiter="\t")]


def read_postgres_questions(path: Path) -> list[Question]:
    """Read ``question<TAB>page|…``."""
    lines = (line.partition("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [Question(text, [(page, "") for page in pages.split("|")]) for text, _, pages in lines]


def read_manual(path: Path) -> list[Document]:
    """Read documents whose content is HTML, as the service reads them."""
    documents = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        fields = json.loads(line)
        page = parse_html(fields["content"])
        mark_headings(page)
        content, sections = take_sections(node_to_text(page))
        documents.append(Document(fields["id"], {**fields, "content": content}, number, sections))
    return documents


def measure(
    name: str, runtime: Runtime, site: SiteRecord, documents: Sequence[Document], questions: Sequence[Question],
    *, by_meaning: bool, shows_misses: bool,
) -> tuple[Sequence[bool], Sequence[bool]]:  # fmt: skip
    """Find the sources of all questions, print the set's line, and return whether page and section are among them."""
    system = EngineWithMeaning() if by_meaning else EngineAlone()
    system.index({**each.fields, SECTIONS: [section._asdict() for section in each.sections]} for each in documents)
    engine, order, meaning = system.backend, None, None
    if isinstance(system, EngineWithMeaning):
        order, meaning = system.order, Meaning(system, system.read_vectors)
    settings = replace(site.settings, semantic=by_meaning)
    site = replace(site, engine=engine.identity, engine_index="set", settings=settings)
    searcher = Searcher(Engines(engine), runtime.indexer, runtime.events, 100_000_000, order)
    by_id = {document.id: document for document in documents}

    def read(_site_id: int, ids: Sequence[str]) -> Mapping[str, Document]:
        return {id: by_id[id] for id in ids}

    pages, sections, seconds, sizes = [], [], [], []
    first_hits = 0
    for question in questions:
        began = time.perf_counter()
        sources = find_sources(searcher, read, meaning, site, question.text, "", "")
        seconds.append(time.perf_counter() - began)
        hits = searcher.run(site, SearchQuery(question.text, limit=MAX_SOURCES, settings=settings)).result.hits
        first_hits += question.is_answered_by([hit.id for hit in hits])
        sizes.append(sum(len(source.text) for source in sources))
        pages.append(question.finds_page(sources))
        if question.has_section:
            sections.append(question.finds_section(sources))
        if shows_misses and not (pages[-1] and question.finds_section(sources)):
            print(f"  {question.text!r} -> {question.places}: {[(s.document_id, s.anchor) for s in sources]}")
    found = f"; section {sum(sections)} of {len(sections)} ({sum(sections) / len(sections):.2f})" if sections else ""
    print(
        f"{name}: {len(questions)} questions; page {sum(pages)} ({sum(pages) / len(pages):.2f}){found}; "
        f"first hits {first_hits} ({first_hits / len(pages):.2f}); {median(seconds) * 1000:.0f} ms, "
        f"{median(sizes):.0f} characters"
    )
    engine.close()
    return pages, sections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("python", type=Path, nargs="?", help="documents of Python's manual")
    parser.add_argument("postgres", type=Path, nargs="?", help="documents of PostgreSQL's manual")
    parser.add_argument("--meaning", action="store_true", help="by meaning as well; needs the extra minilm")
    parser.add_argument("--misses", action="store_true", help="print the questions whose page or section is missing")
    wishes = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(load_settings({}, data_dir=folder), background=False)
        runtime: Runtime = app.extensions["runtime"]
        with app.app_context():
            site = docs_search._documentation().site
            own_pages = [docs_search._read(name) for name in docs.page_names()]
        sets = [("own-docs", site, own_pages, read_own_questions(wishes.data / "own-docs" / "queries.tsv"))]
        manual = replace(site, settings=type(site.settings)(language="en"))
        if wishes.python is not None:
            questions = read_python_questions(wishes.data / "python-questions")
            sets.append(("python-questions", manual, read_manual(wishes.python), questions))
        if wishes.postgres is not None:
            questions = read_postgres_questions(POSTGRES_QUESTIONS)
            sets.append(("postgres-questions", manual, read_manual(wishes.postgres), questions))
        pages: list[bool] = []
        sections: list[bool] = []
        for name, one_site, documents, questions in sets:
            found = measure(
                name,
                runtime,
                one_site,
                documents,
                questions,
                by_meaning=wishes.meaning,
                shows_misses=wishes.misses,
            )
            pages.extend(found[0])
            sections.extend(found[1])
        share, section_share = sum(pages) / len(pages), sum(sections) / len(sections)
        print(f"all: page {share:.3f} (at least {MIN_PAGES}), section {section_share:.3f} (at least {MIN_SECTIONS})")
        runtime.close()
    if share < MIN_PAGES or section_share < MIN_SECTIONS:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
