"""Relevance of search results on judged sets, compared with other systems on the same documents.

    python -m benchmarks.relevance DATA                                  the engine alone, in memory
    python -m benchmarks.relevance DATA --url http://127.0.0.1:8000 --key svc_prv_…    a running service
    python -m benchmarks.relevance DATA --floors benchmarks/relevance_floors.json      fail below these figures
    python -m benchmarks.relevance DATA --floors … --renew                             use measured figures as floors

DATA contains one folder per set: ``documents.jsonl.gz``, ``queries.jsonl`` (and ``queries.typo.jsonl``,
``queries.prefix.jsonl``, ``queries.keywords.jsonl``), and ``qrels.tsv``. Over HTTP, each set is indexed into a new
site, which is deleted afterwards; the account's plan must allow another site, another key, and the documents.

nDCG@10 has linear gains and the discount log2(rank + 1). MRR@10, Success@5, and Recall@100 count judgments above 0. A
query without hits counts as 0. The run fails if a row does not reach the best of the other systems, is below its floor,
or has no floor.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.services.embedding.chunks import CHUNK_CHARACTERS

HITS = 100
BATCH = 500

KNOWN_ITEM = ("MRR@10", "Success@5")
QUESTION = ("nDCG@10", "Recall@100")

TOLERANCE = 0.002
"""Difference between a measured score and its floor."""

OTHERS: dict[str, dict[str, tuple[float, float]]] = {
    "digital-gov": {"FTS5": (.640, .797), "tantivy": (.724, .823), "tantivy en_stem": (.719, .843),
                    "BM25": (.564, .720), "Typesense": (.491, .653)},
    "digital-gov typo": {"FTS5": (.550, .710), "tantivy": (.658, .760), "tantivy en_stem": (.652, .760),
                         "BM25": (.447, .610), "Typesense": (.457, .620)},
    "digital-gov prefix": {"FTS5": (.506, .697), "tantivy": (.632, .723), "tantivy en_stem": (.642, .764),
                           "BM25": (.425, .603), "Typesense": (.441, .607)},
    "libreoffice-help-de": {"FTS5": (.593, .707), "tantivy": (.544, .680), "BM25": (.679, .820),
                            "Typesense": (.479, .553)},
    "libreoffice-help-de typo": {"FTS5": (.522, .613), "tantivy": (.475, .580), "BM25": (.537, .653),
                                 "Typesense": (.474, .567)},
    "libreoffice-help-de prefix": {"FTS5": (.499, .595), "tantivy": (.442, .595), "BM25": (.569, .730),
                                   "Typesense": (.485, .574)},
    "libreoffice-help-es": {"FTS5": (.623, .780), "tantivy": (.541, .687), "BM25": (.624, .807),
                            "Typesense": (.479, .580)},
    "libreoffice-help-fr": {"FTS5": (.618, .780), "tantivy": (.569, .733), "BM25": (.625, .840),
                            "Typesense": (.422, .520)},
    "libreoffice-help-ko": {"FTS5": (.605, .767), "tantivy": (.539, .680), "BM25": (.666, .820),
                            "Typesense": (.454, .560)},
    "xquad-en": {"FTS5": (.962, .997), "tantivy": (.929, .997), "BM25": (.969, .997), "Typesense": (.205, .214)},
    "xquad-de": {"FTS5": (.923, .993), "tantivy": (.913, .993), "BM25": (.944, .995), "Typesense": (.161, .186)},
    "xquad-es": {"FTS5": (.953, .996), "tantivy": (.948, .996), "BM25": (.964, .998), "Typesense": (.205, .230)},
    "xquad-zh": {"FTS5": (.117, .131), "tantivy": (.115, .130), "BM25": (.965, .996), "Typesense": (.579, .627)},
}  # fmt: skip
"""The two figures of each row for SQLite FTS5 3.40 (bm25, title weight 5, OR), tantivy 0.27 (title^3 + content, OR),
BM25 with a stemmer (bm25s, k1 1.2, b 0.75, pairs of characters for CJK) and Typesense 0.24.1."""

Judgments = dict[str, dict[str, int]]
Floors = dict[str, dict[str, float]]
"""Minimum scores, by name of the row and of the measure."""
Search = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """A set, or a variant of its queries."""

    name: str
    queries: Mapping[str, str]
    judgments: Judgments


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def read_judgments(path: Path) -> Judgments:
    found: Judgments = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        parts = line.split("\t")
        if len(parts) == 3 and parts[2].strip().lstrip("-").isdigit():
            found.setdefault(parts[0], {})[parts[1]] = int(parts[2])
    return {query: grades for query, grades in found.items() if any(grade > 0 for grade in grades.values())}


def rows_of(folder: Path) -> list[Row]:
    judgments = read_judgments(folder / "qrels.tsv")
    rows = []
    for variant in ("", "typo", "prefix", "keywords"):
        path = folder / (f"queries.{variant}.jsonl" if variant else "queries.jsonl")
        if path.exists():
            queries = {line["_id"]: line["text"] for line in read_lines(path) if line["_id"] in judgments}
            rows.append(Row(f"{folder.name} {variant}".strip(), queries, judgments))
    return rows


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Return the discounted gain of the first ``depth`` documents, divided by the gain of the ideal order."""
    gain = sum(max(0, grades.get(id, 0)) / math.log2(place + 2) for place, id in enumerate(ranked[:depth]))
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth]
    return gain / sum(grade / math.log2(place + 2) for place, grade in enumerate(best))


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    return next((1 / place for place, id in enumerate(ranked[:depth], 1) if grades.get(id, 0) > 0), 0.0)


