"""A site's synonyms in its Typesense collection: Typesense takes them from there, not from the query."""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import blake2b

from backends.errors import UnreadableReply
from backends.servers.http import Budget
from backends.servers.tokenizer import split_words
from backends.typesense.transport import RefusedByTypesense, TypesenseTransport

Groups = tuple[tuple[str, ...], ...]
_MARK = "site-search-"


def put_synonyms(transport: TypesenseTransport, index: str, groups: Groups, seconds: float | None) -> None:
    """Make the collection's synonyms those of ``groups``.

    Args:
        seconds: The time for it; ``None`` for the usual one of each request.

    Raises:
        RefusedByTypesense: There is no such collection.
        BackendUnavailable: It was not done in time.
    """
    budget = None if seconds is None else Budget(seconds)

    def left() -> float | None:
        return None if budget is None else budget.remaining()

    path = f"/collections/{index}/synonyms"
    found = transport.read("GET", path, seconds=left()).json()["synonyms"]
    there = {str(each["id"]): frozenset(each["synonyms"]) for each in found if str(each["id"]).startswith(_MARK)}
    wanted = {_name(group): group for group in map(_words, groups) if len(group) > 1}
    gone = _with_overlapping(there.keys() - wanted.keys(), there)
    for name in sorted(gone):
        try:
            transport.write("DELETE", f"{path}/{name}", seconds=left())
        except RefusedByTypesense as error:
            if error.status != 404 or error.is_missing_index:
                raise  # Else another process did it.
    for name in sorted(wanted.keys() - (there.keys() - gone)):
        kept = transport.write("PUT", f"{path}/{name}", body={"synonyms": wanted[name]}, seconds=left()).json()
        if kept["id"] != name:
            raise UnreadableReply


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
