"""Recorded exchanges with real servers, to verify that a fake responds alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "recordings"
_TOLD = frozenset(
    {
        "message",
        "found",
        "out_of",
        "code",
        "success",
        "id",
        "name",
        "num_deleted",
        "num_documents",
        "document",
        "actions",
        "collections",
        "description",
        "expires_at",
        "value_prefix",
        "counts",
        "collection_name",
        "per_page",
        "page",
        "q",
        "ok",
        "uid",
        "status",
        "type",
        "indexUid",
        "primaryKey",
        "estimatedTotalHits",
        "totalHits",
        "totalPages",
        "hitsPerPage",
        "limit",
        "offset",
        "query",
        "facetDistribution",
        "facetHits",
        "indexes",
        "facetQuery",
    }
)
"""Members that must have the recorded value; other members need only the recorded type."""

_OPTIONAL = frozenset({"highlights", "text_match", "text_match_info", "snippet"})
"""Members that the adapters do not read."""


def recordings(engine: str) -> list[dict[str, Any]]:
    """Return the recorded exchanges of an engine, in order."""
    return [json.loads(line) for line in (_FOLDER / f"{engine}.jsonl").read_text().splitlines()]


def recorded(engine: str, name: str) -> dict[str, Any]:
    """Return the first exchange whose name starts with `name`."""
    return next(each for each in recordings(engine) if each["name"].startswith(name))


def assert_agrees(given: Any, wanted: Any, at: str = "answer") -> None:
    """Fail if a response differs from the recorded one in structure or in a significant value."""
    name = at.rsplit(".", 1)[-1]
    if name in _TOLD and not isinstance(wanted, dict | list):
        assert given == wanted, at
    elif isinstance(wanted, dict):
        assert isinstance(given, dict), at
        missing = wanted.keys() - given.keys() - _OPTIONAL
        assert not missing, f"{at} lacks {sorted(missing)}"
        for key in given.keys() & wanted.keys() - _OPTIONAL:
            assert_agrees(given[key], wanted[key], f"{at}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(given, list), at
        assert len(given) == len(wanted), at
        for number, (left, right) in enumerate(zip(given, wanted, strict=True)):
            assert_agrees(left, right, f"{at}[{number}]")
    elif isinstance(wanted, int | float) and not isinstance(wanted, bool):
        assert isinstance(given, int | float), at
    else:
        assert type(given) is type(wanted), at
