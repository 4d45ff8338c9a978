"""How much of a page's main text extractors keep, and how much of the rest.

    python -m benchmarks.extraction DIR [DIR…] [--only NAME[,NAME…]] [--pages] [--others N]

Folders are of two kinds:

- An unpacked `usr/share` of these Debian packages: python3.11-doc python-flask-doc python-sqlalchemy-doc debian-policy
  developers-reference python-django-taggit-doc buildbot-doc debian-reference-en maint-guide installation-guide-amd64
  postgresql-doc-15 git-doc libcommons-math3-java-doc libjackson2-annotations-java-doc openjdk-17-doc rust-doc
  libeigen3-doc doxygen-doc libfftw3-doc libglib2.0-doc libcairo2-doc apache2-doc libboost1.81-doc mkdocs-doc
  nodejs-doc.
  `extraction_pages.json` specifies the part of each page that a person would keep. `--others` measures other pages
  instead, up to N from each page's folder, by the same rules. The author of the extractor has not seen these pages.
- A checkout of https://github.com/scrapinghub/article-extraction-benchmark: 181 news articles and blog posts, each with
  the text that a person kept.

For each extractor, the benchmark prints the share of its text that is not main text (boilerplate left) and the share of
the main text that it lacks (text lost), both in words and averaged over the pages; the share of code blocks and tables
that are complete; and pages per CPU second. Extractors that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from turbohtml import Document, parse

from app.crawl.read.main_text import main_text
from app.texts.formats import html_to_text, node_to_text
from app.texts.sections import take_sections

GOLD = Path(__file__).with_name("extraction_pages.json")
WORD = re.compile(r"\w+")
Extractor = Callable[[str], str]


@dataclass
class Sample:
    """A page, and the main text that a person selected."""

    name: str
    group: str
    html: str
    words: list[str]
    code: list[str] = field(default_factory=list)
    tables: list[list[str]] = field(default_factory=list)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return WORD.findall(text.lower())


def phrase(text: str) -> str:
    """Return a text as words with single spaces, to find it in another such text."""
    return f" {' '.join(words(text))} "


def documentation(folders: list[Path], others: int = 0) -> Iterator[Sample]:
    """Yield the pages of `extraction_pages.json` that exist in the folders, or other pages of the same folders."""
    rules = json.loads(GOLD.read_text())
    listed = {page for rule in rules for page in rule["pages"]}
    chosen: set[str] = set()
    for rule in rules:
        for page in rule["pages"]:
            folder = next((folder for folder in folders if (folder / page).is_file()), None)
            if folder is None:
                continue
            names = [page]
            if others:
                beside = sorted(file.relative_to(folder).as_posix() for file in (folder / page).parent.glob("*.html"))
                names = [name for name in beside if name not in listed | chosen]
                names = random.Random(page).sample(names, min(others, len(names)))
                chosen.update(names)
            for name in names:
                html = (folder / name).read_bytes().decode(errors="replace")
                if name == page or parse(html).select_one(rule["keep"]) is not None:
                    yield documentation_page(name, rule, html)


def documentation_page(name: str, rule: dict[str, str], html: str) -> Sample:
    """Return a page with the main text that a rule selects."""
    document = parse(html)
    document.remove(rule["drop"])
    kept = document.select(rule["keep"])
    if not kept:
        raise SystemExit(f"The rule of {rule['generator']} finds nothing on {name}.")
    code = [text for element in kept for pre in element.select("pre") if len(words(text := node_to_text(pre))) >= 3]
    tables = [
        [text for cell in table.select("th, td") if (text := phrase(node_to_text(cell))).strip()]
        for element in kept
        for table in element.select("table:not(:has(table))")
        if len(table.select("tr")) > 1 and len(table.select("td")) > 3 and table.select_one("pre") is None
    ]
    text = "\n\n".join(map(node_to_text, kept))
    return Sample(name, rule["generator"], html, words(text), [phrase(text) for text in code], tables)


def articles(folder: Path) -> Iterator[Sample]:
    """Yield the pages of the article extraction benchmark."""
    for name, page in json.loads((folder / "ground-truth.json").read_text()).items():
        html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode(errors="replace")
        yield Sample(name, "articles", html, words(page["articleBody"]))


def extractors() -> dict[str, Extractor]:
    """Return the installed extractors by name."""
    found: dict[str, Extractor] = {
        "this service": lambda html: take_sections(main_text(parse(html)))[0],
        "whole page": html_to_text,
        "turbohtml": lambda html: text_of_main_content(parse(html)),
    }
    for name, make in {
        "trafilatura": lambda: trafilatura(),
        "trafilatura, recall": lambda: trafilatura(favor_recall=True),
        "resiliparse": resiliparse,
        "readability-lxml": readability,
        "jusText": justext,
    }.items():
        try:
            found[name] = make()
        except ImportError:
            print(f"{name} is not installed.")
    return found


def text_of_main_content(document: Document) -> str:
    """Extract turbohtml's main content."""
    element = document.main_content()
    return node_to_text(element) if element is not None else ""


