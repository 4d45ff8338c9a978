"""Sites of an account, including deleted ones.

A deleted site stays in the trash for :data:`RETENTION`, paused: it keeps its data and can be restored, but is not
searchable and counts toward no quota. The trash contains up to the number of sites and documents that the plan allows;
when it is full, the sites that were deleted first are removed early. Other modules load sites with :func:`get_site`, or
select them with :func:`listed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from app.clock import isoformat, now
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, EngineCredential, Key, Site
from app.plans import QUOTA_REJECTIONS, PlanLimits, PlanTable
from app.services.engines import DELETE_INDEX, PURGE_SITE, REVOKE_CREDENTIAL, add_task
from app.storage.database import ROW_LOCK, Database, read_page
from app.wording import counted, number
from schemas.validation.sites import domain_of

MAX_INT64 = 2**63 - 1

RETENTION = timedelta(days=30)
"""Time in which a deleted site can be restored."""


def site_not_found() -> ApiError:
    """Return the 404 for a site that does not exist or belongs to another account."""
    return ApiError(ErrorCode.SITE_NOT_FOUND, "Site not found.")


def listed(account_id: int) -> ColumnElement[bool]:
    """Return the condition for the sites of an account, excluding sites in the trash, and collections."""
    return and_(owned(account_id), Site.searched_sites.is_(None))


def owned(account_id: int) -> ColumnElement[bool]:
    """Return the condition for the sites and collections of an account, excluding sites in the trash."""
    return and_(Site.account_id == account_id, Site.deleted_at.is_(None))


def get_site(
    session: Session,
    account_id: int,
    site_id: int,
    *,
    lock: bool = False,
    include_deleted: bool = False,
    or_collection: bool = False,
) -> Site:
    """Load a site for a caller. All access to a site goes through this function.

    Args:
        account_id: The caller's account.
        lock: Whether to lock the row until the transaction ends.
        include_deleted: Whether to include sites in the trash.
        or_collection: Whether the ID may be a collection's, for callers that read only what both have.

    Raises:
        ApiError: 404 if it does not exist, is in the trash, or belongs to another account.
    """
    # The database would reject a larger number with an error.
    if not 0 < site_id <= MAX_INT64:
        raise site_not_found()
    query = select(Site).where(Site.id == site_id, Site.account_id == account_id)
    if not or_collection:
        query = query.where(Site.searched_sites.is_(None))
    if not include_deleted:
        query = query.where(Site.deleted_at.is_(None))
    site = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if site is None:
        raise site_not_found()
    return site


def get_writable_site(session: Session, account_id: int, site_id: int) -> Site:
    """Load and lock a site in order to change its documents.

    Raises:
        ApiError: 404; 403 ``site_inactive`` if it is paused or in the trash.
    """
    site = get_site(session, account_id, site_id, lock=True, include_deleted=True)
    if not site.active:
        raise site_inactive(deleted=site.deleted_at is not None)
    return site


def site_inactive(*, deleted: bool = False) -> ApiError:
    """Return the 403 for a paused or deleted site."""
    if deleted:
        return ApiError(ErrorCode.SITE_INACTIVE, "The site was deleted; restore it first.")
    return ApiError(ErrorCode.SITE_INACTIVE, "The site is paused; resume it to search or index.")


def account_suspended(reason: str) -> ApiError:
    """Return the 403 for all users of a suspended account."""
    return ApiError(ErrorCode.ACCOUNT_SUSPENDED, f"The account is suspended. {reason}".strip())


class AccountMissing(ApiError):
    """The 401 for a caller whose account was deleted."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.INVALID_API_KEY, "The account no longer exists.")


def get_account(session: Session, account_id: int, *, lock: bool = False) -> Account:
    """Return an account. Locking it serializes checks of limits.

    Raises:
        AccountMissing: The account does not exist.
    """
    query = select(Account).where(Account.id == account_id)
    account = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if account is None:
        raise AccountMissing
    return account


def account_status(account: Account) -> str:
    """Return the status of an account: ``active`` or ``suspended``."""
    return "active" if account.suspended_at is None else "suspended"


def describe_account(account: Account) -> dict[str, Any]:
    """Return the account's fields as the operator API, its webhook events, and the commands show them."""
    return {
        "id": account.id,
        "email": account.email,
        "name": account.name,
        "plan": account.plan,
        "limits": account.limit_overrides,
        "status": account_status(account),
        "suspended_at": None if account.suspended_at is None else isoformat(account.suspended_at),
        "suspension_reason": account.suspension_reason,
        "created_at": isoformat(account.created_at),
    }


