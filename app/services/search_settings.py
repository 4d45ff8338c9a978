"""A site's search settings, as stored and as the engines take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.base import SearchSettings


def read_settings(stored: Mapping[str, Any]) -> SearchSettings:
    """The stored JSON as a value."""
    if not stored:
        return SearchSettings()
    stop_words = stored.get("stop_words")
    return SearchSettings(
        language=stored.get("language"),
        synonyms=tuple(tuple(group) for group in stored.get("synonyms", ())),
        stop_words=None if stop_words is None else frozenset(stop_words),
        pinned={entry["query"]: tuple(entry["ids"]) for entry in stored.get("pinned", ())},
        weights=dict(stored.get("weights", {})),
    )
