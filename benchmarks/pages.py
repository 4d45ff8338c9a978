"""HTML pages in folders as documents: ``python -m benchmarks.pages OUT.jsonl.gz [--most N] FOLDER …``

Debian's ``*-doc`` packages install many pages in ``/usr/share/doc``. Pages are read in a fixed pseudo-random order, so
that the first N pages are a mix of all kinds. Each page is truncated at 60,000 characters.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

_DROPPED = re.compile(r"<(script|style|head|nav)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]+>")
_SPACE = re.compile(r"\s+")
LONGEST = 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=1_000_000)
    wishes = parser.parse_args()
    files = sorted(
        {path.resolve() for folder in wishes.folders for path in folder.rglob("*.htm*") if path.is_file()},
        key=lambda path: hashlib.sha256(str(path).encode()).digest(),
    )
    written = 0
    with gzip.open(wishes.out, "wt", encoding="utf-8", compresslevel=3) as out:
        for document in documents(files):
            out.write(json.dumps(document, ensure_ascii=False) + "\n")
            written += 1
            if written >= wishes.most:
                break
    print(f"{written} documents")


def documents(files: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield pages with a title and some text, and each text once."""
    seen: set[bytes] = set()
    for path in files:
        source = path.read_text(encoding="utf-8", errors="replace").replace("\0", " ")
        title = _TITLE.search(source)
        text = _SPACE.sub(" ", html.unescape(_TAG.sub(" ", _DROPPED.sub(" ", source)))).strip()[:LONGEST]
        mark = hashlib.sha256(text.encode()).digest()
        if title is None or len(text) < 200 or mark in seen:
            continue
        seen.add(mark)
        number = int.from_bytes(mark[:4], "big")
        yield {
            "id": mark.hex()[:20],
            "title": _SPACE.sub(" ", html.unescape(_TAG.sub(" ", title[1]))).strip()[:300] or path.stem,
            "content": text,
            "url": "/" + quote(path.name),
            "author": f"Author {number % 40}",
            "date": f"{2005 + number % 20}-{1 + number // 7 % 12:02d}-{1 + number // 91 % 28:02d}",
            "section": path.parent.name[:60] or "root",
            "pages": len(text) // 1000 + 1,
        }


if __name__ == "__main__":
    main()