def limits_of_account(database: Database, plans: PlanTable, account_id: int) -> PlanLimits:
    """Return the current limits of an account's plan."""
    with database.read() as session:
        account = get_account(session, account_id)
    return plans.limits_of(account.plan, account.limit_overrides)


def list_sites(
    session: Session, account_id: int, *, limit: int, offset: int, only: int | None = None
) -> tuple[Sequence[Site], int]:
    """Return one page of the account's sites, oldest first, and their total number.

    Args:
        only: ID of the only site that the caller may see; ``None`` for all.
    """
    conditions = [listed(account_id), *([] if only is None else [Site.id == only])]
    return read_page(session, select(Site).where(*conditions).order_by(Site.id), limit=limit, offset=offset)


def count_sites(session: Session, account_id: int) -> int:
    """Return the number of sites of the account."""
    return session.scalar(select(func.count()).select_from(Site).where(listed(account_id))) or 0


def count_documents(session: Session, account_id: int) -> int:
    """Return the number of documents on all sites of the account."""
    return int(session.scalar(select(func.sum(Site.document_count)).where(listed(account_id))) or 0)


def count_keys(session: Session, account_id: int) -> int:
    """Return the number of keys of all sites and collections of the account, including disabled and expired keys."""
    return session.scalar(select(func.count()).select_from(Key).join(Site).where(owned(account_id))) or 0


def count_by_engine(session: Session) -> dict[str, tuple[int, int]]:
    """Map the identity of each engine with sites to the number of their documents, and of the sites themselves."""
    rows = session.execute(
        select(Site.engine, func.sum(Site.document_count).label("documents"), func.count().label("sites"))
        .where(Site.searched_sites.is_(None))
        .group_by(Site.engine)
    )
    return {row.engine: (int(row.documents), row.sites) for row in rows}


def create_site(
    session: Session,
    account_id: int,
    limits: PlanLimits,
    engine: str,
    *,
    name: str,
    url: str,
    domains: Sequence[str] = (),
) -> Site:
    """Create a site.

    Args:
        engine: Identity of the engine for its index.

    Raises:
        ApiError: 403 at the plan's limit.
    """
    get_account(session, account_id, lock=True)
    if limits.sites is not None and count_sites(session, account_id) >= limits.sites:
        QUOTA_REJECTIONS.labels("sites").inc()
        raise ApiError(
            ErrorCode.SITE_LIMIT_REACHED,
            f"The plan allows {counted(limits.sites, 'site')}; delete one or change the plan.",
        )
    moment = now()
    site = Site(
        account_id=account_id,
        name=name,
        url=url,
        domain=domain_of(url),
        engine=engine,
        created_at=moment,
        updated_at=moment,
    )
    if domains:
        site.domains = list(domains)
    session.add(site)
    session.flush()
    # The name contains the ID, which the flush has assigned.
    site.engine_index = site.index_name(site.index_generation)
    session.flush()
    return site


def update_site(session: Session, account_id: int, site_id: int, changes: dict[str, Any]) -> Site:
    """Change fields of a site that its owner may change. Pausing it revokes its engine keys.

    Raises:
        ApiError: 404.
    """
    site = get_site(session, account_id, site_id, lock=True)
    if changes.get("active") is False and site.active:
        end_engine_credentials(session, site)
    if "url" in changes:
        site.domain = domain_of(changes["url"])
    for name, value in changes.items():
        setattr(site, name, value)
    site.updated_at = now()
    session.flush()
    return site


def list_deleted(session: Session, account_id: int) -> Sequence[Site]:
    """Return the account's sites that can be restored, most recently deleted first."""
    is_restorable = Site.account_id == account_id, Site.deleted_at > now() - RETENTION
    return session.scalars(select(Site).where(*is_restorable).order_by(Site.deleted_at.desc(), Site.id)).all()


def list_ended(session: Session) -> list[tuple[int, int]]:
    """Return account and ID of deleted sites that can no longer be restored.

    Excludes sites of suspended accounts, whose members could not have restored them.
    """
    ended = select(Site.account_id, Site.id).join(Account, Account.id == Site.account_id)
    ended = ended.where(Site.deleted_at <= now() - RETENTION, Account.suspended_at.is_(None))
    return [(row.account_id, row.id) for row in session.execute(ended.order_by(Site.id))]


