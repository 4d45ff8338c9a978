"""The share of questions that get an answer, and the share of answers that are right.

    python -m benchmarks.answers DATA [--texts XQUAD_FOLDER]

DATA is the folder of sets for ``benchmarks.relevance``; only the sets of questions (``xquad-*``) are used. XQUAD_FOLDER
contains ``xquad.<language>.json`` with the texts that answer each question. An answer is right if it comes from the
relevant document and contains one of these texts. The engine is the embedded one, in memory.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

from app.services.search.answers import find_answer, may_have_answer
from backends.query import SearchQuery, SearchSettings
from benchmarks.relevance import EngineAlone, read_judgments, read_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--texts", type=Path, help="folder of xquad.<language>.json")
    wishes = parser.parse_args()
    for folder in sorted(wishes.data.glob("xquad-*")):
        language = folder.name.rpartition("-")[2]
        texts = read_texts(wishes.texts / f"xquad.{language}.json") if wishes.texts else {}
        measure(folder, texts)


def read_texts(path: Path) -> dict[str, list[str]]:
    """Return the texts that answer each question."""
    found: dict[str, list[str]] = {}
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for asked in (asked for paragraph in article["paragraphs"] for asked in paragraph["qas"]):
            found.setdefault(asked["question"].strip(), []).extend(answer["text"] for answer in asked["answers"])
    return found


def measure(folder: Path, texts: dict[str, list[str]]) -> None:
    """Ask all questions of a set, and print its line of the table."""
    judgments = read_judgments(folder / "qrels.tsv")
    alone = EngineAlone()
    alone.index(read_lines(folder / "documents.jsonl.gz"))
    engine = alone.backend
    spent: dict[bool, list[float]] = {False: [], True: []}
    asked = shown = from_judged = with_text = 0
    for line in read_lines(folder / "queries.jsonl"):
        plain = SearchQuery(line["text"], settings=SearchSettings(answers=True))
        question = SearchQuery(line["text"], settings=plain.settings, answers=True)
        asked += 1
        if not may_have_answer(question):
            continue
        engine.search("set", plain)  # So that both find warm caches.
        for query in (plain, question):
            started = time.perf_counter()
            hits = engine.search("set", query).hits
            answer = find_answer(hits) if query.answers else None
            spent[query.answers].append((time.perf_counter() - started) * 1000)
        if answer is not None:
            shown += 1
            from_judged += judgments.get(line["_id"], {}).get(answer["id"], 0) > 0
            with_text += any(text in answer["text"] for text in texts.get(line["text"].strip(), ()))
    print(f"{folder.name:10} {asked} questions, {shown} answered ({shown / asked:.0%})", end="")
    if shown:
        print(f"; from the judged document {from_judged / shown:.3f}", end="")
        print(f", with the answer's text {with_text / shown:.3f}" if texts else "", end="")
        print(f"; {median(spent[False]):.2f} ms a search, {median(spent[True]):.2f} ms with answers", end="")
    print()


if __name__ == "__main__":
    main()
