"""Search settings from the form of rows, not yet validated, so that no input is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy.orm import Session
from werkzeug.datastructures import MultiDict

from app.models import Site
from app.pages.forms import FormTree, number_of
from app.runtime import runtime
from app.services.access.credentials import site_record
from app.services.indexing.stored_documents import known_ids, read_stored
from app.services.search.search import find_ids, find_ids_at
from backends.query import SearchQuery
from schemas.search_settings import WEIGHTED_FIELDS
from schemas.validation.documents import MAX_ID_LENGTH

Draft = dict[str, Any]
"""Settings with the structure of the API's JSON."""
Add = Callable[[str, Sequence[str], str], list[str]]
"""Adds the page that matches a text to a list. Takes the list's path, its IDs, and the text; returns the new IDs."""


@dataclass(frozen=True, slots=True)
class Section:
    """A page of search settings.

    Attributes:
        name: Last part of the page's URL.
        icon: Name of its icon in the menu.
        settings: The settings on the page. Saving the page changes only these.
    """

    name: str
    title: str
    icon: str
    lead: str
    settings: tuple[str, ...]


SECTIONS = {
    section.name: section
    for section in (
        Section(
            "synonyms",
            "Synonyms",
            "arrow-left-right",
            "Words that mean the same, so that a search for one also finds the others.",
            ("synonyms",),
        ),
        Section(
            "rules",
            "Rules",
            "split",
            "Actions for certain searches. All matching rules apply, in this order.",
            ("rules",),
        ),
        Section(
            "pinned",
            "Pinned and hidden",
            "pin",
            "Pages that come first, or never appear, for exactly one search.",
            ("pinned", "hidden"),
        ),
        Section(
            "ranking",
            "Ranking",
            "list-ordered",
            "What decides the order of results in every search.",
            ("semantic", "boosts", "recency", "rank_field", "weights"),
        ),
        Section(
            "results",
            "Results",
            "list-filter",
            "What visitors see besides the pages, and which similar pages are shown only once.",
            ("answers", "ask", "ask_instructions", "distinct", "preferred", "no_results_links", "no_results_popular"),
        ),
        Section(
            "suggestions",
            "Suggestions",
            "message-square-text",
            "What the search box offers while visitors type.",
            ("suggestions_hidden",),
        ),
        Section(
            "advanced",
            "Advanced",
            "braces",
            "Language and stop words, and all settings as JSON.",
            ("language", "stop_words"),
        ),
    )
}
"""The pages of search settings by name, in the menu's order. Learning from clicks is a part of analytics."""


def read_draft(form: MultiDict[str, str], add: Add) -> Draft:
    """Read the settings from a form of rows."""
    root = FormTree.of(form)
    preferred = {name: root.text(f"preferred_{name}") for name in ("field", "value")}
    return {
        "language": root.text("language") or None,
        "synonyms": [entry for row in root.rows("synonyms") if (entry := _synonyms(row))],
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
        "no_results_popular": number_of(text) if (text := root.text("no_results_popular")) else 0,
        "answers": root.text("answers") == "true",
        "semantic": root.text("semantic") == "true",
        "ask": root.text("ask") == "true",
        "ask_instructions": root.text("ask_instructions"),
    }


def _synonyms(row: FormTree) -> Draft | list[str] | None:
    word, words = row.text("from"), _words(row.text("words"))
    if row.text("kind") == "one_way":
        return {"from": word, "to": words} if word or words else None
    return [*([word] if word else ()), *words]


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
        when, do, number = row.child("when"), row.child("do"), len(rules)
        condition = _filled({name: when.text(name) for name in ("query", "filters", "from", "to")})
        action: Draft = _filled({name: do.text(name) for name in ("filters", "replace", "redirect")})
        for name in ("pin", "hide"):
            ids, typed = do.child(name).texts("pages"), do.child(name).text("add")
            if ids or typed:
                action[name] = add(f"rules[{number}].do.{name}", ids, typed)
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
    _name_unnamed_rules(rules)
    return rules


def _name_unnamed_rules(rules: Sequence[Draft]) -> None:
    """Assign unique names to rules without a name."""
    names = {rule["id"] for rule in rules}
    number = 1
    for rule in rules:
        if not rule["id"]:
            while f"rule-{number}" in names:
                number += 1
            rule["id"] = f"rule-{number}"
            names.add(rule["id"])


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


OFFERED = 5
"""Maximum number of pages offered for an ambiguous text."""


class Picker:
    """Finds the pages that users refer to by title, URL, or ID, for forms without JavaScript.

    Attributes:
        offered: Maps the path of a list to the IDs of candidate pages.
        problems: Maps the path of a list to the reasons why no page was added.
    """

    def __init__(self, site: Site):
        self._site = site
        self.offered: dict[str, list[str]] = {}
        self.problems: dict[str, list[str]] = {}

    def add(self, path: str, ids: Sequence[str], typed: str) -> list[str]:
        """Add the ID of the page that ``typed`` refers to, if exactly one page matches.

        Raises:
            BackendUnavailable: The engine is unavailable.
        """
        typed = typed.replace("\x00", "")[:MAX_ID_LENGTH]
        if not typed:
            return list(ids)
        candidates = self._find(typed)
        if len(candidates) == 1:
            return list(dict.fromkeys((*ids, *candidates)))
        if candidates:
            self.offered[path] = [id for id in candidates if id not in ids]
            self.problems[path] = [f"Several pages match “{typed}”. Select the right one."]
        else:
            self.problems[path] = [f"No page was found for “{typed}”."]
        return list(ids)

    def _find(self, typed: str) -> list[str]:
        with runtime().database.read() as session:
            if known_ids(session, self._site.id, [typed]):
                return [typed]
        searcher, record = runtime().searcher, site_record(self._site)
        if typed.startswith(("/", "http://", "https://")):
            return find_ids_at(searcher, record, (typed,), OFFERED)
        ids = find_ids(searcher, record, SearchQuery(typed, limit=OFFERED))
        with runtime().database.read() as session:
            titles = titles_of(session, self._site.id, ids)
        exact = [id for id in ids if titles.get(id, "").casefold() == typed.casefold()]
        return exact or ids


def titles_of(session: Session, site_id: int, ids: Iterable[str]) -> Mapping[str, str]:
    """Map IDs to the titles of their pages, or to URLs if they have no title. IDs without a page are skipped."""
    titles = {}
    for stored in read_stored(session, site_id, list(dict.fromkeys(ids))):
        fields = orjson.loads(stored.body)
        titles[stored.id] = str(fields["title"] or fields["url"])
    return titles
