"""Pages of collections. Those of their keys are in :mod:`app.pages.keys`, and of their searches in
:mod:`app.pages.search.preview`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session

from app.errors import ApiError
from app.models import Site
from app.operations import change
from app.operations import collections as collection_operations
from app.operations.keys import BOX_KEY
from app.operations.keys import create_key as create_box_key_of
from app.pages.actions import Action
from app.pages.forms import FormTree, field_problems, number_of, refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.sites import read_paging
from app.runtime import runtime
from app.services import collections, sites
from app.services.access import keys
from app.services.collections import MAX_COLLECTIONS
from app.web.callers import current_caller
from app.web.hosts import base_url
from app.web.parsing import load_values, read_form_body
from schemas.collections import MAX_SITES, CollectionCreateSchema

OFFERED_SITES = 100
"""Maximum number of sites to choose from, besides those of the collection."""

WEIGHTS = {1.5: "Higher", 1.0: "Normal", 0.67: "Lower"}
"""The weights that forms offer. The API accepts others, which forms keep."""


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A site in the form, with what the collection says about it.

    Attributes:
        reason: Reason for not searching it: ``paused``, ``deleted``, or empty.
        weights: The weights to choose from, with their names.
        problems: Sentences about the fields.
    """

    site_id: int
    name: str
    reason: str
    is_chosen: bool
    label: str
    weight: float
    weights: Mapping[float, str]
    filters: str
    problems: Sequence[str]


def list_collections() -> str:
    """Show the account's collections."""
    account_id, paging = current_caller().account.id, read_paging()
    with runtime().database.read() as session:
        listed, total = collections.list_collections(session, account_id, **paging)
        problems = collections.find_problems(session, listed)
        site_count = sites.count_sites(session, account_id)
    return render(
        "collections.html",
        collections=listed,
        problems=problems,
        total=total,
        paging=paging,
        site_count=site_count,
        is_full=total >= MAX_COLLECTIONS,
    )


def show_collection(collection_id: int) -> str:
    """Show a collection with its sites, its problems, and the code of its search box."""
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        collection = collections.get_collection(session, account_id, collection_id)
        rows = [row for row in _rows(session, collection, [], {}) if row.is_chosen]
        _, key_count = keys.list_keys(session, account_id, collection_id, limit=1, offset=0, of_collection=True)
        box_key, sighting = keys.find_box_key(session, collection_id), keys.find_sighting(session, collection_id)
    return render(
        "collection.html",
        site=collection,
        rows=rows,
        key_count=key_count,
        box_key=box_key,
        seen=sighting,
        base_url=base_url(),
    )


def show_create_form(error: ApiError | None = None) -> str:
    """Show the form that creates a collection."""
    return _form(None, error)


def create_collection() -> Response:
    """Create a collection, with a key for its search box."""
    refill_on_error(show_create_form)
    fields = _read_fields()
    collection = collection_operations.create_collection(runtime(), current_caller(), fields, with_box_key=True)
    return see_other(f"/api/collections/{collection.id}", notice="collection-created")


def show_edit_form(collection_id: int, error: ApiError | None = None) -> str:
    """Show the form that edits a collection."""
    with runtime().database.read() as session:
        collection = collections.get_collection(session, current_caller().account.id, collection_id)
    return _form(collection, error)


def update_collection(collection_id: int) -> Response:
    """Save a collection."""
    refill_on_error(lambda error: show_edit_form(collection_id, error))
    change(runtime(), current_caller(), collections.update_collection, collection_id, _read_fields())
    return see_other(f"/api/collections/{collection_id}", notice="collection-updated")


delete_collection = Action(change, "/api/collections", "collection-deleted", step=collections.delete_collection)


def create_box_key(collection_id: int) -> Response:
    """Create a public key for a collection that has no public key with a displayable token."""
    create_box_key_of(runtime(), current_caller(), collection_id, BOX_KEY, of_collection=True)
    return see_other(f"/api/collections/{collection_id}")


def _form(collection: Site | None, error: ApiError | None) -> str:
    submitted = FormTree.of(read_form_body(request)) if error is not None else None
    problems = field_problems(error)
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        offered, total = sites.list_sites(session, account_id, limit=OFFERED_SITES, offset=0)
        rows = _rows(session, collection, offered, problems, submitted)
    name = "" if collection is None else collection.name
    fields = {
        field: f"{label} {problems[field]}."
        for field, label in (("name", "Name"), ("sites", "Sites"))
        if field in problems
    }
    is_shown = bool(fields) or any(row.problems for row in rows)
    return render(
        "collection_edit.html",
        site=collection,
        name=name if submitted is None else submitted.text("name"),
        rows=rows,
        problems=fields,
        banner=None if error is None or is_shown else error.message,
        max_sites=MAX_SITES,
        hidden_count=max(0, total - len(offered)),
    )


def _rows(
    session: Session,
    collection: Site | None,
    offered: Sequence[Site],
    problems: Mapping[str, str],
    submitted: FormTree | None = None,
) -> list[SiteRow]:
    """Return the sites of a collection in their order, then the other sites."""
    stored = {} if collection is None else {entry["site_id"]: entry for entry in collection.searched_sites or ()}
    reasons = {site.id: "paused" for site in offered if not site.active}
    names: dict[int, str] = {}
    if collection is not None:
        names = collections.read_site_names(session, collection)
        problems_of_sites = collections.find_problems(session, [collection])[collection.id]
        reasons |= {problem.site_id: problem.reason for problem in problems_of_sites}
    names |= {site.id: site.name for site in offered}
    sent = {} if submitted is None else {row.text("site_id"): row for row in submitted.rows("sites")}
    chosen = [site_id for site_id, row in sent.items() if row.text("chosen")]
    rows = []
    for site_id, name in names.items():
        entry, row = stored.get(site_id), sent.get(str(site_id))
        label, weight, filters = ("", 1.0, "") if entry is None else _values(entry)
        if row is not None:
            label, filters, number = row.text("label"), row.text("filters"), number_of(row.text("weight"))
            weight = weight if isinstance(number, str) else number
        is_chosen = entry is not None if submitted is None else str(site_id) in chosen
        below = f"sites[{chosen.index(str(site_id))}]." if str(site_id) in chosen else None
        sentences = [
            f"{field.removeprefix(below).capitalize()} {problem}."
            for field, problem in problems.items()
            if below is not None and field.startswith(below)
        ]
        weights = WEIGHTS if weight in WEIGHTS else {weight: f"× {weight:g}"} | WEIGHTS
        reason = reasons.get(site_id, "")
        rows.append(SiteRow(site_id, name, reason, is_chosen, label, weight, weights, filters, sentences))
    return rows


def _values(entry: Mapping[str, Any]) -> tuple[str, float, str]:
    return entry["label"], entry["weight"], entry["filters"]


def _read_fields() -> dict[str, Any]:
    """Read the name and the chosen sites.

    Raises:
        ApiError: 400.
    """
    form = FormTree.of(read_form_body(request))
    chosen = [
        {
            "site_id": number_of(row.text("site_id")),
            "label": row.text("label"),
            "weight": number_of(row.text("weight")),
            "filters": row.text("filters"),
        }
        for row in form.rows("sites")
        if row.text("chosen")
    ]
    return load_values(CollectionCreateSchema(), {"name": form.text("name"), "sites": chosen})
