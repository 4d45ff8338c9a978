"""Search settings as a form of rows sends them: not validated, and nothing that was typed is lost.

A field is named by its place, such as ``rules.3.when.query``. Rows are numbered, in their order; a row in which nothing
stands is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from werkzeug.datastructures import MultiDict

from schemas.search_settings import WEIGHTED_FIELDS

Draft = dict[str, Any]
"""Settings as JSON has them."""
Add = Callable[[str, Sequence[str], str], list[str]]
"""Adds to a list of pages what was typed to name one: from the list's place, its ids, and the text."""

MAX_DEPTH = 5
"""Most parts of a field's name."""


def read_draft(form: MultiDict[str, str], add: Add) -> Draft:
    """The settings that a form of rows holds."""
    root = _Node.of(form)
    preferred = {name: root.text(f"preferred_{name}") for name in ("field", "value")}
    recency = root.child("recency")
    return {
        "language": root.text("language") or None,
        "synonyms": [words for row in root.rows("synonyms") if (words := _words(row.text("words")))],
        "stop_words": _words(root.text("stop_words")) or None,
        "pinned": _entries(root, "pinned", add),
        "hidden": _entries(root, "hidden", add),
        "weights": {name: _number(text) for name in WEIGHTED_FIELDS if (text := root.child("weights").text(name))},
        "suggestions_hidden": [text for row in root.rows("suggestions_hidden") if (text := row.text("text"))],
        "distinct": root.text("distinct") or None,
        "preferred": preferred if any(preferred.values()) else None,
        "rules": _rules(root, add),
        "boosts": [_boost(row) for row in root.rows("boosts") if row.text("value")],
        "rank_field": root.text("rank_field") or None,
        "recency": _filled({"field": recency.text("field"), "half_life_days": _number(recency.text("half_life_days"))})
        if recency.text("half_life_days")
        else None,
        "no_results_links": [
            {"text": row.text("text"), "url": row.text("url")}
            for row in root.rows("no_results_links")
            if row.text("text") or row.text("url")
        ],
    }


class _Node:
    """Fields of a form whose names begin alike."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}
        self._children: dict[str, _Node] = {}

    @classmethod
    def of(cls, form: MultiDict[str, str]) -> _Node:
        root = cls()
        for name in form:
            *path, leaf = name.split(".", MAX_DEPTH)
            node = root
            for part in path:
                node = node._children.setdefault(part, cls())
            node._values[leaf] = [text.replace("\r\n", "\n").strip() for text in form.getlist(name)]
        return root

    def text(self, name: str) -> str:
        return self._values.get(name, [""])[-1]

    def texts(self, name: str) -> list[str]:
        return list(dict.fromkeys(text for text in self._values.get(name, ()) if text))

    def child(self, name: str) -> _Node:
        return self._children.get(name, _Node())

    def rows(self, name: str) -> list[_Node]:
        children = self.child(name)._children
        numbered = [key for key in children if key.isascii() and key.isdigit() and len(key) < 16]
        return [children[key] for key in sorted(numbered, key=int)]


def _entries(root: _Node, name: str, add: Add) -> list[Draft]:
    entries: list[Draft] = []
    for row in root.rows(name):
        query, ids, typed = row.text("query"), row.texts("pages"), row.text("add")
        if query or ids or typed:
            entries.append({"query": query, "ids": add(f"{name}[{len(entries)}].ids", ids, typed)})
    return entries


def _rules(root: _Node, add: Add) -> list[Draft]:
    rules: list[Draft] = []
    for row in root.rows("rules"):
        when, do, place = row.child("when"), row.child("do"), len(rules)
        condition = _filled({name: when.text(name) for name in ("query", "filters", "from", "to")})
        action: Draft = _filled({name: do.text(name) for name in ("filters", "replace", "redirect")})
        for name in ("pin", "hide"):
            ids, typed = do.child(name).texts("pages"), do.child(name).text("add")
            if ids or typed:
                action[name] = add(f"rules[{place}].do.{name}", ids, typed)
        if do.child("boost").text("filters"):
            action["boost"] = {
                "filters": do.child("boost").text("filters"),
                "rank": _number(do.child("boost").text("rank")),
            }
        notice = _filled({name: do.child("notice").text(name) for name in ("text", "url")})
        if notice:
            action["notice"] = notice
        if condition or action:
            condition["match"] = when.text("match") or "is"
            enabled = row.text("enabled") == "true"
            rules.append({"id": row.text("id"), "when": condition, "do": action, "enabled": enabled})
    _name_new(rules)
    return rules


def _name_new(rules: Sequence[Draft]) -> None:
    """Give rules without a name one that no other has."""
    taken = {rule["id"] for rule in rules}
    number = 1
    for rule in rules:
        if not rule["id"]:
            while f"rule-{number}" in taken:
                number += 1
            rule["id"] = f"rule-{number}"
            taken.add(rule["id"])


def _boost(row: _Node) -> Draft:
    kind = "filters" if row.text("kind") == "filters" else "path"
    return {kind: row.text("value"), "rank": _number(row.text("rank"))}


def _filled(values: Mapping[str, Any]) -> Draft:
    return {name: value for name, value in values.items() if value}


def _words(text: str) -> list[str]:
    return [word for part in text.replace("\n", ",").split(",") if (word := part.strip())]


def _number(text: str) -> float | str:
    """The number that a text is; the text itself if it is none, so that validation tells."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
