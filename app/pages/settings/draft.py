"""Search settings as a form of rows sends them: not validated, and nothing that was typed is lost.

A field is named by its place, such as ``rules.3.when.query``. Rows are numbered, in their order; a row in which nothing
stands is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from werkzeug.datastructures import MultiDict

from app.pages.form_tree import FormTree, number_of
from schemas.search_settings import WEIGHTED_FIELDS

Draft = dict[str, Any]
"""Settings as JSON has them."""
Add = Callable[[str, Sequence[str], str], list[str]]
"""Adds to a list of pages what was typed to name one: from the list's place, its ids, and the text."""


def read_draft(form: MultiDict[str, str], add: Add) -> Draft:
    """The settings that a form of rows holds."""
    root = FormTree.of(form)
    preferred = {name: root.text(f"preferred_{name}") for name in ("field", "value")}
    return {
        "language": root.text("language") or None,
        "synonyms": [words for row in root.rows("synonyms") if (words := _words(row.text("words")))],
        "stop_words": _words(root.text("stop_words")) or None,
        "pinned": _entries(root, "pinned", add),
        "hidden": _entries(root, "hidden", add),
        "weights": {name: number_of(text) for name in WEIGHTED_FIELDS if (text := root.child("weights").text(name))},
        "suggestions_hidden": [text for row in root.rows("suggestions_hidden") if (text := row.text("text"))],
        "distinct": root.text("distinct") or None,
        "preferred": preferred if any(preferred.values()) else None,
        "rules": _rules(root, add),
        "boosts": [_boost(row) for row in root.rows("boosts") if row.text("value")],
        "rank_field": root.text("rank_field") or None,
        "recency": _recency(root.child("recency")),
        "no_results_links": [
            {"text": row.text("text"), "url": row.text("url")}
            for row in root.rows("no_results_links")
            if row.text("text") or row.text("url")
        ],
        "answers": root.text("answers") == "true",
        "semantic": root.text("semantic") == "true",
    }


def _entries(root: FormTree, name: str, add: Add) -> list[Draft]:
    entries: list[Draft] = []
    for row in root.rows(name):
        query, ids, typed = row.text("query"), row.texts("pages"), row.text("add")
        if query or ids or typed:
            entries.append({"query": query, "ids": add(f"{name}[{len(entries)}].ids", ids, typed)})
    return entries


def _rules(root: FormTree, add: Add) -> list[Draft]:
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
                "rank": number_of(do.child("boost").text("rank")),
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


def _recency(node: FormTree) -> Draft | None:
    days = node.text("half_life_days")
    return _filled({"field": node.text("field"), "half_life_days": number_of(days)}) if days else None


def _boost(row: FormTree) -> Draft:
    kind = "filters" if row.text("kind") == "filters" else "path"
    return {kind: row.text("value"), "rank": number_of(row.text("rank"))}


def _filled(values: Mapping[str, Any]) -> Draft:
    return {name: value for name, value in values.items() if value}


def _words(text: str) -> list[str]:
    return [word for part in text.replace("\n", ",").split(",") if (word := part.strip())]
