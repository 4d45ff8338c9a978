"""SQLite FTS5 behind a bare Flask view: the search that a developer could write in an afternoon."""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import Any

from flask import Flask, jsonify, request

app = Flask(__name__)
_local = threading.local()

_HITS = (
    "SELECT id, title, content, url, author, section, date, snippet(site, 2, '<em>', '</em>', '…', 30) "
    "FROM site WHERE site MATCH ?{refined} ORDER BY {order} LIMIT {limit}"
)


def _database() -> sqlite3.Connection:
    if not hasattr(_local, "database"):
        _local.database = sqlite3.connect(f"file:{os.environ['FTS5_FILE']}?mode=ro", uri=True)
    return _local.database  # type: ignore[no-any-return]


@app.get("/search")
def search() -> Any:
    """Return 20 hits, best first. The last word is a prefix."""
    words = [f'"{word}"' for word in request.args["q"].replace('"', " ").split()]
    match = " ".join(words) + "*"
    refined = "refined" in request.args
    database = _database()
    sql = _HITS.format(
        limit=int(request.args["limit"]),
        refined=" AND pages > 2" if refined else "",
        order="date DESC" if refined else "bm25(site, 0, 5, 1)",
    )
    names = ("id", "title", "content", "url", "author", "section", "date", "snippet")
    hits = [dict(zip(names, row, strict=True)) for row in database.execute(sql, (match,))]
    answer: dict[str, Any] = {"hits": hits}
    answer["total"] = database.execute("SELECT count(*) FROM site WHERE site MATCH ?", (match,)).fetchone()[0]
    if refined:
        answer["facets"] = {
            name: dict(
                database.execute(
                    f"SELECT {name}, count(*) FROM site WHERE site MATCH ? AND pages > 2 "
                    "GROUP BY 1 ORDER BY 2 DESC LIMIT 100",
                    (match,),
                ).fetchall()
            )
            for name in ("author", "section")
        }
    return jsonify(answer)
