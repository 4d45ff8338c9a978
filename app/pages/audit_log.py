"""The audit log as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from app.models import AuditEntry
from app.operations import search_settings as settings_operations
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services.accounts import members
from app.services.audit_log.entries import Selection, export_csv, list_entries
from app.web.callers import current_caller
from app.web.parsing import check_query_string, load_values
from app.web.responses import csv_response
from schemas.audit_log import KINDS, AuditQuerySchema, AuditSelectionSchema

THINGS = {
    "site": "site",
    "search_settings": "search settings of",
    "key": "key",
    "source": "source",
    "member": "member",
    "invitation": "invitation of",
    "account": "account",
    "identity": "login with a provider of",
    "webhook": "webhook",
}
"""Maps each type of object to the words before its name."""
KIND_NAMES = {
    "site": "Sites",
    "search_settings": "Search settings",
    "key": "Keys",
    "source": "Sources",
    "member": "Members",
    "invitation": "Invitations",
    "account": "Plan and suspension",
    "identity": "Logins with a provider",
    "webhook": "Webhooks",
}


@dataclass(frozen=True, slots=True)
class DisplayEntry:
    """An entry for display.

    Attributes:
        sentence: A sentence without its full stop.
        changes: The change of each field.
    """

    entry: AuditEntry
    sentence: str
    changes: list[str]


def show_log() -> str:
    """Show a page of the log, with a form for filtering it."""
    arguments = _arguments()
    query = load_values(AuditQuerySchema(), arguments)
    limit, before = query.pop("limit"), query.pop("before")
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        page = list_entries(session, Selection(account_id, **query), limit=limit, before=before)
        people, _ = members.list_members(session, account_id, limit=members.MAX_MEMBERS, offset=0)
    selection = {name: arguments.get(name, "") for name in ("since", "until", "member_id", "kind")}
    narrowed = {name: value for name, value in selection.items() if value}
    return render(
        "audit_log.html",
        entries=[_display_entry(entry) for entry in page.entries],
        total=page.total,
        selection=selection,
        people=people,
        kinds=[(kind, KIND_NAMES[kind]) for kind in KINDS],
        is_narrowed=bool(narrowed),
        is_first=before is None,
        export_query=urlencode(narrowed),
        next_query=None if page.next_before is None else urlencode({**narrowed, "before": page.next_before}),
        first_query=urlencode(narrowed),
    )


def restore_settings(entry_id: int) -> Response:
    """Restore the search settings that a site had before a change.

    Raises:
        ApiError: 404, also if the settings are no longer stored.
    """
    site, _ = settings_operations.restore_settings(runtime(), current_caller(), entry_id)
    return see_other(f"/sites/{site.id}/search-settings", notice="search-settings-restored")


def export_log() -> Response:
    """Export the filtered log as CSV.

    Raises:
        ApiError: 400.
    """
    selection = Selection(current_caller().account.id, **load_values(AuditSelectionSchema(), _arguments()))
    return csv_response(export_csv(runtime().database, selection), "audit-log.csv")


def _arguments() -> dict[str, str]:
    """Return the query parameters, except empty ones, which the form sends for empty fields."""
    check_query_string(request)
    return {name: value for name, value in request.args.items() if value}


def _display_entry(entry: AuditEntry) -> DisplayEntry:
    if entry.action == "logged_in":
        return DisplayEntry(entry, "Logged in", [])
    sentence = f"{entry.action.capitalize()} {THINGS[entry.kind]} “{entry.object_name}”"
    return DisplayEntry(entry, sentence, [change_text(change) for change in entry.changes])


def change_text(change: Mapping[str, Any]) -> str:
    field = change["field"].replace("_", " ")
    if "added" in change:
        parts = [f"{name} {_text(change[name])}" for name in ("added", "removed") if change[name]]
        return f"{field}: {'; '.join(parts)}"
    if "after" not in change:
        return f"{field} changed"
    if change["before"] is None:
        return f"{field}: {_text(change['after'])}"
    return f"{field}: {_text(change['before'])} → {_text(change['after'])}"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"“{value}”"
    if isinstance(value, list):
        return ", ".join(_item_text(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items()) or "none"
    return str(value)


def _item_text(item: Any) -> str:
    """Format a list item, in brackets if it has several parts, such as a group of synonyms."""
    return f"({_text(item)})" if isinstance(item, list | dict) else _text(item)
