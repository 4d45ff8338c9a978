"""A customer's sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.crawl.sources import removal
from app.crawl.sources.sources import forget_contents_of_site
from app.models import Site
from app.operations.changes import changing
from app.runtime import Runtime
from app.services import sites
from app.services.access import keys
from app.services.access.callers import Caller

BOX_KEY: Mapping[str, Any] = {"name": "Search box", "type": "public", "expires_at": None}
"""The key that is made with a site."""


def create_site(runtime: Runtime, caller: Caller, fields: dict[str, Any], *, with_box_key: bool = False) -> Site:
    """Add a site.

    Args:
        with_box_key: Whether it gets a public key for its search box, unless the plan allows no more keys.

    Raises:
        ApiError: 403 at the plan's limit.
    """
    account = caller.account
    with changing(runtime, caller) as session:
        site = sites.create_site(session, account.id, account.limits, runtime.engines.current.identity, **fields)
        if with_box_key and (account.limits.keys is None or keys.count_keys(session, account.id) < account.limits.keys):
            keys.create_key(
                session,
                account.id,
                account.limits,
                runtime.settings.secret_key,
                site.id,
                **BOX_KEY,
                held=caller.rights,
            )
        return site


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
