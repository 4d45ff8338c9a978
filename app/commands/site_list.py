"""``site list``: the sites of all accounts, with their engines. It opens only the database and the plans."""

from __future__ import annotations

import click

from app.commands.cli import OperatorCommand, json_option, open_storage, print_result
from app.models import Site
from app.services.operator_reports import describe_site, list_sites
from app.wording import number, printable

_HEAD = ("id", "account", "engine", "documents", "url", "name")


@click.command("list", cls=OperatorCommand)
@click.option("--account", "account_id", type=int, help="Only the sites of the account with this ID.")
@click.option("--engine", help="Only the sites of this engine, such as typesense:second.")
@json_option
@click.pass_context
def list_all_sites(ctx: click.Context, account_id: int | None, engine: str | None, as_json: bool) -> None:
    database, _ = open_storage(ctx)
    with database.read() as session:
        sites = list_sites(session, account_id=account_id, engine=engine)
    rows = [_HEAD, *map(_row, sites)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    text = "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    print_result(as_json, [describe_site(site) for site in sites], text if sites else "No sites.")


def _row(site: Site) -> tuple[str, ...]:
    return (
        str(site.id),
        str(site.account_id),
        site.engine,
        number(site.document_count),
        printable(site.url),
        printable(site.name),
    )
