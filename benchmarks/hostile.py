"""CPU milliseconds of hostile queries on the embedded engine, compared with the median of ordinary queries.

    python -m benchmarks.hostile PAGES.jsonl.gz [--documents 10000] [--queries 20] [--index FOLDER]

The engine runs in process, called through the backend, and returns 20 hits with highlights. Ordinary queries are the
five kinds of ``benchmarks.queries``. Every hostile query has its own words, values, or numbers, so that no cached
result of an earlier one helps. ``wide`` families search the same pages with 90 additional fields: 30 texts that differ
in every document, 30 texts with few values, 20 numbers, and 10 lists. The benchmark prints the median and the maximum
of each family, and the ratio of both to the ordinary median.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.base import Document, SearchBackend
from backends.query import FieldKind, FieldKinds, Highlight, SearchQuery, SortKey
from backends.registry import create_backend
from benchmarks.queries import HITS, WORD, Query, make_queries, misspell, read

PLAIN, WIDE = "plain", "wide"
MOST_BYTES = 512
MOST_FILTER = 2000
DEEPEST_FILTER = 50
LAST_OFFSET = 2_147_483_647
TARGET = 10
"""Maximum time of a hostile query, as a multiple of the ordinary median."""

PAGE_KINDS: FieldKinds = {"pages": frozenset({FieldKind.NUMBER}), "section": frozenset({FieldKind.STRING})}
UNIQUE = tuple(f"unique{number:02}" for number in range(30))
FEW = tuple(f"few{number:02}" for number in range(30))
NUMBERS = tuple(f"number{number:02}" for number in range(20))
LISTS = tuple(f"list{number:02}" for number in range(10))
WIDE_KINDS: FieldKinds = {
    **PAGE_KINDS,
    **dict.fromkeys((*UNIQUE, *FEW), frozenset({FieldKind.STRING})),
    **dict.fromkeys(NUMBERS, frozenset({FieldKind.NUMBER})),
    **dict.fromkeys(LISTS, frozenset({FieldKind.STRING_LIST})),
}
CJK = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2,}")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Material:
    """The texts from which queries are built.

    Attributes:
        frequent: The 300 words that most documents have, the most frequent first.
        usual: Words of six or more letters that are neither rare nor in most documents.
        unspaced: Runs of a script without spaces.
    """

    def __init__(self, documents: Sequence[Mapping[str, Any]]):
        self.total = len(documents)
        self.ids = [str(document["id"]) for document in documents]
        words: Counter[str] = Counter()
        for document in documents:
            words.update(set(WORD.findall(document["content"][:4000].lower())))
        self.frequent = sorted(words, key=lambda word: (-words[word], word))[:300]
        self.usual = sorted(
            word for word, n in words.items() if len(word) >= 6 and 10 <= n <= max(20, self.total // 10)
        )
        runs = {run for document in documents for run in CJK.findall(document["content"])}
        self.unspaced = sorted(runs) or ["全文検索エンジン", "한국어문서", "数据库查询"]


Make = Callable[[Material, random.Random], SearchQuery]


@dataclass(frozen=True)
class Family:
    """Queries on one of the two indexes that are expensive for one reason."""

    name: str
    index: str
    make: Make


def filled(parts: Iterable[str], between: str = " ", most: int = MOST_BYTES) -> str:
    """Join as many parts as fit into a number of bytes."""
    text = ""
    for part in parts:
        longer = text + between + part if text else part
        if len(longer.encode()) > most:
            break
        text = longer
    return text


def endless(pick: Callable[[], str]) -> Iterator[str]:
    while True:
        yield pick()


def search(text: str, **wishes: Any) -> SearchQuery:
    return SearchQuery(text=text, limit=HITS, highlight=Highlight(), **wishes)


def misspelt(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: misspell(misspell(chance.choice(m.usual), chance), chance))))


def nearly_words(m: Material, chance: random.Random) -> SearchQuery:
    """Return long nonsense words of common syllables."""
    parts = [word[at : at + 4] for word in chance.choices(m.usual, k=500) for at in (0, 2)]
    return search(filled(endless(lambda: "".join(chance.choices(parts, k=chance.randrange(3, 10))))))


def one_letter_prefix(m: Material, chance: random.Random) -> SearchQuery:
    return search(f"{chance.choice(m.frequent)} {chance.choice(m.frequent)} {chance.choice(LETTERS)}")


def letters(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: chance.choice(LETTERS))))


def one_long_word(m: Material, chance: random.Random) -> SearchQuery:
    return search("".join(chance.choices(LETTERS, k=MOST_BYTES)))


def without_spaces(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: chance.choice(m.frequent)), ""))


def joined_words(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: "".join(chance.choices(m.usual, k=3))[:40])))


def frequent_words(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: chance.choice(m.frequent))))


def numbered_words(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: f"{chance.choice(m.frequent)}{chance.randrange(20)}")))


def letters_and_digits(m: Material, chance: random.Random) -> SearchQuery:
    words = endless(lambda: "".join(f"{chance.choice(LETTERS)}{chance.randrange(10)}" for _ in range(4)))
    return search(filled(words))


def frequent_phrases(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: f'"{chance.choice(m.frequent[:40])} {chance.choice(m.frequent[:40])}"')))


def one_frequent_phrase(m: Material, chance: random.Random) -> SearchQuery:
    return search(f'"{chance.choice(m.frequent[:20])} {chance.choice(m.frequent[:20])}"')


def exclusions(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled([chance.choice(m.frequent), *(f"-{chance.choice(m.usual)}" for _ in range(200))]))


def only_exclusions(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: f'-"{chance.choice(m.frequent)} {chance.choice(m.frequent)}"')))


def compounds(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: "_".join(chance.choices(m.frequent, k=4)))))


def mistyped_compounds(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: f"{chance.choice(m.frequent)}_{misspell(chance.choice(m.usual), chance)}")))


def unfinished_compound(m: Material, chance: random.Random) -> SearchQuery:
    return search(f"{'_'.join(chance.choices(m.frequent, k=40))}_{chance.choice(LETTERS)}{chance.choice('aeiou')}")


def one_address(m: Material, chance: random.Random) -> SearchQuery:
    return search("https://" + filled(endless(lambda: chance.choice(m.frequent)), "/", MOST_BYTES - 8))


def unspaced(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(endless(lambda: chance.choice(m.unspaced)), ""))


def unspaced_letters(m: Material, chance: random.Random) -> SearchQuery:
    known = "".join(m.unspaced)
    return search(filled(endless(lambda: chance.choice(known)), ""))


def combining(m: Material, chance: random.Random) -> SearchQuery:
    marks = [chr(code) for code in range(0x300, 0x36F)]
    return search(filled(endless(lambda: "".join(letter + chance.choice(marks) for letter in chance.choice(m.usual)))))


def deep(m: Material, chance: random.Random) -> str:
    """Return a filter of the maximum depth, and nearly the maximum length."""
    inner = f"pages > {chance.randrange(5)}"
    for level in range(DEEPEST_FILTER // 2):
        inner = f"NOT ({inner} {'OR' if level % 2 else 'AND'} pages = {chance.randrange(60)})"
    dates = endless(lambda: f"date != {chance.randrange(2005, 2025)}-01-0{chance.randrange(1, 10)}")
    return filled(itertools.chain([inner], dates), " AND ", MOST_FILTER)


def deep_filter(m: Material, chance: random.Random) -> SearchQuery:
    return search(chance.choice(m.frequent), native_filter=deep(m, chance))


def negations(m: Material, chance: random.Random) -> SearchQuery:
    return search(
        chance.choice(m.frequent), native_filter="NOT " * DEEPEST_FILTER + f"pages = {chance.randrange(1, 20)}"
    )


def many_ranges(m: Material, chance: random.Random) -> SearchQuery:
    ranges = endless(lambda: f"pages {chance.randrange(9)} TO {chance.randrange(9, 99)}")
    return search(chance.choice(m.frequent), native_filter=filled(ranges, " OR ", MOST_FILTER))


def many_dates(m: Material, chance: random.Random) -> SearchQuery:
    dates = endless(lambda: f"date > 20{chance.randrange(10, 25)}-0{chance.randrange(1, 10)}-01")
    return search(chance.choice(m.frequent), native_filter=filled(dates, " AND ", MOST_FILTER))


def long_list(m: Material, chance: random.Random) -> SearchQuery:
    name, values = chance.choice((("id", m.ids), ("author", [f"'Author {n}'" for n in range(40)])))
    choices = filled(endless(lambda: chance.choice(values)), ",", MOST_FILTER - 20)
    return search("*", native_filter=f"{name} {chance.choice(('IN', 'NOT IN'))} [{choices}]")


def last_offset(m: Material, chance: random.Random) -> SearchQuery:
    return search(f"{chance.choice(m.frequent)} {chance.choice(m.usual)}", offset=LAST_OFFSET)


def deep_offset(m: Material, chance: random.Random) -> SearchQuery:
    return search(filled(chance.choices(m.frequent[:40], k=4)), offset=m.total - chance.randrange(30, m.total // 4))


def sorted_by(m: Material, chance: random.Random, names: Sequence[str], text: str = "") -> SearchQuery:
    keys = tuple(SortKey(name, chance.random() < 0.5) for name in chance.sample(names, 3))
    return search(
        text or chance.choice(m.frequent[:20]), sort=keys, offset=chance.randrange(m.total // 5, m.total // 2)
    )


def three_keys(m: Material, chance: random.Random) -> SearchQuery:
    return sorted_by(m, chance, ("author", "section", "pages", "date"))


def three_keys_of_everything(m: Material, chance: random.Random) -> SearchQuery:
    return sorted_by(m, chance, ("author", "section", "pages", "title"), "*")


def three_further_keys(m: Material, chance: random.Random) -> SearchQuery:
    return sorted_by(m, chance, FEW)


def facets_of(m: Material, chance: random.Random, names: Sequence[str], text: str = "") -> SearchQuery:
    return search(text or chance.choice(m.frequent[:40]), facets=tuple(names))


def every_facet(m: Material, chance: random.Random) -> SearchQuery:
    return facets_of(m, chance, ["*"])


def every_facet_of_everything(m: Material, chance: random.Random) -> SearchQuery:
    return facets_of(m, chance, ["*"], "*")


def every_facet_of_few(m: Material, chance: random.Random) -> SearchQuery:
    return facets_of(m, chance, ["*"], chance.choice(m.usual))


def one_different_facet(m: Material, chance: random.Random) -> SearchQuery:
    return facets_of(m, chance, [chance.choice(UNIQUE)])


def different_facets(m: Material, chance: random.Random) -> SearchQuery:
    return facets_of(m, chance, UNIQUE)


def everything_at_once(m: Material, chance: random.Random) -> SearchQuery:
    query = sorted_by(m, chance, FEW, "*")
    return search("*", sort=query.sort, offset=query.offset, facets=("*",), native_filter=deep(m, chance))


FAMILIES = (
    Family("misspelt throughout, 512 bytes", PLAIN, misspelt),
    Family("long words of known syllables", PLAIN, nearly_words),
    Family("one letter as a prefix", PLAIN, one_letter_prefix),
    Family("words of one letter, 512 bytes", PLAIN, letters),
    Family("one word of 512 letters", PLAIN, one_long_word),
    Family("text without spaces, 512 bytes", PLAIN, without_spaces),
    Family("words written together", PLAIN, joined_words),
    Family("frequent words, 512 bytes", PLAIN, frequent_words),
    Family("frequent words with numbers, 512 bytes", PLAIN, numbered_words),
    Family("words of letters and digits, 512 bytes", PLAIN, letters_and_digits),
    Family("phrases of frequent words, 512 bytes", PLAIN, frequent_phrases),
    Family("one phrase of frequent words", PLAIN, one_frequent_phrase),
    Family("exclusions, 512 bytes", PLAIN, exclusions),
    Family("excluded phrases only, 512 bytes", PLAIN, only_exclusions),
    Family("compounds, 512 bytes", PLAIN, compounds),
    Family("mistyped compounds, 512 bytes", PLAIN, mistyped_compounds),
    Family("one unfinished compound of 40 parts", PLAIN, unfinished_compound),
    Family("one address of 512 bytes", PLAIN, one_address),
    Family("script without spaces, 512 bytes", PLAIN, unspaced),
    Family("characters of such, 512 bytes", PLAIN, unspaced_letters),
    Family("combining marks, 512 bytes", PLAIN, combining),
    Family("filter of depth 50", PLAIN, deep_filter),
    Family("NOT 50 times", PLAIN, negations),
    Family("filter of ranges, 2,000 characters", PLAIN, many_ranges),
    Family("filter of dates, 2,000 characters", PLAIN, many_dates),
    Family("IN list of 2,000 characters", PLAIN, long_list),
    Family("offset 2147483647", PLAIN, last_offset),
    Family("offset near the end", PLAIN, deep_offset),
    Family("three sort keys, deep offset", PLAIN, three_keys),
    Family("the same of q=*", PLAIN, three_keys_of_everything),
    Family("facets=*", PLAIN, every_facet),
    Family("facets=* of q=*", PLAIN, every_facet_of_everything),
    Family("wide: three sort keys, deep offset", WIDE, three_further_keys),
    Family("wide: one facet, all values differ", WIDE, one_different_facet),
    Family("wide: 30 facets, all values differ", WIDE, different_facets),
    Family("wide: facets=*", WIDE, every_facet),
    Family("wide: facets=*, fewer matches", WIDE, every_facet_of_few),
    Family("wide: facets=* of q=*", WIDE, every_facet_of_everything),
    Family("wide: all of it with q=*", WIDE, everything_at_once),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=20, help="of each family")
    parser.add_argument("--index", type=Path, help="folder to keep the indexes in, and to find them in the next time")
    parser.add_argument("--only", default="", help="families whose name has this")
    parser.add_argument("--seed", type=int, default=7)
    wishes = parser.parse_args()
    documents = list(itertools.islice(read(wishes.pages), wishes.documents))
    material, ordinary = Material(documents), make_queries(documents, 60)
    families = [family for family in FAMILIES if wishes.only in family.name]
    with tempfile.TemporaryDirectory() as folder:
        backend = create_backend(f"tantivy://{(wishes.index or Path(folder)).absolute()}")
        build(backend, documents, [PLAIN, WIDE] if any(family.index == WIDE for family in families) else [PLAIN])
        del documents
        # As in the service, the garbage collector skips objects that were created before the first query.
        gc.collect()
        gc.freeze()
        print(f"{'':42}{'median':>9}{'worst':>9}{'median':>10}{'worst':>9}   times the ordinary median")
        median = usual_cost(backend, PLAIN, ordinary)
        if any(family.index == WIDE for family in families):
            usual_cost(backend, WIDE, ordinary, median)
        for family in families:
            chance = random.Random(f"{wishes.seed} {family.name}")
            costs = [cost(backend, family.index, family.make(material, chance)) for _ in range(max(1, wishes.queries))]
            print_costs(family.name, costs, median)
        backend.close()


def build(backend: SearchBackend, documents: Sequence[dict[str, Any]], indexes: Sequence[str]) -> None:
    """Create missing indexes."""
    for index in indexes:
        backend.create_index(index)
        if backend.count(index) == len(documents):
            continue
        started = time.perf_counter()
        for start in range(0, len(documents), 1000):
            batch = [
                Document(fields["id"], fields if index == PLAIN else widened(fields, start + at), start + at)
                for at, fields in enumerate(documents[start : start + 1000])
            ]
            backend.upsert(index, batch, PAGE_KINDS if index == PLAIN else WIDE_KINDS)
        print(f"{len(documents)} documents, {index}, indexed in {time.perf_counter() - started:.1f} s")
    backend.close()


def widened(fields: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a page with 90 additional fields."""
    chance = random.Random(number)
    return {
        **fields,
        **{name: f"{name} {chance.getrandbits(40):010x}" for name in UNIQUE},
        **{name: f"value {chance.randrange(at * 3 + 2)}" for at, name in enumerate(FEW)},
        **{name: chance.randrange(10 ** (at % 5 + 1)) for at, name in enumerate(NUMBERS)},
        **{name: [f"tag {chance.randrange(200)}" for _ in range(3)] for name in LISTS},
    }


