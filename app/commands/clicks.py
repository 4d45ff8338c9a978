"""``clicks learn``: update the ranking of sites that learn from clicks."""

from __future__ import annotations

import click
import orjson
from flask.cli import AppGroup

from app.runtime import runtime
from app.services.learning import learn, sites_that_learn
from app.wording import counted
from backends.errors import BackendError

group = AppGroup("clicks", help="Rank results by visitors' clicks.")


@group.command("learn")
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
    for each in site_ids if site_id is None else [site_id]:
        try:
            queries = learn(current_runtime, each)
        except BackendError as error:
            raise click.ClickException(f"Site {each}: {error} Run the command again.") from error
        if queries is not None:
            learned[str(each)] = queries
    text = (
        f"{counted(len(learned), 'site')} learned: the results of {counted(sum(learned.values()), 'search')} have "
        "another order."
    )
    click.echo(orjson.dumps({"learned": learned}).decode() if as_json else text)
