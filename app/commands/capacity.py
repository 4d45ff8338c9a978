"""``capacity``: the cores, memory, and disk space that an installation needs."""

from __future__ import annotations

import math
import os

import click

from app.commands.cli import OperatorCommand, json_option, print_result
from app.operations.capacity import ENGINE_COSTS, SERVER_COSTS, Load, Needs, busiest_hour, compute_needs
from app.wording import counted


@click.command("capacity", cls=OperatorCommand)
@click.option("--sites", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option(
    "--pages", type=click.IntRange(min=1), default=200, show_default=True, help="Number of pages of each site."
)
@click.option(
    "--searches-per-day",
    type=click.FloatRange(min=0),
    default=200.0,
    show_default=True,
    help="Number of searches of each site.",
)
@click.option(
    "--keystrokes",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Requests that the search box sends for a search; 0: all searches come through the API.",
)
@click.option(
    "--changed-share",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    help="Share of a site's pages that change each day.",
)
@click.option(
    "--crawled-share",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Share of the sites that are crawled daily; the others are written to.",
)
@click.option("--pages-per-write", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--peak",
    type=click.FloatRange(min=1),
    default=5.0,
    show_default=True,
    help="Searches of the busiest hour, divided by those of an average hour.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Cores of each machine. Default: those of this machine.")
@json_option
def capacity(cores: int | None, as_json: bool, sites: int, peak: float, **options: float) -> None:
    cores = cores or os.cpu_count() or 1
    load = busiest_hour(sites, peak=peak, **options)  # type: ignore[arg-type]  # The options have these types.
    needs = compute_needs(load, peak, cores)
    print_result(as_json, _values(load, needs), _text(load, needs, cores))


def _values(load: Load, needs: Needs) -> dict[str, object]:
    pages = load.sites * load.pages
    return {
        "searches_per_second": load.searches,
        "cores": needs.cores,
        "memory_bytes": needs.memory,
        "disk_bytes": {"pages": needs.pages, "searches": needs.searches},
        "redis_cores": load.redis(SERVER_COSTS),
        "postgresql_cores": load.postgres(SERVER_COSTS),
        "engines": {
            name: {"memory_bytes": pages * costs.memory, "disk_bytes": pages * costs.disk}
            for name, costs in ENGINE_COSTS.items()
        },
    }


def _text(load: Load, needs: Needs, cores: int) -> str:
    pages = load.sites * load.pages
    machines = math.ceil(needs.cores / cores)
    alike = f"{counted(machines, 'machine')} with {counted(cores, 'core')} each"
    lines = [
        f"{load.sites:,} sites with {load.pages:,} pages each: {load.searches:,.1f} searches per second in the busiest "
        "hour.",
        "",
        "With SQLite and the embedded engine:",
        f"  {needs.cores:,.1f} cores: {alike}{'' if machines == 1 else '; several machines need the servers below'}",
        f"  {_size(needs.memory)} of memory on each",
        f"  {_size(needs.pages)} on disk for pages, and {_size(needs.searches)} for the searches of 400 days",
        "",
        "With servers, in addition to these cores:",
        f"  Redis: {load.redis(SERVER_COSTS):.0%} of its one core",
        f"  PostgreSQL: {load.postgres(SERVER_COSTS):,.1f} cores",
    ]
    lines += [
        f"  {name}: {_size(pages * costs.memory)} of memory, {_size(pages * costs.disk)} on disk"
        for name, costs in ENGINE_COSTS.items()
    ]
    return "\n".join(lines)


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB"
