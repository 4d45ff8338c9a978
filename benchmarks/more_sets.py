"""Sets for ``benchmarks.relevance`` in more languages, from public collections.

    python -m benchmarks.more_sets OUT --questions XQUAD_FOLDER --help-pages /usr/share/libreoffice/help

XQUAD_FOLDER contains ``xquad.<language>.json``: paragraphs of an encyclopedia and questions about them (from the
repository ``google-deepmind/xquad``, CC-BY-SA-4.0). The help pages are from Debian's ``libreoffice-help-*``
packages (MPL-2.0); the queries are entries of their index that lead to a single page. Every set of help pages has at
most 500 pages and 400 queries, which are the same in every run. ``python -m benchmarks.relevance OUT`` prints the
figures.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_PAGES, MOST_QUERIES = 500, 400

_ENTRY = re.compile(r'\{url:"([^"?]+)[^"]*", app:"[A-Z]+", text:"([^"]*)"\}')
_PAGE = re.compile(r'<div id="DisplayArea".*?(?=<div id="SearchFrame"|<footer)', re.DOTALL)
_DROPPED = re.compile(r'<(script|style)\b.*?</\1\s*>|<div class="relatedtopics">.*', re.DOTALL)
_TITLE = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")

Query = tuple[str, str]
"""A text, and the ID of the page to find."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=Path, help="folder of xquad.<language>.json")
    parser.add_argument("--help-pages", type=Path, help="folder of one folder a language")
    wishes = parser.parse_args()
    if wishes.questions:
        for path in sorted(wishes.questions.glob("xquad.*.json")):
            write_set(wishes.out / f"xquad-{path.suffixes[0][1:]}", *questions(path))
    if wishes.help_pages:
        for path in sorted(wishes.help_pages.glob("*/bookmarks.js")):
            write_set(wishes.out / f"help-{path.parent.name}", *help_pages(path))


def questions(path: Path) -> tuple[list[dict[str, str]], list[Query]]:
    """Return the paragraphs and questions of one language."""
    documents, queries = [], []
    for at, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]):
        for number, paragraph in enumerate(article["paragraphs"]):
            id = f"{at}-{number}"
            title = article.get("title", "").replace("_", " ")
            documents.append({"id": id, "title": title, "content": paragraph["context"], "url": f"/{id}"})
            queries += [(asked["question"], id) for asked in paragraph["qas"]]
    return documents, queries


def help_pages(index: Path) -> tuple[list[dict[str, str]], list[Query]]:
    """Return some pages that the help's index of one language links to, and some entries that link to them."""
    targets: dict[str, set[str]] = {}
    for page, entry in _ENTRY.findall(index.read_text(encoding="utf-8")):
        targets.setdefault(" ".join(html.unescape(entry).replace("--", " ").split()), set()).add(page)
    chance = random.Random(7)
    pages = sorted({page for found in targets.values() for page in found})
    chance.shuffle(pages)
    documents = list(read_pages(index.parent.parent, pages))
    ids = {document["id"] for document in documents}
    entries = [
        (entry, page)
        for entry, found in sorted(targets.items())
        for page in found
        if len(found) == 1 and _id(page) in ids
    ]
    chance.shuffle(entries)
    return documents, [(entry, _id(page)) for entry, page in entries[:MOST_QUERIES]]


def read_pages(folder: Path, names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Return the first pages with a title, as documents."""
    found = 0
    for name in names:
        page = _PAGE.search((folder / name).read_text(encoding="utf-8")) if (folder / name).exists() else None
        title = _TITLE.search(page[0]) if page else None
        if page and title and found < MOST_PAGES:
            found += 1
            yield {
                "id": _id(name),
                "title": _text(title[1]),
                "content": _text(_DROPPED.sub(" ", _TITLE.sub(" ", page[0]))),
                "url": f"/{name}",
            }


def write_set(folder: Path, documents: list[dict[str, str]], queries: list[Query]) -> None:
    """Write a set as ``benchmarks.relevance`` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "documents.jsonl.gz", "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
    texts = [{"_id": f"q{number}", "text": text} for number, (text, _) in enumerate(queries)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
    judgments = [f"q{number}\t{id}\t1\n" for number, (_, id) in enumerate(queries)]
    (folder / "qrels.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *judgments]), encoding="utf-8")
    print(f"{folder.name}: {len(documents)} documents, {len(queries)} queries")


def _id(page: str) -> str:
    return page.removesuffix(".html").replace("/", "-")


def _text(source: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", source)).split())


if __name__ == "__main__":
    main()
