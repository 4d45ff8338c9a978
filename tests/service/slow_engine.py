"""The service with an engine that takes SLOW_SECONDS for queries with SLOW_WORD."""

from __future__ import annotations

import os
import time

from app.application import create_app
from backends.base import SearchResult
from backends.embedded.backend import TantivyBackend
from backends.query import SearchQuery

_search = TantivyBackend.search


def _search_slowly(self: TantivyBackend, index: str, query: SearchQuery) -> SearchResult:
    if os.environ["SLOW_WORD"] in query.text:
        time.sleep(float(os.environ["SLOW_SECONDS"]))
    return _search(self, index, query)


TantivyBackend.search = _search_slowly
app = create_app()
