"""Search settings with which a query finds what its visitors missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backends.text import normal_form

Settings = Mapping[str, Any]
"""Search settings with all their fields, as answers show them."""


def add_synonyms(settings: Settings, word: str, synonyms: Sequence[str]) -> dict[str, Any]:
    """The settings in which a word also finds what has one of its synonyms. They join the group that has the word."""
    groups = [list(group) for group in settings["synonyms"]]
    group = next((group for group in groups if _has(group, word)), None)
    if group is None:
        group = [word]
        groups.append(group)
    for synonym in synonyms:
        if not _has(group, synonym):
            group.append(synonym)
    return {**settings, "synonyms": groups}


def _has(group: Sequence[str], word: str) -> bool:
    return normal_form(word) in map(normal_form, group)


def pin_document(settings: Settings, query: str, document_id: str) -> dict[str, Any]:
    """The settings in which a document comes first for a query, before those pinned already."""
    query = normal_form(query)
    pinned = [dict(entry) for entry in settings["pinned"]]
    entry = next((entry for entry in pinned if entry["query"] == query), None)
    if entry is None:
        entry = {"query": query, "ids": []}
        pinned.append(entry)
    entry["ids"] = [document_id, *(id for id in entry["ids"] if id != document_id)]
    return {**settings, "pinned": pinned}
