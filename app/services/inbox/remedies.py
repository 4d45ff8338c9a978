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
    """The settings in which a document comes first for a query, before those pinned already, and is not hidden."""
    query = normal_form(query)
    pinned, hidden = _ids_of(settings["pinned"], query), _ids_of(settings["hidden"], query)
    return {
        **settings,
        "pinned": _with_ids(settings["pinned"], query, [document_id, *(id for id in pinned if id != document_id)]),
        "hidden": _with_ids(settings["hidden"], query, [id for id in hidden if id != document_id]),
    }


Entries = Sequence[Mapping[str, Any]]
"""Queries with the ids of documents; of several with one query, the last holds."""


def _ids_of(entries: Entries, query: str) -> list[str]:
    return next((list(entry["ids"]) for entry in reversed(entries) if entry["query"] == query), [])


def _with_ids(entries: Entries, query: str, ids: Sequence[str]) -> list[Mapping[str, Any]]:
    others = [entry for entry in entries if entry["query"] != query]
    places = [place for place, entry in enumerate(entries) if entry["query"] == query]
    if ids:
        others.insert(places[0] if places else len(others), {"query": query, "ids": list(ids)})
    return others
