"""The list of operator commands, and the code that they share.

Each command is imported when it is invoked. Listing the commands therefore loads none of the service, and a command
that needs only the database, such as ``account list``, loads only a fraction of it.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
import orjson

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

    from app.config import ConfigurationError
    from app.plans import PlanTable
    from app.storage.database import Database
    from backends.errors import BackendError

OPEN_STORAGE = "open_storage"
"""Key of Flask's ``ScriptInfo.data`` under which ``site-search`` puts the function that opens database and plans."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class PermanentFailure(click.ClickException):
    """An error that a restart does not remedy, such as an invalid setting. The systemd units know its exit code."""

    exit_code = os.EX_CONFIG


def startup_error(error: ConfigurationError) -> click.ClickException:
    """Return the error of a command that cannot start the service."""
    kind = PermanentFailure if error.exit_code == PermanentFailure.exit_code else click.ClickException
    return kind(f"The service cannot start: {error}")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are invoked.

    Args:
        lazy_subcommands: Each command's location, as ``module:name``, and its help. The list of commands shows the
            first sentence.
    """

    def __init__(self, *args: Any, lazy_subcommands: dict[str, tuple[str, str]], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.lazy_subcommands = lazy_subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.lazy_subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy_subcommands:
            return None
        path, help_text = self.lazy_subcommands[cmd_name]
        module, name = path.split(":")
        command: click.Command = getattr(import_module(module), name)
        command.help = help_text
        return command

    # Click would import every command for its help.
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            texts = sorted(self.lazy_subcommands.items())
            formatter.write_dl([(name, re.split(r"(?<=\.)\s", text)[0]) for name, (_, text) in texts])


ACCOUNTS = LazyGroup(
    "account",
    lazy_subcommands={
        "create": ("app.commands.accounts:create", "Create an account."),
        "delete": ("app.commands.accounts:delete", "Delete an account and all its data."),
        "list": (
            "app.commands.account_list:list_accounts",
            "List all accounts with their usage and quotas. Searches are up to a minute behind.",
        ),
        "operator": ("app.commands.accounts:operator", "Let a member use the operator area, or list such members."),
        "reset-codes": (
            "app.commands.accounts:reset_codes",
            "Turn off two-factor authentication for a member who lost their phone.",
        ),
        "reset-password": ("app.commands.accounts:reset_password", "Set a member's password and end their sessions."),
        "resume": ("app.commands.accounts:resume", "Resume a suspended account."),
        "set-plan": (
            "app.commands.accounts:set_plan",
            "Change an account's plan and its own limits. "
            "Limits given here override the plan's and replace earlier ones.",
        ),
        "suspend": (
            "app.commands.accounts:suspend",
            "Suspend an account without deleting anything. Its keys and members are blocked, and crawls stop.",
        ),
    },
)

SITES = LazyGroup(
    "site",
    lazy_subcommands={
        "list": ("app.commands.site_list:list_all_sites", "List the sites of all accounts with their engines."),
    },
)

COMMANDS = {
    "account": ("app.commands.cli:ACCOUNTS", "Create, list, change, suspend, and delete accounts."),
    "backup": (
        "app.commands.backup:backup",
        "Write a backup to FILE while the service runs.\n\n"
        "If FILE is a folder, the backup is named after the current time, such as "
        "site-search-2026-11-28T023000Z.zip.\n\n"
        "It contains accounts, sites, documents, keys, statistics, the secret, and the plans. It does not contain "
        "indexes: `restore` rebuilds them from the documents.",
    ),
    "capacity": (
        "app.commands.capacity:capacity",
        "Compute the cores, memory, and disk space that an installation needs.\n\n"
        "The costs of a search, a write, and a page were measured on a machine with two cores; see docs/scaling.md.",
    ),
    "clicks": ("app.commands.search:clicks_group", "Rank results by visitors' clicks."),
    "crawl": (
        "app.commands.crawl:crawl",
        "Crawl the website at URL into a site.\n\n"
        "The command shows progress. It uses the site's source with this URL, or creates one without a schedule. "
        "The exit status is 0 if the run finished, and 1 if it failed or was canceled.",
    ),
    "database": ("app.commands.serve:database_group", "Manage the SQL database."),
    "demo": (
        "app.commands.demo:demo",
        "Set up a demo account with documents, and serve.\n\n"
        "The command prints the account's password and keys, and a search to try.",
    ),
    "doctor": (
        "app.commands.doctor:doctor",
        "Check the installation and suggest remedies.\n\n"
        "The checks cover settings, versions, disk, clocks, database, counters, engine, indexes, and crawls. The exit "
        "status is 1 if there is a problem, and 0 if there are only warnings.",
    ),
    "documents": ("app.commands.documents:group", "Import documents from a file."),
    "openapi": ("app.commands.serve:openapi", "Write the OpenAPI document to FILE or print it."),
    "restore": (
        "app.commands.backup:restore",
        "Restore a backup from FILE into an empty installation.\n\n"
        "Stop the service first. The next start rebuilds the indexes. The original installation may continue to run.",
    ),
    "search": ("app.commands.search:search_group", "Rebuild indexes, or move them to another engine."),
    "serve": ("app.commands.serve:serve", "Serve, on HOST and PORT, until stopped."),
    "site": ("app.commands.cli:SITES", "List the sites of all accounts with their engines."),
    "worker": (
        "app.commands.crawl:worker",
        "Crawl queued runs until stopped.\n\n"
        "Any number of machines may run workers. On SIGTERM, a worker returns its runs to the queue, and another "
        "worker continues them.",
    ),
}


class OperatorCommand(click.Command):
    """A command that names the operator in the audit log, and reports database errors in one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        from sqlalchemy.exc import DBAPIError

        from app.services.audit_log.actors import OPERATOR, acting
        from app.storage.migrate import NewerTables

        try:
            with acting(OPERATOR):
                return super().invoke(ctx)
        except NewerTables as error:
            raise PermanentFailure(str(error)) from error
        except DBAPIError as error:
            raise _database_trouble(open_storage(ctx)[0], error) from error


