"""Search settings as the lines of text in which people write them, and what is wrong with a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.errors import Detail
from app.wording import counted, number
from schemas.search_settings import (
    MAX_GROUP_WORDS,
    MAX_GROUPS,
    MAX_HIDDEN_SUGGESTIONS,
    MAX_PINNED_IDS,
    MAX_PINNED_QUERIES,
    MAX_PREVIEWED_QUERIES,
    MAX_STOP_WORDS,
    MAX_WEIGHT,
    WEIGHTED_FIELDS,
)

ARROW = "=>"
"""Between a query and its documents' ids."""
MAX_SHOWN = 10
"""Most problems that are told of one field."""
_MOST_LINES = {
    "synonyms": MAX_GROUPS,
    "pinned": MAX_PINNED_QUERIES,
    "hidden": MAX_PINNED_QUERIES,
    "suggestions_hidden": MAX_HIDDEN_SUGGESTIONS,
    "queries": MAX_PREVIEWED_QUERIES,
}

Form = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line that says something; ``number`` counts from 1, blank ones included."""

    number: int
    text: str


def lines_of(text: str) -> list[Line]:
    """The lines of a field that are not blank."""
    return [Line(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]


def write_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as the form's texts."""
    return {
        "language": settings["language"] or "",
        "synonyms": "\n".join(", ".join(group) for group in settings["synonyms"]),
        "stop_words": ", ".join(settings["stop_words"] or ()),
        "pinned": _write_entries(settings["pinned"]),
        "hidden": _write_entries(settings["hidden"]),
        "suggestions_hidden": "\n".join(settings["suggestions_hidden"]),
        "distinct": settings["distinct"] or "",
        **{f"preferred_{name}": text for name, text in (settings["preferred"] or {}).items()},
        **{f"weight_{name}": f"{weight:g}" for name, weight in settings["weights"].items()},
    }


def read_settings(form: Form) -> dict[str, Any]:
    """The form's texts as settings, to be validated."""
    preferred = {name: form.get(f"preferred_{name}", "").strip() for name in ("field", "value")}
    weights = {name: form.get(f"weight_{name}", "").strip() for name in WEIGHTED_FIELDS}
    return {
        "language": form.get("language", "").strip() or None,
        "synonyms": [_words(line.text) for line in lines_of(form.get("synonyms", ""))],
        "stop_words": _stop_words(form) or None,
        "pinned": [_entry(line.text) for line in lines_of(form.get("pinned", ""))],
        "hidden": [_entry(line.text) for line in lines_of(form.get("hidden", ""))],
        "suggestions_hidden": [line.text for line in lines_of(form.get("suggestions_hidden", ""))],
        "distinct": form.get("distinct", "").strip() or None,
        "preferred": preferred if any(preferred.values()) else None,
        "weights": {name: _number(text) for name, text in weights.items() if text},
    }


def explain(details: Sequence[Detail], form: Form) -> dict[str, list[str]]:
    """Field of the form to what is wrong with it, in plain words; each bad line is told of once, by its number."""
    found: dict[str, dict[str, None]] = {}
    for detail in details:
        name, position = _place(detail.field)
        found.setdefault(name, {})[_explain(name, position, detail, form)] = None
    return {name: list(_bounded(list(sentences))) for name, sentences in found.items()}


def _place(path: str) -> tuple[str, int | None]:
    """The form's field of a path into the settings, and which item of its list is meant."""
    name, _, rest = path.removeprefix("settings.").partition("[")
    if name.startswith("weights."):
        return f"weight_{name.removeprefix('weights.')}", None
    if name.startswith("preferred."):
        return f"preferred_{name.removeprefix('preferred.')}", None
    position = rest.partition("]")[0]
    return name, int(position) if position else None


def _explain(name: str, position: int | None, detail: Detail, form: Form) -> str:
    if name == "stop_words":
        return _explain_stop_words(position, detail, form)
    if name in _MOST_LINES:
        lines = lines_of(form.get(name, ""))
        if position is None:
            return f"There are {counted(len(lines), 'line')}; at most {_MOST_LINES[name]} are allowed."
        line = lines[position]
        if name in ("suggestions_hidden", "queries"):
            return f"Line {line.number} is invalid: it {_predicate(detail)}."
        explain = _explain_group if name == "synonyms" else _explain_entry
        return f"Line {line.number} {explain(line.text, detail)}"
    if name == "preferred_value":
        return f"This {_predicate(detail)}."
    if name in ("distinct", "preferred_field"):
        return "This must be the name of a field: a letter, then letters, digits, _ and -."
    if name == "language":
        return "This language is not supported; choose one from the list."
    return f"This must be a number from 0 to {MAX_WEIGHT:g}, such as 0.5."


def _explain_group(text: str, detail: Detail) -> str:
    words = _words(text)
    if len(words) < 2:
        return "has only one word; enter at least two synonyms, separated by commas."
    if len(words) > MAX_GROUP_WORDS:
        return f"has {counted(len(words), 'word')}; at most {MAX_GROUP_WORDS} are allowed."
    return f"has an invalid word: it {_predicate(detail)}."


def _explain_entry(text: str, detail: Detail) -> str:
    entry = _entry(text)
    if ARROW not in text:
        return f"has no {ARROW} between the query and the ids."
    if not entry["query"].strip():
        return f"has no query before {ARROW}."
    if not entry["ids"]:
        return f"has no id after {ARROW}."
    if len(entry["ids"]) > MAX_PINNED_IDS:
        return f"has {counted(len(entry['ids']), 'id')}; at most {MAX_PINNED_IDS} are allowed."
    part = "query" if detail.field.endswith("].query") else "id"
    return f"has an invalid {part}: it {_predicate(detail)}."


def _explain_stop_words(position: int | None, detail: Detail, form: Form) -> str:
    words = _stop_words(form)
    if position is None:
        return f"There are {counted(len(words), 'word')}; at most {number(MAX_STOP_WORDS)} are allowed."
    return f"The word “{words[position][:30]}…” is invalid: it {_predicate(detail)}."


def _predicate(detail: Detail) -> str:
    """The problem without the name of the field before it."""
    return detail.message.partition(" ")[2]


def _bounded(sentences: Sequence[str]) -> Iterator[str]:
    yield from sentences[:MAX_SHOWN]
    if len(sentences) > MAX_SHOWN:
        yield "There are more problems; only the first ones are listed."


def _write_entries(entries: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(f"{entry['query']} {ARROW} {', '.join(entry['ids'])}" for entry in entries)


def _entry(line: str) -> dict[str, Any]:
    query, _, ids = line.partition(ARROW)
    return {"query": query, "ids": _words(ids)}


def _stop_words(form: Form) -> list[str]:
    return _words(form.get("stop_words", "").replace("\n", ","))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
