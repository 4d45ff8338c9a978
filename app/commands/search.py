"""``search`` and ``clicks``: rebuild, move, and delete indexes, and update the ranking that learns from clicks."""

from __future__ import annotations

import click
import orjson
from flask import current_app
from flask.cli import AppGroup
from sqlalchemy import ColumnElement, select

from app.commands.accounts import find_account
from app.commands.cli import OperatorCommand, engine_problem
from app.models import Site
from app.operations.learning import learn, sites_that_learn
from app.runtime import Runtime, runtime
from app.services.indexing.site_indexes import RebuildUnderWay, count_site_documents, drop_kept_indexes
from app.services.operator_reports import list_engine_usage
from app.wording import counted
from backends.base import SearchBackend
from backends.errors import BackendError

search_group = AppGroup("search")


def _sites(site_id: int | None, *criteria: ColumnElement[bool]) -> list[Site]:
    with runtime().database.read() as session:
        query = select(Site).where(Site.searched_sites.is_(None), *criteria).order_by(Site.id)
        if site_id is not None:
            query = query.where(Site.id == site_id)
        sites = list(session.scalars(query))
    if site_id is not None and not sites:
        raise click.ClickException(f"Site {site_id} does not exist{', or is not among these' if criteria else ''}.")
    return sites


def _rebuild_all(
    runtime: Runtime, sites: list[Site], target: SearchBackend | None, *, keep_old: bool, quiet: bool
) -> list[int]:
    with runtime.database.read() as session:
        total = sum(count_site_documents(session, site.id) for site in sites)
    rebuilt: list[int] = []
    with click.progressbar(length=total, label=f"Indexing {total:,} documents", hidden=quiet) as bar:
        for site in sites:
            try:
                runtime.rebuilder.rebuild(site.id, target, keep_old=keep_old, progress=bar.update)
            except RebuildUnderWay as error:
                raise click.ClickException(f"Another process is rebuilding the index of site {site.id}.") from error
            except BackendError as error:
                raise click.ClickException(
                    f"Site {site.id}: {engine_problem(error)} The old index stays in use; run the command again."
                ) from error
            rebuilt.append(site.id)
    return rebuilt


@search_group.command("reindex", cls=OperatorCommand)
@click.option("--site", "site_id", type=int, help="Only this site.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def reindex(site_id: int | None, as_json: bool) -> None:
    """Rebuild indexes from the stored documents. Searches continue meanwhile."""
    rebuilt = _rebuild_all(runtime(), _sites(site_id), None, keep_old=False, quiet=as_json)
    click.echo(
        orjson.dumps({"reindexed": rebuilt}).decode() if as_json else f"{counted(len(rebuilt), 'index')} rebuilt."
    )


@search_group.command("move", cls=OperatorCommand)
@click.option("--to", "name", required=True, help="Engine, by the name in its URL or, without one, by its kind.")
@click.option("--from", "origin", help="Only the sites of this engine, even if SEARCH_URL no longer has it.")
@click.option("--account", help="Only the sites of this account, by its ID or a member's email address.")
@click.option("--site", "site_id", type=int, help="Only this site.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def move(name: str, origin: str | None, account: str | None, site_id: int | None, as_json: bool) -> None:
    """Move sites to another engine of SEARCH_URL. Searches continue meanwhile; safe to interrupt and repeat."""
    current_runtime = runtime()
    try:
        target = current_runtime.engines.get_named(name)
    except KeyError:
        identities = ", ".join(engine.identity for engine in current_runtime.engines.all())
        raise click.ClickException(
            f"SEARCH_URL has no engine {name!r}; it has {identities}. Add the engine both here and for the running "
            "service, restart the service, and run this command again."
        ) from None
    criteria: list[ColumnElement[bool]] = []
    if origin is not None:
        criteria.append(Site.engine == _find_identity(current_runtime, origin))
    if account is not None:
        criteria.append(Site.account_id == find_account(account).id)
    waiting = [site for site in _sites(site_id, *criteria) if site.engine != target.identity]
    rebuilt = _rebuild_all(current_runtime, waiting, target, keep_old=True, quiet=as_json)
    text = f"{counted(len(rebuilt), 'site')} moved. Their old indexes are kept until you run `search drop-old`."
    click.echo(orjson.dumps({"moved": rebuilt}).decode() if as_json else text)


def _find_identity(runtime: Runtime, name: str) -> str:
    """Return the identity of an engine of SEARCH_URL, or of one that only sites name."""
    try:
        return runtime.engines.get_named(name).identity
    except KeyError:
        pass
    with runtime.database.read() as session:
        identities = [usage.identity for usage in list_engine_usage(session, runtime.engines)]
    if name not in identities:
        raise click.ClickException(f"No site is on an engine {name!r}; the engines are {', '.join(identities)}.")
    return name


@search_group.command("drop-old", cls=OperatorCommand)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def drop_old(as_json: bool) -> None:
    """Delete the old indexes that `search move` kept."""
    with runtime().database.write() as session:
        dropped = drop_kept_indexes(session)
    current_app.extensions["jobs"].run_all()
    text = f"{counted(dropped, 'old index')} scheduled for deletion."
    click.echo(orjson.dumps({"dropped": dropped}).decode() if as_json else text)


clicks_group = AppGroup("clicks")


@clicks_group.command("learn", cls=OperatorCommand)
@click.option("--site", "site_id", type=int, help="Only this site.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def learn_now(site_id: int | None, as_json: bool) -> None:
    """Update the ranking of sites that learn from clicks. The service does this every night."""
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        site_ids = sites_that_learn(session)
    if site_id is not None and site_id not in site_ids:
        raise click.ClickException(f"Site {site_id} does not exist, is paused, or does not learn from clicks.")
    learned: dict[str, int] = {}
    for learning_site_id in site_ids if site_id is None else [site_id]:
        try:
            queries = learn(current_runtime, learning_site_id)
        except BackendError as error:
            raise click.ClickException(
                f"Site {learning_site_id}: {engine_problem(error)} Run the command again."
            ) from error
        if queries is not None:
            learned[str(learning_site_id)] = queries
    text = (
        f"{counted(len(learned), 'site')} learned: the results of {counted(sum(learned.values()), 'search')} "
        "changed order."
    )
    click.echo(orjson.dumps({"learned": learned}).decode() if as_json else text)
