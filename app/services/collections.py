"""Collections: several sites of an account that are searched as one.

A collection is stored as a :class:`~app.models.Site` without documents, so it has keys, searches, and analytics like
any site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, Detail, ErrorCode, field_error
from app.models import Key, Site
from app.services.engines import PURGE_SITE, add_task
from app.services.sites import MAX_INT64, get_account, get_site, lock_keys
from app.storage.database import ROW_LOCK, read_page
from backends.errors import BackendRejected
from backends.filters import parse_filter

MAX_COLLECTIONS = 20
"""Maximum number of collections of an account."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A site that a collection names but does not search.

    Attributes:
        name: Name of the site; ``None`` if it no longer exists.
        reason: ``deleted`` or ``paused``.
    """

    site_id: int
    name: str | None
    reason: str


def collection_not_found() -> ApiError:
    """Return the 404 for a collection that does not exist or belongs to another account."""
    return ApiError(ErrorCode.COLLECTION_NOT_FOUND, "Collection not found.")


def get_collection(session: Session, account_id: int, collection_id: int, *, lock: bool = False) -> Site:
    """Load a collection for a caller.

    Raises:
        ApiError: 404.
    """
    if not 0 < collection_id <= MAX_INT64:
        raise collection_not_found()
    query = select(Site).where(Site.id == collection_id, _of_account(account_id))
    collection = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if collection is None:
        raise collection_not_found()
    return collection


def list_collections(session: Session, account_id: int, *, limit: int, offset: int) -> tuple[Sequence[Site], int]:
    """Return one page of the account's collections, oldest first, and their total number."""
    return read_page(session, select(Site).where(_of_account(account_id)).order_by(Site.id), limit=limit, offset=offset)


def read_site_names(session: Session, collection: Site) -> dict[int, str]:
    """Return the names of a collection's sites by ID, in its order; ``Site 7`` if site 7 no longer exists."""
    ids = [entry["site_id"] for entry in collection.searched_sites or ()]
    names = {row.id: row.name for row in session.execute(select(Site.id, Site.name).where(Site.id.in_(ids)))}
    return {site_id: names.get(site_id, f"Site {site_id}") for site_id in ids}


def find_problems(session: Session, collections: Sequence[Site]) -> dict[int, list[Problem]]:
    """Return the sites that each collection names but does not search, by ID of the collection."""
    named = {entry["site_id"] for collection in collections for entry in collection.searched_sites or ()}
    rows = session.execute(select(Site.id, Site.name, Site.active, Site.deleted_at).where(Site.id.in_(named)))
    sites = {row.id: row for row in rows}
    problems: dict[int, list[Problem]] = {collection.id: [] for collection in collections}
    for collection in collections:
        for entry in collection.searched_sites or ():
            site = sites.get(entry["site_id"])
            if site is None or site.deleted_at is not None:
                name = None if site is None else site.name
                problems[collection.id].append(Problem(entry["site_id"], name, "deleted"))
            elif not site.active:
                problems[collection.id].append(Problem(entry["site_id"], site.name, "paused"))
    return problems


def create_collection(session: Session, account_id: int, engine: str, fields: Mapping[str, Any]) -> Site:
    """Create a collection.

    Args:
        engine: Identity of any configured engine.
        fields: ``name`` and ``sites``.

    Raises:
        ApiError: 404 for a site of another account; 400 for an invalid filter; 403 at the limit.
    """
    get_account(session, account_id, lock=True)
    count = session.scalar(select(func.count()).select_from(Site).where(_of_account(account_id))) or 0
    if count >= MAX_COLLECTIONS:
        raise ApiError(
            ErrorCode.COLLECTION_LIMIT_REACHED, f"An account can have {MAX_COLLECTIONS} collections; delete one first."
        )
    moment = now()
    collection = Site(
        account_id=account_id,
        name=fields["name"],
        url="",
        domain="",
        engine=engine,
        searched_sites=_checked_sites(session, account_id, fields["sites"]),
        created_at=moment,
        updated_at=moment,
    )
    session.add(collection)
    session.flush()
    return collection


def update_collection(session: Session, account_id: int, collection_id: int, changes: Mapping[str, Any]) -> Site:
    """Change a collection's name or sites.

    A site that was deleted since may stay in the list.

    Raises:
        ApiError: 404 for the collection, or for a site of another account; 400 for an invalid filter.
    """
    collection = get_collection(session, account_id, collection_id, lock=True)
    if "sites" in changes:
        named = {entry["site_id"] for entry in collection.searched_sites or ()}
        collection.searched_sites = _checked_sites(session, account_id, changes["sites"], named)
    if "name" in changes:
        collection.name = changes["name"]
    collection.updated_at = now()
    session.flush()
    return collection


def delete_collection(session: Session, account_id: int, collection_id: int) -> None:
    """Delete a collection with its keys and its analytics. Its sites stay as they are.

    Raises:
        ApiError: 404.
    """
    collection = get_collection(session, account_id, collection_id, lock=True)
    lock_keys(session, Key.site_id == collection.id)
    add_task(session, collection.engine, PURGE_SITE, f"{account_id}:{collection.id}")
    session.delete(collection)
    session.flush()


def collections_with(session: Session, account_id: int, site_id: int) -> list[Site]:
    """Return the collections that name a site, oldest first."""
    collections = session.scalars(select(Site).where(_of_account(account_id)).order_by(Site.id))
    return [each for each in collections if any(entry["site_id"] == site_id for entry in each.searched_sites or ())]


def _of_account(account_id: int) -> Any:
    return and_(Site.account_id == account_id, Site.searched_sites.is_not(None))


def _checked_sites(
    session: Session, account_id: int, sites: Sequence[Mapping[str, Any]], known: Set[int] = frozenset()
) -> list[dict[str, Any]]:
    ids = [entry["site_id"] for entry in sites]
    for position, entry in enumerate(sites):
        if entry["site_id"] in ids[:position]:
            raise field_error(f"sites[{position}].site_id", "duplicate", "is in the list twice")
        if entry["site_id"] not in known:
            get_site(session, account_id, entry["site_id"])
        if entry["filters"]:
            try:
                parse_filter(entry["filters"])
            except BackendRejected as error:
                field = f"sites[{position}].filters"
                detail = Detail(field, ErrorCode.INVALID_FILTER.value, str(error), {"position": error.position})
                raise ApiError(ErrorCode.INVALID_FILTER, f"{field}: {error}", details=[detail]) from error
    return [dict(entry) for entry in sites]
