"""Storing a site's synonyms in its Typesense collection, because queries cannot contain synonyms."""

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
    """Replace the collection's synonyms by ``groups``.

    Args:
        seconds: Time limit; ``None`` for the usual limit of each request.

    Raises:
        RefusedByTypesense: The collection does not exist.
        BackendUnavailable: Typesense did not apply the change in time.
    """
    budget = None if seconds is None else Budget(seconds)

    def seconds_left() -> float | None:
        return None if budget is None else budget.remaining()

    path = f"/collections/{index}/synonyms"
    stored = transport.read("GET", path, seconds=seconds_left()).json()["synonyms"]
    existing = {str(each["id"]): frozenset(each["synonyms"]) for each in stored if str(each["id"]).startswith(_MARK)}
    needed = {_name(group): group for group in map(_words, groups) if len(group) > 1}
    outdated = _with_overlapping(existing.keys() - needed.keys(), existing)
    for name in sorted(outdated):
        try:
            transport.write("DELETE", f"{path}/{name}", seconds=seconds_left())
        except RefusedByTypesense as error:
            if error.status != 404 or error.is_missing_index:
                raise  # Otherwise another process has deleted it.
    for name in sorted(needed.keys() - (existing.keys() - outdated)):
        reply = transport.write("PUT", f"{path}/{name}", body={"synonyms": needed[name]}, seconds=seconds_left()).json()
        if reply["id"] != name:
            raise UnreadableReply


def _with_overlapping(outdated: Set[str], existing: Mapping[str, Set[str]]) -> Set[str]:
    """Groups that must be sent again too: with a group, Typesense deletes its phrases from all other groups."""
    while True:
        phrases = {phrase for name in outdated for phrase in existing[name]}
        overlapping = {name for name, group in existing.items() if group & phrases}
        if overlapping <= outdated:
            return outdated
        outdated = overlapping


def _words(group: tuple[str, ...]) -> list[str]:
    return sorted({" ".join(split_words(phrase)) for phrase in group} - {""})


def _name(group: list[str]) -> str:
    return _MARK + blake2b("\0".join(group).encode(), digest_size=10).hexdigest()
