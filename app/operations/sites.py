"""A customer's sites."""

from __future__ import annotations

from typing import Any

from app.crawl.sources import removal
from app.crawl.sources.sources import forget_contents_of_site
from app.models import Site
from app.operations.changes import changing
from app.runtime import Runtime
from app.services import sites
from app.services.access.callers import Caller


def create_site(runtime: Runtime, caller: Caller, fields: dict[str, Any]) -> Site:
    """Add a site.

    Raises:
        ApiError: 403 at the plan's limit.
    """
    with changing(runtime, caller) as session:
        return sites.create_site(
            session, caller.account.id, caller.account.limits, runtime.engines.current.identity, **fields
        )


def update_site(runtime: Runtime, caller: Caller, site_id: int, changes: dict[str, Any]) -> Site:
    """Change a site, or pause it. With its first further address, or without its last, pages are read anew.

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


def delete_site(runtime: Runtime, caller: Caller, site_id: int) -> None:
    """Remove a site with everything it has.

    Raises:
        ApiError: 404.
    """
    with runtime.database.read() as session:
        sites.get_site(session, caller.account.id, site_id)
    removal.delete_pages_of_sites(runtime.database, caller.account.id, site_id)
    with changing(runtime, caller) as session:
        sites.delete_site(session, caller.account.id, site_id)
    runtime.run_engine_tasks()