def success(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 5) -> float:
    return float(any(grades.get(id, 0) > 0 for id in ranked[:depth]))


def recall(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 100) -> float:
    relevant = {id for id, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranked[:depth])) / len(relevant)


MEASURES = {"nDCG@10": ndcg, "MRR@10": reciprocal_rank, "Success@5": success, "Recall@100": recall}


def evaluate(row: Row, search: Search) -> tuple[dict[str, float], float]:
    """Return the means of all measures over a row's queries, and milliseconds per query."""
    sums = dict.fromkeys(MEASURES, 0.0)
    started = time.perf_counter()
    runs = {id: search(text) for id, text in row.queries.items()}
    spent = time.perf_counter() - started
    for id, ranked in runs.items():
        for name, measure in MEASURES.items():
            sums[name] += measure(ranked, row.judgments[id])
    count = len(row.queries) or 1
    return {name: value / count for name, value in sums.items()}, spent / count * 1000


class EngineAlone:
    """The embedded engine, in memory."""

    def __init__(self) -> None:
        from backends.registry import create_backend

        self.backend = create_backend("memory://")

    def index(self, documents: Iterable[dict[str, Any]]) -> None:
        from backends.base import Document

        self.clear()
        self.backend.create_index("set")
        batch = [
            Document.of(fields["id"], {k: v for k, v in fields.items() if v is not None}, at)
            for at, fields in enumerate(documents, 1)
        ]
        self.backend.upsert("set", batch, {})

    def clear(self) -> None:
        self.backend.delete_index("set")

    def search(self, text: str) -> list[str]:
        from backends.query import SearchQuery

        return [hit.id for hit in self.backend.search("set", SearchQuery(text, limit=HITS)).hits]


class EngineWithMeaning(EngineAlone):
    """The embedded engine in memory, whose results are also ordered by meaning, with MiniLM in this process."""

    def __init__(self) -> None:
        import numpy as np

        from app.services.embedding.local_server import load_minilm
        from app.services.search.mixed_order import MixedOrder

        super().__init__()
        self._encode = load_minilm()
        self._vectors: dict[str, bytes] = {}
        self._float32 = np.dtype("<f4")
        self.order = MixedOrder(self, self.read_vectors)

    model = "minilm"
    languages = frozenset({"en"})
    dimension: int | None = None
    chunk_characters = CHUNK_CHARACTERS

    def read_vectors(self, site_id: int, ids: Sequence[str], dimension: int) -> Mapping[str, bytes]:
        return {id: self._vectors[id] for id in ids}

    def embed_query(self, text: str, timeout_seconds: float) -> Any:
        import numpy as np

        return np.frombuffer(self._encode(text), self._float32)

    def embed_documents(self, texts: Sequence[str], timeout_seconds: float) -> Any:
        import numpy as np

        return np.stack([np.frombuffer(self._encode(text), self._float32) for text in texts])

    def close(self) -> None:
        pass

    def index(self, documents: Iterable[dict[str, Any]]) -> None:
        from app.services.embedding.chunks import chunks_of
        from app.services.embedding.stored_vectors import quantize

        kept = list(documents)
        self._vectors = {fields["id"]: quantize(self.embed_documents(chunks_of(fields), 0)) for fields in kept}
        super().index(kept)

    def search(self, text: str) -> list[str]:
        from backends.query import SearchQuery, SearchSettings

        query = SearchQuery(text, limit=HITS, settings=SearchSettings(semantic=True))
        if not self.order.is_for(query):
            return super().search(text)
        return [hit.id for hit in self.order.search(self.backend, "set", 0, query).hits]


