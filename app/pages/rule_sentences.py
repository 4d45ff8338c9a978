"""Search rules as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_TITLES = 3
"""Maximum number of pages that a sentence names."""
_CONDITIONS = {
    "is": "When someone searches for “{}”",
    "starts": "When a search starts with “{}”",
    "contains": "When a search contains “{}”",
    "words": "When a search contains the words “{}”",
}


def rule_sentence(rule: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return a rule as a sentence, such as “When someone searches for “tickets”, show “Prices” first.”

    The rule may be a draft, which is not validated.

    Args:
        titles: Maps the IDs of pages to titles.
    """
    sentence = f"{''.join(_condition(rule['when']))}, {_list(list(_actions(rule['do'], titles))) or 'do nothing'}"
    return sentence if sentence.endswith((".”", "!”", "?”")) else f"{sentence}."


def _condition(when: Mapping[str, Any]) -> Iterator[str]:
    query = when.get("query")
    yield _CONDITIONS.get(when["match"], _CONDITIONS["is"]).format(query) if query else "For every search"
    if when.get("filters"):
        yield f" with the filter {when['filters']}"
    if when.get("from"):
        yield f" from {when['from']}"
    if when.get("to"):
        yield f" until {when['to']}"


def _actions(do: Mapping[str, Any], titles: Mapping[str, str]) -> Iterator[str]:
    if do.get("pin"):
        yield f"show {_pages(do['pin'], titles)} first"
    if do.get("hide"):
        yield f"hide {_pages(do['hide'], titles)}"
    if do.get("filters"):
        yield f"show only pages with {do['filters']}"
    if boost := do.get("boost"):
        yield f"rank pages with {boost['filters']} at {boost['rank']}"
    if do.get("replace"):
        yield f"search for “{do['replace']}” instead"
    if do.get("redirect"):
        yield f"open {do['redirect']}"
    if notice := do.get("notice"):
        yield f"show the notice “{notice.get('text', '')}”"


def _pages(ids: Sequence[str], titles: Mapping[str, str]) -> str:
    more = len(ids) - MAX_TITLES
    named_pages = [f"“{titles.get(id, id)}”" for id in ids[:MAX_TITLES]]
    return _list([*named_pages, f"{more} more"] if more > 0 else named_pages)


def _list(items: Sequence[str]) -> str:
    if len(items) < 3:
        return " and ".join(items)
    return f"{', '.join(items[:-1])}, and {items[-1]}"
