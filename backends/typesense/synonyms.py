"""A site's synonyms, kept in its Typesense collection.

Typesense takes synonyms from the collection, not from the query. A process looks at them when it first searches an
index and whenever the settings it is given differ from those it saw last.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import blake2b

from backends.servers.tokenizer import split_words
from backends.typesense.transport import RefusedByTypesense, TypesenseTransport

Groups = tuple[tuple[str, ...], ...]
_MARK = "site-search-"


class SynonymKeeper:
    """Brings the collections' synonyms in line with the sites' settings."""

    def __init__(self, transport: TypesenseTransport):
        self._transport = transport
        self._kept: dict[str, Groups] = {}

    def keep(self, index: str, groups: Groups) -> None:
        """Make the collection's synonyms those of ``groups``; asks nothing if they were so the last time.

        Raises:
            RefusedByTypesense: There is no such collection.
            BackendUnavailable: It was not done in time.
        """
        if self._kept.get(index) == groups:
            return
        path = f"/collections/{index}/synonyms"
        found = self._transport.get(path, dict).get("synonyms", [])
        there = {str(each["id"]): frozenset(each["synonyms"]) for each in found if str(each["id"]).startswith(_MARK)}
        wanted = {_name(group): group for group in map(_words, groups) if len(group) > 1}
        gone = _with_overlapping(there.keys() - wanted.keys(), there)
        for name in sorted(gone):
            self._delete(f"{path}/{name}")
        for name in sorted(wanted.keys() - (there.keys() - gone)):
            self._transport.put(f"{path}/{name}", dict, {"synonyms": wanted[name]})
        self._kept[index] = groups

    def forget(self, index: str) -> None:
        """The collection is gone, and its synonyms with it."""
        self._kept.pop(index, None)

    def _delete(self, path: str) -> None:
        try:
            self._transport.delete(path, dict)
        except RefusedByTypesense as error:
            if error.status != 404 or error.is_missing_index:
                raise  # Else another process did it.


def _with_overlapping(gone: Set[str], there: Mapping[str, Set[str]]) -> Set[str]:
    """Groups that must be made anew, too: with a group, Typesense forgets its phrases in every other one."""
    while True:
        phrases = {phrase for name in gone for phrase in there[name]}
        more = {name for name, group in there.items() if group & phrases}
        if more <= gone:
            return gone
        gone = more


def _words(group: tuple[str, ...]) -> list[str]:
    return sorted({" ".join(split_words(phrase)) for phrase in group} - {""})


def _name(group: list[str]) -> str:
    return _MARK + blake2b("\0".join(group).encode(), digest_size=10).hexdigest()