def delete_site(
    session: Session, account_id: int, limits: PlanLimits, site_id: int, *, name: str | None, purge: bool
) -> list[int]:
    """Move a site to the trash and revoke its engine keys.

    Args:
        limits: The plan's limits, which also apply to the trash.
        name: The site's name according to the caller; ``None`` skips the check.
        purge: Whether to remove the site permanently; it may already be in the trash.

    Returns:
        IDs of sites that can no longer be restored; the caller must remove them with :func:`remove_site`.

    Raises:
        ApiError: 404; 400 if it has another name.
    """
    get_account(session, account_id, lock=True)
    site = get_site(session, account_id, site_id, lock=True, include_deleted=purge)
    if name is not None and name.strip() != site.name:
        raise field_error("name", "mismatch", "is not the name of this site")
    if site.deleted_at is None:
        end_engine_credentials(session, site)
        site.was_active, site.active = site.active, False
        site.deleted_at = now()
    if purge:
        # Backdated, so that it counts as expired.
        site.deleted_at = min(site.deleted_at, now() - RETENTION)
    session.flush()
    purged = [] if purge else _sites_beyond_limits(list_deleted(session, account_id), limits, newest=site)
    for other in purged:
        other.deleted_at = now() - RETENTION
    session.flush()
    return [other.id for other in purged] + [site.id] * purge


def _sites_beyond_limits(deleted: Sequence[Site], limits: PlanLimits, newest: Site) -> list[Site]:
    """Return the sites deleted first that no longer fit in the trash. The site deleted last always fits.

    Args:
        deleted: The trash, most recently deleted first.
    """
    others = [site for site in deleted if site is not newest]
    documents = newest.document_count
    for index, site in enumerate(others):
        documents += site.document_count
        if (limits.sites is not None and index + 2 > limits.sites) or (
            limits.documents is not None and documents > limits.documents
        ):
            return others[index:]
    return []


def restore_site(session: Session, account_id: int, limits: PlanLimits, site_id: int) -> Site:
    """Restore a site from the trash. Does nothing if the site is not in the trash.

    Raises:
        ApiError: 404, also for a site that is being removed; 403 if the plan's limits do not allow the site, its keys,
            or its documents.
    """
    get_account(session, account_id, lock=True)
    site = get_site(session, account_id, site_id, lock=True, include_deleted=True)
    if site.deleted_at is None:
        return site
    if site.deleted_at <= now() - RETENTION:
        raise site_not_found()
    site.deleted_at = None
    site.active = site.was_active
    site.updated_at = now()
    session.flush()
    # Counted after restoring, in the same transaction, which an error rolls back.
    for code, noun, allowed, count in (
        (ErrorCode.SITE_LIMIT_REACHED, "site", limits.sites, count_sites),
        (ErrorCode.KEY_LIMIT_REACHED, "key", limits.keys, count_keys),
        (ErrorCode.DOCUMENT_LIMIT_REACHED, "document", limits.documents, count_documents),
    ):
        total = count(session, account_id)
        if allowed is not None and total > allowed:
            QUOTA_REJECTIONS.labels(f"{noun}s").inc()
            raise ApiError(
                code,
                f"The plan allows {counted(allowed, noun)}; with this site there would be {number(total)}. Delete "
                "some or change the plan.",
            )
    return site


def remove_site(session: Session, site: Site) -> None:
    """Remove a site with its keys.

    The outbox removes its documents, events, index, and engine keys, however long the engine is unavailable.
    """
    lock_keys(session, Key.site_id == site.id)
    end_engine_credentials(session, site)
    if site.searched_sites is None:  # A collection has no index.
        add_task(session, site.engine, DELETE_INDEX, site.engine_index)
    add_task(session, site.engine, PURGE_SITE, f"{site.account_id}:{site.id}")
    session.delete(site)
    session.flush()


def lock_keys(session: Session, condition: ColumnElement[bool]) -> None:
    """Lock keys before deleting them, in the order that all functions use. Lock sites before keys."""
    session.execute(select(Key.id).where(condition).order_by(Key.id).with_for_update())


def end_engine_credentials(session: Session, site: Site, *, key_id: str | None = None) -> None:
    """Revoke the engine keys issued for a site, or for one of its API keys."""
    if key_id is None:
        site.public_epoch += 1
        end_direct_keys(session, EngineCredential.site_id == site.id)
    else:
        end_direct_keys(session, EngineCredential.site_id == site.id, EngineCredential.key_id == key_id)


def end_direct_keys(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Revoke credentials issued by an engine."""
    for credential in session.scalars(select(EngineCredential).where(*conditions)):
        add_task(session, credential.engine, REVOKE_CREDENTIAL, credential.reference)
        session.delete(credential)
