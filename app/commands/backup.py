"""``backup`` and ``restore``."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

import click
from flask.cli import with_appcontext

from app.clock import isoformat, now
from app.commands.cli import OperatorCommand
from app.config import Settings
from app.runtime import runtime
from app.services.emails.letters import discard_queued_emails
from app.services.indexing.site_indexes import renew_indexes
from app.services.webhooks import discard_waiting
from app.storage.backup_file import BackupError, is_in_use, read_file, read_manifest, restored_tables, write_backup
from app.wording import counted

SECRET, PLANS = "secret_key", "plans.toml"

_NAME = re.compile(r"site-search-\d{4}-\d\d-\d\dT\d{6}Z\.zip")
"""Names of the files that ``backup`` creates in a folder."""


@click.command("backup", cls=OperatorCommand)
@with_appcontext
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--keep-days",
    type=click.IntRange(min=1),
    help="If FILE is a folder: after a successful backup, delete backups older than this number of days.",
)
def backup(file: Path, keep_days: int | None) -> None:
    current_runtime = runtime()
    folder = file if file.is_dir() else None
    if folder is not None:
        file = folder / f"site-search-{now():%Y-%m-%dT%H%M%SZ}.zip"
    elif keep_days is not None:
        raise click.UsageError(f"--keep-days requires a folder, but {file} is not a folder.")
    bundled_texts = {SECRET: current_runtime.settings.secret_key}
    if current_runtime.settings.plans_file:
        bundled_texts[PLANS] = Path(current_runtime.settings.plans_file).read_text()
    try:
        manifest = write_backup(
            current_runtime.database,
            file,
            bundled_texts,
            created_at=isoformat(now()),
            program=version("site-search-service"),
        )
    except (BackupError, OSError) as error:
        raise click.ClickException(str(error)) from error
    rows = manifest.rows
    click.echo(
        f"{file}: {counted(rows['accounts'], 'account')}, {counted(rows['sites'], 'site')}, "
        f"{counted(rows['documents'], 'document')}. It contains the installation's secret: keep it private."
    )
    if folder is not None and keep_days is not None:
        _delete_old(folder, keep_days)


def _delete_old(folder: Path, keep_days: int) -> None:
    # By the time in its name, since a copy of a backup has a newer modification time.
    oldest = f"site-search-{now() - timedelta(days=keep_days):%Y-%m-%dT%H%M%SZ}.zip"
    old = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.name < oldest]
    for path in old:
        path.unlink()
    if old:
        click.echo(f"Deleted {counted(len(old), 'old backup')}.")


@click.command("restore", cls=OperatorCommand)
@with_appcontext
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace the contents of the database.")
def restore(file: Path, force: bool) -> None:
    current_runtime = runtime()
    folder = current_runtime.settings.data_path
    try:
        manifest = read_manifest(file)
        secret = read_file(file, SECRET)
        own_secret = os.environ.get("SECRET_KEY", "")
        if own_secret not in ("", secret):
            raise BackupError(
                "SECRET_KEY differs from the backup's, so no API key would be valid. Unset it, or set it to the "
                "backup's."
            )
        if is_in_use(current_runtime.database) and not force:
            raise BackupError(
                "The database has accounts. To replace them with the backup's, stop the service and use --force."
            )
        with restored_tables(current_runtime.database, file, manifest) as session:
            renew_indexes(session, current_runtime.engines)
            discard_queued_emails(session)
            discard_waiting(session)
            session.flush()
            # The secret is written before the tables are committed. After a crash in between, the database is still
            # empty, so the command can be run again.
            if not own_secret:
                _replace(folder / SECRET, secret)
            if PLANS in manifest.files:
                _restore_plans(current_runtime.settings, read_file(file, PLANS))
    except (BackupError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"Restored the backup of {manifest.created_at}: {counted(manifest.rows['sites'], 'site')}, "
        f"{counted(manifest.rows['documents'], 'document')}. Start the service, which then rebuilds the indexes."
    )


def _restore_plans(settings: Settings, plans: str) -> None:
    if settings.plans_file and Path(settings.plans_file).read_text() == plans:
        return
    path = settings.data_path / PLANS
    _replace(path, plans)
    click.echo(f"The backup's plans are in {path}: set PLANS_FILE to it.")


def _replace(path: Path, content: str) -> None:
    """Write a file atomically, readable only by its owner. Overwrites the temporary file of a killed process."""
    temporary = path.with_name(f".{path.name}.restoring")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(content)
        file.flush()
        # Without it, a power failure after the rename could leave an empty file under the final name.
        os.fsync(file.fileno())
    temporary.replace(path)