class RunningService:
    """A service over HTTP with a private key. The documents are in a separate site."""

    def __init__(self, url: str, key: str):
        import requests

        self.url = url.rstrip("/")
        self.session = requests.Session()
        self.account_key = key
        self.site_id: int | None = None
        self.site_key = ""

    def index(self, documents: Iterable[dict[str, Any]]) -> None:
        self.clear()
        name = {"name": "Relevance", "url": "https://relevance.example.com/"}
        self.site_id = self._call(self.account_key, "POST", "/sites", json=name)["site"]["id"]
        wanted = {"name": "Relevance", "type": "private"}
        made = self._call(self.account_key, "POST", f"/api/sites/{self.site_id}/keys", json=wanted)
        self.site_key = made["api_key"]
        everything = list(documents)
        for start in range(0, len(everything), BATCH):
            batch = everything[start : start + BATCH]
            self._call(self.site_key, "POST", "/api/v1/index/bulk", json={"documents": batch})

    def clear(self) -> None:
        if self.site_id is not None:
            self._call(self.account_key, "DELETE", f"/sites/{self.site_id}")
            self.site_id = None

    def search(self, text: str) -> list[str]:
        answer = self._call(self.site_key, "GET", "/v1/search", params={"q": text, "limit": HITS})
        return [hit["id"] for hit in answer["results"]["hits"]]

    def _call(self, key: str, method: str, path: str, **options: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        while True:
            answer = self.session.request(method, self.url + path, headers=headers, timeout=120, **options)
            if answer.status_code != 429:
                break
            time.sleep(float(answer.headers.get("Retry-After", "1")))
        if not answer.ok:
            sys.exit(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        found: dict[str, Any] = answer.json()
        return found


def measures_of(row: Row) -> tuple[str, str]:
    """Return the two measures by which rows are compared."""
    return QUESTION if row.name.startswith(("xquad", "other-words")) and " " not in row.name else KNOWN_ITEM


def print_row(row: Row, means: Mapping[str, float], milliseconds: float) -> bool:
    """Print a line of the table. Returns whether the row reaches the best of the others in both measures."""
    names = measures_of(row)
    others = OTHERS.get(row.name, {})
    figures = [means[name] for name in names]
    best = [max((figure[place] for figure in others.values()), default=0.0) for place in (0, 1)]
    # The figures of the others are rounded to three places.
    missed = [round(best[place] - figures[place], 4) for place in (0, 1)]
    reached = all(gap <= 0.0005 for gap in missed)
    columns = "  ".join(f"{system} {pair[0]:.3f}/{pair[1]:.3f}" for system, pair in others.items())
    note = "" if reached else f"   missed by {max(0, missed[0]):.3f}/{max(0, missed[1]):.3f}"
    ours = f"{figures[0]:.3f}/{figures[1]:.3f} {milliseconds:6.2f} ms"
    print(f"{row.name:28} {'/'.join(names):20} {ours}  | {columns}{note}")
    return reached


def below_floors(figures: Floors, floors: Floors, *, all_sets: bool) -> list[str]:
    """Yield a sentence for each score below its floor or without one and, with all sets, each floor without a score."""
    found = []
    for name in figures.keys() | floors.keys() if all_sets else figures.keys():
        for measure in figures.get(name, floors.get(name, {})):
            figure, floor = figures.get(name, {}).get(measure), floors.get(name, {}).get(measure)
            if figure is None:
                found.append(f"{name}: {measure} was not measured")
            elif floor is None:
                found.append(f"{name}: {measure} has no floor")
            elif figure < floor:
                found.append(f"{name}: {measure} {figure:.4f} is below its floor {floor:.4f}")
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--url", help="a running service; the engine alone without it")
    parser.add_argument("--key", help="a private key of an account")
    parser.add_argument("--meaning", action="store_true", help="sentences by meaning, too; needs the extra minilm")
    parser.add_argument("--only", default="", help="sets whose names contain this")
    parser.add_argument("--floors", type=Path, help="JSON: row to measure to the least figure")
    parser.add_argument("--renew", action="store_true", help=f"write --floors, {TOLERANCE} below the figures")
    wishes = parser.parse_args()
    if bool(wishes.url) != bool(wishes.key):
        parser.error("--url and --key go together")
    if wishes.renew and (wishes.only or not wishes.floors):
        parser.error("--renew needs --floors and all sets")
    floors: Floors = json.loads(wishes.floors.read_text()) if wishes.floors and not wishes.renew else {}
    alone = EngineWithMeaning if wishes.meaning else EngineAlone
    system = RunningService(wishes.url, wishes.key) if wishes.url else alone()
    files = wishes.data.glob("*/documents.jsonl.gz")  # Other folders have questions about documents of their own.
    folders = sorted(path.parent for path in files if wishes.only in path.parent.name)
    if not folders:
        parser.error(f"{wishes.data} holds no sets")
    reached = True
    figures: Floors = {}
    for folder in folders:
        system.index(read_lines(folder / "documents.jsonl.gz"))
        for row in rows_of(folder):
            means, milliseconds = evaluate(row, system.search)
            reached = print_row(row, means, milliseconds) and reached
            figures[row.name] = {name: means[name] for name in measures_of(row)}
    system.clear()
    if wishes.renew:
        least = {
            name: {measure: round(figure - TOLERANCE, 4) for measure, figure in row.items()}
            for name, row in figures.items()
        }
        wishes.floors.write_text(json.dumps(least, indent=2) + "\n")
    elif wishes.floors and (below := below_floors(figures, floors, all_sets=not wishes.only)):
        print(*below, sep="\n")
        reached = False
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
