"""Creating, changing, and deleting sites."""

from __future__ import annotations

from typing import Any

from app.crawl.sources import removal
from app.crawl.sources.runs import cancel_runs_of_sites
from app.crawl.sources.sources import forget_contents_of_site
from app.models import Site
from app.operations import changing
from app.operations.attempts import counting
from app.operations.keys import add_box_key
from app.runtime import Runtime
from app.services import sites
from app.services.access.callers import Caller
from app.services.access.credentials import credential_change
from app.services.usage.daily_usage import recording_documents
from app.services.usage.quota import new_sites_window
from app.storage.database import ROW_LOCK
from backends.base import SearchBackend

MIN_FREE_SHARE = 0.1
"""Minimum free share of an engine's disk and memory for new sites."""


def choose_engine(runtime: Runtime, plan: str) -> SearchBackend:
    """Return the engine for a new site: the engine that the account's plan names, or else the engine with the fewest
    documents.

    An engine that doesn't respond, or has little disk or memory left, is chosen only if no engine is better off.
    """
    engines, health = runtime.engines, runtime.health
    if name := runtime.plans.offers[plan].engine:
        return engines.get_named(name)
    candidates = engines.all()
    if len(candidates) == 1:
        return candidates[0]
    candidates = [engine for engine in candidates if not health.engine_failing_since(engine.identity)] or candidates
    candidates = [engine for engine in candidates if health.free_share(engine.identity) >= MIN_FREE_SHARE] or candidates
    with runtime.database.read() as session:
        loads = sites.count_by_engine(session)
    return min(candidates, key=lambda engine: loads.get(engine.identity, (0, 0)))


def create_site(runtime: Runtime, caller: Caller, fields: dict[str, Any], *, with_box_key: bool = False) -> Site:
    """Create a site.

    Args:
        with_box_key: Whether to create a public key for its search box, unless the plan allows no more keys.

    Raises:
        ApiError: 403 at the plan's limit; 429 after too many sites in a day.
    """
    account = caller.account
    engine = choose_engine(runtime, account.plan)
    with (
        counting(runtime, [new_sites_window(account.id, account.limits)], "new sites"),
        changing(runtime, caller) as session,
    ):
        site = sites.create_site(session, account.id, account.limits, engine.identity, **fields)
        if with_box_key:
            add_box_key(session, runtime, caller, site.id)
        return site


def update_site(runtime: Runtime, caller: Caller, site_id: int, changes: dict[str, Any]) -> Site:
    """Change or pause a site.

    After its first additional domain is added, or its last one removed, all pages are read again.

    Raises:
        ApiError: 404.
    """
    with changing(runtime, caller) as session:
        named_domains = bool(sites.get_site(session, caller.account.id, site_id, lock=True).domains)
        site = sites.update_site(session, caller.account.id, site_id, changes)
        if bool(site.domains) != named_domains:
            forget_contents_of_site(session, site)
    runtime.run_engine_tasks()
    return site


def delete_site(
    runtime: Runtime, caller: Caller, site_id: int, *, name: str | None = None, purge: bool = False
) -> None:
    """Move a site to the trash and stop its runs. Sites that no longer fit in the trash are removed.

    Args:
        name: The site's name, to confirm the deletion; ``None`` skips this check.
        purge: Whether to remove the site permanently; it may already be in the trash.

    Raises:
        ApiError: 404; 400 for a wrong name.
    """
    account = caller.account
    with changing(runtime, caller) as session, recording_documents(session, account.id):
        ended = sites.delete_site(session, account.id, account.limits, site_id, name=name, purge=purge)
    with runtime.database.write() as session:
        cancel_runs_of_sites(session, [site_id])
    for ended_id in ended:
        _purge(runtime, account.id, ended_id)
    runtime.run_engine_tasks()


def restore_site(runtime: Runtime, caller: Caller, site_id: int) -> Site:
    """Restore a site from the trash. Does nothing if the site is not in the trash.

    Raises:
        ApiError: 404; 403 if the plan's limits do not allow it.
    """
    with changing(runtime, caller) as session, recording_documents(session, caller.account.id):
        return sites.restore_site(session, caller.account.id, caller.account.limits, site_id)


def purge_deleted(runtime: Runtime) -> None:
    """Delete all data of sites that can no longer be restored."""
    with runtime.database.read() as session:
        ended = sites.list_ended(session)
    for account_id, site_id in ended:
        _purge(runtime, account_id, site_id)
    if ended:
        runtime.run_engine_tasks()


def _purge(runtime: Runtime, account_id: int, site_id: int) -> None:
    removal.delete_pages_of_sites(runtime.database, account_id, site_id)
    with credential_change(runtime.database, runtime.counters, account_id) as session:
        site = session.get(Site, site_id, with_for_update=ROW_LOCK)
        if site is not None:  # Otherwise, another process was first.
            sites.remove_site(session, site)
