"""``documents import``: a file of documents into a site."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
from flask.cli import AppGroup

from app.errors import ApiError
from app.models import Site
from app.plans import PlanLimits
from app.runtime import runtime
from app.services.site_fields import TooManySiteFields
from app.services.sites import get_account
from app.wording import counted
from backends.errors import BackendError
from schemas.validation.documents import RECOMMENDED_BATCH, DocumentProblems, ValidDocument, read_document

group = AppGroup("documents", help="Import documents from a file.")

MAX_SHOWN = 20


@group.command("import")
@click.option("--site", "site_id", type=int, required=True, help="ID of the site to import into.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_documents(site_id: int, as_json: bool, file: Path) -> None:
    """Import documents from JSON lines, a JSON array, or CSV, detected from the extension or the first character.

    Invalid lines are skipped and reported with their line numbers.
    """
    part = runtime()
    with part.database.read() as session:
        site = session.get(Site, site_id)
    if site is None:
        raise click.ClickException(f"Site {site_id} does not exist.")
    problems: list[dict[str, Any]] = []
    imported = created = 0
    batch: dict[str, ValidDocument] = {}

    def send() -> None:
        nonlocal imported, created
        while batch:
            documents = list(batch.values())
            try:
                outcome = part.writer.put(site.account_id, _limits_of(site.account_id), site_id, documents)
            except TooManySiteFields as error:
                for surplus in error.surplus:
                    document = batch.pop(documents[surplus.place].id)
                    wrong = f"document {error.predicate(surplus, part.settings.max_site_fields)}"
                    problems.append({"line": document.position, "problems": [wrong]})
            else:
                imported += outcome.indexed
                created += outcome.created
                batch.clear()

    try:
        with click.progressbar(length=file.stat().st_size, label="Importing", hidden=as_json) as bar:
            for line, raw, size in _rows(file):
                bar.update(size)
                try:
                    document = read_document(raw, line) if not isinstance(raw, _Unreadable) else None
                except DocumentProblems as error:
                    problems.append(
                        {"line": line, "problems": [f"{name or 'document'} {p}" for name, p in error.problems]}
                    )
                    continue
                if document is None:
                    problems.append({"line": line, "problems": [str(raw)]})
                    continue
                batch.pop(document.id, None)
                batch[document.id] = document
                if len(batch) >= RECOMMENDED_BATCH:
                    send()
            send()
    except ApiError as error:
        raise click.ClickException(
            f"{error.message} Imported before the error: {counted(imported, 'document')}."
        ) from error
    except BackendError as error:
        raise click.ClickException(
            f"{error} The documents imported so far are stored and will become searchable."
        ) from error
    problems.sort(key=lambda problem: problem["line"])
    _report(as_json, imported, created, problems)
    if problems:
        raise SystemExit(1)


def _limits_of(account_id: int) -> PlanLimits:
    part = runtime()
    with part.database.read() as session:
        account = get_account(session, account_id)
    return part.plans.limits_of(account.plan, account.limit_overrides)


def _report(as_json: bool, imported: int, created: int, problems: list[dict[str, Any]]) -> None:
    if as_json:
        click.echo(orjson.dumps({"imported": imported, "created": created, "problems": problems}).decode())
        return
    click.echo(f"{counted(imported, 'document')} imported, {created:,} of them new.")
    for problem in problems[:MAX_SHOWN]:
        click.echo(f"line {problem['line']}: {'; '.join(problem['problems'])}", err=True)
    if len(problems) > MAX_SHOWN:
        click.echo(f"and {counted(len(problems) - MAX_SHOWN, 'more invalid line')}", err=True)


class _Unreadable(str):
    """Why a line is no document at all."""


def _rows(file: Path) -> Iterator[tuple[int, Any, int]]:
    """Line number, what stands there, and how many bytes further the file was read."""
    if file.suffix.lower() == ".csv":
        yield from _csv_rows(file)
        return
    with file.open("rb") as stream:
        start = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    yield from (_array_rows(file) if start == b"[" else _line_rows(file))


def _line_rows(file: Path) -> Iterator[tuple[int, Any, int]]:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not text.strip():
                continue
            try:
                yield number, orjson.loads(text), len(line)
            except orjson.JSONDecodeError as error:
                yield number, _Unreadable(f"is not valid JSON: {error}"), len(line)


def _array_rows(file: Path) -> Iterator[tuple[int, Any, int]]:
    content = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        rows = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{file} is not valid JSON: {error}") from error
    for number, row in enumerate(rows, 1):
        yield number, row, len(content) // len(rows)


def _csv_rows(file: Path) -> Iterator[tuple[int, Any, int]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            for row in reader:
                if None in row or None in row.values():
                    yield reader.line_num, _Unreadable("has a different number of cells than the first line"), 0
                    continue
                yield (
                    reader.line_num,
                    {name: value for name, value in row.items() if value != "" or name in _KEPT_EMPTY},
                    0,
                )
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file} is not UTF-8.") from error


_KEPT_EMPTY = ("title", "content")
