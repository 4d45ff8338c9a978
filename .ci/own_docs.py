"""Search the documentation of ``make demo`` for queries that people use, and check the results.

    python .ci/own_docs.py DATA

DATA contains ``own-docs/queries.tsv``: queries, each with the pages of which one should be among the first three hits.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.documentation import MOVED_PAGES, MOVED_SECTIONS, anchor_of
from tests.commands.test_demo import BASE_URL, prepare
from tests.conftest import close_app, make_app, make_settings

FIRST = 3
MIN_FOUND = 38


def page_with(place: str) -> str:
    """Return the page that now contains a section: ``search.md#Meaning`` -> ``tuning``."""
    file, _, heading = place.partition("#")
    name = file.removesuffix(".md")
    moved = MOVED_SECTIONS.get(name, {}).get(anchor_of(heading), name)
    return MOVED_PAGES.get(name, moved.partition("#")[0])


def main(data: Path) -> None:
    rows = [line.split("\t") for line in (data / "own-docs" / "queries.tsv").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(make_settings(Path(folder)))
        demo = prepare(app)
        (key,) = set(re.findall(r"svc_srch_\w+", demo.text))
        client = app.test_client()
        misses = []
        for query, pages in rows[1:]:
            wanted = {f"{BASE_URL}/docs/{page_with(place)}" for place in pages.split("|")}
            answer = client.get(
                "/v1/search", query_string={"q": query, "limit": FIRST}, headers={"Authorization": f"Bearer {key}"}
            ).get_json()
            urls = [hit["url"].partition("#")[0] for hit in answer["results"]["hits"]]
            if wanted.isdisjoint(urls):
                misses.append(f"{query}: {', '.join(urls)}")
        close_app(app)
    print("\n".join(misses))
    found = len(rows) - 1 - len(misses)
    print(f"{found} of {len(rows) - 1} queries find their page among the first {FIRST} hits")
    assert found >= MIN_FOUND, f"at least {MIN_FOUND} are required"


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
