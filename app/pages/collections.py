"""Pages of collections. Those of their keys are in :mod:`app.pages.keys`, and of their searches in
:mod:`app.pages.search.preview`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session

from app.errors import ApiError
from app.models import Site
from app.operations import change
from app.operations import collections as collection_operations
from app.operations import keys as key_operations
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
"""Maximum number of sites that the form offers, in addition to the collection's own sites."""

WEIGHTS = {1.5: "Higher", 1.0: "Normal", 0.67: "Lower"}
"""The weights that forms offer. The API accepts others, which forms keep."""


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A site in the form, with what the collection says about it.

    Attributes:
        reason: Reason for not searching it: ``paused``, ``deleted``, or empty.
        problems: A sentence about each invalid field, by its name.
    """

    site_id: int
    name: str
    reason: str
    is_chosen: bool
    label: str = ""
    weight: float = 1.0
    filters: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def weights(self) -> Mapping[float, str]:
        """The weights to choose from, with their names."""
        return WEIGHTS if self.weight in WEIGHTS else {self.weight: f"× {self.weight:g}"} | WEIGHTS


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
        rows = _rows(session, collection, [])
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
    key_operations.create_key(runtime(), current_caller(), collection_id, key_operations.BOX_KEY, of_collection=True)
    return see_other(f"/api/collections/{collection_id}")


def _form(collection: Site | None, error: ApiError | None) -> str:
    with runtime().database.read() as session:
        offered, total = sites.list_sites(session, current_caller().account.id, limit=OFFERED_SITES, offset=0)
        rows = _rows(session, collection, offered)
    name = "" if collection is None else collection.name
    problems = field_problems(error)
    if error is not None:
        form = FormTree.of(read_form_body(request))
        name, rows = form.text("name"), _refilled(rows, form, problems)
    wrong = {each: _sentence(each, problems[each]) for each in ("name", "sites") if each in problems}
    is_shown = wrong or any(row.problems for row in rows)
    return render(
        "collection_edit.html",
        site=collection,
        name=name,
        rows=rows,
        problems=wrong,
        banner=None if error is None or is_shown else error.message,
        max_sites=MAX_SITES,
        hidden_count=total - len(offered),
    )


def _rows(session: Session, collection: Site | None, offered: Sequence[Site]) -> list[SiteRow]:
    """Return the sites of a collection in their order, then the other sites."""
    stored: dict[int, Mapping[str, Any]] = {}
    names: dict[int, str] = {}
    reasons = {site.id: "paused" for site in offered if not site.active}
    if collection is not None:
        stored = {entry["site_id"]: entry for entry in collection.searched_sites or ()}
        names = collections.read_site_names(session, collection)
        problems = collections.find_problems(session, [collection])[collection.id]
        reasons |= {problem.site_id: problem.reason for problem in problems}
    names |= {site.id: site.name for site in offered}
    rows = []
    for site_id, name in names.items():
        row = SiteRow(site_id, name, reasons.get(site_id, ""), is_chosen=site_id in stored)
        if entry := stored.get(site_id):
            row = replace(row, label=entry["label"], weight=entry["weight"], filters=entry["filters"])
        rows.append(row)
    return rows


def _refilled(rows: Sequence[SiteRow], form: FormTree, problems: Mapping[str, str]) -> list[SiteRow]:
    """Return the rows with the submitted values and their problems, which count only the chosen sites."""
    submitted = {row.text("site_id"): row for row in form.rows("sites")}
    chosen = [site_id for site_id, row in submitted.items() if row.text("chosen")]
    refilled = []
    for row in rows:
        site_id = str(row.site_id)
        values, weight = submitted.get(site_id, FormTree()), row.weight
        if not isinstance(number := number_of(values.text("weight")), str):
            weight = number
        wrong = {}
        if site_id in chosen:
            path = f"sites[{chosen.index(site_id)}]."
            fields = {name: problems.get(path + name) for name in ("site_id", "label", "weight", "filters")}
            wrong = {name: _sentence(name, problem) for name, problem in fields.items() if problem}
        label, filters = values.text("label"), values.text("filters")
        is_chosen = site_id in chosen
        refilled.append(replace(row, is_chosen=is_chosen, label=label, weight=weight, filters=filters, problems=wrong))
    return refilled


def _sentence(name: str, problem: str) -> str:
    """``("label", "is too long") -> "Label is too long."``; problems of filters already are sentences."""
    return problem if problem.endswith(".") else f"{name.capitalize()} {problem}."


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