def usual_cost(backend: SearchBackend, index: str, ordinary: Sequence[Query], median: float | None = None) -> float:
    """Return the median CPU milliseconds of ordinary queries, after warming up code and files."""
    queries = [
        search(
            query.text,
            native_filter="pages > 2" if query.refined else "",
            sort=(SortKey("date", True),) if query.refined else (),
            facets=("author", "section") if query.refined else (),
        )
        for query in ordinary
    ]
    for query in queries[::5]:
        cost(backend, index, query)
    costs = [cost(backend, index, query) for query in queries]
    print_costs(f"ordinary queries, {index}", costs, median or statistics.median(costs))
    return statistics.median(costs)


def print_costs(name: str, costs: Sequence[float], median: float) -> None:
    middle, worst = statistics.median(costs), max(costs)
    late = " *" if worst > TARGET * median else ""
    print(f"{name:42}{middle:9.2f}{worst:9.2f}{middle / median:10.1f}{worst / median:9.1f}{late}")


def cost(backend: SearchBackend, index: str, query: SearchQuery) -> float:
    """Return CPU milliseconds of one search."""
    kinds = PAGE_KINDS if index == PLAIN else WIDE_KINDS
    query = SearchQuery(**{name: getattr(query, name) for name in query.__slots__} | {"kinds": kinds})
    started = time.process_time()
    backend.search(index, query)
    return (time.process_time() - started) * 1000


if __name__ == "__main__":
    main()