def trafilatura(**options: bool) -> Extractor:
    """Extract with trafilatura, including tables."""
    module = importlib.import_module("trafilatura")
    return lambda html: module.extract(html, include_tables=True, include_comments=False, **options) or ""


def resiliparse() -> Extractor:
    """Extract with Resiliparse and its rules for main content."""
    extract = importlib.import_module("resiliparse.extract.html2text").extract_plain_text
    return lambda html: extract(html, main_content=True)


def readability() -> Extractor:
    """Extract with readability-lxml, and convert its HTML to text like ours."""
    module = importlib.import_module("readability")

    def extract(html: str) -> str:
        try:
            return html_to_text(module.Document(html).summary())
        except module.readability.Unparseable:
            return ""

    return extract


def justext() -> Extractor:
    """Extract with jusText and its English stop words."""
    module = importlib.import_module("justext")
    stop_words = module.get_stoplist("English")
    return lambda html: "\n\n".join(
        paragraph.text for paragraph in module.justext(html.encode(), stop_words) if not paragraph.is_boilerplate
    )


@dataclass
class Score:
    """Scores of one extractor on one page."""

    left: float
    lost: float
    code: int
    tables: int


def score(sample: Sample, text: str) -> Score:
    """Compare an extractor's text with the text that a person selected."""
    wanted, got = Counter(sample.words), Counter(words(text))
    found = phrase(text)
    return Score(
        left=(got - wanted).total() / max(1, got.total()),
        lost=(wanted - got).total() / max(1, wanted.total()),
        code=sum(code in found for code in sample.code),
        tables=sum(all(cell in found for cell in table) for table in sample.tables),
    )


def measure(samples: list[Sample], extractor: Extractor) -> tuple[list[Score], float]:
    """Return scores by page, and pages per second of CPU."""
    begun = time.process_time()
    texts = [extractor(sample.html) for sample in samples]
    seconds = time.process_time() - begun
    return [score(sample, text) for sample, text in zip(samples, texts, strict=True)], len(samples) / seconds


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--only", help="extractors, by commas")
    parser.add_argument("--pages", action="store_true", help="a line for each page")
    parser.add_argument("--others", type=int, default=0, metavar="N", help="other pages of the same folders")
    arguments = parser.parse_args()
    news = [folder for folder in arguments.folders if (folder / "ground-truth.json").is_file()]
    sets = {
        "documentation": list(
            documentation([folder for folder in arguments.folders if folder not in news], arguments.others)
        ),
        "articles": [sample for folder in news for sample in articles(folder)],
    }
    for name, samples in sets.items():
        if not samples:
            continue
        groups = len({sample.group for sample in samples})
        print(
            f"\n{name}: {len(samples)} pages of {groups} kinds, {sum(len(s.code) for s in samples)} code blocks, "
            f"{sum(len(s.tables) for s in samples)} tables\n"
        )
        print("| extractor | boilerplate left | text lost | code kept | tables kept | pages/s |")
        print("|---|---|---|---|---|---|")
        for title, extractor in extractors().items():
            if arguments.only and title not in arguments.only.split(","):
                continue
            scores, speed = measure(samples, extractor)
            code = share(sum(s.code for s in scores), sum(len(s.code) for s in samples))
            tables = share(sum(s.tables for s in scores), sum(len(s.tables) for s in samples))
            print(
                f"| {title} | {mean(s.left for s in scores):.1%} | {mean(s.lost for s in scores):.1%} | {code} | "
                f"{tables} | {speed:.0f} |",
                flush=True,
            )
            if arguments.pages:
                for sample, page in zip(samples, scores, strict=True):
                    print(
                        f"    {sample.group[:12]:12} {sample.name[-50:]:50} left {page.left:6.1%} lost {page.lost:6.1%}"
                        f" code {page.code}/{len(sample.code)} tables {page.tables}/{len(sample.tables)}"
                    )


if __name__ == "__main__":
    main()