def _database_trouble(database: Database, error: DBAPIError) -> Exception:
    """Return the error to report for a database error: one sentence, unless the statement is wrong."""
    from sqlalchemy.exc import DBAPIError

    from app.storage.database import is_of_other_tables, is_unavailable
    from app.storage.migrate import NewerTables, TablesState, tables_state

    # Drivers break their messages into several lines.
    unusable = click.ClickException(f"The database cannot be used: {' '.join(str(error.orig).split())}")
    try:
        state = tables_state(database)
    except DBAPIError:
        return unusable
    if state is TablesState.NEWER:
        return PermanentFailure(str(NewerTables()))
    if state is TablesState.OLDER and is_of_other_tables(error):
        return click.ClickException("The database's tables are missing or outdated. Run `database upgrade`.")
    return unusable if is_unavailable(error) and not is_of_other_tables(error) else error


def open_storage(ctx: click.Context) -> tuple[Database, PlanTable]:
    """Return the database and the plans.

    ``flask`` takes them from the application; ``site-search`` opens them without loading the application.
    """
    from flask.cli import ScriptInfo

    info = ctx.ensure_object(ScriptInfo)
    if OPEN_STORAGE in info.data:
        storage: tuple[Database, PlanTable] = info.data[OPEN_STORAGE]()
        return storage
    runtime = info.load_app().extensions["runtime"]
    return runtime.database, runtime.plans


def print_result(as_json: bool, value: Any, text: str) -> None:
    """Print ``value`` as JSON or ``text`` for people."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if as_json else text)


def engine_problem(error: BackendError) -> str:
    """Describe an engine's error for the operator, including the engine's message, which customers must not see."""
    return f"{error} ({error.__cause__})" if error.__cause__ else str(error)
