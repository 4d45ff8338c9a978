"""Sites of an account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import Account, EngineCredential, Key, Site
from app.plans import QUOTA_REFUSALS, PlanLimits, PlanTable
from app.services import outbox
from app.storage.database import ROW_LOCK, Database
from app.wording import counted
from schemas.validation.sites import domain_of

MAX_INT64 = 2**63 - 1


def site_not_found() -> ApiError:
    """The 404 for a site that does not exist or is another account's."""
    return ApiError(ErrorCode.SITE_NOT_FOUND, "Site not found.")


def get_site(session: Session, account_id: int, site_id: int, *, lock: bool = False) -> Site:
    """The one door to a site: load it for a caller.

    Args:
        account_id: The caller's account.
        lock: Whether nobody else may change the site until the transaction ends.

    Raises:
        ApiError: 404 if it does not exist or belongs to another account.
    """
    if not 0 < site_id <= MAX_INT64:
        raise site_not_found()
    query = select(Site).where(Site.id == site_id, Site.account_id == account_id)
    site = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if site is None:
        raise site_not_found()
    return site


def get_writable_site(session: Session, account_id: int, site_id: int) -> Site:
    """Load and lock a site whose documents are to change.

    Raises:
        ApiError: 404; 403 ``site_inactive`` when it is paused.
    """
    site = get_site(session, account_id, site_id, lock=True)
    if not site.active:
        raise site_inactive()
    return site


def site_inactive() -> ApiError:
    """The 403 for a paused site."""
    return ApiError(ErrorCode.SITE_INACTIVE, "The site is paused; resume it to search or index.")


def get_account(session: Session, account_id: int, *, lock: bool = False) -> Account:
    """The caller's own account; locked, so that limits that races could pass are counted one after another."""
    query = select(Account).where(Account.id == account_id)
    account = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    if account is None:
        raise ApiError(ErrorCode.INVALID_API_KEY, "The account no longer exists.")
    return account


def limits_of_account(database: Database, plans: PlanTable, account_id: int) -> PlanLimits:
    """The limits of an account's plan, as it is now."""
    with database.read() as session:
        account = get_account(session, account_id)
    return plans.limits_of(account.plan, account.limit_overrides)


def list_sites(
    session: Session, account_id: int, *, limit: int, offset: int, only: int | None = None
) -> tuple[Sequence[Site], int]:
    """One page of the account's sites, oldest first, and how many there are.

    Args:
        only: The one site that the caller may see; ``None`` for all.
    """
    own = [Site.account_id == account_id, *([] if only is None else [Site.id == only])]
    sites = session.scalars(select(Site).where(*own).order_by(Site.id).limit(limit).offset(offset)).all()
    return sites, session.scalar(select(func.count()).select_from(Site).where(*own)) or 0


def count_sites(session: Session, account_id: int) -> int:
    """The number of sites the account has."""
    return session.scalar(select(func.count()).select_from(Site).where(Site.account_id == account_id)) or 0


def count_documents(session: Session, account_id: int) -> int:
    """The number of documents the account's sites have together."""
    return int(session.scalar(select(func.sum(Site.document_count)).where(Site.account_id == account_id)) or 0)


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
    """Add a site.

    Args:
        engine: Identity of the engine that will hold its index.

    Raises:
        ApiError: 403 at the plan's limit.
    """
    get_account(session, account_id, lock=True)
    if limits.sites is not None and count_sites(session, account_id) >= limits.sites:
        QUOTA_REFUSALS.labels("sites").inc()
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
    site.engine_index = site.index_name(site.index_generation)
    session.flush()
    return site


def update_site(session: Session, account_id: int, site_id: int, changes: dict[str, Any]) -> Site:
    """Change fields of a site that its owner may change. Pausing ends the engine keys made for it.

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


def delete_site(session: Session, account_id: int, site_id: int) -> None:
    """Remove a site with its keys; documents, events, index and engine keys follow, however long the engine is away.

    Raises:
        ApiError: 404.
    """
    remove_site(session, get_site(session, account_id, site_id, lock=True))


def remove_site(session: Session, site: Site) -> None:
    """The same for a loaded site."""
    lock_keys(session, Key.site_id == site.id)
    end_engine_credentials(session, site)
    outbox.add(session, site.engine, outbox.DELETE_INDEX, site.engine_index)
    outbox.add(session, site.engine, outbox.PURGE_SITE, f"{site.account_id}:{site.id}")
    session.delete(site)
    session.flush()


def lock_keys(session: Session, which: ColumnElement[bool]) -> None:
    """Lock keys that are to be deleted, in the order in which whoever changes several locks them; sites come before."""
    session.execute(select(Key.id).where(which).order_by(Key.id).with_for_update())


def end_engine_credentials(session: Session, site: Site, *, key_id: str | None = None) -> None:
    """Stop the engine keys handed out for a site, or for one of its service keys."""
    if key_id is None:
        site.public_epoch += 1
        end_direct_keys(session, EngineCredential.site_id == site.id)
    else:
        end_direct_keys(session, EngineCredential.site_id == site.id, EngineCredential.key_id == key_id)


def end_direct_keys(session: Session, *which: ColumnElement[bool]) -> None:
    """Stop keys of the engine's own."""
    for credential in session.scalars(select(EngineCredential).where(*which)):
        outbox.add(session, credential.engine, outbox.REVOKE_CREDENTIAL, credential.reference)
        session.delete(credential)
