"""A site's synonyms, kept in its Typesense collection.

Typesense takes synonyms from the collection, not from the query. A process looks at them when it first searches an
index and whenever the settings it is given differ from those it saw last.
"""

from __future__ import annotations

from hashlib import blake2b

from backends.servers.tokenizer import split_words
from backends.typesense.transport import TypesenseTransport

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
        there = {str(each["id"]) for each in self._transport.get(path, dict).get("synonyms", [])}
        wanted = {_name(group): group for group in map(_words, groups) if len(group) > 1}
        for name in sorted(wanted.keys() - there):
            self._transport.put(f"{path}/{name}", dict, {"synonyms": wanted[name]})
        for name in sorted(there - wanted.keys()):
            if name.startswith(_MARK):
                self._transport.delete(f"{path}/{name}", dict)
        self._kept[index] = groups

    def forget(self, index: str) -> None:
        """The collection is gone, and its synonyms with it."""
        self._kept.pop(index, None)


def _words(group: tuple[str, ...]) -> list[str]:
    return sorted({" ".join(split_words(phrase)) for phrase in group} - {""})


def _name(group: list[str]) -> str:
    return _MARK + blake2b("\0".join(group).encode(), digest_size=10).hexdigest()
