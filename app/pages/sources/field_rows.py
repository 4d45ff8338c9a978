"""Rules for the fields of a source's pages, as rows of a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from werkzeug.datastructures import MultiDict

from app.pages.form_tree import FormTree

PLACES = {
    "selector": "a CSS selector",
    "meta": "a meta element",
    "json_ld": "the JSON-LD",
    "path": "the address",
}
"""Where a value can be, and what that is called."""

Row = dict[str, Any]


def write_rows(rules: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rules as rows; each says which rule it is of, since one for addresses can set several fields."""
    rows: list[Row] = []
    for rule, stored in enumerate(rules):
        if "path" in stored:
            given = {"kind": "path", "place": stored["path"], "all": False, "rule": rule}
            rows += [{"name": name, "value": value, **given} for name, value in stored["set"].items()]
            continue
        kind = next((kind for kind in PLACES if kind in stored), "selector")
        rows.append(
            {
                "name": stored.get("name", ""),
                "kind": kind,
                "place": stored.get(kind, ""),
                "value": stored.get("attribute", ""),
                "all": stored.get("all", False),
                "rule": rule,
            }
        )
    return rows


def read_rows(form: MultiDict[str, str]) -> list[Row]:
    """The rules that a form's rows are; neighbours for the same addresses are one."""
    rules: list[Row] = []
    for row in FormTree.of(form).rows("fields"):
        name, kind, place, value = (row.text(part) for part in ("name", "kind", "place", "value"))
        if not (name or place or value):
            continue
        last = rules[-1] if rules else {}
        if kind != "path":
            rule = {"name": name, kind if kind in PLACES else "selector": place}
            more = {"attribute": value} if value and kind == "selector" else {}
            rules.append({**rule, **more, **({"all": True} if row.text("all") == "true" else {})})
        elif last.get("path") == place and name not in last["set"]:
            last["set"][name] = value
        else:
            rules.append({"path": place, "set": {name: value}})
    return rules
