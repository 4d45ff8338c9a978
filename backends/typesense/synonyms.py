"""Storing a site's synonyms in its Typesense collection, because queries cannot contain synonyms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from hashlib import blake2b
from typing import Any

from backends.errors import UnreadableResponse
from backends.servers.http import Budget
from backends.servers.synonyms import Entry
from backends.typesense.results import RejectedByTypesense
from backends.typesense.transport import TypesenseTransport

_MARK = "site-search-"


def put_synonyms(transport: TypesenseTransport, index: str, entries: Iterable[Entry], seconds: float | None) -> None:
    """Replace the synonyms that this service stored in a collection with ``entries``.

    Args:
        seconds: Time limit; ``None`` for the usual limit of each request.

    Raises:
        RejectedByTypesense: The collection does not exist.
        BackendUnavailable: Typesense did not apply the change in time.
    """
    budget = None if seconds is None else Budget(seconds)

    def seconds_left() -> float | None:
        return None if budget is None else budget.remaining()

    path = f"/collections/{index}/synonyms"
    stored = transport.read("GET", path, seconds=seconds_left()).json()["synonyms"]
    existing = {str(entry["id"]): _phrases(entry) for entry in stored if str(entry["id"]).startswith(_MARK)}
    needed = {_name(entry): entry for entry in _bodies(entries)}
    phrases = {**{name: _phrases(body) for name, body in needed.items()}, **existing}
    for group in _sharing_phrases(phrases):
        outdated = group & existing.keys() - needed.keys()
        # With an entry, Typesense deletes its phrases from all other entries, which must therefore be sent again, too.
        deleted = group & existing.keys() if outdated else set()
        for name in sorted(deleted):
            try:
                transport.write("DELETE", f"{path}/{name}", seconds=seconds_left())
            except RejectedByTypesense as error:
                if error.status != 404 or error.is_missing_index:
                    raise  # Otherwise another process has deleted it.
        for name in sorted(group & needed.keys() - (existing.keys() - deleted)):
            response = transport.write("PUT", f"{path}/{name}", body=needed[name], seconds=seconds_left()).json()
            if response["id"] != name:
                raise UnreadableResponse


def _phrases(entry: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(filter(None, (*entry["synonyms"], entry.get("root"))))


def _sharing_phrases(phrases: Mapping[str, Set[str]]) -> Iterator[set[str]]:
    """Yield groups of entries that share phrases, directly or through others.

    Each group is replaced at once, so that searches miss its phrases for only a few requests.
    """
    names: dict[str, list[str]] = {}
    for name, members in phrases.items():
        for phrase in members:
            names.setdefault(phrase, []).append(name)
    remaining = set(phrases)
    while remaining:
        group: set[str] = set()
        neighbors = {remaining.pop()}
        while neighbors:
            group |= neighbors
            neighbors = {name for one in neighbors for phrase in phrases[one] for name in names[phrase]} - group
        remaining -= group
        yield group


def _bodies(entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    """Yield the bodies of the requests that store the synonyms: a one-way entry has a ``root``."""
    for searched, others in entries:
        if searched == others:
            yield {"synonyms": sorted(map(" ".join, others))}
            continue
        for root in searched:
            yield {"root": " ".join(root), "synonyms": sorted(" ".join(phrase) for phrase in others if phrase != root)}


def _name(entry: Mapping[str, Any]) -> str:
    root = f"{entry['root']}\1" if "root" in entry else ""
    return _MARK + blake2b((root + "\0".join(entry["synonyms"])).encode(), digest_size=10).hexdigest()
