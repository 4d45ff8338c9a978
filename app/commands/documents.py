"""``documents import``: import a file of documents into a site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson
from flask.cli import AppGroup

from app.commands.cli import OperatorCommand, engine_problem
from app.errors import ApiError
from app.importers.fields import read_column_map
from app.importers.formats import FORMATS, guess_format, read_file
from app.importers.records import Read, UnreadableFile
from app.models import Site
from app.operations.imports import FileImport, ImportOutcome, LineProblem, progress_sentence
from app.runtime import runtime
from app.services.sites import limits_of_account
from app.wording import counted, printable
from backends.errors import BackendError

group = AppGroup("documents")

MAX_SHOWN = 20


@group.command("import", cls=OperatorCommand)
@click.option("--site", "site_id", type=int, required=True, help="ID of the site to import into.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the file. Default: csv for .csv, wxr for XML, else jsonl.",
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Fill a field from a column with another name. =COLUMN skips a column. Can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_documents(site_id: int, form: str | None, columns: tuple[str, ...], as_json: bool, file: Path) -> None:
    """Import documents: a WordPress export, CSV, JSON, or an export of another search engine.

    Invalid lines are skipped and reported by line number, invalid records of an array by record number.
    """
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        site = session.get(Site, site_id)
    if site is None:
        raise click.ClickException(f"Site {site_id} does not exist.")
    limits = limits_of_account(current_runtime.database, current_runtime.plans, site.account_id)
    job = FileImport(current_runtime.writer, site.account_id, limits, site_id, current_runtime.settings.max_site_fields)
    try:
        column_map = read_column_map("\n".join(columns))
        with (
            file.open("rb") as stream,
            click.progressbar(length=file.stat().st_size, label="Importing", hidden=as_json) as bar,
        ):
            reads = read_file(stream, form or guess_format(stream, file.name), column_map)
            job.run(_with_progress(reads, stream, bar))
    except UnreadableFile as error:
        subject = "--map" if error.field == "map" else str(file)
        raise click.ClickException(f"{subject} {error.problem}.{progress_sentence(job.outcome)}") from error
    except ApiError as error:
        raise click.ClickException(error.message + progress_sentence(job.outcome)) from error
    except BackendError as error:
        raise click.ClickException(
            f"{engine_problem(error)} The documents imported so far are stored and will become searchable."
            + progress_sentence(job.outcome)
        ) from error
    _report(as_json, job.outcome)
    if job.outcome.skipped:
        raise SystemExit(1)


def _with_progress(reads: Iterator[Read], stream: BinaryIO, bar: Any) -> Iterator[Read]:
    printed = 0
    for read in reads:
        yield read
        here = stream.tell()
        bar.update(here - printed)
        printed = here


def _report(as_json: bool, outcome: ImportOutcome) -> None:
    groups = [list(group) for _, group in groupby(outcome.problems, key=lambda problem: (problem.line, problem.record))]
    if as_json:
        response = {
            "imported": outcome.indexed,
            "created": outcome.created,
            "updated": outcome.updated,
            "skipped": outcome.skipped,
            "problems": [_encode_problems(group) for group in groups],
        }
        click.echo(orjson.dumps(response).decode())
        return
    click.echo(f"{counted(outcome.indexed, 'document')} imported ({outcome.created:,} new).")
    for group in groups[:MAX_SHOWN]:
        click.echo(f"{group[0].location}: {printable('; '.join(problem.message for problem in group))}", err=True)
    if outcome.skipped > MAX_SHOWN:
        click.echo(f"and {counted(outcome.skipped - MAX_SHOWN, 'more invalid line')}", err=True)


def _encode_problems(group: Sequence[LineProblem]) -> dict[str, Any]:
    record = {} if group[0].record is None else {"record": group[0].record}
    return {"line": group[0].line, **record, "problems": [problem.message for problem in group]}
